#include "headroom/plan/iteration.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

Breakdown& operator+=(Breakdown& x, const Breakdown& y) {
  for (const auto& [name, part] : breakdown_parts) x.*part += y.*part;
  return x;
}

Breakdown operator*(double k, const Breakdown& x) {
  Breakdown result;
  for (const auto& [name, part] : breakdown_parts) result.*part = k * (x.*part);
  return result;
}

Seconds sum(const Breakdown& x) {
  Seconds total;
  for (const auto& [name, part] : breakdown_parts) total += x.*part;
  return total;
}

// Breaks down one microbatch's forward and backward pass through one virtual stage, without recomputation.
Breakdown breakdown_of(const StageCost& stage, const PassTimes& times) {
  const PassCost cost = stage.forward + stage.backward;
  const Seconds passes = times.forward + times.backward + times.backward_weight;
  return {.gemm = cost.gemm,
          .attention = cost.attention,
          .memory_bound = cost.memory_bound,
          // Rounding may leave a tiny value below zero.
          .tensor_communication =
              std::max(cost.communication - cost.expert_communication - cost.context_communication -
                           cost.data_communication - cost.host_communication - cost.scale_communication,
                       Seconds(0)),
          .expert_communication = cost.expert_communication,
          .context_communication = cost.context_communication,
          .scale_communication = cost.scale_communication,
          .launch_overhead = std::max(passes - device_time(cost) + cost.drained, Seconds(0)),
          .data_communication = cost.data_communication,
          .host_communication = cost.host_communication};
}

std::size_t busiest(const std::vector<ReplayedRank>& ranks) {
  const auto longest = std::max_element(ranks.begin(), ranks.end(), [](const auto& x, const auto& y) {
    return busy(x) + x.sending < busy(y) + y.sending;
  });
  return static_cast<std::size_t>(longest - ranks.begin());
}

PassCost without_exchanges(PassCost pass) {
  pass.communication = std::max(pass.communication - pass.expert_communication, Seconds(0));
  pass.expert_communication = Seconds(0);
  return pass;
}

bool exchanges_experts(const PassCost& pass) { return pass.expert_communication > Seconds(0); }

}  // namespace

const PassCost& backward_after_recompute(const StageCost& stage, ScheduleKind schedule) {
  return has_weight_passes(schedule) ? stage.backward_data : stage.backward;
}

void add_recomputation(PassTimes& times, const StageCost& stage, ScheduleKind schedule,
                       const HostRates& rates, const Software& software) {
  const PassCost& after = backward_after_recompute(stage, schedule);
  const auto both_take = [&](const PassCost& recompute, const PassCost& backward) {
    return pass_time(recompute + backward, rates, software);
  };
  const bool recomputes = stage.recompute != PassCost{};
  const Seconds all = recomputes ? both_take(stage.recompute, after) : times.backward;
  times.recompute = all - times.backward;
  const Seconds backward_hidden =
      exchanges_experts(after) ? both_take(stage.recompute, without_exchanges(after)) : all;
  times.backward_exchanges = all - backward_hidden;
  const Seconds both_hidden = exchanges_experts(stage.recompute)
                                  ? both_take(without_exchanges(stage.recompute), without_exchanges(after))
                                  : backward_hidden;
  times.recompute_exchanges = backward_hidden - both_hidden;
}

PassTimes pass_times(const StageCost& stage, const ScheduleShape& shape, const HostRates& rates,
                     const Software& software) {
  const ScheduleKind schedule = shape.kind;
  const Race race = overlaps_passes(shape) ? Race{} : stage.race;
  PassTimes times{.forward = forward_time(stage.forward, race, rates, software),
                  .backward = pass_time(backward_after_recompute(stage, schedule), rates, software)};
  if (has_weight_passes(schedule)) times.backward_weight = pass_time(stage.backward_weight, rates, software);
  if (software.delay_weight_gradients && !has_weight_passes(schedule))
    times.delayed_weight = std::min(times.backward, pass_time(stage.backward_weight, rates, software));
  if (exchanges_experts(stage.forward))
    times.forward_exchanges = times.forward - pass_time(without_exchanges(stage.forward), rates, software);
  add_recomputation(times, stage, schedule, rates, software);
  return times;
}

IterationEnd iteration_end(const Transformer& model, const Strategy& strategy, const Workload& workload,
                           const Parameters& parameters, const MatrixList& matrices,
                           std::int64_t devices_per_node, const Performance& performance,
                           const Software& software) {
  const Seconds tied =
      tied_embedding_time(model, strategy, workload, devices_per_node, performance, software);
  // Ends that share weights step together, and so do all ranks between them.
  const bool apart = software.post_validation && has_weight_passes(strategy.schedule) && tied == Seconds(0);
  return {.replicas =
              data_parallel_times(parameters, strategy, workload, devices_per_node, performance, software),
          .buckets = buckets(parameters, strategy, software),
          .reduces_beside = software.overlap_grad_reduce,
          .gathers_beside = software.overlap_param_gather,
          .overlap_loss = performance.rates.collectives.overlap_loss.value,
          .earlier_groups = reduces_by_group(strategy) ? real(reduced_groups(strategy, workload) - 1) : 0,
          .tied_embeddings = tied,
          .bucket_copies = bucket_copies_time(parameters, strategy, performance, software),
          .model_copies = model_copies_time(parameters, strategy, devices_per_node, performance, software),
          .ranks_step_apart = apart,
          .optimizer = optimizer_time(parameters, strategy, workload, performance, software, matrices)};
}

EndTimes end_times(const IterationEnd& end, const PassesBeside& passes) {
  const auto exposed = [&](bool beside, Seconds collective, Seconds pass) {
    if (!beside) return collective;
    return exposed_by_bucket(collective, pass, end.buckets, end.overlap_loss);
  };
  const Seconds reduction = exposed(end.reduces_beside, end.replicas.reduction, passes.backward);
  const Seconds gather = exposed(end.gathers_beside, end.replicas.gather, passes.forward);
  // Reductions of earlier groups run beside the passes of the next virtual stage.
  const Seconds earlier =
      (end.reduces_beside ? end.overlap_loss : 1) * end.earlier_groups * end.replicas.reduction;
  return {.data_communication =
              earlier + reduction + gather + end.bucket_copies + end.tied_embeddings + end.model_copies,
          .optimizer = end.optimizer};
}

Seconds pipeline_time(const ReplayedSchedule& schedule, const IterationEnd& end) {
  if (!end.ranks_step_apart) return schedule.makespan;
  Seconds longest;
  for (const ReplayedRank& rank : schedule.ranks) longest = std::max(longest, rank.span);
  return longest;
}

IterationTime iteration_time(const PipelineOrder& order, ScheduleTimes times,
                             std::span<const StageCost> stages, const IterationEnd& end) {
  const ScheduleShape& shape = order.shape();
  IterationTime result{.cost = {}, .shape = shape, .times = std::move(times)};
  result.schedule = timed_schedule(order, result.times);
  result.critical_rank = busiest(result.schedule.ranks);

  const ReplayedRank& critical = result.schedule.ranks[result.critical_rank];
  PassesBeside beside;
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    const auto stage = index(stage_of(shape, static_cast<std::int64_t>(result.critical_rank), chunk));
    const PassTimes& pass = result.times.stages[stage];
    result.breakdown += real(microbatches_of_chunk(shape)) * breakdown_of(stages[stage], pass);
    beside.forward += pass.forward;
    beside.backward += pass.recompute + pass.backward + pass.backward_weight;
  }
  Seconds& experts = result.breakdown.expert_communication;
  experts = std::max(experts - critical.hidden, Seconds(0));
  result.breakdown.recompute = critical.recompute;
  result.breakdown.pipeline_communication = critical.sending;
  const EndTimes times_of_end = end_times(end, beside);
  result.breakdown.data_communication += times_of_end.data_communication;
  result.breakdown.optimizer = times_of_end.optimizer;
  result.pipeline = pipeline_time(result.schedule, end);
  result.total = result.pipeline + times_of_end.data_communication + times_of_end.optimizer;
  // The bubble is the remainder, so that the parts add up despite rounding.
  result.breakdown.bubble = Seconds(0);
  result.breakdown.bubble = std::max(result.total - sum(result.breakdown), Seconds(0));
  return result;
}

}  // namespace headroom
