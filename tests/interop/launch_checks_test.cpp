// Rules of Megatron-LM's own validation of arguments: each is broken once.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/interop/launched_run.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "interop/launch_in/megatron_in.hpp"
#include "interop/launch_in/readers.hpp"

namespace headroom {
namespace {

const std::vector<std::string> dense{"--num-layers 32",
                                     "--hidden-size 4096",
                                     "--num-attention-heads 32",
                                     "--group-query-attention",
                                     "--num-query-groups 8",
                                     "--seq-length 4096",
                                     "--max-position-embeddings 4096",
                                     "--position-embedding-type rope",
                                     "--swiglu",
                                     "--untie-embeddings-and-output-weights",
                                     "--vocab-size 128256",
                                     "--micro-batch-size 1",
                                     "--global-batch-size 128",
                                     "--bf16",
                                     "--train-iters 100",
                                     "--mock-data",
                                     "--save /checkpoints",
                                     "--save-interval 50",
                                     "--tensor-model-parallel-size 2",
                                     "--sequence-parallel",
                                     "--pipeline-model-parallel-size 2",
                                     "--use-distributed-optimizer",
                                     "--overlap-grad-reduce",
                                     "--overlap-param-gather"};
const std::vector<std::string> mixture{"--num-layers 24",
                                       "--hidden-size 2048",
                                       "--num-attention-heads 16",
                                       "--seq-length 4096",
                                       "--max-position-embeddings 4096",
                                       "--position-embedding-type rope",
                                       "--vocab-size 64000",
                                       "--micro-batch-size 1",
                                       "--global-batch-size 128",
                                       "--bf16",
                                       "--num-experts 64",
                                       "--moe-router-topk 6",
                                       "--moe-ffn-hidden-size 1024",
                                       "--moe-token-dispatcher-type alltoall",
                                       "--expert-model-parallel-size 8",
                                       "--moe-grouped-gemm"};

const char* const one_connection = "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";

std::string script_of(const std::vector<std::string>& base, const std::string& dropped,
                      const std::string& added, const std::string& environment = one_connection) {
  std::string script = environment + "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py";
  for (const std::string& flag : base) {
    const std::string name = flag.substr(0, flag.find(' '));
    if ((" " + dropped + " ").find(" " + name + " ") == std::string::npos) script += " " + flag;
  }
  return script + " " + added + "\n";
}

LaunchedRun read_script(const std::string& script, const LaunchOptions& options = {}) {
  return read_launch_script(script, "run.sh", options);
}

bool tells(const LaunchedRun& run, std::string_view part) {
  return std::any_of(run.remarks.begin(), run.remarks.end(),
                     [&](const LaunchRemark& remark) { return remark.text.find(part) != std::string::npos; });
}

struct Broken {
  std::string source;  // of the rule
  const std::vector<std::string>& base;
  std::string dropped;
  std::string added;
  std::string environment = one_connection;
};

const std::vector<Broken>& broken_scripts() {
  const std::string layout = "--pipeline-model-parallel-layout 'Et*16|t*16L'";
  const std::string torch_fsdp =
      "--pipeline-model-parallel-size 1 --use-torch-fsdp2 --no-gradient-accumulation-fusion ";
  const std::string optimizer = "--use-distributed-optimizer --overlap-param-gather";
  const std::string fsdp = "--pipeline-model-parallel-size 1 --use-megatron-fsdp --ckpt-format fsdp_dtensor";
  static const std::vector<Broken> all{
      {"training/arguments.py:1477", dense, "", "", "export CUDA_DEVICE_MAX_CONNECTIONS=8\n"},
      {"training/arguments.py:1166", dense, "", fsdp},
      {"training/arguments.py:1048", dense, optimizer, torch_fsdp},
      {"training/arguments.py:1939", dense, "",
       "--fine-grained-activation-offloading --offload-modules core_attn",
       one_connection + std::string("NVTE_CPU_OFFLOAD_V1=0 ")},
      {"training/arguments.py:1962", dense, "", "--cuda-graph-impl transformer_engine",
       one_connection + std::string("export NCCL_GRAPH_REGISTER=1\n"
                                    "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n")},
      {"core/transformer/transformer_config.py:1913", dense, "",
       "--recompute-granularity full --recompute-num-layers 2"},
      {"core/transformer/transformer_config.py:1919", dense, "",
       "--recompute-granularity full --recompute-method block"},
      {"training/arguments.py:1426", dense, "",
       "--recompute-granularity selective --recompute-method uniform"},
      {"core/transformer/transformer_config.py:1927", dense, "",
       "--recompute-granularity selective --recompute-num-layers 2"},
      {"core/transformer/transformer_config.py:1964", mixture, "--moe-grouped-gemm",
       "--recompute-granularity selective --recompute-modules layernorm moe_act"},
      {"training/arguments.py:1025", dense, "--use-distributed-optimizer", ""},
      {"training/arguments.py:1028", dense, "--overlap-grad-reduce", ""},
      {"training/arguments.py:1069", dense, "--overlap-param-gather",
       "--overlap-param-gather-with-optimizer-step --num-virtual-stages-per-pipeline-rank 2"},
      {"training/arguments.py:1071", dense, "", "--overlap-param-gather-with-optimizer-step"},
      {"training/arguments.py:1442", dense, "--sequence-parallel", "--tp-comm-overlap"},
      {"core/transformer/transformer_config.py:3075", mixture, "", "--delay-wgrad-compute"},
      {"core/model_parallel_config.py:545", dense, "",
       "--pipeline-model-parallel-size 1 --defer-embedding-wgrad-compute"},
      {"core/model_parallel_config.py:550", dense, "",
       "--defer-embedding-wgrad-compute --no-gradient-accumulation-fusion"},
      {"training/arguments.py:1354", dense, "", "--seq-length 8192"},
      {"training/arguments.py:1314", dense, "--max-position-embeddings", ""},
      {"training/arguments.py:693", dense, "--micro-batch-size", ""},
      {"training/argument_utils.py:321", dense, "", "--squared-relu"},
      {"training/arguments.py:1974", dense, "",
       "--multi-latent-attention --disable-bias-linear --moe-flex-dispatcher-backend deepep"},
      {"core/transformer/transformer_config.py:3345", dense, "--group-query-attention",
       "--multi-latent-attention --disable-bias-linear --rope-type rope --cuda-graph-modules attn"},
      {"training/arguments.py:883", dense, "--position-embedding-type", "--mtp-num-layers 1"},
      {"training/arguments.py:1196", dense, "", "--fp16"},
      {"training/arguments.py:1373", dense, "", "--fp16-lm-cross-entropy"},
      {"training/arguments.py:1375", dense, "--bf16", "--fp32-residual-connection"},
      {"training/arguments.py:1885", dense, "", "--optimizer-cpu-offload"},
      {"core/optimizer/optimizer_config.py:469", dense, "", "--main-grads-dtype bf16"},
      {"core/optimizer/optimizer_config.py:472", dense, "", "--main-params-dtype fp16"},
      {"core/optimizer/optimizer_config.py:475", dense, "", "--exp-avg-sq-dtype bf16"},
      {"training/arguments.py:1210", dense, "",
       "--use-precision-aware-optimizer --main-grads-dtype bf16 --accumulate-allreduce-grads-in-fp32"},
      {"training/arguments.py:1697", dense, "",
       "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te --tensor-parallel-num-weight-shards 2"},
      {"training/arguments.py:928", dense, "",
       "--num-layers-per-virtual-pipeline-stage 4 --num-virtual-stages-per-pipeline-rank 4"},
      {"training/arguments.py:955", dense, "",
       "--decoder-first-pipeline-num-layers 16 --num-layers-per-virtual-pipeline-stage 4"},
      {"core/transformer/transformer_config.py:2229", dense, "",
       "--decoder-last-pipeline-num-layers 15 --account-for-loss-in-pipeline-split"},
      {"core/transformer/transformer_config.py:2251", dense, "",
       layout + " --decoder-first-pipeline-num-layers 16"},
      {"core/transformer/pipeline_parallel_layer_layout.py:112", dense, "",
       "--pipeline-model-parallel-layout 'Et*16|t*16mL'"},
      {"training/arguments.py:583", dense, "", "--context-parallel-size 4 --cp-comm-type a2a+p2p"},
      {"training/arguments.py:1169", dense, "",
       "--pipeline-model-parallel-size 1 --use-megatron-fsdp --cuda-graph-modules attn",
       "export CUDA_DEVICE_MAX_CONNECTIONS=8\n"},
      {"training/arguments.py:1038", dense, "", torch_fsdp, ""},
      {"training/arguments.py:1040", dense, optimizer, "--pipeline-model-parallel-size 1 --use-torch-fsdp2",
       ""},
      {"training/arguments.py:1044", dense, optimizer + " --untie-embeddings-and-output-weights", torch_fsdp,
       ""},
      {"training/arguments.py:1046", dense, optimizer + " --bf16", torch_fsdp + "--fp16", ""},
      {"training/arguments.py:1656", dense, "", "--expert-model-parallel-size 2"},
      {"core/transformer/transformer_config.py:1702", dense, "",
       "--moe-ffn-hidden-size 1024 --cuda-graph-modules attn"},
      {"core/transformer/transformer_config.py:1744", mixture, "", "--moe-enable-deepep"},
      {"core/transformer/moe/moe_layer.py:329", mixture, "",
       "--moe-token-dispatcher-type alltoall_seq --cuda-graph-modules attn"},
      {"core/transformer/transformer_config.py:2661", mixture, "",
       "--moe-router-topk 1 --expert-tensor-parallel-size 1"},
      {"core/transformer/transformer_config.py:2617", mixture, "", "--moe-router-enable-expert-bias"},
      {"core/transformer/transformer_config.py:1851", mixture, "",
       "--moe-expert-capacity-factor 1.0 --moe-router-load-balancing-type sinkhorn"},
      {"core/transformer/moe/moe_layer.py:479", mixture, "",
       "--moe-latent-size 512 --moe-shared-expert-intermediate-size 1024 --moe-shared-expert-overlap "
       "--cuda-graph-modules attn"},
      {"training/arguments.py:1236", dense, "", "--cuda-graph-impl full_iteration"},
      {"training/arguments.py:1969", dense, "",
       "--cuda-graph-impl full_iteration --cuda-graph-modules attn --no-check-for-nan-in-loss-and-grad"},
      {"core/transformer/transformer_config.py:2825", dense, "",
       "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router"},
      {"core/transformer/transformer_config.py:2834", mixture, "",
       "--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp"},
      {"core/transformer/transformer_config.py:2838", mixture, "",
       "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe"},
      {"training/arguments.py:1679", dense, "", "--data-path /data/tokens"},
      {"training/arguments.py:1362", dense, "--save-interval", ""},
      {"training/arguments.py:1279", dense, "", "--train-samples 10000"},
  };
  return all;
}

TEST_CASE("Megatron-LM's rules: scripts that keep them are not refused") {
  CHECK(read_script(script_of(dense, "", "")).refusals.empty());
  CHECK(read_script(script_of(mixture, "", "")).refusals.empty());
}

TEST_CASE("Megatron-LM's rules: each refuses a script that breaks it alone") {
  for (const Broken& one : broken_scripts()) {
    CAPTURE(one.source);
    const LaunchedRun run = read_script(script_of(one.base, one.dropped, one.added, one.environment));
    const auto rules = megatron_checks();
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const MegatronCheck& check) { return check.source == one.source; });
    REQUIRE(rule != rules.end());
    REQUIRE(run.refusals.size() == 1);
    const LaunchRefusal& refusal = run.refusals.front();
    CHECK(refusal.rule == rule->rule);
    CHECK(refusal.source == "Megatron-LM, " + one.source);
    CHECK_FALSE(refusal.written.empty());
    CHECK(refusal.at.line > 0);
    REQUIRE_FALSE(refusal.fields.empty());
    for (const std::string& field : refusal.fields) {
      CAPTURE(field);
      CHECK(find_field(field) != nullptr);
    }
  }
}

TEST_CASE("Megatron-LM's rules: every one is broken by a script above") {
  for (const MegatronCheck& check : megatron_checks()) {
    CAPTURE(check.source);
    const auto breaks = std::count_if(broken_scripts().begin(), broken_scripts().end(),
                                      [&](const Broken& one) { return one.source == check.source; });
    CHECK(breaks == 1);
  }
}

TEST_CASE("Megatron-LM's rules: a value that only a run knows breaks none") {
  // Arguments that a variable may add.
  CHECK(read_script(script_of(dense, "--overlap-grad-reduce --save-interval --micro-batch-size",
                              "--recompute-granularity full $MORE"))
            .refusals.empty());
  CHECK(read_script(script_of(dense, "--overlap-grad-reduce", "--no-load-optim $MORE")).refusals.empty());
  // A value from outside, and from --env.
  const std::string recomputes = script_of(dense, "", "--recompute-granularity $HOW");
  CHECK(read_script(recomputes).refusals.empty());
  LaunchOptions options;
  options.environment = {{"HOW", "full"}};
  CHECK(read_script(recomputes, options).refusals.size() == 2);
}

TEST_CASE("Megatron-LM's rules: forks and older releases have others") {
  const std::string flags =
      " --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 "
      "--bf16 --vocab-size 32000 --save /checkpoints ";
  CHECK(read_script("torchrun --nproc_per_node 8 train.py" + flags).refusals.empty());
  CHECK(read_script("torchrun --nproc_per_node 8 pretrain_gpt.py" + flags).refusals.size() == 3);
  CHECK(read_script("torchrun --nproc_per_node 8 pretrain_gpt.py --use-checkpoint-args" + flags)
            .refusals.empty());
  CHECK(
      read_script("torchrun --nproc_per_node 8 pretrain_gpt.py --DDP-impl local --micro-batch-size 1" + flags)
          .refusals.empty());
  CHECK(read_script("deepspeed --num_gpus 8 pretrain_gpt.py --deepspeed --micro-batch-size 1" + flags)
            .refusals.empty());
  // A rule of a recent release is told, unless the script has an argument of it.
  const LaunchedRun fused =
      read_script(script_of(dense, "", "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"));
  CHECK(fused.refusals.empty());
  CHECK(tells(fused,
              "from then on --cross-entropy-fusion-impl te is not available with "
              "--cross-entropy-loss-fusion"));
}

TEST_CASE("Megatron-LM's rules: variables of the environment that the script does not set are told") {
  const char* const told = "CUDA_DEVICE_MAX_CONNECTIONS is 1 in the environment";
  const LaunchedRun run = read_script(script_of(dense, "", "", ""));
  CHECK(run.refusals.empty());
  CHECK(tells(run, told));
  CHECK_FALSE(tells(read_script(script_of(dense, "", "")), told));
  CHECK_FALSE(tells(read_script(script_of(dense, "", "", "env CUDA_DEVICE_MAX_CONNECTIONS=1 ")), told));
  CHECK_FALSE(tells(read_script(script_of(mixture, "", "", "")), told));
  LaunchOptions options;
  options.environment = {{"CUDA_DEVICE_MAX_CONNECTIONS", "32"}};
  CHECK(read_script(script_of(dense, "", "", ""), options).refusals.size() == 1);
  const std::string blackwell = "#!/bin/bash\n#SBATCH --gres=gpu:b200:8\n#SBATCH --nodes=2\n";
  CHECK(read_script(blackwell + script_of(dense, "", "", "export CUDA_DEVICE_MAX_CONNECTIONS=32\n"))
            .refusals.empty());
  CHECK(tells(read_script(script_of(dense, "", "--fine-grained-activation-offloading")),
              "NVTE_CPU_OFFLOAD_V1 is 1 in the environment"));
  CHECK(tells(read_script(script_of(
                  dense, "", "--cuda-graph-impl transformer_engine",
                  one_connection + std::string("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"))),
              "NCCL_GRAPH_REGISTER is 0 in the environment"));
}

}  // namespace
}  // namespace headroom
