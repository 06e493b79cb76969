// The composer against a fresh one, whatever it was asked before, and its accounts against their parts: memory walked
// through step by step, and the schedule replayed event by event.
#include "headroom/plan/composer.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/core/counts.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/memory/step.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/iteration.hpp"
#include "headroom/schedule/order.hpp"
#include "headroom/schedule/replay.hpp"
#include "headroom/time/iteration_end.hpp"
#include "headroom/time/model_exchanges.hpp"
#include "headroom/time/optimizer_step.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

Recomputation any_recomputation(const Request& request) {
  Recomputation recompute{.policy = *rc::gen::element(RecomputePolicy::none, RecomputePolicy::selective,
                                                      RecomputePolicy::full, RecomputePolicy::ops)};
  if (recompute.policy == RecomputePolicy::none) return recompute;
  if (recompute.policy == RecomputePolicy::ops) {
    const OpTable table = layer_ops(request.model.architecture);
    for (const Op& op : table.ops()) {
      if (*rc::gen::arbitrary<bool>()) recompute.ops.emplace_back(op.name);
    }
  }
  recompute.layers = *rc::gen::element(0, 0, 1, 2);
  recompute.window = recompute.layers == 0 && *rc::gen::arbitrary<bool>();
  if (recompute.policy == RecomputePolicy::full) {
    recompute.distribute_saved_activations = *rc::gen::arbitrary<bool>();
    if (recompute.layers > 0 && *rc::gen::arbitrary<bool>()) recompute.method = RecomputeMethod::uniform;
  }
  return recompute;
}

// A legal strategy. They differ in all that a composer keys what it knows by.
std::optional<Strategy> any_strategy(const Request& request) {
  const auto size = [] { return *rc::gen::element<std::int64_t>(1, 2, 4); };
  Strategy strategy{.tensor_parallel = size(),
                    .pipeline_parallel = size(),
                    .virtual_pipeline = *rc::gen::element<std::int64_t>(1, 2),
                    .data_parallel = *rc::gen::element<std::int64_t>(1, 2),
                    .micro_batch = *rc::gen::element<std::int64_t>(1, 2)};
  strategy.sequence_parallel = *rc::gen::arbitrary<bool>();
  strategy.save_gathered_input = *rc::gen::arbitrary<bool>();
  strategy.keep_pipeline_outputs = *rc::gen::arbitrary<bool>();
  strategy.data_sharding = *rc::gen::elementOf(request.software.sharding.modes);
  strategy.no_reshard_after_forward =
      strategy.data_sharding == DataSharding::zero3 && *rc::gen::arbitrary<bool>();
  if (shards_optimizer(strategy)) strategy.shard_size = *rc::gen::element<std::int64_t>(0, 0, 1, 2);
  strategy.gradient_dtype = *rc::gen::element(Dtype::fp32, Dtype::half);
  strategy.recompute = any_recomputation(request);
  if (strategy.virtual_pipeline > 1) {
    strategy.schedule = ScheduleKind::interleaved;
    strategy.microbatch_group_size = *rc::gen::element<std::int64_t>(0, 0, 3, 5, 6);
  } else {
    strategy.schedule = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                          ScheduleKind::zero_bubble_h1);
  }
  if (!illegalities(request.model, strategy, request.workload, request.software).empty() ||
      !stack_illegalities(request.software, strategy).empty()) {
    return std::nullopt;
  }
  return strategy;
}

Request any_request() {
  Request request = small_request();
  request.workload.global_batch = *rc::gen::element<std::int64_t>(8, 10, 16);
  request.model.layers = *rc::gen::inRange<std::int64_t>(4, 10);
  request.detail = *rc::gen::element(Detail::paper, Detail::exact);
  if (*rc::gen::arbitrary<bool>()) {  // groups lie over racks as their job's size has it
    request.system.devices_per_node = 6;
    request.system.devices_per_host = *rc::gen::element<std::int64_t>(1, 2, 3);
  }
  request.software.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  request.software.overlap_param_gather = *rc::gen::arbitrary<bool>();
  request.software.overlap_p2p = *rc::gen::arbitrary<bool>();
  request.software.overlap_tensor_parallel = *rc::gen::element(TensorOverlap::none, TensorOverlap::full);
  if (*rc::gen::arbitrary<bool>()) {
    request.model.architecture.kernels.attention = AttentionKernel::flash;
    request.model.architecture.kernels.layout = AttentionLayout::batch_first;
  }
  if (*rc::gen::arbitrary<bool>()) {
    request.software.memory = {
        .backward_buffers = true,
        .dummy_gradients =
            *rc::gen::element(DummyGradients::none, DummyGradients::transient, DummyGradients::kept_by_shape),
        .workspaces = 96_MiB};
  }
  return request;
}

TEST_CASE("composer: what it was asked before changes no answer") {
  int legal = 0;
  CHECK(rc::check([&] {
    const Request request = any_request();
    Composer composer(request);
    struct Asked {
      Layout layout;
      Strategy strategy;
      RankPeak peak;
      Seconds iteration;
    };
    std::vector<Asked> earlier;
    for (int i = 0; i < 12; ++i) {
      const std::optional<Strategy> strategy = any_strategy(request);
      if (!strategy) continue;
      ++legal;
      const Evaluation fresh = Composer(request).evaluate(*strategy);
      const Plan& plan = account(fresh);
      Layout layout = composer.layout(*strategy);
      if (*rc::gen::arbitrary<bool>()) RC_ASSERT(composer.evaluate(*strategy) == fresh);
      if (*rc::gen::arbitrary<bool>()) {
        // Another question about the layout in between.
        Strategy other = *strategy;
        other.recompute = {.policy = RecomputePolicy::full};
        other.recompute.window = false;
        if (!shards_gradients(other)) other.data_sharding = DataSharding::none, other.shard_size = 0;
        const RankPeak least = layout.peak(other);
        RC_ASSERT(least.bytes > Bytes(0));
        RC_ASSERT(layout.iteration(other) > Seconds(0));
      }
      const RankPeak highest = layout.peak(*strategy);
      RC_ASSERT(highest == (RankPeak{plan.peak_rank, peak(plan)}));
      RC_ASSERT(verdict_of(request, highest.bytes) == plan.verdict);
      const Seconds iteration = layout.iteration(*strategy);
      RC_ASSERT(iteration == plan.timing->iteration.total);
      RC_ASSERT(layout.least_iteration(*strategy) <= iteration);
      RC_ASSERT(layout.mfu(iteration) == plan.timing->throughput.mfu);
      earlier.push_back({std::move(layout), *strategy, highest, iteration});
    }
    for (const Asked& asked : earlier) {
      RC_ASSERT(asked.layout.peak(asked.strategy) == asked.peak);
      RC_ASSERT(asked.layout.iteration(asked.strategy) == asked.iteration);
    }
  }));
  CHECK(legal > 100);
}

// The peak of a rank, from every step of its schedule.
Bytes walked(const Request& request, const RankMemory& memory) {
  const auto& [model, system, software, strategy, workload, detail, margin, insisted] = request;
  Strategy everything = strategy;
  everything.recompute = {};
  const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, workload));
  Bytes highest;
  for (const StepActivations& step :
       activations_by_step(stage_activations(model, strategy, workload, detail, software),
                           stage_activations(model, everything, workload, detail, software), memory.window,
                           shape, memory.activations.pipeline_rank)) {
    highest = std::max(highest, total(step.highest));
  }
  return highest;
}

TEST_CASE("composer: an account is what its parts come to, step by step") {
  int legal = 0;
  CHECK(rc::check([&] {
    Request request = any_request();
    const std::optional<Strategy> asked = any_strategy(request);
    if (!asked) return;
    ++legal;
    request.strategy = *asked;
    const auto& [model, system, software, strategy, workload, detail, margin, insisted] = request;
    const Plan plan = account(evaluate(request));
    const std::vector<Parameters> parameters = parameters_by_rank(model, strategy, workload);
    RC_ASSERT(plan.ranks.size() == parameters.size());
    for (std::size_t rank = 0; rank < parameters.size(); ++rank) {
      const RankMemory& memory = plan.ranks[rank];
      RC_ASSERT(memory.state == model_state(model, strategy, workload, parameters[rank], 2, software));
      RC_ASSERT(memory.reserved == reserved(system, software, strategy));
      RC_ASSERT(memory.workspaces == software.memory.workspaces.value_or(0_B));
      const bool keeps = software.memory.dummy_gradients == DummyGradients::kept_by_shape;
      RC_ASSERT((memory.dummy_gradients > 0_B) == keeps);
      RC_ASSERT(total(memory.activations.at_peak) ==
                walked(request, memory) + memory.activations.kept_logits);
      RC_ASSERT(total(memory) <= peak(plan));
    }
    const std::int64_t connected = connected_devices(system, devices(strategy));
    const Setting setting = setting_of(model, strategy, workload, connected, *system.performance, software);
    const IterationTime& iteration = plan.timing->iteration;
    RC_ASSERT(iteration.cost == model_cost(model, strategy, setting));
    std::vector<StageCost> stages = stage_costs(iteration.cost, model, strategy);
    if (has_units(strategy, workload, software)) {
      const ModelLayers layers = layers_of(model, strategy);
      const StagePlace place = stage_places(layers, strategy).front();
      const ModelExchanges exchanges =
          model_exchanges(layers, model_parameters(model, strategy, workload), strategy, workload, connected,
                          *system.performance, software);
      const ExchangeTimes times =
          exchange_times(exchanges, iteration.cost, place, strategy.recompute, *system.performance, software);
      stages.front() = with_exchanges(stages.front(), exchanges, times, place);
      RC_ASSERT(times == iteration.exchanges);
    }
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      RC_ASSERT(iteration.times.stages[stage] ==
                pass_times(stages[stage], iteration.shape, system.performance->rates.host, software));
    }
    const ReplayedSchedule replayed = replay_schedule(iteration.shape, iteration.times);
    const double ratio = replayed.makespan / iteration.schedule.makespan;
    RC_ASSERT(std::abs(ratio - 1) < 1e-9);
    Parameters most;
    for (const Parameters& held : parameters) {
      if (total(held) > total(most)) most = held;
    }
    RC_ASSERT(iteration.breakdown.optimizer ==
              optimizer_time(most, strategy, workload, *system.performance, software));
    const DataParallelTimes replicas =
        data_parallel_times(most, strategy, workload, connected, *system.performance, software);
    const Seconds tied = tied_embedding_time(model, strategy, workload, connected, *system.performance);
    const Seconds all = iteration.breakdown.data_communication;
    const Seconds passes = static_cast<double>(iteration.shape.microbatches) *
                           (iteration.exchanges.exposed_forward + iteration.exchanges.exposed_backward);
    const double end = (all - passes).count();
    const double reductions = reduces_by_group(strategy) ? real(reduced_groups(strategy, workload)) : 1;
    const Seconds copies = bucket_copies_time(most, strategy, *system.performance, software) +
                           model_copies_time(most, strategy, connected, *system.performance, software);
    const double most_at_end = (reductions * replicas.reduction + replicas.gather + tied + copies).count();
    RC_ASSERT(end <= most_at_end + 1e-9 * all.count());
    if (!hides_end(software, strategy)) RC_ASSERT(std::abs(end - most_at_end) <= 1e-9 * all.count());
    const double total = (iteration.schedule.makespan + iteration.breakdown.optimizer).count() + end;
    RC_ASSERT(std::abs(iteration.total.count() - total) <= 1e-9 * total);
  }));
  CHECK(legal > 20);
}

TEST_CASE("composer: gradients of experts overlap passes where dense weights have one replica") {
  const Request request{.model = read_model("mixtral-8x7b"),
                        .system = read_system("dgx-h100-80g"),
                        .software = read_software("meta-2024"),
                        .strategy = {.tensor_parallel = 4,
                                     .pipeline_parallel = 4,
                                     .sequence_parallel = true,
                                     .recompute = {.policy = RecomputePolicy::full},
                                     .data_sharding = DataSharding::zero1},
                        .workload = {.global_batch = 32, .sequence = 4096}};
  Composer composer(request);
  const Seconds searched = composer.layout(request.strategy).iteration(request.strategy);
  const Evaluation evaluation = evaluate(request);
  CHECK(searched == account(evaluation).timing->iteration.total);
}

TEST_CASE("composer: names every rule that a strategy breaks") {
  const Request request{.model = read_model("gpt2-xl"),
                        .system = read_system("dgx-a100-80g"),
                        .workload = {.global_batch = 8, .sequence = 1024}};
  try {
    Composer(request).evaluate({.tensor_parallel = 7, .micro_batch = 3});
    FAIL("no error");
  } catch (const InputError& error) {
    CHECK(error.problems().size() > 1);
  }
}

}  // namespace
}  // namespace headroom
