// Strategies in the flags of the launchers of stacks, and what these have no flags for.
#include "headroom/interop/launch_flags.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "parallel/field_examples.hpp"

namespace headroom {
namespace {

LaunchFlags launched(const std::string& stack, const Strategy& strategy,
                     const std::string& model = "gpt3-175b") {
  const Transformer read = read_model(model);
  const Workload workload{.global_batch = 64, .sequence = read.sequence};
  const std::optional<LaunchFlags> flags = launch_flags(read, strategy, workload, read_software(stack));
  REQUIRE(flags.has_value());
  return *flags;
}

bool has(const LaunchFlags& launch, const std::string& flag) {
  return std::find(launch.flags.begin(), launch.flags.end(), flag) != launch.flags.end();
}

Strategy pipelined(ScheduleKind schedule) {
  return {.tensor_parallel = 8,
          .pipeline_parallel = 8,
          .virtual_pipeline = runs_in_v(schedule) || goes_round(schedule) ? 2 : 1,
          .sequence_parallel = true,
          .schedule = schedule};
}

}  // namespace

TEST_CASE("launch flags: schedules of torchtitan are those that PyTorch names") {
  const auto schedule_flag = [](ScheduleKind kind) {
    const LaunchFlags launch = launched("torchtitan-2025", pipelined(kind));
    for (const std::string& it : launch.lacks) {
      if (it.starts_with("--schedule ")) return it;
    }
    const std::string flag = "--parallelism.pipeline_parallel_schedule ";
    for (const std::string& it : launch.flags) {
      if (it.starts_with(flag)) return it.substr(flag.size());
    }
    return std::string();
  };
  using enum ScheduleKind;
  CHECK(schedule_flag(gpipe) == "GPipe");
  CHECK(schedule_flag(one_forward_one_backward) == "1F1B");
  CHECK(schedule_flag(interleaved) == "Interleaved1F1B");
  CHECK(schedule_flag(looped_bfs) == "LoopedBFS");
  CHECK(schedule_flag(zero_bubble_v) == "ZBVZeroBubble");
  CHECK(schedule_flag(dualpipe_v) == "DualPipeV");
  CHECK(schedule_flag(v_half) == "--schedule v-half: torch.distributed.pipelining has no such schedule");
}

TEST_CASE("launch flags: torchtitan cuts a replica's batch into microbatches where there is a pipeline") {
  Strategy strategy = pipelined(ScheduleKind::one_forward_one_backward);
  strategy.data_parallel = 4;
  strategy.micro_batch = 2;
  const LaunchFlags staged = launched("torchtitan-2025", strategy);
  CHECK(has(staged, "--parallelism.pipeline_parallel_microbatch_size 2"));
  CHECK(has(staged, "--training.local_batch_size 16"));
  CHECK(has(staged, "--parallelism.pipeline_parallel_layers_per_stage 12"));
  strategy.pipeline_parallel = 1;
  strategy.data_sharding = DataSharding::zero3;
  strategy.shard_size = 2;
  const LaunchFlags flat = launched("torchtitan-2025", strategy);
  CHECK(has(flat, "--training.local_batch_size 2"));
  CHECK(has(flat, "--training.global_batch_size 64"));
  CHECK(has(flat, "--parallelism.data_parallel_replicate_degree 2"));
  CHECK(has(flat, "--parallelism.data_parallel_shard_degree 2"));
}

TEST_CASE("launch flags: torchtitan checkpoints every n-th layer where that makes as many") {
  const auto with = [](std::int64_t layers) {
    Strategy strategy{.data_parallel = 8, .data_sharding = DataSharding::zero3};
    strategy.recompute = {.policy = RecomputePolicy::full, .layers = layers};
    return launched("torchtitan-2025", strategy, "llama-3-8b");  // 32 layers
  };
  CHECK(has(with(0), "--activation_checkpoint.mode full"));
  CHECK(has(with(2), "--activation_checkpoint.selective_ac_option 16"));
  CHECK(has(with(3), "--activation_checkpoint.selective_ac_option 10"));
  CHECK(with(3).lacks.empty());
  REQUIRE(with(7).lacks.size() == 1);
  CHECK(with(7).lacks.front().starts_with("--recompute-layers 7: "));
  Strategy staged{.pipeline_parallel = 2, .data_parallel = 4, .data_sharding = DataSharding::zero3};
  staged.recompute = {.policy = RecomputePolicy::full, .layers = 4};
  CHECK(has(launched("torchtitan-2025", staged, "llama-3-8b"),
            "--activation_checkpoint.selective_ac_option 4"));
  staged.recompute.method = RecomputeMethod::uniform;
  const LaunchFlags uniform = launched("torchtitan-2025", staged, "llama-3-8b");
  REQUIRE(uniform.lacks.size() == 1);
  CHECK(uniform.lacks.front().starts_with("--recompute-layers 4 --recompute-method uniform: "));
}

TEST_CASE("launch flags: Zero Bubble's fork is told what its own arguments have") {
  Strategy strategy{.data_parallel = 8, .data_sharding = DataSharding::zero1};
  strategy.optimizer.kind = OptimizerKind::muon;
  strategy.optimizer.exp_avg = MomentDtype::bf16;
  strategy.recompute = {.policy = RecomputePolicy::ops, .ops = {"core_attn", "mlp"}};
  const LaunchFlags fork = launched("zero-bubble-2023", strategy);
  for (const std::string& flag : fork.flags) {
    CHECK_FALSE(flag.starts_with("--optimizer muon"));
    CHECK_FALSE(flag.starts_with("--recompute"));
    CHECK_FALSE(flag.starts_with("--use-precision"));
  }
  CHECK(fork.lacks.size() == 4);  // ops are refused by the stack's list and by the fork
}

TEST_CASE("launch flags: zero bubbles have their fork's flags, and Megatron-LM none") {
  using enum ScheduleKind;
  CHECK(has(launched("zero-bubble-2023", pipelined(zero_bubble_h1)), "--zero-bubble-max-pending-backward 8"));
  CHECK(
      has(launched("zero-bubble-2023", pipelined(zero_bubble_2p)), "--zero-bubble-max-pending-backward 16"));
  // It takes --fp16.
  CHECK_FALSE(
      has(launched("zero-bubble-2023", pipelined(zero_bubble_v)), "--enable-optimizer-post-validation"));
  const LaunchFlags half = launched("zero-bubble-2023", pipelined(v_half));
  CHECK(has(half, "--zero-bubble-v-schedule"));
  CHECK(has(half, "--zero-bubble-v-schedule-mem-setup half"));
  CHECK(half.lacks.empty());
  CHECK(launched("megatron-2022", pipelined(v_half)).lacks ==
        std::vector<std::string>{
            "--schedule v-half: Megatron-LM runs 1F1B, or interleaved 1F1B where ranks have "
            "virtual stages"});
}

TEST_CASE("launch flags: Megatron-LM's are flags, Megatron-Bridge's overrides of the same names") {
  Strategy strategy{.tensor_parallel = 2, .pipeline_parallel = 4, .virtual_pipeline = 2};
  strategy.sequence_parallel = true;
  strategy.data_parallel = strategy.expert_parallel = 4;
  strategy.schedule = ScheduleKind::interleaved;
  strategy.overlap_expert_all_to_all = true;
  strategy.data_sharding = DataSharding::zero1;
  strategy.recompute = {.policy = RecomputePolicy::ops, .ops = {"moe_act", "layernorm"}};
  const LaunchFlags megatron = launched("megatron-core-2025", strategy, "mixtral-8x7b");
  const LaunchFlags bridge = launched("nemo-2025", strategy, "mixtral-8x7b");
  CHECK(megatron.lacks.empty());
  CHECK(bridge.lacks.empty());
  CHECK(has(megatron, "--num-virtual-stages-per-pipeline-rank 2"));
  CHECK(has(bridge, "model.virtual_pipeline_model_parallel_size=2"));
  CHECK(has(megatron, "--overlap-moe-expert-parallel-comm"));
  Strategy padded = strategy;
  padded.moe_pad_to_capacity = true;
  CHECK(has(launched("megatron-core-2025", padded, "mixtral-8x7b"), "--moe-pad-expert-input-to-capacity"));
  CHECK(has(launched("megatron-core-2025", padded, "mixtral-8x7b"), "--moe-expert-capacity-factor 1"));
  CHECK(has(launched("nemo-2025", padded, "mixtral-8x7b"), "model.moe_pad_expert_input_to_capacity=true"));
  CHECK(has(bridge, "comm_overlap.overlap_moe_expert_parallel_comm=true"));
  CHECK(has(megatron,
            "--expert-tensor-parallel-size 1"));  // Megatron-LM's own default is that of tensor parallelism
  CHECK(has(megatron, "--use-distributed-optimizer"));
  CHECK(has(megatron, "--recompute-modules moe_act layernorm"));
  CHECK(has(bridge, "model.recompute_modules=[moe_act,layernorm]"));
  strategy.stage_layers = {5, 4, 4, 4, 4, 4, 4, 3};
  CHECK(has(launched("megatron-core-2025", strategy, "mixtral-8x7b"),
            "--pipeline-model-parallel-layout 'Et*5|(t*4|)*6,t*3,L'"));
  strategy.recompute.window = true;
  strategy.recompute.ops = {"activation"};
  // One for the op, and one for the window.
  CHECK(launched("megatron-core-2025", strategy, "mixtral-8x7b").lacks.size() == 2);
}

TEST_CASE("launch flags: torchtitan gathers logits where its loss is not parallel") {
  const Transformer model = read_model("llama-3-8b");
  const Workload workload{.global_batch = 64, .sequence = model.sequence};
  Software software = read_software("torchtitan-2025");
  Strategy strategy{.tensor_parallel = 2, .data_parallel = 8, .sequence_parallel = true};
  const auto says_so = [&] {
    return has(*launch_flags(model, strategy, workload, software), "--parallelism.disable_loss_parallel");
  };
  CHECK_FALSE(says_so());
  software.vocabulary.loss = LossParallel::gathered;
  CHECK(says_so());
  strategy.tensor_parallel = 1;
  CHECK_FALSE(says_so());
}

TEST_CASE("launch flags: of modules in BF16 prediction has a flag, and others need a file of patterns") {
  const auto with = [](const PrecisionModules& modules) {
    Strategy strategy{.data_parallel = 8, .expert_parallel = 8, .precision = Precision::fp8_blockwise};
    strategy.precision_scope.bf16_modules = modules;
    return launched("megatron-core-2025", strategy, "deepseek-v3");
  };
  CHECK(has(with(PrecisionModule::mtp), "--keep-mtp-spec-in-bf16"));
  CHECK(with(PrecisionModule::mtp).lacks == with({}).lacks);
  const LaunchFlags attention = with(PrecisionModule::attention);
  CHECK_FALSE(has(attention, "--keep-mtp-spec-in-bf16"));
  REQUIRE(attention.lacks.size() == with({}).lacks.size() + 1);
  CHECK(std::any_of(attention.lacks.begin(), attention.lacks.end(), [](const std::string& what) {
    return what.starts_with("--bf16-modules attention: needs a ");
  }));
}

TEST_CASE("launch flags: DeepSpeed's configuration and accelerate's flags") {
  Strategy strategy{.micro_batch = 2, .gradient_dtype = Dtype::bf16};
  strategy.data_parallel = 8;
  strategy.data_sharding = DataSharding::zero2;
  strategy.offload.optimizer.value = 0.5;
  const LaunchFlags deepspeed = launched("deepspeed-2025", strategy);
  CHECK(has(deepspeed, "zero_optimization.stage 2"));
  CHECK(has(deepspeed, "gradient_accumulation_steps 4"));
  CHECK(has(deepspeed, "zero_optimization.offload_optimizer.device cpu"));
  // Stage 3 alone sends a share.
  REQUIRE(deepspeed.lacks.size() == 1);
  CHECK(deepspeed.lacks.front().starts_with("--optimizer-offload-fraction 0.5: "));
  strategy.data_sharding = DataSharding::zero3;
  CHECK(has(launched("deepspeed-2025", strategy), "zero_optimization.offload_optimizer.ratio 0.5"));
  strategy.offload = {};
  strategy.recompute.policy = RecomputePolicy::full;
  const LaunchFlags trainer = launched("hf-trainer", strategy);
  CHECK(has(trainer, "--num_processes 8"));
  CHECK(has(trainer, "--fsdp_version 2"));
  CHECK(has(trainer, "--gradient_checkpointing"));
  CHECK(trainer.lacks.empty());
  strategy.shard_size = 4;
  CHECK(has(launched("hf-trainer", strategy), "--use_parallelism_config true"));
  strategy.optimizer.kind = OptimizerKind::adafactor;
  CHECK(has(launched("hf-trainer", strategy), "--optim adafactor"));
  strategy.optimizer = {.exp_avg = MomentDtype::int8, .exp_avg_sq = MomentDtype::int8};
  CHECK(has(launched("hf-trainer", strategy), "--optim adamw_bnb_8bit"));
  strategy.optimizer = {.kind = OptimizerKind::muon};
  CHECK(launched("hf-trainer", strategy).lacks.size() == 1);
  strategy = {.tensor_parallel = 4, .gradient_dtype = Dtype::bf16};
  CHECK(has(launched("deepspeed-2025", strategy), "zero_optimization.stage 1"));
}

TEST_CASE("launch flags: every field of a strategy is told to the launcher, or it is said that it is not") {
  // What only the number of GPUs says, what we assume of the router, and what the launched program's own data says.
  const std::set<std::string> by_no_flag = {"data_parallel", "moe_balancing", "moe_imbalance", "sequence"};
  const Transformer model = read_model("qwen3-30b-a3b");
  for (const char* stack : {"megatron-core-2025", "nemo-2025", "zero-bubble-2023", "torchtitan-2025",
                            "deepspeed-2025", "hf-trainer"}) {
    CAPTURE(stack);
    const Software software = read_software(stack);
    Strategy plain = with_stack_defaults({.tensor_parallel = 2,
                                          .pipeline_parallel = 4,
                                          .virtual_pipeline = 2,
                                          .context_parallel = 2,
                                          .data_parallel = 64,
                                          .recompute = {.policy = RecomputePolicy::full, .layers = 1},
                                          .schedule = ScheduleKind::interleaved,
                                          .data_sharding = DataSharding::zero1,
                                          .precision = Precision::fp8,
                                          .offload = {.optimizer = {0.25}}},
                                         software, model);
    if (software.launcher == Launcher::accelerate) plain.data_sharding = DataSharding::zero3;
    const Workload workload{.global_batch = 1280, .sequence = 2048};
    for (const FieldExample& example : field_examples) {
      const std::string name = example.field;
      CAPTURE(name);
      if (by_no_flag.contains(name)) continue;
      Strategy strategy = plain;
      if (name == "no_reshard_after_forward") {  // stages keep gathered weights anyway
        strategy.pipeline_parallel = strategy.virtual_pipeline = 1;
        strategy.data_sharding = DataSharding::zero3;
      }
      if (name == "hierarchical_cp_sizes") {
        strategy.context_parallel = 8;
        strategy.cp_comm = CpComm::a2a_p2p;
      }
      const auto without = launch_flags(model, strategy, workload, software);
      if (name.starts_with("lora_") || name == "base_dtype") strategy.lora.rank = 8;
      Workload other = workload;
      const std::string value = name == "stage_layers"            ? "5,6*6,7"
                                : name == "hierarchical_cp_sizes" ? "4,2"
                                : name == "precision"             ? "bf16"
                                : name == "recompute_layers"      ? "2"
                                : name == "schedule"              ? "looped-bfs"
                                : name == "exp_avg_dtype"         ? "fp8"
                                : name == "gradient_dtype"        ? "fp16"
                                : name == "data_sharding"         ? "zero2"
                                : name == "microbatch_group_size" ? "8"
                                                                  : example.value;
      const StrategyField& field = *find_field(name);
      if (value_of(field, strategy, other) == value) continue;  // the stack's own
      REQUIRE(apply({name, value}, strategy, other).empty());
      const auto with = launch_flags(model, strategy, other, software);
      // What Python has to say is named as a whole, and what is refused at any value by its flag.
      const std::string flag = by_flag({.where = name, .rule = ""}).where;
      const bool in_python =
          std::any_of(with->lacks.begin(), with->lacks.end(), [&](const std::string& what) {
            return what.find(flag) != std::string::npos ||
                   (name == "schedule" && what.starts_with("--pipeline-parallel ")) ||
                   (what.starts_with("recomputation: ") && name.starts_with("recompute")) ||
                   (what.starts_with("the optimizer: ") && name.find("exp_avg") != std::string::npos) ||
                   (what.starts_with("--recompute-layers ") && name == "recompute_method");
          });
      CHECK((in_python || with != without));
    }
  }
}

TEST_CASE("launch flags: what Megatron-Core's own checks refuse is not written") {
  Strategy strategy{.tensor_parallel = 8, .data_parallel = 2, .data_sharding = DataSharding::zero1};
  Software software = read_software("megatron-core-2025");
  software.overlap_tensor_parallel = TensorOverlap::full;
  strategy.optimizer.exp_avg = MomentDtype::bf16;
  strategy.optimizer.main_params = MainParams::remainder;
  const Transformer model = read_model("llama-3-8b");
  const auto launch = [&] {
    return *launch_flags(model, strategy, {.global_batch = 64, .sequence = 8192}, software);
  };
  CHECK_FALSE(has(launch(), "--tp-comm-overlap"));
  strategy.sequence_parallel = true;
  CHECK(has(launch(), "--tp-comm-overlap"));
  CHECK(has(launch(), "--use-precision-aware-optimizer"));
  CHECK(launch().lacks.empty());
  strategy.gradient_dtype = Dtype::fp16;
  CHECK_FALSE(has(launch(), "--grad-reduce-in-bf16"));
  CHECK(launch().lacks.size() == 1);
}

TEST_CASE("launch flags: none of a stack whose launcher is not known") {
  const Software own{.name = "own"};
  CHECK_FALSE(launch_flags(read_model("gpt3-175b"), Strategy{}, Workload{}, own).has_value());
}

}  // namespace headroom
