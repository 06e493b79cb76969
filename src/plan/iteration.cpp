#include "headroom/plan/iteration.hpp"

#include <algorithm>

#include "headroom/memory/state.hpp"

namespace headroom {
namespace {

Breakdown operator*(double k, const Breakdown& x) {
  Breakdown result;
  for (const auto& [name, part] : breakdown_parts) result.*part = k * (x.*part);
  return result;
}

Breakdown& operator+=(Breakdown& x, const Breakdown& y) {
  for (const auto& [name, part] : breakdown_parts) x.*part += y.*part;
  return x;
}

Seconds sum(const Breakdown& x) {
  Seconds total;
  for (const auto& [name, part] : breakdown_parts) total += x.*part;
  return total;
}

// One microbatch forward and backward through one stage chunk, without replay.
Breakdown breakdown_of(const StageCost& stage, const PassTimes& times) {
  const PassCost cost = stage.forward + stage.backward;
  return {.matrix_products = cost.matrix_products,
          .attention_products = cost.attention_products,
          .streaming = cost.streaming,
          .tensor_communication = cost.communication,
          .host = times.forward + times.backward - device_time(cost)};
}

std::size_t busiest(const std::vector<ReplayedRank>& ranks) {
  const auto longest = std::max_element(ranks.begin(), ranks.end(), [](const auto& x, const auto& y) {
    return busy(x) + x.sending < busy(y) + y.sending;
  });
  return static_cast<std::size_t>(longest - ranks.begin());
}

}  // namespace

Seconds replay_time(const StageCost& stage, Seconds backward, const HostRates& rates,
                    const Software& software) {
  if (stage.replay == PassCost{}) return Seconds(0);
  return pass_time(stage.replay + stage.backward, rates, software) - backward;
}

PassTimes pass_times(const StageCost& stage, const HostRates& rates, const Software& software) {
  const Seconds backward = pass_time(stage.backward, rates, software);
  return {.forward = pass_time(stage.forward, rates, software),
          .replay = replay_time(stage, backward, rates, software),
          .backward = backward};
}

EndTimes end_times(const Transformer& model, const Strategy& strategy, double parameters,
                   Seconds last_backward, std::int64_t devices_per_node, const Performance& performance,
                   const Software& software) {
  const DataParallelTimes replicas =
      data_parallel_times(parameters, strategy, devices_per_node, performance, software);
  return {.data_communication =
              exposed_data_parallel_time(replicas.reduction, last_backward, performance, software) +
              replicas.gather + tied_embedding_time(model, strategy, devices_per_node, performance),
          .optimizer = optimizer_time(parameters, strategy, performance)};
}

IterationTime iteration_time(const Transformer& model, const Strategy& strategy, const Workload& workload,
                             std::int64_t devices_per_node, const Performance& performance,
                             const Software& software, const std::vector<std::int64_t>& windows) {
  const Setting setting = setting_of(model, strategy, workload, devices_per_node, performance, software);
  const ModelCost cost = model_cost(model, strategy, setting);
  return iteration_time(model, strategy, workload, devices_per_node, performance, software, windows, cost,
                        stage_costs(cost, model, strategy));
}

IterationTime iteration_time(const Transformer& model, const Strategy& strategy, const Workload& workload,
                             std::int64_t devices_per_node, const Performance& performance,
                             const Software& software, const std::vector<std::int64_t>& windows,
                             const ModelCost& cost, const std::vector<StageCost>& stages) {
  IterationTime result{.cost = cost, .shape = schedule_shape(strategy, microbatches(strategy, workload))};
  for (const StageCost& stage : stages) {
    result.times.stages.push_back(pass_times(stage, performance.rates.host, software));
  }
  result.times.links = send_times(model, strategy, workload, devices_per_node, performance, software);
  result.times.windows = windows;
  result.schedule = timed_schedule(result.shape, result.times);
  result.critical_rank = busiest(result.schedule.ranks);

  const ReplayedRank& critical = result.schedule.ranks[result.critical_rank];
  Seconds last_backward;
  for (std::int64_t chunk = 0; chunk < result.shape.chunks; ++chunk) {
    const auto rank = static_cast<std::int64_t>(result.critical_rank);
    const auto stage = static_cast<std::size_t>(stage_of(result.shape, rank, chunk));
    const PassTimes& times = result.times.stages[stage];
    result.breakdown += static_cast<double>(result.shape.microbatches) * breakdown_of(stages[stage], times);
    last_backward += times.replay + times.backward;
  }
  result.breakdown.recomputation = critical.replay;
  result.breakdown.pipeline_communication = critical.sending;

  // All ranks wait for the slowest: the one with the most parameters.
  const std::vector<double> by_rank = parameters_by_rank(model, strategy, workload);
  const double parameters = *std::max_element(by_rank.begin(), by_rank.end());
  const EndTimes end =
      end_times(model, strategy, parameters, last_backward, devices_per_node, performance, software);
  result.breakdown.data_communication = end.data_communication;
  result.breakdown.optimizer = end.optimizer;
  result.total = result.schedule.makespan + result.breakdown.data_communication + result.breakdown.optimizer;
  // The wait is what is left, so that the parts add up whatever was rounded.
  result.breakdown.bubble = Seconds(0);
  result.breakdown.bubble = std::max(result.total - sum(result.breakdown), Seconds(0));
  return result;
}

}  // namespace headroom
