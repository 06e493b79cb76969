#include "report/frontier_json.hpp"

#include "headroom/model/layer_ops.hpp"
#include "report/strategy_flags.hpp"

namespace headroom {
namespace {

OrderedJson to_json(const LayerChoice& choice, const OpTable& table) {
  OrderedJson ops = OrderedJson::array();
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if ((choice.ops & op_bit(i)) != 0) ops.push_back(table.ops()[i].name);
  }
  return {{"ops", std::move(ops)},
          {"saved_bytes", number(choice.bytes.kept)},
          {"recomputed_bytes", number(choice.bytes.replayed)},
          {"recompute_seconds", device_time(choice.replay).count()},
          {"launches", choice.replay.operations}};
}

OrderedJson to_json(const FrontierPoint& point, const FrontierReply& report, const OpTable& table,
                    std::int64_t micro_batch) {
  Strategy strategy = report.request.strategy;
  strategy.recompute = point.recompute;
  strategy.micro_batch = micro_batch;
  return {{"peak_bytes", number(point.peak)},
          {"peak_rank", point.peak_rank},
          {"iteration_seconds", point.iteration.count()},
          {"mfu", point.mfu},
          {"policy", name_of(point.recompute.policy)},
          {"recompute_layers", point.recompute.layers},
          {"layer", to_json(point.layer, table)},
          {"flags", strategy_flags(strategy)}};
}

OrderedJson runs_json(const LayerMix& mix, const OpTable& table) {
  OrderedJson runs = OrderedJson::array();
  const auto append = [&](std::int64_t layers, const LayerChoice& choice) {
    if (layers > 0) runs.push_back({{"layers", layers}, {"layer", to_json(choice, table)}});
  };
  append(mix.first_layers, mix.first);
  append(mix.rest_layers, mix.rest);
  return runs;
}

OrderedJson to_json(const StagedPoint& point, const OpTable& table) {
  OrderedJson ranks = OrderedJson::array();
  for (std::size_t rank = 0; rank < point.ranks.size(); ++rank) {
    const StagedRank& one = point.ranks[rank];
    ranks.push_back({{"pipeline_rank", rank},
                     {"total_bytes", number(one.total)},
                     {"recompute_seconds", one.replay.count()},
                     {"virtual_stage", runs_json(one.mix, table)}});
  }
  return {{"peak_bytes", number(point.peak)},
          {"peak_rank", point.peak_rank},
          {"iteration_seconds", point.iteration.count()},
          {"mfu", point.mfu},
          {"ranks", std::move(ranks)}};
}

}  // namespace

OrderedJson frontier_json(const FrontierReply& report) {
  const OpTable table = layer_ops(report.request.model, report.request.strategy.micro_batch);
  const std::int64_t b = report.request.strategy.micro_batch;
  const auto best = [&](const std::optional<FrontierPoint>& uniform, const std::optional<StagedPoint>& staged,
                        std::int64_t micro_batch) {
    OrderedJson json = OrderedJson::object();
    if (uniform) json["uniform"] = to_json(*uniform, report, table, micro_batch);
    if (staged) json["staged"] = to_json(*staged, table);
    return json;
  };
  OrderedJson choices = OrderedJson::array();
  for (const LayerChoice& choice : report.layer_choices) choices.push_back(to_json(choice, table));
  OrderedJson policies = OrderedJson::array();
  for (const auto& [point, within] : report.policies) {
    OrderedJson json = to_json(point, report, table, b);
    json["best_within"] = best(within.uniform, within.staged, b);
    policies.push_back(std::move(json));
  }
  OrderedJson points = OrderedJson::array();
  for (const auto& [point, staged] : report.points) {
    OrderedJson json = to_json(point, report, table, b);
    json["staged_seconds"] = staged.iteration.count();
    points.push_back(std::move(json));
  }
  OrderedJson budgets = OrderedJson::array();
  for (const auto& [bytes, uniform, staged, windowed] : report.budgets) {
    OrderedJson json{{"budget_bytes", number(bytes)}};
    json.update(best(uniform, staged, b));
    if (windowed) json["windowed"] = to_json(*windowed, report, table, b);
    budgets.push_back(std::move(json));
  }
  OrderedJson batches = OrderedJson::array();
  for (const auto& [micro_batch, selective, uniform, staged] : report.batches) {
    OrderedJson json{{"micro_batch", micro_batch},
                     {"selective", to_json(selective, report, table, micro_batch)}};
    json.update(best(uniform, staged, micro_batch));
    batches.push_back(std::move(json));
  }
  return {{"format", 2},
          {"model", to_json(report.request.model)},
          {"system", to_json(report.request.system)},
          {"software", to_json(report.request.software)},
          {"strategy", to_json(report.request.strategy)},
          {"workload", to_json(report.request.workload, report.request.strategy)},
          {"layer_sets", number(static_cast<double>(std::uint64_t{1} << report.ops))},
          {"layer_front", std::move(choices)},
          {"policies", std::move(policies)},
          {"points", std::move(points)},
          {"budgets", std::move(budgets)},
          {"micro_batches", std::move(batches)}};
}

}  // namespace headroom
