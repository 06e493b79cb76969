#include "report/plan_json.hpp"

#include <algorithm>

#include "report/capacity.hpp"
#include "report/compare_json.hpp"
#include "report/estimate_json.hpp"
#include "report/found.hpp"
#include "report/plan_tables.hpp"
#include "report/strategy_flags.hpp"

namespace headroom {
namespace {

std::string command_of(const PlanReport& report, const Strategy& strategy) {
  return report.estimate + " " + strategy_flags(strategy);
}

// The strategy's whole account, as `headroom estimate` gives it.
OrderedJson entry_json(const PlanReport& report, const Candidate& candidate) {
  OrderedJson json = estimate_json({.evaluation = evaluate(request_of(report, candidate)),
                                    .alternatives = {},
                                    .training = report.training});
  for (const char* shared : {"format", "model", "system", "software", "alternatives", "assumptions"}) {
    json.erase(shared);
  }
  json["command"] = command_of(report, candidate.strategy);
  return json;
}

OrderedJson point_json(const PlanReport& report, const Candidate& candidate) {
  OrderedJson json{{"strategy", to_json(candidate.strategy)},
                   {"peak_bytes", number(candidate.peak)},
                   {"peak_rank", candidate.peak_rank}};
  if (candidate.iteration > Seconds(0)) {
    json["iteration_seconds"] = candidate.iteration.count();
    json["mfu"] = candidate.mfu;
    if (report.training.tokens > 0) {
      json["budget"] =
          training_json(report.training, training_cost(report.training, report.base.workload,
                                                       candidate.iteration, devices(candidate.strategy)));
    }
  }
  json["command"] = command_of(report, candidate.strategy);
  return json;
}

OrderedJson inquiry_json(const PlanReport& report) {
  const Inquiry& inquiry = *report.inquiry;
  OrderedJson problems = OrderedJson::array();
  for (const auto& [where, rule] : inquiry.problems) problems.push_back({{"flag", where}, {"rule", rule}});
  OrderedJson json{{"flags", inquiry.flags}, {"problems", std::move(problems)}};
  if (inquiry.evaluation) {
    const Plan& plan = account(*inquiry.evaluation);
    json["verdict"] = name_of(plan.verdict);
    json["peak_bytes"] = number(peak(plan));
    json["peak_rank"] = plan.peak_rank;
    const Component largest = largest_component(plan.ranks[plan.peak_rank]);
    json["largest_component"] = {{"name", largest.name}, {"bytes", number(largest.bytes)}};
    json["iteration_seconds"] = plan.timing->iteration.total.count();
    json["mfu"] = plan.timing->throughput.mfu;
    if (!report.result.plans.empty()) {
      const Evaluation best = evaluate(request_of(report, report.result.plans.front()));
      json["against_best"] = terms_json(
          StrategyComparison{.before = best, .after = *inquiry.evaluation, .change = inquiry.flags});
    }
  }
  OrderedJson neighbours = OrderedJson::array();
  for (const Alternative& neighbour : inquiry.neighbours) {
    neighbours.push_back({{"changes", neighbour.changes},
                          {"peak_bytes", number(peak(neighbour.plan))},
                          {"iteration_seconds", neighbour.plan.timing->iteration.total.count()}});
  }
  json["neighbours"] = std::move(neighbours);
  return json;
}

}  // namespace

OrderedJson plan_json(const PlanReport& report) {
  const SearchResult& result = report.result;
  OrderedJson plans = OrderedJson::array();
  for (std::size_t i = 0; i < std::min(report.shown, result.plans.size()); ++i) {
    plans.push_back(entry_json(report, result.plans[i]));
  }
  OrderedJson pareto = OrderedJson::array();
  for (const Candidate& candidate : result.pareto) pareto.push_back(point_json(report, candidate));
  OrderedJson rejected = OrderedJson::object();
  for (const auto& [reason, count] : result.rejected) rejected[reason] = count;
  OrderedJson json{{"format", 1},
                   {"model", to_json(report.base.model)},
                   {"system", to_json(report.base.system)},
                   {"software", to_json(report.base.software)},
                   {"devices", report.device_counts.size() > 1 ? OrderedJson(report.device_counts)
                                                               : OrderedJson(report.space.devices)},
                   {"global_batch", report.base.workload.global_batch},
                   {"sequence", report.base.workload.sequence},
                   {"evaluated", result.evaluated},
                   {"feasible", result.feasible},
                   {"rejected", std::move(rejected)},
                   {"plans", std::move(plans)},
                   {"pareto", std::move(pareto)}};
  if (report.found) json["found"] = found_json(*report.found);
  if (report.blocked) {
    json["blocked_by_memory"] = {{"change", report.blocked->flags},
                                 {"iteration_seconds", report.blocked->iteration.count()},
                                 {"missing_bytes", number(report.blocked->missing)}};
  }
  if (result.nearest) json["nearest"] = point_json(report, *result.nearest);
  if (!report.relief.empty()) {
    OrderedJson relief = OrderedJson::array();
    for (const Found& found : report.relief) relief.push_back(found_json(found));
    json["feasible_with"] = std::move(relief);
  }
  if (report.inquiry) json["why"] = inquiry_json(report);
  if (report.elapsed_seconds) json["elapsed_seconds"] = *report.elapsed_seconds;
  return json;
}

}  // namespace headroom
