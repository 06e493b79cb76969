#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/launched_run.hpp"
#include "interop/launch_in/megatron_model.hpp"
#include "interop/launch_in/readers.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

const char* const sizes_of_test =
    " --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 "
    "--max-position-embeddings 2048 "
    "--micro-batch-size 2 --bf16 --vocab-size 32000 ";

LaunchedRun read_arguments_of(const std::string& flags, const LaunchOptions& options = {}) {
  return read_launch_script(
      "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py" + (sizes_of_test + flags), "run.sh", options);
}

std::string field_of(const LaunchedRun& run, std::string_view field) {
  for (const auto* const list : {&run.strategy, &run.stack}) {
    for (const LaunchSetting& setting : *list) {
      if (setting.field == field) return setting.value;
    }
  }
  return "";
}

bool says(const LaunchedRun& run, LaunchRemarkKind kind, std::string_view part) {
  return std::any_of(run.remarks.begin(), run.remarks.end(), [&](const LaunchRemark& remark) {
    return remark.kind == kind && remark.text.find(part) != std::string::npos;
  });
}

std::vector<Problem> problems_of_script(const std::string& script) {
  try {
    read_launch_script(script, "run.sh", {});
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

TEST_CASE("a script of Megatron-LM is read with its lines") {
  const std::string path = (tests::source_dir() / "examples/train_dense.sh").string();
  REQUIRE(is_launched_run(path));
  const LaunchedRun run = read_launched_run(path);
  CHECK(run.framework == "Megatron-LM");
  CHECK(run.software == "megatron-core-2025");
  CHECK(run.devices == 16);
  CHECK(run.system == "h100");
  CHECK(field_of(run, "tensor_parallel") == "2");
  CHECK(field_of(run, "pipeline_parallel") == "2");
  CHECK(field_of(run, "sequence_parallel") == "yes");
  CHECK(field_of(run, "global_batch") == "128");
  CHECK(field_of(run, "sequence") == "8192");
  CHECK(field_of(run, "data_sharding") == "zero1");
  CHECK(field_of(run, "overlap_grad_reduce") == "true");
  CHECK(field_of(run, "overlap_param_gather") == "false");
  const auto tensor =
      std::find_if(run.strategy.begin(), run.strategy.end(),
                   [](const LaunchSetting& setting) { return setting.field == "tensor_parallel"; });
  CHECK(tensor->at.line == 35);
  CHECK(tensor->written == "--tensor-model-parallel-size 2");
  REQUIRE(run.model);
  CHECK(run.model->layers == 32);
  CHECK(run.model->key_value_heads == 8);
  CHECK(run.model->vocabulary == 128256);
  CHECK(run.model->architecture.activation == Activation::swiglu);
  CHECK_FALSE(run.model->architecture.tied_embeddings);
}

TEST_CASE("arguments that a script needs are named, and given after --") {
  const std::string path = (tests::source_dir() / "examples/train_experts.sh").string();
  const LaunchedRun without = read_launched_run(path);
  CHECK(says(without, LaunchRemarkKind::unresolved, "needs $1 (NODES)"));
  CHECK_FALSE(without.devices);
  LaunchOptions options;
  options.arguments = {"4", "256"};
  const LaunchedRun run = read_launched_run(path, options);
  CHECK(run.devices == 32);
  CHECK(field_of(run, "global_batch") == "256");
  CHECK(field_of(run, "expert_parallel") == "8");
  CHECK(field_of(run, "moe_dispatcher") == "alltoall");
  CHECK(field_of(run, "recompute") == "selective");
  REQUIRE(run.model);
  CHECK(run.model->layers == 24);
  REQUIRE(run.model->layer_kinds.size() == 2);
  CHECK(run.model->layer_kinds[1].architecture.experts->count == 64);
}

TEST_CASE("what Megatron-LM makes of arguments by itself is replayed") {
  const LaunchedRun plain = read_arguments_of("--sequence-parallel --num-query-groups 4");
  CHECK(field_of(plain, "sequence_parallel").empty());  // TP 1
  CHECK(plain.model->key_value_heads == 32);            // without --group-query-attention
  CHECK(plain.model->feedforward == 16384);
  CHECK(field_of(plain, "gradient_dtype") == "fp32");
  CHECK(field_of(plain, "data_sharding") == "none");
  CHECK(field_of(plain, "global_batch") == "64");  // a microbatch of each of 32 ranks
  CHECK(plain.model->architecture.hidden_dropout);
  CHECK(plain.model->architecture.positions == Positions::learned);
  const LaunchedRun gated =
      read_arguments_of("--swiglu --fp8-format hybrid --tensor-model-parallel-size 2 --num-experts 8");
  CHECK(gated.model->feedforward == 10880);  // floor(8 h/3/64) 64
  CHECK(field_of(gated, "precision") == "fp8_delayed");
  CHECK(field_of(gated, "expert_tensor_parallel") == "2");
  CHECK(field_of(gated, "moe_dispatcher") == "allgather");
  CHECK(gated.model->architecture.experts->per_token == 2);
}

TEST_CASE("pipelines, recomputation and sharding are taken as Megatron-LM spells them") {
  CHECK(field_of(
            read_arguments_of("--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2"),
            "virtual_pipeline") == "4");
  CHECK(field_of(read_arguments_of("--pipeline-model-parallel-size 4 --account-for-loss-in-pipeline-split "
                                   "--num-layers 31"),
                 "stage_layers") == "8,8*2,7");
  CHECK(field_of(read_arguments_of("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 5"),
                 "stage_layers") == "first=5");
  const LaunchedRun full =
      read_arguments_of("--recompute-granularity full --recompute-method block --recompute-num-layers 3");
  CHECK(field_of(full, "recompute") == "full");
  CHECK(field_of(full, "recompute_method") == "block");
  CHECK(field_of(full, "recompute_layers") == "3");
  CHECK(field_of(read_arguments_of("--recompute-granularity selective --recompute-modules mlp layernorm"),
                 "recompute_ops") == "mlp,layernorm");
  CHECK(field_of(read_arguments_of("--use-megatron-fsdp"), "data_sharding") == "zero3");
  CHECK(field_of(read_arguments_of("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads"),
                 "data_sharding") == "zero2");
  CHECK(field_of(read_arguments_of(
                     "--optimizer-cpu-offload --use-precision-aware-optimizer --use-distributed-optimizer"),
                 "optimizer_offload_fraction") == "1");
}

TEST_CASE("later arguments win, slips of the pen are named, forks' flags are left out") {
  const LaunchedRun twice = read_arguments_of(
      "--tensor-model-parallel-size 2 --tensor-model-parallel-size 4 --use-fancy-fork-kernel 3");
  CHECK(field_of(twice, "tensor_parallel") == "4");
  CHECK(says(twice, LaunchRemarkKind::implied, "takes the place of --tensor-model-parallel-size 2"));
  CHECK(says(twice, LaunchRemarkKind::unmodelled, "--use-fancy-fork-kernel 3"));
  const std::string start = "torchrun pretrain_gpt.py" + std::string(sizes_of_test);
  const std::vector<Problem> slip = problems_of_script("# x\n" + start + "--num-expert 8");
  REQUIRE(slip.size() == 1);
  CHECK(slip[0].where == "run.sh:2: --num-expert");
  CHECK(slip[0].rule.find("num_experts") != std::string::npos);
  const std::vector<Problem> wrong = problems_of_script(start + "--micro-batch-size two");
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0] == Problem{"run.sh:1: --micro-batch-size", "must be a whole number, not 'two'"});
  const std::vector<Problem> nothing = problems_of_script("ls\npython prepare.py --in x\n");
  REQUIRE(nothing.size() == 1);
  CHECK(nothing[0].rule.find("prepare.py (line 2)") != std::string::npos);
}

TEST_CASE("of several runs the first is read, and others are named") {
  const std::string one = std::string("torchrun --nproc_per_node 8 pretrain_gpt.py") + sizes_of_test;
  const std::string script = one + "\nfor tp in 2 4; do " + one + " --tensor-model-parallel-size $tp; done\n";
  const LaunchedRun first = read_launch_script(script, "run.sh", {});
  CHECK(field_of(first, "tensor_parallel").empty());
  CHECK(says(first, LaunchRemarkKind::assumed, "--run 3"));
  LaunchOptions third;
  third.run = 3;
  CHECK(field_of(read_launch_script(script, "run.sh", third), "tensor_parallel") == "4");
}

TEST_CASE("Megatron-DeepSpeed is read with the configuration that its script writes") {
  const LaunchedRun run = read_launch_script(
      "cat <<EOF > ds.json\n{\"zero_optimization\": {\"stage\": 1}, \"bf16\": {\"enabled\": true}}\nEOF\n"
      "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py" +
          std::string(sizes_of_test) +
          "--deepspeed --deepspeed_config ds.json --checkpoint-activations --no-pipeline-parallel",
      "run.sh", {});
  CHECK(run.framework == "Megatron-DeepSpeed");
  CHECK(run.software == "megatron-deepspeed-2022");
  CHECK(run.devices == 16);
  CHECK(field_of(run, "data_sharding") == "zero1");
  CHECK(field_of(run, "recompute") == "full");
}

TEST_CASE("layers with experts are those of the list") {
  CHECK(expert_layers("2", 4) == std::vector<int>{1, 0, 1, 0});
  CHECK(expert_layers("([0]*1+[1]*2)", 3) == std::vector<int>{0, 1, 1});
  CHECK(expert_layers("'[0,1]*2'", 4) == std::vector<int>{0, 1, 0, 1});
  CHECK_FALSE(expert_layers("[1]*999999999", 4));
  CHECK_FALSE(expert_layers("__import__('os')", 4));
}

TEST_CASE("expert load balancing is read from the router's flags") {
  const auto balancing = [](const std::string& flags) {
    return tests::value_in(
        read_arguments_of("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
                          "--vocab-size 256 --micro-batch-size 1 --global-batch-size 8 --bf16 "
                          "--moe-router-topk 2 " +
                          flags),
        "moe_balancing");
  };
  const std::string experts = "--num-experts 8 ";
  CHECK(balancing(experts + "--moe-router-load-balancing-type aux_loss").empty());
  CHECK(balancing(experts + "--moe-router-load-balancing-type none") == "none");
  CHECK(balancing(experts + "--moe-router-load-balancing-type none --moe-router-enable-expert-bias "
                            "--moe-router-score-function sigmoid") == "loss_free");
  CHECK(balancing("--moe-router-load-balancing-type none").empty());
}

TEST_CASE("a launcher's own variables stay its own where another branch sets them") {
  const std::string script =
      "if [ $1 = local ]; then MASTER_PORT=1; NNODES=2; elif [ $1 = cluster ]; then NNODES=$WORLD_SIZE; fi\n"
      "ARGS=\"--nproc_per_node 8 --nnodes $NNODES --master_port $MASTER_PORT\"\n"
      "torchrun $ARGS pretrain_gpt.py" +
      std::string(sizes_of_test);
  LaunchOptions options;
  options.arguments = {"cluster"};
  const LaunchedRun run = read_launch_script(script, "run.sh", options);
  CHECK(says(run, LaunchRemarkKind::unresolved, "needs $WORLD_SIZE"));
  CHECK(field_of(run, "micro_batch") == "2");
  options.environment = {{"WORLD_SIZE", "4"}};
  CHECK(read_launch_script(script, "run.sh", options).devices == 32);
  // Nothing is set: the program is no option's value.
  CHECK(field_of(read_launch_script(script, "run.sh", {}), "micro_batch") == "2");
}

TEST_CASE("a launcher without a program is named, and files that a script looks for first may be absent") {
  const std::vector<Problem> alone = problems_of_script("PROGRAM=\ntorchrun --nproc_per_node 8 $PROGRAM\n");
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].rule.find("torchrun in line 2 starts no program that is named") != std::string::npos);
  const std::string start = "torchrun --nproc_per_node 8 pretrain_gpt.py" + std::string(sizes_of_test);
  CHECK(says(read_launch_script("source env.sh\n" + start, "run.sh", {}), LaunchRemarkKind::unresolved,
             "env.sh is not beside"));
  CHECK_FALSE(says(read_launch_script("[ -f env.sh ] && source env.sh\n" + start, "run.sh", {}),
                   LaunchRemarkKind::unresolved, "env.sh"));
}

TEST_CASE("scripts set PyTorch's allocator") {
  const std::string start = "torchrun --nproc_per_node 8 pretrain_gpt.py" + std::string(sizes_of_test) + "\n";
  CHECK(field_of(read_launch_script(start, "run.sh", {}), "memory.expandable_segments").empty());
  CHECK(field_of(read_launch_script("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" + start,
                                    "run.sh", {}),
                 "memory.expandable_segments") == "true");
  CHECK(field_of(read_launch_script("PYTORCH_ALLOC_CONF=expandable_segments:True " + start, "run.sh", {}),
                 "memory.expandable_segments") == "true");
}

TEST_CASE("verl's microbatches, ends of pipelines and optimizer on the host") {
  const std::string start =
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B "
      "data.max_prompt_length=1024 "
      "data.max_response_length=1024 trainer.n_gpus_per_node=8 trainer.nnodes=1 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=64 ";
  const std::string actor = "actor_rollout_ref.actor.";
  CHECK(field_of(read_launch_script(start + actor + "ppo_micro_batch_size=32", "run.sh", {}),
                 "micro_batch") == "4");
  CHECK(field_of(read_launch_script(start + actor + "ppo_micro_batch_size_per_gpu=8 " + actor +
                                        "use_dynamic_bsz=True " + actor + "ppo_max_token_len_per_gpu=8192",
                                    "run.sh", {}),
                 "micro_batch") == "4");
  const LaunchedRun megatron =
      read_launch_script(start + "--config-name=ppo_megatron_trainer.yaml " + actor +
                             "megatron.pipeline_model_parallel_size=4 +" + actor +
                             "megatron.override_transformer_config.num_layers_in_last_pipeline_stage=6 +" +
                             actor + "optim.override_optimizer_config.optimizer_cpu_offload=True +" + actor +
                             "optim.override_optimizer_config.optimizer_offload_fraction=1.",
                         "run.sh", {});
  CHECK(megatron.software == "megatron-core-2025");
  CHECK(field_of(megatron, "stage_layers") == "last=6");
  CHECK(field_of(megatron, "optimizer_offload_fraction") == "1");
}

TEST_CASE("Megatron-MoE-ModelZoo: what a script leaves out is its model's") {
  const LaunchedRun run = read_launch_script(
      "MODEL=Mixtral-8x22B PP=4 DISPATCHER=alltoall bash ./sbatch_benchmarking.sh\n", "run.sh", {});
  CHECK(run.devices == 128);
  CHECK(field_of(run, "tensor_parallel") == "2");
  CHECK(field_of(run, "pipeline_parallel") == "4");
  CHECK(field_of(run, "expert_parallel") == "8");
  CHECK(field_of(run, "global_batch") == "256");
  CHECK(says(run, LaunchRemarkKind::implied, "TP=2"));
}

TEST_CASE("a script without a number of GPUs has the fewest that hold its experts") {
  const std::string start = "python pretrain_gpt.py" + std::string(sizes_of_test);
  const LaunchedRun run = read_launch_script(
      start + "--num-experts 8 --expert-model-parallel-size 8 --global-batch-size 48", "run.sh", {});
  CHECK(run.devices == 8);
  CHECK(field_of(run, "data_parallel") == "8");
  CHECK(says(run, LaunchRemarkKind::assumed, "8 GPUs, the fewest that hold its experts"));
  const LaunchedRun dense = read_launch_script(start, "run.sh", {});
  CHECK_FALSE(dense.devices);
  CHECK(dense.nodes == 1);
}

TEST_CASE("arguments of forks: frozen weights, paths and layers that are listed") {
  const LaunchedRun run = read_arguments_of(
      "--freeze-LM --valid-path /data --embed-layernorm --num-experts 4 --moe-layer-freq '([0]*2+[1]*30)' "
      "--moe-permute-fusion --create-moe-param-group");
  CHECK(says(run, LaunchRemarkKind::unmodelled, "--freeze-LM: frozen weights"));
  CHECK(says(run, LaunchRemarkKind::unmodelled, "--moe-permute-fusion"));
  CHECK(says(run, LaunchRemarkKind::unmodelled, "--create-moe-param-group: a group of the optimizer"));
  CHECK_FALSE(says(run, LaunchRemarkKind::unmodelled, "--valid-path"));
  CHECK_FALSE(says(run, LaunchRemarkKind::unmodelled, "nearest: qk_layernorm"));
  CHECK_FALSE(says(run, LaunchRemarkKind::implied, "takes the place of the value before it"));
  const LaunchedRun mistral = read_launch_script(
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 1024 --num-attention-heads "
      "16 --bf16 "
      "--seq-length 512 --max-position-embeddings 512 --micro-batch-size 1 --tokenizer-type MistralTokenizer",
      "run.sh", {});
  REQUIRE(mistral.model);
  CHECK(mistral.model->vocabulary == 32768);
}

TEST_CASE("hybrid layers are spread as Megatron-LM spreads them") {
  const auto letters = [](const std::string& layers, const std::string& attention, const std::string& mlp) {
    const std::vector<Written> written{{"num_layers", {layers}, "--num-layers", {"run.sh", 1}, ""},
                                       {"hybrid_attention_ratio", {attention}, "", {"run.sh", 1}, ""},
                                       {"hybrid_mlp_ratio", {mlp}, "", {"run.sh", 1}, ""}};
    RunBuilder builder("run.sh", "Megatron-LM", "");
    return hybrid_letters(MegatronSettings(written), "pretrain_mamba.py", builder);
  };
  CHECK(letters("9", "0", "0") == "MMMMMMMMM");
  CHECK(letters("10", "0.2", "0.0") == "MMM*MM*MMM");
  CHECK(letters("10", "0.3", "0.3") == "M-*MM*-*M-");
}

}  // namespace
}  // namespace headroom
