// What PyTorch's allocator holds on a rank, against what the account of its plan counts.
#include "headroom/plan/allocator_use.hpp"

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/interval.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

Request request_of(const char* model, const char* software, const Strategy& strategy, std::int64_t batch) {
  const Transformer of = read_model(model);
  return {.model = of,
          .system = read_system("dgx-h100-80g"),
          .software = read_software(software),
          .strategy = strategy,
          .workload = {.global_batch = batch, .sequence = of.sequence}};
}

AllocatorUse use_of(const Request& request) {
  const Plan plan = account(evaluate(request));
  const auto use = allocator_use(plan, static_cast<std::int64_t>(plan.peak_rank));
  REQUIRE(use);
  CHECK(use->reserved >= use->allocated);
  CHECK(use->expandable >= use->allocated);
  return *use;
}

// What tensors take at once when they are followed one by one, over what the account says.
double over_account(const Request& request) {
  return use_of(request).allocated / allocated(account(evaluate(request)));
}

}  // namespace

TEST_CASE("allocator use: tensors that are followed one by one take what the account counts") {
  Strategy deep{.tensor_parallel = 8,
                .pipeline_parallel = 8,
                .virtual_pipeline = 3,
                .sequence_parallel = true,
                .schedule = ScheduleKind::interleaved};
  CHECK(over_account(request_of("gpt3-175b", "megatron-core-2025", deep, 64)) ==
        doctest::Approx(1).epsilon(1e-3));
  deep.virtual_pipeline = 1;
  deep.schedule = ScheduleKind::one_forward_one_backward;
  for (const Recomputation& recompute :
       {Recomputation{.policy = RecomputePolicy::selective}, Recomputation{.policy = RecomputePolicy::full},
        Recomputation{.policy = RecomputePolicy::full, .layers = 4}}) {
    deep.recompute = recompute;
    CHECK(over_account(request_of("gpt3-175b", "megatron-core-2025", deep, 64)) ==
          doctest::Approx(1).epsilon(1e-3));
  }
  const Strategy experts{.tensor_parallel = 2,
                         .pipeline_parallel = 2,
                         .data_parallel = 8,
                         .expert_parallel = 8,
                         .sequence_parallel = true};
  CHECK(over_account(request_of("mixtral-8x7b", "megatron-core-2025", experts, 64)) ==
        doctest::Approx(1).epsilon(1e-3));
  Strategy shards{.data_parallel = 8, .micro_batch = 2, .data_sharding = DataSharding::zero3};
  for (const char* const stack :
       {"hf-trainer", "deepspeed-2025", "nemo-2025", "fms-fsdp-2024", "kempnerforge-2026"}) {
    CAPTURE(stack);
    shards.gradient_dtype = Dtype::half;
    CHECK(over_account(request_of("llama-3-8b", stack, shards, 64)) == doctest::Approx(1).epsilon(1e-3));
  }
}

TEST_CASE("allocator use: outputs that a stage keeps are followed too") {
  const Strategy deep{.tensor_parallel = 8,
                      .pipeline_parallel = 8,
                      .recompute = {.policy = RecomputePolicy::full},
                      .keep_pipeline_outputs = true};
  const Request keeps = request_of("gpt3-175b", "megatron-core-2025", deep, 64);
  CHECK(over_account(keeps) == doctest::Approx(1).epsilon(1e-3));
  Request sends = keeps;
  sends.strategy.keep_pipeline_outputs = false;
  CHECK(use_of(keeps).allocated - use_of(sends).allocated >= 7 * Bytes(2.0 * 2048 * 12288));
}

TEST_CASE("allocator use: a flat copy of the gradients is held during the step") {
  Strategy shards{.data_parallel = 8,
                  .recompute = {.policy = RecomputePolicy::full},
                  .data_sharding = DataSharding::zero1,
                  .gradient_dtype = Dtype::half};
  Request request = request_of("llama-3-8b", "deepspeed-2025", shards, 8);
  request.workload.sequence = 128;  // few activations
  const RankMemory memory = account(evaluate(request)).ranks.front();
  const Bytes resident = memory.state.weights + memory.state.gradients + memory.state.optimizer;
  const Bytes flat = memory.state.optimizer / 12 * 6;  // in 16 bits and in FP32
  CHECK(use_of(request).allocated / (resident + flat) == doctest::Approx(1).epsilon(0.01));
  request.software.memory.flat_gradients = FlatGradients::none;
  CHECK(use_of(request).allocated < resident + 0.7 * flat);
  // Of a state that a step on zeros made, room for the FP32 copy is left.
  request.software.memory.flat_gradients = FlatGradients::from_start;
  CHECK(use_of(request).reserved >= resident + flat);
}

TEST_CASE("allocator use: FusedAdam's step copies narrow state to FP32") {
  Strategy shards{.data_parallel = 2,
                  .recompute = {.policy = RecomputePolicy::full},
                  .data_sharding = DataSharding::zero1,
                  .gradient_dtype = Dtype::half};
  shards.optimizer.exp_avg = shards.optimizer.exp_avg_sq = MomentDtype::fp8;
  Request request = request_of("llama-3-8b", "megatron-core-2025", shards, 8);
  request.workload.sequence = 128;  // few activations
  const RankMemory memory = account(evaluate(request)).ranks.front();
  const Bytes resident = memory.state.weights + memory.state.gradients + memory.state.optimizer;
  const Bytes copies = memory.state.optimizer / (4 + 1 + 1) * 8;  // two numbers of 4 bytes a parameter
  CHECK(use_of(request).allocated / (resident + copies) == doctest::Approx(1).epsilon(0.02));
  request.software.memory.widens_state = false;
  CHECK(use_of(request).allocated < resident + 0.5 * copies);
  // Moments that are both of BF16 are stepped in place.
  request.software.memory.widens_state = true;
  request.strategy.optimizer.exp_avg = request.strategy.optimizer.exp_avg_sq = MomentDtype::bf16;
  const Bytes in_place = use_of(request).allocated;
  request.software.memory.widens_state = false;
  CHECK(use_of(request).allocated == in_place);
}

TEST_CASE("allocator use: of units that gather and reduce one reduction is read from at a time") {
  Strategy shards{.data_parallel = 64,
                  .recompute = {.policy = RecomputePolicy::full},
                  .data_sharding = DataSharding::zero3,
                  .gradient_dtype = Dtype::half};
  for (const char* const model : {"mixtral-8x7b", "qwen3-235b-a22b"}) {
    CAPTURE(model);
    CHECK(over_account(request_of(model, "torchtitan-2025", shards, 256)) ==
          doctest::Approx(1).epsilon(1e-3));
  }
  // A loss that works in place has its logits once.
  for (const RecomputePolicy policy : {RecomputePolicy::none, RecomputePolicy::full}) {
    shards.recompute.policy = policy;
    shards.micro_batch = 4;
    CHECK(over_account(request_of("llama-3-8b", "pytorch-fsdp-2023", shards, 1024)) ==
          doctest::Approx(1).epsilon(1e-3));
  }
}

TEST_CASE("allocator use: microbatches leave nothing behind where a member of a stage has no weights") {
  const Strategy shards{.data_parallel = 64,
                        .recompute = {.policy = RecomputePolicy::full},
                        .data_sharding = DataSharding::zero3,
                        .gradient_dtype = Dtype::fp32};
  const auto most = [&](std::int64_t batch) {  // with multi-token prediction
    return use_of(request_of("glm-4.5-air", "torchtitan-2025", shards, batch)).allocated;
  };
  CHECK(most(128) == most(512));
}

TEST_CASE("allocator use: is not known of plans far beyond a device, nor of very many passes") {
  Request beyond = request_of("gpt3-175b", "megatron-core-2025", {}, 2'000'000);
  beyond.strategy.micro_batch = 2'000'000;
  CHECK_FALSE(allocator_use(account(evaluate(beyond)), 0));
  Request many =
      request_of("gpt2-small", "megatron-core-2025",
                 {.recompute = {.policy = RecomputePolicy::full}, .schedule = ScheduleKind::gpipe}, 16'384);
  many.workload.sequence = 128;
  CHECK_FALSE(allocator_use(account(evaluate(many)), 0));
}

TEST_CASE("allocator use: gradients of the only microbatch are not there yet at the peak of its loss") {
  const Strategy shards{.data_parallel = 8,
                        .micro_batch = 2,
                        .data_sharding = DataSharding::zero3,
                        .gradient_dtype = Dtype::fp32};
  const Request one = request_of("llama-3-8b", "torchtitan-2025", shards, 16);
  const Plan plan = account(evaluate(one));
  CHECK(plan.ranks.front().state.gradients > 0_B);
  CHECK(gradients_at_peak(plan.ranks.front()) == 0_B);
  CHECK(allocated(plan) / use_of(one).allocated == doctest::Approx(1).epsilon(0.001));
}

TEST_CASE(
    "allocator use: shards of gradients that no step frees are there at the peak of the only microbatch") {
  Strategy shards{.data_parallel = 8,
                  .micro_batch = 2,
                  .data_sharding = DataSharding::zero3,
                  .gradient_dtype = Dtype::half};
  for (const char* const stack : {"deepspeed-2025", "nemo-2025"}) {
    CAPTURE(stack);
    const Request one = request_of("llama-3-8b", stack, shards, 16);
    CHECK(gradients_at_peak(account(evaluate(one)).ranks.front()) > 0_B);
    CHECK(over_account(one) == doctest::Approx(1).epsilon(1e-3));
  }
  // XLA's are freed by the step.
  CHECK(over_account(request_of("llama-3-8b", "maxtext-2025", shards, 16)) ==
        doctest::Approx(1).epsilon(1e-3));
  shards.data_sharding = DataSharding::zero2;
  CHECK(over_account(request_of("llama-3-8b", "own", shards, 16)) == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("allocator use: a plan whose backward pass makes the gradients holds what the account counts") {
  for (const char* const name : {"llama-3.2-1b", "qwen3-0.6b"}) {
    for (const RecomputePolicy policy : {RecomputePolicy::none, RecomputePolicy::full}) {
      for (const std::int64_t batch : {1, 2}) {
        for (const MainParams main : {MainParams::fp32, MainParams::none}) {
          CAPTURE(name);
          CAPTURE(batch);
          const Strategy strategy{.recompute = {.policy = policy}, .optimizer = {.main_params = main}};
          const Request request = request_of(name, "hf-trainer", strategy, batch);
          const Plan plan = account(evaluate(request));
          CHECK(use_of(request).allocated / allocated(plan) == doctest::Approx(1).epsilon(0.005));
          CHECK(peak(plan) >= total(plan.ranks.front().state));
          CHECK((gradients_at_peak(plan.ranks.front()) < plan.ranks.front().state.gradients) == (batch == 1));
        }
      }
    }
  }
}

TEST_CASE("allocator use: the reduction of the last unit counts where activations are small") {
  for (const std::int64_t batch : {8, 16}) {
    Request request = request_of("llama-3.2-3b", "torchtitan-2025",
                                 {.data_parallel = 8,
                                  .recompute = {.policy = RecomputePolicy::full},
                                  .data_sharding = DataSharding::zero3,
                                  .gradient_dtype = Dtype::fp32},
                                 batch);
    request.workload.sequence = 128;
    CHECK(over_account(request) == doctest::Approx(1).epsilon(3e-3));
  }
}

TEST_CASE("allocator use: most gradients exist at the peak if activations are small") {
  Request request = request_of("llama-3.2-1b", "hf-trainer", {}, 1);
  request.workload.sequence = 16;
  const Plan plan = account(evaluate(request));
  CHECK(gradients_at_peak(plan.ranks.front()) / plan.ranks.front().state.gradients > 0.75);
}

TEST_CASE("allocator use: segments that grow hold less where a loss leaves holes") {
  const Strategy shards{.data_parallel = 8,
                        .micro_batch = 2,
                        .recompute = {.policy = RecomputePolicy::selective_op},
                        .data_sharding = DataSharding::zero3,
                        .gradient_dtype = Dtype::fp32};
  const AllocatorUse use = use_of(request_of("llama-3-8b", "torchtitan-2025", shards, 16));
  CHECK(use.expandable < use.reserved);
  Request grows = request_of("llama-3-8b", "torchtitan-2025", shards, 16);
  grows.software.memory.expandable_segments = true;
  CHECK(use_of(grows).reserved == use.expandable);
}

TEST_CASE("allocator use: is not known where the order of tensors is not followed") {
  const auto use = [](const Request& request) { return allocator_use(account(evaluate(request)), 0); };
  Request request = request_of("llama-3-8b", "zero-bubble-2023", {.pipeline_parallel = 4}, 16);
  CHECK(use(request));
  request.strategy.schedule = ScheduleKind::zero_bubble_h1;
  CHECK_FALSE(use(request));
  request = request_of("llama-3-8b", "megatron-core-2025", {}, 16);
  request.strategy.offload.layers = 1;
  CHECK_FALSE(use(request));
  request.strategy.offload = {};
  request.strategy.recompute = {
      .policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 2};
  CHECK_FALSE(use(request));
}

TEST_CASE("allocator use: what some groups of microbatches found room for is enough for all that follow") {
  const Strategy deep{.tensor_parallel = 8,
                      .pipeline_parallel = 4,
                      .virtual_pipeline = 2,
                      .sequence_parallel = true,
                      .schedule = ScheduleKind::interleaved};
  const auto reserved = [&](std::int64_t batch) {
    return use_of(request_of("gpt-22b", "megatron-core-2025", deep, batch)).reserved;
  };
  for (const std::int64_t batch : {20, 28, 64, 512}) CHECK(reserved(batch) == reserved(16));
}

TEST_CASE("settled: a verdict is what PyTorch will hold") {
  const Strategy sharded{.data_parallel = 8,
                         .micro_batch = 2,
                         .recompute = {.policy = RecomputePolicy::selective_op},
                         .data_sharding = DataSharding::zero3};
  Request request = request_of("llama-3-8b", "torchtitan-2025", sharded, 16);
  const Plan plan = account(settled(evaluate(request)));
  REQUIRE(plan.allocator);
  const Bytes other = plan.ranks[plan.peak_rank].reserved;
  const auto verdict_in = [&](Bytes memory) {
    request.system.memory = memory;
    return account(settled(evaluate(request))).verdict;
  };
  REQUIRE(plan.allocator->expandable < plan.allocator->reserved);
  CHECK(verdict_in(plan.allocator->reserved + other) == Verdict::fits);
  CHECK(verdict_in(plan.allocator->expandable + other) == Verdict::marginal);
  // The tensors of long sequences have room, but leave pieces between them that serve none of the others.
  Request pieces = request_of("gpt3-175b", "megatron-2022",
                              {.tensor_parallel = 8,
                               .pipeline_parallel = 8,
                               .sequence_parallel = true,
                               .recompute = {.policy = RecomputePolicy::full}},
                              64);
  pieces.system = read_system("dgx-a100-80g");
  pieces.workload.sequence = 16384;
  REQUIRE(std::holds_alternative<Plan>(evaluate(pieces)));
  const Evaluation full = settled(evaluate(pieces));
  REQUIRE(std::holds_alternative<Infeasible>(full));
  CHECK(std::get<Infeasible>(full).limit == "reserved_memory");
  CHECK(std::get<Infeasible>(full).needed > pieces.system.memory);
}

TEST_CASE("settled: the fullest device is found among all ranks, not only the one whose tensors take most") {
  int elsewhere = 0;
  for (const std::vector<std::int64_t>& layers : {std::vector<std::int64_t>{17, 15}, {16, 16}}) {
    const Strategy stages{.pipeline_parallel = 2,
                          .data_parallel = 4,
                          .micro_batch = 2,
                          .recompute = {.policy = RecomputePolicy::selective_op},
                          .data_sharding = DataSharding::zero3,
                          .stage_layers = layers};
    Request request = request_of("llama-3-8b", "torchtitan-2025", stages, 64);
    request.software.memory.keeps_logits = false;  // the last rank would have most by far
    const Plan plan = account(settled(evaluate(request)));
    REQUIRE(plan.allocator);
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      const auto reserved = reserved_bytes(plan, static_cast<std::int64_t>(rank));
      REQUIRE(reserved);
      CHECK(*reserved + plan.ranks[rank].reserved <= *held_bytes(plan));
    }
    elsewhere += plan.allocator->rank != plan.peak_rank ? 1 : 0;
  }
  CHECK(elsewhere > 0);
}

}  // namespace headroom
