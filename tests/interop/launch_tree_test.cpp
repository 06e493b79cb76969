// Configurations of training frameworks: what is read of each, at which line, and how bad ones are refused.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launch_in/tree.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

LaunchedRun tree_run_of(const std::string& text, const std::string& file = "run.yaml") {
  return read_tree_file(text, file, {});
}

std::int64_t line_in(const LaunchedRun& run, std::string_view field) {
  for (const LaunchSetting& setting : run.strategy) {
    if (setting.field == field) return setting.at.line;
  }
  return -1;
}

bool remarks_hold(const LaunchedRun& run, LaunchRemarkKind kind, std::string_view part) {
  return std::any_of(run.remarks.begin(), run.remarks.end(), [&](const LaunchRemark& remark) {
    return remark.kind == kind && remark.text.find(part) != std::string::npos;
  });
}

// The first problem of a text that is refused: "run.yaml:3: ...".
std::string refusal_of(const std::string& text, const std::string& file = "run.yaml") {
  try {
    read_tree_file(text, file, {});
  } catch (const InputError& error) {
    return error.problems().front().where + ": " + error.problems().front().rule;
  }
  return "";
}

const char* const titan_text = R"([model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 2
seq_len = 4096
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
tensor_parallel_degree = 8
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = "full"
[compile]
enable = true
)";

}  // namespace

TEST_CASE("torchtitan's TOML: sizes, shards, batch and their lines") {
  const LaunchedRun run = tree_run_of(titan_text, "run.toml");
  CHECK(run.framework == "torchtitan");
  CHECK(run.software == "torchtitan-2025");
  REQUIRE(run.model);
  CHECK(run.model->name == "llama-3-70b");
  CHECK(value_in(run, "tensor_parallel") == "8");
  CHECK(line_in(run, "tensor_parallel") == 10);
  CHECK(value_in(run, "data_parallel") == "8");
  CHECK(value_in(run, "shard_size") == "4");
  CHECK(value_in(run, "micro_batch") == "2");
  CHECK(value_in(run, "global_batch") == "16");
  CHECK(value_in(run, "sequence_parallel") == "yes");
  CHECK(value_in(run, "recompute") == "full");
  CHECK(run.devices == 64);
}

TEST_CASE("torchtitan's TOML: a pipeline cuts the local batch into microbatches") {
  const LaunchedRun run = tree_run_of(
      "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 8\nseq_len = 2048\n"
      "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'Interleaved1F1B'\n",
      "run.toml");
  CHECK(value_in(run, "micro_batch") == "1");
  CHECK(run.accumulation == 8);
  CHECK(value_in(run, "schedule") == "interleaved");
  CHECK(value_in(run, "no_reshard_after_forward") == "yes");
}

TEST_CASE("DeepSpeed's JSON: stages, offloading, batches") {
  const LaunchedRun run = tree_run_of(
      "{\n \"train_micro_batch_size_per_gpu\": 2,\n \"gradient_accumulation_steps\": 8,\n"
      " \"zero_optimization\": {\n  \"stage\": 3,\n  \"offload_optimizer\": {\"device\": \"cpu\"},\n"
      "  \"reduce_bucket_size\": 5e8\n }\n}",
      "ds.json");
  CHECK(run.software == "deepspeed-2025");
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(line_in(run, "data_sharding") == 5);
  CHECK(value_in(run, "optimizer_offload_fraction") == "1");
  CHECK(run.accumulation == 8);
  CHECK_FALSE(run.model);
  CHECK(std::any_of(run.stack.begin(), run.stack.end(), [](const LaunchSetting& setting) {
    return setting.field == "bucket_parameters" && setting.value == "500000000" && setting.at.line == 7;
  }));
  CHECK(remarks_hold(run, LaunchRemarkKind::implied, "overlap_comm is on"));
}

TEST_CASE("torchtune and torchtitan: steps in the backward pass") {
  const LaunchedRun tune = tree_run_of(
      "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 2\n"
      "gradient_accumulation_steps: 1\noptimizer_in_bwd: True\nenable_activation_checkpointing: True\n"
      "optimizer:\n  _component_: torch.optim.AdamW\n");
  CHECK(tune.software == "torchtune");
  CHECK(value_in(tune, "step_in_backward") == "yes");
  const LaunchedRun titan = tree_run_of(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
      "[optimizer]\nname = \"AdamW\"\nearly_step_in_backward = true\n[parallelism]\n"
      "data_parallel_shard_degree = 8\n",
      "train.toml");
  CHECK(titan.software == "torchtitan-2025");
  CHECK(value_in(titan, "step_in_backward") == "yes");
}

TEST_CASE("accelerate's YAML: shards, replicas and GPUs") {
  const LaunchedRun run = tree_run_of(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_reshard_after_forward: false\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n"
      "parallelism_config:\n  parallelism_config_tp_size: 2\n  parallelism_config_dp_shard_size: 4\n"
      "  parallelism_config_dp_replicate_size: 2\n");
  CHECK(run.devices == 16);
  CHECK(run.devices_per_node == 8);
  CHECK(value_in(run, "data_parallel") == "8");
  CHECK(value_in(run, "shard_size") == "4");
  CHECK(value_in(run, "no_reshard_after_forward") == "yes");
}

TEST_CASE("The Trainer's YAML: adapters, dtypes and what follows") {
  const LaunchedRun run = tree_run_of(
      "model_name_or_path: meta-llama/Llama-3.1-8B-Instruct\nper_device_train_batch_size: 4\n"
      "gradient_accumulation_steps: 2\nmax_length: 2048\nuse_peft: true\nlora_r: 8\nload_in_4bit: true\n"
      "lora_target_modules: [q_proj, v_proj, lm_head]\ngradient_checkpointing: true\n");
  CHECK(run.model->name == "llama-3-8b");
  CHECK(value_in(run, "lora_targets") == "q_proj,v_proj");
  CHECK(value_in(run, "base_dtype") == "nf4");
  CHECK(value_in(run, "recompute") == "full");
  CHECK(remarks_hold(run, LaunchRemarkKind::unmodelled, "lm_head"));
}

TEST_CASE("The Trainer behind accelerate: its shards and GPUs") {
  const auto flag = [](std::string name, std::string value) {
    return Written{name, {value}, "--" + name + " " + value, {"run.sh", 9}, ""};
  };
  TrainerLaunch launch;
  launch.written = {flag("model_name_or_path", "Qwen/Qwen3-8B"), flag("per_device_train_batch_size", "2"),
                    flag("max_seq_length", "1024")};
  launch.accelerate = {flag("distributed_type", "FSDP"),
                       flag("fsdp_config.fsdp_sharding_strategy", "FULL_SHARD"), flag("num_processes", "8")};
  const LaunchedRun run = read_trainer_words(launch, "run.sh", {});
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "global_batch") == "16");
  CHECK(run.devices == 8);
}

TEST_CASE("GPT-NeoX: gradient accumulation is above 0, and its two names agree") {
  const auto problem = [](const std::string& accumulation) {
    return refusal_of(
        "pipe_parallel_size: 1\nnum_gpus: 8\ntrain_micro_batch_size_per_gpu: 4\n" + accumulation, "neox.yml");
  };
  CHECK(problem("gas: 0") == "neox.yml:4: gas: must be above 0, not 0");
  CHECK(problem("gas: -1") == "neox.yml:4: gas: must be above 0, not -1");
  CHECK(problem("gas: 2\ngradient_accumulation_steps: 4") ==
        "neox.yml:5: gradient_accumulation_steps: sets what gas: 2 sets too (neox.yml:4): give one of them");
  CHECK(problem("gas: 2\ngradient_accumulation_steps: 2").empty());
}

TEST_CASE("launch trees: a variable of the environment that decides a field is needed") {
  const LaunchedRun run = tree_run_of(
      "base_model: Qwen/Qwen3-8B\nmicro_batch_size: ${MBS}\nsequence_len: ${oc.env:LEN}\noutput_dir: "
      "${OUT}\n");
  std::string fields;
  for (const LaunchRemark& remark : run.remarks) {
    if (remark.kind == LaunchRemarkKind::unresolved) fields += remark.field + ": " + remark.text + "\n";
  }
  CHECK(fields ==
        "micro_batch: micro_batch_size: ${MBS}: needs $MBS: give it with --env NAME=VALUE\n"
        "sequence: sequence_len: ${oc.env:LEN}: needs $LEN: give it with --env NAME=VALUE\n");
}

TEST_CASE("axolotl: bnb_config_kwargs decide double quantization, which is on by default") {
  const auto base = [](const std::string& more) {
    return value_in(
        tree_run_of("base_model: NousResearch/Meta-Llama-3-8B\nadapter: qlora\n" + more, "ax.yml"),
        "base_dtype");
  };
  CHECK(base("") == "nf4");
  CHECK(base("load_in_4bit: true") == "nf4");
  CHECK(base("bnb_config_kwargs:\n  bnb_4bit_use_double_quant: false") == "nf4_single");
  CHECK(base("load_in_4bit: true\nbnb_config_kwargs:\n  bnb_4bit_use_double_quant: true") == "nf4");
}

TEST_CASE("LLaMA-Factory and axolotl: defaults are replayed") {
  const LaunchedRun factory = tree_run_of(
      "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\ntemplate: qwen3\n"
      "per_device_train_batch_size: 1\nbf16: true\n");
  CHECK(factory.framework == "LLaMA-Factory");
  CHECK(value_in(factory, "recompute") == "full");
  CHECK(value_in(factory, "sequence") == "2048");
  const LaunchedRun axolotl = tree_run_of(
      "base_model: unsloth/Meta-Llama-3.1-8B\nadapter: qlora\nlora_r: 16\nsequence_len: 4096\n"
      "micro_batch_size: 2\ngradient_accumulation_steps: 4\ndp_shard_size: 8\ngradient_checkpointing: "
      "true\n");
  CHECK(axolotl.model->name == "llama-3-8b");
  CHECK(value_in(axolotl, "base_dtype") == "nf4");
  CHECK(value_in(axolotl, "global_batch") == "64");
}

TEST_CASE("nanotron, GPT-NeoX and llm-foundry: models are built from their sizes") {
  const LaunchedRun nanotron = tree_run_of(
      "model:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 1024\n    intermediate_size: 4096\n"
      "    num_hidden_layers: 14\n    num_attention_heads: 8\n    num_key_value_heads: 4\n    vocab_size: "
      "49152\n"
      "optimizer:\n  zero_stage: 1\n  accumulate_grad_in_fp32: true\n"
      "parallelism:\n  dp: 4\n  tp: 2\n  pp: 2\n  tp_mode: REDUCE_SCATTER\n"
      "tokens:\n  micro_batch_size: 8\n  batch_accumulation_per_replica: 4\n  sequence_length: 1024\n");
  CHECK(nanotron.devices == 16);
  CHECK(nanotron.model->layers == 14);
  CHECK(value_in(nanotron, "global_batch") == "128");
  CHECK(value_in(nanotron, "schedule") == "gpipe");
  const LaunchedRun neox = tree_run_of(
      "{\n \"pipe-parallel-size\": 4,\n \"model-parallel-size\": 2,\n \"num-layers\": 44,\n \"hidden-size\": "
      "6144,\n"
      " \"num-attention-heads\": 64,\n \"seq-length\": 2048,\n \"zero_optimization\": {\"stage\": 1},\n"
      " \"train_micro_batch_size_per_gpu\": 4,\n \"gradient_accumulation_steps\": 32,\n}\n");
  CHECK(neox.framework == "GPT-NeoX");
  CHECK(neox.model->hidden == 6144);
  CHECK(value_in(neox, "pipeline_parallel") == "4");
  const LaunchedRun foundry = tree_run_of(
      "max_seq_len: 2048\nmodel:\n  name: mpt_causal_lm\n  d_model: 2048\n  n_heads: 16\n  n_layers: 24\n"
      "  expansion_ratio: 4\n  max_seq_len: ${max_seq_len}\n  vocab_size: 50368\nglobal_train_batch_size: "
      "512\n"
      "device_train_microbatch_size: 4\nfsdp_config:\n  sharding_strategy: SHARD_GRAD_OP\n");
  CHECK(foundry.model->max_positions == 2048);
  CHECK(value_in(foundry, "no_reshard_after_forward") == "yes");
}

TEST_CASE("Configurations: what is unknown is told apart") {
  const std::string base = "base_model: Qwen/Qwen3-8B\nsequence_len: 512\nmicro_batch_size: 1\n";
  CHECK(remarks_hold(tree_run_of(base + "wandb_project: x\n"), LaunchRemarkKind::idle, "wandb_project"));
  CHECK(remarks_hold(tree_run_of(base + "sparse_gradient_codec: x\n"), LaunchRemarkKind::unmodelled,
                     "not known"));
  CHECK(refusal_of(base + "sample_packin: true\n").empty());
  const LaunchedRun twice = tree_run_of(base + "micro_batch_size: 4\n");
  CHECK(value_in(twice, "micro_batch") == "4");
  CHECK(remarks_hold(twice, LaunchRemarkKind::implied, "takes the place of the same key in line 3"));
  CHECK(remarks_hold(tree_run_of("base_model: me/mine-7B\nmicro_batch_size: 1\n"),
                     LaunchRemarkKind::unresolved, "give --model"));
  CHECK(refusal_of("base_model: Qwen/Qwen3-8B\nmicro_batch_size: two\n")
            .starts_with("run.yaml:2: micro_batch_size"));
  CHECK(refusal_of("a: 1\n").find("torchtitan") != std::string::npos);
}

TEST_CASE("Trees: hostile texts are refused at their line") {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) laughs += ", " + before;
    laughs += "]\n";
  }
  CHECK(refusal_of(laughs).find("aliases written out") != std::string::npos);
  CHECK(refusal_of("a: &a [*a]\n").starts_with("run.yaml:1"));
  CHECK(refusal_of(std::string(100'000, '[')).starts_with("run.yaml"));
  CHECK(refusal_of(std::string(100'000, '['), "run.json").find("nested deeper") != std::string::npos);
  CHECK(refusal_of("a = " + std::string(100'000, '['), "run.toml").starts_with("run.toml:1"));
  CHECK(refusal_of(std::string(10 << 20, 'a')).find("larger than") != std::string::npos);
  CHECK(refusal_of("a: \xFF\n").starts_with("run.yaml:1: is not UTF-8"));
  CHECK(refusal_of("a: 1\n---\nb: 2\n").find("second document") != std::string::npos);
  CHECK(refusal_of("a:\n\t- 1\n").starts_with("run.yaml:"));
  CHECK(refusal_of("{\n \"a\": 1,\n \"a\": 2\n}", "run.json").starts_with("run.json:3: a is given twice"));
  CHECK(refusal_of("{\"a\": ", "run.json").starts_with("run.json:1"));
  CHECK(refusal_of("a = 1\na = 2\n", "run.toml").starts_with("run.toml:2"));
  CHECK(refusal_of("").starts_with("run.yaml"));
  CHECK(refusal_of("a = 1\n.b = 2\n[}]\n", "run.toml").starts_with("run.toml:2"));
}

TEST_CASE("TOML: characters beyond ASCII come back as they are written, and are refused outside of strings") {
  const TreeNode read = parse_toml(
      "# \u3000\u00e9\n\"\u00e9\u20ac\" = '\u0080\u07ff\u0800\ud7ff\ue000\uffff\U0001f600'\n"
      "after = \"\"\"a\\\n\u00e9\"\"\"\nescaped = \"\\u00e9\\U00100041\\U0010d800\\U0001f600\"\n",
      "run.toml");
  const auto text_of = [&](std::string_view key) {
    const TreeNode* const member = member_of(read, key);
    return member == nullptr ? std::string("none") : member->text;
  };
  CHECK(text_of("\u00e9\u20ac") == "\u0080\u07ff\u0800\ud7ff\ue000\uffff\U0001f600");
  CHECK(text_of("after") == "a\u00e9");
  CHECK(text_of("escaped") == "\u00e9\U00100041\U0010d800\U0001f600");
  CHECK(refusal_of("a = 1\n\u00e9 = 1\n", "run.toml").starts_with("run.toml:2"));
  CHECK(refusal_of("a = 1 \u0100\n", "run.toml").starts_with("run.toml:1"));
  CHECK(refusal_of("a = 1\nb = '\U00100000'\n", "run.toml").starts_with("run.toml:2: has a character"));
}

TEST_CASE("Trees: marks, ends of lines and dates") {
  const TreeNode marked = parse_yaml(
      "\xEF\xBB\xBF"
      "a: 1\r\nb:\r\n  c: [1, 2]\r\n",
      "run.yaml");
  CHECK(at_path(marked, "b.c")->line == 3);
  CHECK(parse_toml("a = 1979-05-27\n", "run.toml").members.front().text == "1979-05-27");
  TreeNode tree = parse_yaml(
      "base: &base {x: 1, y: 2}\nnext:\n  <<: *base\n  y: 3\n  z: ${base.x}${oc.env:HOME,0}\n", "run.yaml");
  interpolate(tree, {{"HOME", "7"}});
  CHECK(at_path(tree, "next.x")->text == "1");
  CHECK(at_path(tree, "next.y")->text == "3");
  CHECK(at_path(tree, "next.z")->text == "17");
}

TEST_CASE("Python: a recipe's calls, defaults, branches and references are followed") {
  const char* const text = R"(
from nowhere import base_config, Strategy

def helper(cfg):
    cfg.train.micro_batch_size = 2

def trainer(tp: int = 2, nodes: int = 4, fast: bool = False):
    strategy = Strategy(tensor_model_parallel_size=tp, pipeline_model_parallel_size=2 * tp)
    if fast:
        strategy.tensor_model_parallel_size = 64
    elif nodes > 2:
        strategy.context_parallel_size = 2
    return strategy

def llama3_70b_pretrain_64gpu_h100_bf16_config():
    cfg = base_config()
    cfg.model = trainer(nodes=8)
    cfg.train.global_batch_size = 1024
    helper(cfg)
    cfg.mixed_precision = "bf16_mixed"
    return cfg
)";
  const LaunchedRun run =
      read_python_config(text, "recipe.py", "llama3_70b_pretrain_64gpu_h100_bf16_config", {});
  CHECK(run.framework == "Megatron-Bridge");
  CHECK(run.devices == 64);
  CHECK(value_in(run, "tensor_parallel") == "2");
  CHECK(value_in(run, "pipeline_parallel") == "4");
  CHECK(value_in(run, "context_parallel") == "2");
  CHECK(value_in(run, "micro_batch") == "2");
  CHECK(line_in(run, "micro_batch") == 5);
  CHECK(value_in(run, "global_batch") == "1024");
  CHECK(remarks_hold(run, LaunchRemarkKind::unresolved, "starts from base_config"));
}

namespace {

std::string choice_in(const LaunchedRun& run, std::string_view field) {
  for (const LaunchSetting& setting : run.stack) {
    if (setting.field == field) return setting.value;
  }
  return "";
}

std::string primus(const std::string& framework, const std::string& model, const std::string& overrides) {
  return "modules:\n  pre_trainer:\n    framework: " + framework + "\n    model: " + model +
         "\n    overrides:\n" + overrides;
}

}  // namespace

TEST_CASE("Primus: torchtitan's flavors, and keys of Megatron-Core before those that nobody looks at") {
  const LaunchedRun titan =
      tree_run_of(primus("torchtitan", "deepseek_v3_16b.yaml",
                         "      training:\n        local_batch_size: 2\n        seq_len: 2048\n"
                         "      file_sink_level: DEBUG\n"));
  CHECK(titan.model_name == "deepseek-v2-lite");
  CHECK_FALSE(remarks_hold(titan, LaunchRemarkKind::unmodelled, "sink_level"));
  const std::string core =
      "      micro_batch_size: 1\n      global_batch_size: 16\n      seq_length: 2048\n"
      "      expert_model_parallel_size: 8\n      overlap_param_gather: false\n      nccl_ub: true\n"
      "      gradient_accumulation_fusion: false\n      cross_entropy_loss_fusion: true\n"
      "      cross_entropy_fusion_impl: te\n      multi_latent_attention: false\n      my_own_key: 3\n"
      "      use_turbo_deepep: true\n";
  const LaunchedRun run = tree_run_of(primus("megatron", "deepseek_v2_lite.yaml", core));
  CHECK(value_in(run, "moe_dispatcher") == "deepep");
  CHECK(choice_in(run, "overlap_param_gather") == "false");
  CHECK(choice_in(run, "gradient_accumulation") == "separate");
  CHECK(choice_in(run, "cross_entropy") == "fused_fp32");
  CHECK(remarks_hold(run, LaunchRemarkKind::unmodelled, "nccl_ub"));
  CHECK(remarks_hold(run, LaunchRemarkKind::unmodelled, "multi_latent_attention: false: attention without"));
  CHECK(remarks_hold(run, LaunchRemarkKind::idle, "my_own_key"));
  const LaunchedRun off =
      tree_run_of(primus("megatron", "deepseek_v2_lite.yaml", core + "      enable_primus_turbo: false\n"));
  CHECK(value_in(off, "moe_dispatcher").empty());
}

TEST_CASE("GPT-NeoX: attention by kernel, softmax that is not fused, and one word about fp16") {
  const std::string text =
      "num_layers: 12\nhidden_size: 768\nnum_attention_heads: 12\nseq_length: 2048\nmax_position_embeddings: "
      "2048\n"
      "pipe_parallel_size: 1\nmodel_parallel_size: 1\ntrain_micro_batch_size_per_gpu: 4\n"
      "fp16: {fp16: true, enabled: true}\nzero_optimization: {stage: 1}\nmonitor_config.x: 1\n";
  const LaunchedRun flash = tree_run_of(text + "attention-config: [[[\"flash\"], 12]]\n");
  REQUIRE(flash.model);
  CHECK(flash.model->architecture.kernels.attention == AttentionKernel::flash);
  CHECK(std::count_if(flash.remarks.begin(), flash.remarks.end(),
                      [](const LaunchRemark& remark) { return remark.text.starts_with("fp16 takes"); }) == 1);
  const LaunchedRun plain = tree_run_of(
      text + "attention-config: [[[\"global\"], 12]]\nscaled-upper-triang-masked-softmax-fusion: false\n");
  CHECK(plain.model->architecture.kernels.attention == AttentionKernel::unfused);
  CHECK(plain.model->architecture.kernels.softmax == Fusion::unfused);
  CHECK(remarks_hold(tree_run_of(text + "attention-config: [[[\"local\"], 12]]\n"),
                     LaunchRemarkKind::unmodelled, "attention of other kinds"));
}

TEST_CASE("what trainers set beside the Trainer: dtypes, losses, kernels") {
  const std::string axolotl =
      "base_model: NousResearch/Meta-Llama-3.1-8B\nsequence_len: 4096\nmicro_batch_size: 1\n"
      "gradient_accumulation_steps: 2\noptimizer: adamw_torch_fused\n";
  CHECK(value_in(tree_run_of(axolotl), "main_params_dtype") == "none");
  CHECK(value_in(tree_run_of(axolotl + "bf16: auto\n"), "exp_avg_dtype") == "bf16");
  CHECK(value_in(tree_run_of(axolotl + "bf16: false\n"), "main_params_dtype") == "");
  CHECK(value_in(tree_run_of(axolotl + "adapter: lora\nlora_r: 8\n"), "main_params_dtype") == "");
  const LaunchedRun offloaded = tree_run_of(axolotl + "gradient_checkpointing: offload\n");
  CHECK(offloaded.software == "hf-trainer");
  CHECK(value_in(offloaded, "offload_modules") == "layer_input");
  const LaunchedRun factory = tree_run_of(
      "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: "
      "lora\nlora_rank: 8\n"
      "cutoff_len: 2048\nper_device_train_batch_size: 1\nuse_unsloth: true\ntemplate: llama3\n");
  CHECK(factory.software == "unsloth");
  CHECK(value_in(factory, "offload_modules") == "layer_input");
  const LaunchedRun trl = tree_run_of(
      "model_name_or_path: meta-llama/Llama-3.1-8B-Instruct\nper_device_train_batch_size: 4\nmax_length: "
      "2048\n"
      "loss_type: chunked_nll\ngradient_checkpointing: true\n");
  CHECK(choice_in(trl, "cross_entropy") == "linear_fused");
}

TEST_CASE("lengths, microbatches and losses that a file does not say are told") {
  const LaunchedRun tune = tree_run_of(
      "model: {_component_: torchtune.models.llama3.llama3_8b}\noptimizer: {_component_: torch.optim.AdamW}\n"
      "tokenizer: {max_seq_len: null}\nloss: {_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}\n"
      "dataset: {packed: true}\ndtype: bf16\nfsdp_cpu_offload: True\n"
      "custom_sharded_layers: [tok_embeddings, output]\n");
  CHECK(tune.software == "torchtune");
  CHECK(choice_in(tune, "sharding.ends_in_root") == "false");
  CHECK(remarks_hold(tune, LaunchRemarkKind::assumed, "sequences are as long as the model's longest"));
  CHECK(remarks_hold(tune, LaunchRemarkKind::assumed, "a microbatch is one sequence"));
  CHECK(remarks_hold(tune, LaunchRemarkKind::unmodelled, "dataset.packed"));
  CHECK(choice_in(tune, "memory.fp32_logits") == "false");
  const LaunchedRun deepspeed = tree_run_of(
      "{\"zero_optimization\": {\"stage\": 3, \"sub_group_size\": 1e9, \"stage3_max_live_parameters\": 1e9}}",
      "ds.json");
  CHECK(remarks_hold(deepspeed, LaunchRemarkKind::unmodelled, "sub_group_size"));
  CHECK(remarks_hold(deepspeed, LaunchRemarkKind::unmodelled, "weights that stay gathered"));
  CHECK(remarks_hold(deepspeed, LaunchRemarkKind::assumed, "sequences are as long"));
}

TEST_CASE("llm-foundry: weights of 16 bits and the allocator; names that change nothing") {
  const LaunchedRun run = tree_run_of(
      "global_train_batch_size: 8\ndevice_train_microbatch_size: 1\nmax_seq_len: 2048\n"
      "model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Meta-Llama-3-8B, "
      "config_overrides: {torch_dtype: bfloat16}}\nexpandable_segments: true\nicl_seq_len: 1024\n"
      "load_weights_only: true\n");
  CHECK(value_in(run, "main_params_dtype") == "none");
  CHECK(choice_in(run, "memory.expandable_segments") == "true");
  CHECK_FALSE(remarks_hold(run, LaunchRemarkKind::unmodelled, ""));
  const LaunchedRun env = tree_run_of(
      "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\nsequence_len: 2048\nsave_only_model: true\nval_size: "
      "0.1\n"
      "env: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}\n");
  CHECK(choice_in(env, "memory.expandable_segments") == "true");
  CHECK_FALSE(remarks_hold(env, LaunchRemarkKind::unmodelled, ""));
}

TEST_CASE("Python: hostile texts end in an error or a value") {
  const auto refused = [](const std::string& text) {
    try {
      read_python_config(text, "a.py", "f", {});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("def f():\n    return f()\n").find("too deeply") != std::string::npos);
  CHECK(refused("def f(:\n").find("open bracket") != std::string::npos);
  CHECK(refused("x = '''abc\n").find("a.py:1") != std::string::npos);
  CHECK(refused("def f():\n  return " + std::string(50'000, '(') + std::string(50'000, ')') + "\n")
            .find("nested") != std::string::npos);
  CHECK(refused("def f():\n  return " + std::string(50'000, '-') + "1\n").find("nested") !=
        std::string::npos);
  std::string chain = "def f():\n  a = c()\n  h = a\n";
  for (int i = 0; i < 20'000; ++i) chain += "  h.x = d()\n  h = h.x\n";
  CHECK_FALSE(refused(chain + "  return a\n").empty());
  CHECK(refused("def f():\n  a = c()\n  a.a = a\n  return a\n").empty());
  CHECK(refused("def g(): return 1\n").find("has no function 'f'") != std::string::npos);
}

}  // namespace headroom::tests
