#include "report/frontier_json.hpp"

#include <cmath>

#include "report/strategy_flags.hpp"

namespace headroom {
namespace {

OrderedJson to_json(const LayerChoice& choice, const LayerKind& kind) {
  OrderedJson ops = OrderedJson::array();
  for (std::size_t i = 0; i < kind.ops.ops().size(); ++i) {
    if (choice.ops.contains(i)) ops.push_back(kind.ops.ops()[i].name);
  }
  return {{"ops", std::move(ops)},
          {"saved_bytes", number(choice.bytes.kept)},
          {"recomputed_bytes", number(choice.bytes.recomputed)},
          {"recompute_seconds", device_time(choice.recompute).count()},
          {"launches", choice.recompute.operations}};
}

// Under "layer" what the layers recompute, or, of several kinds, under "layer_kinds" what each does.
void add_choices(OrderedJson& json, const KindChoices& choices, const ModelLayers& layers) {
  if (choices.size() == 1) {
    json["layer"] = to_json(choices.front(), layers.kinds.front());
    return;
  }
  OrderedJson& kinds = json["layer_kinds"] = OrderedJson::object();
  for (std::size_t kind = 0; kind < choices.size(); ++kind) {
    kinds[layers.kinds[kind].name] = to_json(choices[kind], layers.kinds[kind]);
  }
}

OrderedJson to_json(const FrontierPoint& point, const FrontierReply& report, std::int64_t micro_batch) {
  Strategy strategy = report.request.strategy;
  strategy.recompute = point.recompute;
  strategy.micro_batch = micro_batch;
  OrderedJson json{{"peak_bytes", number(point.peak)},
                   {"peak_rank", point.peak_rank},
                   {"iteration_seconds", point.iteration.count()},
                   {"mfu", point.mfu},
                   {"policy", name_of(point.recompute.policy)},
                   {"recompute_layers", point.recompute.layers}};
  add_choices(json, point.layers, report.layers);
  json["flags"] = strategy_flags(strategy, report.request.software, report.request.model);
  return json;
}

OrderedJson runs_json(const std::vector<MixRun>& mix, const ModelLayers& layers) {
  OrderedJson runs = OrderedJson::array();
  for (const MixRun& run : mix) {
    const LayerKind& kind = layers.kinds[run.kind];
    OrderedJson json{{"layers", run.layers}};
    if (layer_kind_count(layers) > 1) json["kind"] = kind.name;
    json["layer"] = to_json(run.choice, kind);
    runs.push_back(std::move(json));
  }
  return runs;
}

// Of each kind how many sets it could recompute, and which of them are worth it.
OrderedJson fronts_json(const FrontierReply& report) {
  OrderedJson fronts = OrderedJson::object();
  for (std::size_t i = 0; i < report.fronts.size(); ++i) {
    const LayerKind& kind = report.layers.kinds[i];
    OrderedJson choices = OrderedJson::array();
    for (const LayerChoice& choice : report.fronts[i].choices) choices.push_back(to_json(choice, kind));
    fronts[kind.name] = {{"layer_sets", number(std::exp2(kind.ops.ops().size()))},
                         {"unbeaten", report.fronts[i].unbeaten},
                         {"tolerance", report.fronts[i].tolerance},
                         {"layer_front", std::move(choices)}};
  }
  return fronts;
}

OrderedJson to_json(const StagedPoint& point, const ModelLayers& layers) {
  OrderedJson ranks = OrderedJson::array();
  for (std::size_t rank = 0; rank < point.ranks.size(); ++rank) {
    const StagedRank& one = point.ranks[rank];
    ranks.push_back({{"pipeline_rank", rank},
                     {"total_bytes", number(one.total)},
                     {"recompute_seconds", one.recompute.count()},
                     {"virtual_stage", runs_json(one.longest_chunk, layers)}});
  }
  return {{"peak_bytes", number(point.peak)},
          {"peak_rank", point.peak_rank},
          {"iteration_seconds", point.iteration.count()},
          {"mfu", point.mfu},
          {"ranks", std::move(ranks)}};
}

}  // namespace

OrderedJson frontier_json(const FrontierReply& report, const Stop& stop) {
  const std::int64_t b = report.request.strategy.micro_batch;
  const auto best = [&](const std::optional<FrontierPoint>& uniform, const std::optional<StagedPoint>& staged,
                        std::int64_t micro_batch) {
    OrderedJson json = OrderedJson::object();
    if (uniform) json["uniform"] = to_json(*uniform, report, micro_batch);
    if (staged) json["staged"] = to_json(*staged, report.layers);
    return json;
  };
  OrderedJson fronts = fronts_json(report);
  OrderedJson policies = OrderedJson::array();
  for (const auto& [point, within] : report.policies) {
    OrderedJson json = to_json(point, report, b);
    json["best_within"] = best(within.uniform, within.staged, b);
    policies.push_back(std::move(json));
  }
  OrderedJson points = OrderedJson::array();
  for (const auto& [point, staged] : report.points) {
    OrderedJson json = to_json(point, report, b);
    json["staged_seconds"] = staged.iteration.count();
    points.push_back(std::move(json));
  }
  OrderedJson budgets = OrderedJson::array();
  for (const auto& [bytes, uniform, staged, windowed] : report.budgets) {
    OrderedJson json{{"budget_bytes", number(bytes)}};
    json.update(best(uniform, staged, b));
    if (windowed) json["windowed"] = to_json(*windowed, report, b);
    budgets.push_back(std::move(json));
  }
  OrderedJson batches = OrderedJson::array();
  for (const auto& [micro_batch, selective, uniform, staged] : report.batches) {
    OrderedJson json{{"micro_batch", micro_batch}, {"selective", to_json(selective, report, micro_batch)}};
    json.update(best(uniform, staged, micro_batch));
    batches.push_back(std::move(json));
  }
  OrderedJson json{{"format", 2},
                   {"model", to_json(report.request.model, report.request.workload)},
                   {"parameters", to_json(parameter_counts(report.request.model))},
                   {"system", to_json(report.request.system)},
                   {"software", to_json(report.request.software)},
                   {"strategy", to_json(report.request.strategy)},
                   {"workload", to_json(report.request.workload, report.request.strategy)}};
  if (report.fronts.size() == 1) {
    OrderedJson& only = fronts[report.layers.kinds.front().name];
    json["layer_sets"] = only["layer_sets"];
    json["layer_front"] = std::move(only["layer_front"]);
  } else {
    json["layer_kinds"] = std::move(fronts);
  }
  json["policies"] = std::move(policies);
  json["points"] = std::move(points);
  json["budgets"] = std::move(budgets);
  json["micro_batches"] = std::move(batches);
  if (report.stopped) json["stopped"] = name_of(stop.reason);
  return json;
}

}  // namespace headroom
