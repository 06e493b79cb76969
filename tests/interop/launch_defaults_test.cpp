// What frameworks take where a file says nothing, and what a file leaves to its launch line.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

LaunchedRun of_script(const std::string& text) { return read_launch_script(text, "run.sh", {}); }
LaunchedRun of_yaml(const std::string& text) { return read_tree_file(text, "run.yaml", {}); }
LaunchedRun of_toml(const std::string& text) { return read_tree_file(text, "run.toml", {}); }

bool refuses_stages(const LaunchedRun& run) {
  return std::any_of(run.refusals.begin(), run.refusals.end(), [](const LaunchRefusal& refusal) {
    return refusal.rule.find("into equal stages") != std::string::npos;
  });
}

const std::string trainer =
    "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nmax_length: 2048\nper_device_train_batch_size: 1\n"
    "learning_rate: 1.0e-5\n";

}  // namespace

TEST_CASE("defaults: a Trainer's configuration alone says that replicas are assumed") {
  CHECK(says(of_yaml(trainer + "bf16: true\n"), "DDP, where every GPU holds a full replica"));
  const std::string flags =
      " train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --bf16 true\n";
  CHECK_FALSE(says(of_script("torchrun --nproc_per_node 8" + flags), "how it is launched"));
  CHECK_FALSE(says(of_script("accelerate launch" + flags), "how it is launched"));
}

TEST_CASE("defaults: FP32 is taken as BF16, and said") {
  constexpr std::string_view said = "FP32 products are not modelled";
  CHECK(says(of_yaml(trainer), said));
  CHECK_FALSE(says(of_yaml(trainer + "bf16: true\n"), said));
  CHECK_FALSE(says(of_yaml(trainer + "torch_dtype: bfloat16\n"), said));
  const std::string neox =
      "pipe_parallel_size: 0\nmodel_parallel_size: 1\nnum_layers: 4\nhidden_size: 512\n"
      "num_attention_heads: 8\nseq_length: 2048\nmax_position_embeddings: 2048\n"
      "train_micro_batch_size_per_gpu: 1\n";
  CHECK(says(of_yaml(neox), said));
  CHECK(says(of_yaml(neox + "precision: fp32\n"), said));
  CHECK_FALSE(says(of_yaml(neox + "fp16: {enabled: true}\n"), said));
  const std::string tune =
      "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 4\n"
      "tokenizer:\n  max_seq_len: 1024\n";
  CHECK(value_in(of_yaml(tune + "dtype: fp32\n"), "main_params_dtype") == "fp32");
  CHECK(says(of_yaml(tune + "dtype: fp32\n"), said));
  const std::string titan = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 2048\n";
  CHECK(says(of_toml(titan + "mixed_precision_param = \"float32\"\n"), said));
}

TEST_CASE("defaults: adapters drop 5% of their inputs") {
  const std::string adapters = "bf16: true\nuse_peft: true\nlora_r: 16\n";
  CHECK(value_in(of_yaml(trainer + adapters), "lora_dropout") == "0.05");
  CHECK(value_in(of_yaml(trainer + adapters + "lora_dropout: 0\n"), "lora_dropout") == "0");
  const std::string swift = " --model Qwen/Qwen2.5-7B --train_type lora --max_length 2048";
  CHECK(value_in(of_script("swift sft" + swift), "lora_dropout") == "0.05");
  CHECK(value_in(of_script("NPROC_PER_NODE=8 megatron sft" + swift), "lora_dropout") == "0.05");
}

TEST_CASE("defaults: TRL's own scripts have its defaults") {
  const LaunchedRun run = of_script(
      "accelerate launch --num_processes=1 trl/examples/scripts/sft.py --model_name google/gemma-2b "
      "--per_device_train_batch_size 2\n");
  CHECK(value_in(run, "sequence") == "1024");
  CHECK(value_in(run, "precision") == "bf16");
}

TEST_CASE("defaults: torchtitan of 2024 makes as many microbatches as stages") {
  const std::string file =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nbatch_size = 16\nseq_len = 8192\n"
      "data_parallel_shard_degree = -1\n[experimental]\npipeline_parallel_degree = 2\n";
  CHECK(value_in(of_toml(file), "micro_batch") == "8");
  CHECK(value_in(of_toml(file + "pipeline_parallel_microbatches = 4\n"), "micro_batch") == "4");
  for (const char* const name : {"pipeline_parallel_microbatch_size", "pipeline_parallel_microbatches"})
    CHECK_THROWS_WITH_AS((void)of_toml(file + name + " = 0\n"), doctest::Contains("must be above 0"),
                         InputError);
  CHECK(value_in(of_toml(file + "pipeline_parallel_microbatches = 9223372036854775807\n"), "micro_batch") ==
        "1");
}

TEST_CASE("defaults: Megatron-Core's stages have equal layers") {
  const std::string swift =
      "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-14B --pipeline_model_parallel_size 4 "
      "--tensor_model_parallel_size 2 --max_length 2048 --num_layers_per_virtual_pipeline_stage ";
  CHECK(value_in(of_script(swift + "3"), "virtual_pipeline") == "4");
  CHECK_THROWS_WITH_AS((void)of_script(swift + "5"), doctest::Contains("must divide the layers of a rank"),
                       InputError);
  const std::string nemo =
      "trainer: {num_nodes: 4, devices: 8, precision: bf16}\nmodel:\n  micro_batch_size: 1\n"
      "  global_batch_size: 64\n  pipeline_model_parallel_size: 4\n  encoder_seq_length: 2048\n"
      "  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n"
      "  virtual_pipeline_model_parallel_size: ";
  const LaunchedRun uneven = of_yaml(nemo + "5\n");
  REQUIRE(uneven.refusals.size() == 1);
  CHECK(uneven.refusals.front().rule == "must divide the 32 layers into equal stages (32 % 20 = 12)");
  CHECK(of_yaml(nemo + "8\n").refusals.empty());
  const std::string ends =
      "  account_for_embedding_in_pipeline_split: true\n  account_for_loss_in_pipeline_split: true\n";
  const LaunchedRun of_ends = of_yaml(nemo + "1\n" + ends);
  REQUIRE(of_ends.refusals.size() == 1);
  CHECK(of_ends.refusals.front().rule ==
        "must divide the 32 layers, the embedding and the loss into equal stages (34 % 4 = 2)");
  const auto megatron = [](const std::string& more) {
    return of_script(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --pipeline-model-parallel-size 4 --hidden-size 4096 "
        "--num-attention-heads 32 --seq-length 2048 --micro-batch-size 1 --global-batch-size 64 "
        "--vocab-size 32000 --bf16 " +
        more);
  };
  const std::string both = " --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split";
  CHECK(value_in(megatron("--num-layers 30" + both), "stage_layers") == "7,8*2,7");
  CHECK_FALSE(refuses_stages(megatron("--num-layers 30" + both)));
  CHECK(value_in(megatron("--num-layers 30 --num-layers-per-virtual-pipeline-stage 4" + both),
                 "stage_layers") == "3,4*6,3");
  CHECK(value_in(megatron("--num-layers 6 --num-virtual-stages-per-pipeline-rank 2" + both),
                 "stage_layers") == "0,1*6,0");
  CHECK_THROWS_WITH_AS((void)megatron("--num-layers 2" + both), doctest::Contains("gives a rank no layer"),
                       InputError);
  CHECK(refuses_stages(megatron("--num-layers 30")));
  // A recipe that is not at hand may set a layout.
  const LaunchFolder folder;
  const LaunchedRun bridge = read_launched_run(folder.with("train.py", R"(
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from megatron.bridge.training.pretrain import pretrain
cfg = llama3_8b_pretrain_config()
cfg.model.pipeline_model_parallel_size = 4
cfg.model.virtual_pipeline_model_parallel_size = 5
pretrain(cfg, None)
)"));
  CHECK(bridge.refusals.empty());
}

TEST_CASE("defaults: litgpt's command line") {
  const LaunchedRun run = of_script(
      "litgpt finetune_lora checkpoints/meta-llama/Meta-Llama-3.1-8B --train.micro_batch_size 2 "
      "--train.max_seq_length 512 --devices 4\n");
  CHECK(run.framework == "litgpt");
  CHECK(value_in(run, "micro_batch") == "2");
  CHECK(value_in(run, "lora_rank") == "8");
  CHECK(value_in(run, "lora_targets") == "q_proj,v_proj");
  CHECK(value_in(run, "lora_dropout") == "0.05");
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(run.devices == 4);
  const std::string folder = " checkpoints/meta-llama/Meta-Llama-3.1-8B";
  CHECK(value_in(of_script("litgpt finetune full" + folder), "lora_rank").empty());
  CHECK(value_in(of_script("litgpt finetune full" + folder), "global_batch") == "16");
  CHECK(value_in(of_script("litgpt finetune qlora" + folder), "base_dtype") == "nf4");
  CHECK(value_in(of_script("litgpt pretrain pythia-1b --devices 8"), "micro_batch") == "4");
  CHECK_THROWS_AS((void)of_script("litgpt finetune_adapter" + folder), InputError);
  CHECK_THROWS_WITH_AS((void)of_script("litgpt finetune_lora" + folder + " --config absent.yaml"),
                       doctest::Contains("is not beside the script"), InputError);
  CHECK(of_script("litgpt finetune_lora" + folder + " --quantize bnb.nf4").refusals.size() == 1);
  const LaunchFolder files;
  const std::string script = files.with(
      "run.sh", "litgpt finetune_lora" + folder + " --config lora.yaml --train.micro_batch_size 2\n");
  files.with("lora.yaml", "precision: bf16-true\ntrain:\n  micro_batch_size: 4\n  global_batch_size: 8\n");
  const std::string briefly = files.with("brief.sh", "litgpt finetune_lora" + folder + " -c lora.yaml\n");
  CHECK(value_in(read_launched_run(briefly), "global_batch") == "8");
  const LaunchedRun merged = read_launched_run(script);
  CHECK(value_in(merged, "micro_batch") == "2");
  CHECK(value_in(merged, "global_batch") == "8");
  CHECK(value_in(merged, "lora_rank") == "8");
  CHECK_THROWS_AS((void)of_script("litgpt serve checkpoints/meta-llama/Meta-Llama-3.1-8B\n"), InputError);
}

TEST_CASE("defaults: msrun's workers are GPUs, and llm_sft.py is ms-swift's") {
  const std::string words =
      " pretrain_gpt.py --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --num-layers 32 "
      "--hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "
      "--global-batch-size 64 --bf16\n";
  CHECK(of_script("msrun --worker_num 32 --local_worker_num 8" + words).devices == 32);
  const LaunchedRun swift =
      of_script("python llm_sft.py --model_type qwen-7b --sft_type full --max_length 1024\n");
  CHECK(swift.model_name == "qwen-7b");
  CHECK(value_in(swift, "recompute") == "full");
}

}  // namespace headroom::tests
