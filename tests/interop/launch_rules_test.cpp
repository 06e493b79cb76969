// Rules of frameworks that a launch file breaks, each refused by the framework's own; and files that keep them.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests::launch_rules {
namespace {

LaunchedRun run_of(const std::string& text, const std::string& file = "run.yaml") {
  return read_tree_file(text, file, {});
}

// The rules that a run breaks on its own GPUs, with their sources.
std::string refusals_in(const LaunchedRun& run) {
  std::string text;
  std::vector<LaunchRefusal> refusals = run.refusals;
  const std::string ranks = value_in(run, "data_parallel");
  if (auto refusal = batch_refusal(run, ranks.empty() ? 1 : std::stoll(ranks)))
    refusals.push_back(std::move(*refusal));
  for (const LaunchRefusal& refusal : refusals)
    text += refusal.fields.front() + ": " + refusal.rule + " [" + refusal.source + "]\n";
  return text;
}

bool refuses(const LaunchedRun& run, std::string_view part) {
  return refusals_in(run).find(part) != std::string::npos;
}

std::string problem_of(const std::string& text, const std::string& file = "run.yaml") {
  try {
    run_of(text, file);
  } catch (const InputError& error) {
    return error.problems().front().rule;
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const char* const titan = R"([model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 4
seq_len = 8192
[parallelism]
data_parallel_shard_degree = 4
tensor_parallel_degree = 8
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2
fsdp_reshard_after_forward = "default"
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "full"
[compile]
enable = true
)";

LaunchedRun titan_run(const std::string& from = "", const std::string& to = "") {
  return run_of(from.empty() ? titan : replaced(titan, from, to), "run.toml");
}

std::string titan_problem(const std::string& from, const std::string& to) {
  return problem_of(replaced(titan, from, to), "run.toml");
}

}  // namespace

TEST_CASE("launch rules: what torchtitan refuses") {
  CHECK(refusals_in(titan_run()).empty());
  CHECK(refuses(titan_run("enable = true", "enable = false"),
                "asynchronous tensor parallelism needs a compiled"));
  CHECK(refuses(titan_run("enable = true", "enable = true\ncomponents = [\"loss\"]"), "compiled model"));
  CHECK(refusals_in(titan_run("enable = true", "enable = true\ncomponents = [\"model\", \"loss\"]")).empty());
  const LaunchedRun odd = titan_run("local_batch_size = 4", "local_batch_size = 5");
  CHECK(refuses(odd, "must divide the local batch (5 % 2 = 1) [torchtitan, "));
  CHECK(odd.refusals.front().at.line == 12);
  CHECK(titan_problem("Interleaved1F1B", "OneFOneB") ==
        "must be 1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble or DualPipeV, "
        "not 'OneFOneB'");
  CHECK(titan_problem("Interleaved1F1B", "InterleavedZeroBubble").empty());
  CHECK(titan_problem("\"full\"", "\"fully\"") ==
        "must be none, selective, full or memory_budget, not 'fully'");
  CHECK(titan_problem("\"default\"", "\"sometimes\"") == "must be default, always or never, not 'sometimes'");
  const std::string budget = replaced(titan, "\"full\"", "\"memory_budget\"");
  CHECK(refusals_in(run_of(budget, "run.toml")).empty());
  CHECK(refuses(run_of(replaced(budget, "enable = true", "enable = false"), "run.toml"),
                "memory_budget needs"));
}

TEST_CASE("launch rules: what DeepSpeed refuses") {
  const std::string config =
      R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 16, "train_batch_size": 64,
          "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "tensor_parallel": {"autotp_size": 2}})";
  const LaunchFolder files;
  const std::string program = "torchrun --nproc-per-node 8 train.py --model gpt2 --deepspeed_config ds.json";
  const auto started = [&](const std::string& json) {
    files.with("ds.json", json);
    return read_launch_script(program, files.with("launch.sh", program), {.model = "llama-3-8b"});
  };
  const LaunchedRun good = started(config);
  CHECK(refusals_in(good).empty());
  CHECK_FALSE(says(good, "per_device_train_batch_size"));
  CHECK(value_in(good, "micro_batch") == "1");
  CHECK(refuses(
      started(replaced(config, "64", "100")),
      "global_batch: must be microbatch x accumulation x DP (100 is not 1 x 16 x 4 = 64) [DeepSpeed, "));
  CHECK(refuses(started(replaced(config, "\"bf16\"", "\"fp16\": {\"enabled\": true}, \"bf16\"")),
                "bf16 and fp16 cannot both be enabled"));
  CHECK(refusals_in(started(replaced(config, "\"bf16\"", "\"fp16\": {\"enabled\": \"auto\"}, \"bf16\"")))
            .empty());
  CHECK(refuses(started("{\"zero_optimization\": {\"stage\": 2}}"), "needs train_batch_size or"));
  const LaunchedRun of_batch = started("{\"train_batch_size\": 64, \"zero_optimization\": {\"stage\": 2}}");
  CHECK(refusals_in(of_batch).empty());
  CHECK(value_in(of_batch, "micro_batch") == "8");
  // By itself the file does not say how many ranks there are.
  CHECK(refusals_in(run_of(config, "ds.json")).empty());
  CHECK(refuses(run_of(replaced(config, "64", "100"), "ds.json"),
                "must be a multiple of microbatch x accumulation"));
}

TEST_CASE("launch rules: what the Trainer refuses of its arguments and of DeepSpeed's file") {
  const LaunchFolder files;
  const std::string run =
      "model_name_or_path: gpt2\ndeepspeed: ds.json\nper_device_train_batch_size: 2\nbf16: true\n"
      "gradient_accumulation_steps: 8\nmax_length: 1024\noutput_dir: out\n";
  const auto started = [&](const std::string& json, const std::string& yaml) {
    files.with("ds.json", json);
    return read_tree_file(yaml, files.with("run.yaml", yaml), {.model = "gpt2-small"});
  };
  const std::string automatic =
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
          "zero_optimization": {"stage": 3}, "fp16": {"enabled": "auto"}, "bf16": {"enabled": true}})";
  CHECK(refusals_in(started(automatic, run)).empty());
  CHECK(
      refuses(started(replaced(automatic, "\"auto\"", "4"), run),
              "micro_batch: must be the Trainer's per_device_train_batch_size, 2: write auto [Hugging Face"));
  CHECK(refusals_in(started(replaced(automatic, "\"auto\"", "2"), run)).empty());
  CHECK(refuses(started(replaced(automatic, "steps\": \"auto\"", "steps\": 4"), run),
                "must be the Trainer's gradient_accumulation_steps, 8"));
  CHECK(refuses(started(R"({"zero_optimization": {"stage": 3}, "fp16": {"enabled": true}})", run),
                "must be the Trainer's fp16, false"));
  CHECK(refuses(started(automatic, run + "fp16: true\n"), "at most one of bf16 and fp16"));
  CHECK(refusals_in(started(automatic, run + "fp16: false\n")).empty());
}

TEST_CASE("launch rules: what nanotron refuses") {
  const std::string good =
      "parallelism:\n  dp: 2\n  pp: 4\n  tp: 4\n  pp_engine: 1f1b\n  tp_mode: REDUCE_SCATTER\n"
      "  tp_linear_async_communication: true\n"
      "tokens:\n  micro_batch_size: 1\n  sequence_length: 2048\n  batch_accumulation_per_replica: 3\n"
      "model:\n  model_config:\n    hidden_size: 1024\n    num_hidden_layers: 8\n    num_attention_heads: "
      "16\n"
      "    num_key_value_heads: 4\n    intermediate_size: 4096\n    vocab_size: 32000\n"
      "    max_position_embeddings: 2048\n    tie_word_embeddings: false\n"
      "optimizer:\n  zero_stage: 1\n";
  CHECK(refusals_in(run_of(good)).empty());
  CHECK(refuses(run_of(replaced(good, "replica: 3", "replica: 2")),
                "1f1b needs 3 microbatches or more (PP - 1)"));
  CHECK(refusals_in(run_of(replaced(replaced(good, "replica: 3", "replica: 2"), "1f1b", "afab"))).empty());
  CHECK(refuses(run_of(replaced(good, "heads: 4", "heads: 2")), "must be at most the 2 key/value heads"));
  CHECK(refuses(run_of(replaced(good, "REDUCE_SCATTER", "ALL_REDUCE")), "needs tp_mode REDUCE_SCATTER"));
  CHECK(problem_of(replaced(good, "1f1b", "interleaved")) == "must be 1f1b or afab");
  CHECK(problem_of(replaced(good, "REDUCE_SCATTER", "SCATTER")) == "must be ALL_REDUCE or REDUCE_SCATTER");
}

TEST_CASE("launch rules: what accelerate refuses") {
  const std::string good =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\n"
      "mixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_reshard_after_forward: true\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
      "parallelism_config:\n  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 2\n";
  CHECK(refusals_in(run_of(good)).empty());
  CHECK_FALSE(says(run_of(good), "NO_WRAP"));
  CHECK(
      refuses(run_of(replaced(good, "shard_size: 4", "shard_size: 2")),
              "the sizes of parallelism_config must multiply to the 8 processes (2 x 2 = 4) [accelerate, "));
  CHECK(
      refuses(run_of(replaced(good, "forward: true", "forward: FULL_SHARD")), "must be true or false with"));
  CHECK(refuses(run_of(replaced(good, "SHARDED_STATE", "LOCAL_STATE")), "needs SHARDED_STATE_DICT"));
  CHECK(says(run_of(replaced(good, "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n", "")), "NO_WRAP"));
  CHECK(refuses(run_of(replaced(good, "_tp_size: 2", "_cp_size: 2\n  parallelism_config_sp_size: 2")),
                "cp_size and sp_size"));
  CHECK(problem_of(replaced(good, "bf16", "bf8")) == "must be no, fp16, bf16 or fp8");
  CHECK(problem_of(replaced(good, "bf16", "no")).empty());
  CHECK(problem_of(replaced(good, "TRANSFORMER_BASED", "LAYER_BASED")).starts_with("must be TRANSFORMER_"));
}

namespace {

const char* const bridge =
    "torchrun --nproc_per_node 8 pretrain_bridge.py model.num_layers=24 model.hidden_size=1024 "
    "model.num_attention_heads=16 model.num_query_groups=4 model.ffn_hidden_size=4096 "
    "model.add_bias_linear=false model.gated_linear_unit=true model.activation_func=silu "
    "model.normalization=RMSNorm model.position_embedding_type=rope model.vocab_size=32000 "
    "model.share_embeddings_and_output_weights=false model.tensor_model_parallel_size=2 "
    "model.pipeline_model_parallel_size=2 model.sequence_parallel=true train.micro_batch_size=1 "
    "train.global_batch_size=64 dataset.sequence_length=4096 model.seq_length=4096 "
    "mixed_precision.bf16=true comm_overlap.tp_comm_overlap=true";

// The words of a command, as the reader of scripts hands them on.
LaunchedRun bridge_run(const std::string& from = "", const std::string& to = "") {
  std::string text = from.empty() ? bridge : replaced(bridge, from, to);
  std::vector<Written> written;
  for (std::size_t at = text.find(' '); at != std::string::npos;) {
    const std::size_t end = text.find(' ', at + 1);
    const std::string word = text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos)
      written.push_back({word.substr(0, equals), {word.substr(equals + 1)}, word, {"run.sh", 1}, {}});
    at = end;
  }
  CHECK(are_bridge_words(written));
  return read_bridge_words(std::move(written), 8, "run.sh", {});
}

}  // namespace

TEST_CASE("launch rules: Megatron-Bridge's overrides, with and without dots") {
  const LaunchedRun good = bridge_run();
  CHECK(refusals_in(good).empty());
  CHECK(value_in(good, "sequence") == "4096");
  CHECK(value_in(good, "overlap_tensor_parallel") == "full");
  CHECK_FALSE(says(good, "not known"));
  CHECK(value_in(bridge_run("dataset.sequence_length", "dataset.seq_length"), "sequence") == "4096");
  CHECK(refuses(bridge_run("model.seq_length=4096", "model.seq_length=8192"),
                "model.seq_length must be the data set's (8192 and 4096) [Megatron-Bridge, "));
  const LaunchedRun alone = bridge_run("sequence_parallel=true", "sequence_parallel=false");
  CHECK(value_in(alone, "overlap_tensor_parallel").empty());
  CHECK(says(alone, "tp_comm_overlap is off without sequence parallelism"));
  const std::string stages = "model.virtual_pipeline_model_parallel_size=";
  CHECK(refuses(bridge_run("mixed_precision.bf16", stages + "5 mixed_precision.bf16"),
                "must divide the 12 layers of a pipeline rank"));
  CHECK(refusals_in(bridge_run("mixed_precision.bf16", stages + "3 mixed_precision.bf16")).empty());
  CHECK(
      refuses(bridge_run("tp_comm_overlap", "delay_wgrad_compute"), "needs comm_overlap.overlap_moe_expert"));
  const std::string layout = "model.pipeline_model_parallel_layout=";
  for (const std::string quoted : {"'Et*12|t*12,L'", "Et*12|t*12,L"})
    CHECK(value_in(bridge_run("mixed_precision.bf16", layout + quoted + " mixed_precision.bf16"),
                   "stage_layers") == "Et*12|t*12,L");
  const LaunchedRun fsdp = bridge_run("mixed_precision.bf16",
                                      "dist.use_megatron_fsdp=true ddp.data_parallel_sharding_strategy="
                                      "optim_grads_params mixed_precision.bf16");
  CHECK(value_in(fsdp, "data_sharding") == "zero3");
}

TEST_CASE("launch rules: Megatron-Bridge's recipes of mixed precision by name") {
  const auto with = [](const std::string& name) {
    return bridge_run("mixed_precision.bf16=true",
                      "ddp.use_distributed_optimizer=true mixed_precision=" + name);
  };
  const LaunchedRun plain = with("bf16_mixed");
  CHECK(plain.framework == "Megatron-Bridge");
  REQUIRE(plain.model);
  CHECK(plain.model->key_value_heads == 4);
  CHECK_FALSE(says(plain, "not known"));
  CHECK(value_in(plain, "precision") == "bf16");
  CHECK(value_in(plain, "gradient_dtype") == "fp32");
  const LaunchedRun current = with("bf16_with_fp8_current_scaling_mixed");
  CHECK(value_in(current, "precision") == "fp8");
  CHECK(value_in(current, "fp8_param_gather") == "yes");
  CHECK(value_in(current, "bf16_layers_at_start") == "1");
  CHECK(value_in(with("bf16_with_fp8_delayed_scaling_mixed"), "precision") == "fp8_delayed");
  CHECK(value_in(with("bf16_with_fp8_subchannel_scaling_mixed"), "precision") == "fp8_blockwise");
  CHECK(value_in(with("bf16_with_fp8_subchannel_scaling_mixed"), "fp8_param_gather").empty());
  CHECK(value_in(with("bf16_with_mxfp8_mixed"), "precision") == "mxfp8");
  CHECK(value_in(with("bf16_with_nvfp4_mixed"), "precision") == "nvfp4");
  CHECK(says(with("fp16_mixed"), "fp16 takes the memory"));
  try {
    with("bf16_with_fp8_mixd");
    FAIL("an unknown recipe was read");
  } catch (const InputError& error) {
    CHECK(error.problems().front().rule.starts_with("is no recipe of Megatron-Bridge: must be bf16_mixed"));
  }
}

TEST_CASE("launch rules: the optimizer that steps on the host keeps fp32 main parameters") {
  const std::string aware = "optimizer.use_precision_aware_optimizer=true ";
  CHECK(value_in(bridge_run("mixed_precision.bf16", aware + "mixed_precision.bf16"), "main_params_dtype") ==
        "remainder");
  const LaunchedRun host =
      bridge_run("mixed_precision.bf16",
                 aware +
                     "optimizer.optimizer_cpu_offload=true optimizer.optimizer_offload_fraction=1 "
                     "mixed_precision.bf16");
  CHECK(value_in(host, "main_params_dtype").empty());
  CHECK(value_in(host, "optimizer_offload_fraction") == "1");
}

TEST_CASE("launch rules: what axolotl refuses") {
  const std::string start = "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\nsequence_len: 4096\n";
  const std::string adapter = "adapter: qlora\nlora_r: 8\n";
  const auto run = [&](const std::string& more) { return run_of(start + more, "run.yaml"); };
  CHECK(refuses(run(adapter),
                "adapter qlora needs load_in_4bit: true [axolotl, utils/schemas, validate_qlora]"));
  CHECK(refuses(run(adapter + "load_in_4bit: true\nload_in_8bit: true\n"), "needs load_in_8bit off"));
  CHECK(refusals_in(run(adapter + "load_in_4bit: true\n")).empty());
  CHECK(refusals_in(run("adapter: lora\nlora_r: 8\nload_in_8bit: true\n")).empty());
  const std::string shards = "fsdp:\n  - full_shard\n";
  CHECK(refuses(run("deepspeed: zero3.json\n" + shards), "deepspeed and fsdp cannot be used together"));
  CHECK(refusals_in(run(shards)).empty());
}

TEST_CASE("launch rules: torchtune's LoRA recipes read no optimizer_in_bwd") {
  const LaunchedRun run = run_of(
      "model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_rank: 8\nbatch_size: 2\n"
      "optimizer_in_bwd: True\nclip_grad_norm: 1.0\noptimizer:\n  _component_: torch.optim.AdamW\n",
      "run.yaml");
  CHECK(refusals_in(run).empty());
  CHECK(value_in(run, "step_in_backward").empty());
  CHECK(value_in(run, "lora_rank") == "8");
}

}  // namespace headroom::tests::launch_rules
