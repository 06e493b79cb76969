#include "headroom/time/stage_time.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/time/launches.hpp"

namespace headroom {
namespace {

// Calls use(setting) with the setting in layers of a kind. A kind without sizes of its own has the model's
// setting, which is not copied.
template <class Use>
auto in_layers_of(const KindSizes& sizes, const Setting& of_model, Use use) {
  return sizes.empty() ? use(of_model) : use(setting_of(sizes, of_model));
}

// Returns the race through the forward pass of a stage. Kinds that are neither layers nor before them follow.
Race race_through(const ModelCost& cost, const StagePlace& place) {
  const auto in_stage_waits = [&](std::size_t i) {
    return place.of_kind[i] > 0 && waits(cost.kinds[i].race);
  };
  bool any = false;
  for (std::size_t i = 0; i < cost.kinds.size(); ++i) any = any || in_stage_waits(i);
  if (!any) return {};
  const PassCost& scales = cost.scales.forward;
  Race race = race_of_op(scales.host, device_time(scales), real(scales.operations));
  KindCounts ends = place.of_kind;
  for (const LayerRun& run : place.runs) ends[run.kind] -= run.count;
  const auto add_ends = [&](bool begin) {
    for (std::size_t i = 0; i < cost.kinds.size(); ++i) {
      if (cost.kinds[i].begins == begin) race = race * in_a_row(ends[i], cost.kinds[i].race);
    }
  };
  add_ends(true);
  for (const LayerRun& run : place.runs) race = race * in_a_row(run.count, cost.kinds[run.kind].race);
  add_ends(false);
  return race;
}

}  // namespace

ModelWork model_work(const ModelLayers& layers, const Setting& setting) {
  ModelWork work{.kinds = {}, .sizes = {}, .narrow_linears = narrow_linears(layers)};
  for (const LayerKind& kind : layers.kinds) {
    work.kinds.push_back(in_layers_of(kind.sizes, setting,
                                      [&](const Setting& of_kind) { return table_work(kind.ops, of_kind); }));
    work.sizes.push_back(kind.sizes);
  }
  return work;
}

namespace {

// Largest elements are concatenated, reduced and turned into scales.
PassCost scale_cost(double bytes, const Setting& setting) {
  const std::int64_t operations = launches_operations(setting.software) ? 3 : 0;
  const Seconds reduction = small_all_reduce_time(Bytes(bytes), *setting.scales, setting.performance);
  const LaunchTimes each = launch_times(setting.performance.rates.host, setting.software);
  return {.communication = reduction,
          .operations = operations,
          .scale_communication = reduction,
          .host = host_time(real(operations), 0, each)};
}

}  // namespace

PricedModel priced(const ModelWork& work, const Setting& setting) {
  PricedModel model{.kinds = {}, .sharding = setting.sharding};
  if (setting.scales) {
    const ScaleBytes bytes = scale_bytes(work.narrow_linears);
    model.scales = {.forward = scale_cost(bytes.forward, setting),
                    .backward = scale_cost(bytes.backward, setting)};
  }
  for (std::size_t i = 0; i < work.kinds.size(); ++i) {
    model.kinds.push_back(in_layers_of(
        work.sizes[i], setting, [&](const Setting& of_kind) { return priced(work.kinds[i], of_kind); }));
  }
  return model;
}

ModelCost model_cost(const PricedModel& model, const ModelLayers& layers, const Recomputation& recompute) {
  ModelCost cost{.kinds = {}, .scales = model.scales};
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    cost.kinds.push_back(
        table_cost(model.kinds[i], recomputed_ops_of(layers.kinds[i], recompute, model.sharding)));
    cost.kinds.back().begins = layers.kinds[i].position == KindPosition::first;
  }
  return cost;
}

ModelCost model_cost(const Transformer& model, const Strategy& strategy, const Setting& setting) {
  const ModelLayers layers = layers_of(model, strategy, setting.software);
  return model_cost(priced(model_work(layers, setting), setting), layers, strategy.recompute);
}

Extrapolations beyond(const ModelCost& cost) {
  Extrapolations all;
  for (const LayerCost& kind : cost.kinds) all = all | kind.beyond;
  return all;
}

PassCost recompute_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute) {
  PassCost sum;
  std::int64_t left = recomputed_layers(place.layers, recompute);
  for (const LayerRun& run : place.runs) {
    const std::int64_t recomputed = std::min(run.count, left);
    if (recomputed == 0) break;
    sum += recomputed * cost.kinds[run.kind].recompute;
    left -= recomputed;
  }
  if (recomputes_all_layers(recompute)) {
    for (const LayerRun& run : place.predictors) sum += run.count * cost.kinds[run.kind].recompute;
  }
  return sum;
}

StageCost stage_cost(const ModelCost& cost, const StagePlace& place, const Recomputation& recompute) {
  StageCost stage{.forward = cost.scales.forward,
                  .recompute = recompute_cost(cost, place, recompute),
                  .backward = cost.scales.backward,
                  .backward_data = cost.scales.backward,
                  .backward_weight = {},
                  .race = race_through(cost, place)};
  for (std::size_t i = 0; i < cost.kinds.size(); ++i) {
    const std::int64_t count = place.of_kind[i];
    if (count == 0) continue;
    const LayerCost& kind = cost.kinds[i];
    stage.forward += count * kind.forward;
    stage.backward += count * backward(kind);
    stage.backward_data += count * kind.backward_data;
    stage.backward_weight += count * kind.backward_weight;
  }
  return stage;
}

std::vector<StageCost> stage_costs(const ModelCost& cost, const Transformer& model,
                                   const Strategy& strategy) {
  std::vector<StageCost> stages;
  for (const StagePlace& place : stage_places(model, strategy)) {
    stages.push_back(stage_cost(cost, place, strategy.recompute));
  }
  return stages;
}

Seconds pass_time(const PassCost& cost, const HostRates& rates, const Software& software) {
  const Seconds beyond = cost.data_communication + cost.host_communication;
  const Seconds device = device_time(cost) - beyond;
  const Seconds host = cost.host;
  if (software.blocking_launches) return device - cost.drained + host + beyond;  // the host waits anyway
  const Seconds longer = std::max(device, host);
  if (longer == Seconds(0)) return beyond;
  const double q = rates.balance.value;
  // The term of the longer one is 1.
  return longer * std::pow(1 + std::pow(std::min(device, host) / longer, q), 1 / q) + beyond;
}

Seconds forward_time(const PassCost& cost, const Race& race, const HostRates& rates,
                     const Software& software) {
  const Seconds ahead = pass_time(cost, rates, software);
  return waits(race) && !software.blocking_launches ? std::max(ahead, race.both) : ahead;
}

}  // namespace headroom
