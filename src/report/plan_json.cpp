#include "report/plan_json.hpp"

#include <algorithm>

#include "headroom/parallel/strategy_fields.hpp"
#include "report/capacity.hpp"
#include "report/compare_json.hpp"
#include "report/estimate_json.hpp"
#include "report/found.hpp"
#include "report/plan_choice.hpp"
#include "report/plan_tables.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// The strategy's whole account, as `headroom estimate` gives it.
OrderedJson entry_json(const PlanReply& report, std::size_t i, const PlanWords& asked) {
  const EstimateReply& account_of_plan = report.accounts[i];
  OrderedJson json = estimate_json(account_of_plan);
  for (const char* shared :
       {"format", "model", "parameters", "system", "software", "alternatives", "assumptions"}) {
    json.erase(shared);
  }
  if (compares_systems(report)) json["system"] = system_of(report, report.result.plans[i]).name;
  json["command"] = command_of(report, asked, report.result.plans[i]);
  return json;
}

OrderedJson batches_json(const PlanReply& report) {
  OrderedJson rates = OrderedJson::array();
  for (const auto& [batch, rate] : report.batch_rates) {
    OrderedJson one{{"global_batch", batch}};
    if (rate) one["tokens_per_second"] = *rate;
    rates.push_back(std::move(one));
  }
  return {{"tried", report.comparison.global_batches.size()},
          {"without_plan", report.batches_without_plan},
          {"rates", std::move(rates)}};
}

OrderedJson in_time_json(const InTime& in_time) {
  const auto& [limit, asked, odds] = in_time;
  OrderedJson json{{"limit_seconds", limit.count()}};
  if (asked) json["asked_odds"] = *asked;
  if (odds) json["odds"] = *odds;
  return json;
}

OrderedJson neighbour_json(const std::vector<std::string>& changes, const Plan& plan) {
  return {{"changes", changes},
          {"peak_bytes", number(peak(plan))},
          {"iteration_seconds", plan.timing->iteration.total.count()}};
}

OrderedJson inquiry_json(const InquiryReply& inquiry, const PlanWords& asked) {
  OrderedJson problems = OrderedJson::array();
  for (const Problem& problem : inquiry.problems) {
    const auto [flag, rule] = by_flag(problem);
    problems.push_back({{"flag", flag}, {"rule", rule}});
  }
  OrderedJson json{{"flags", asked.why}, {"problems", std::move(problems)}};
  if (inquiry.evaluation) {
    const Plan& plan = account(*inquiry.evaluation);
    json["verdict"] = name_of(plan.verdict);
    json["peak_bytes"] = number(peak(plan));
    json["peak_rank"] = plan.peak_rank;
    const Component largest = largest_component(plan.ranks[plan.peak_rank]);
    json["largest_component"] = {{"name", largest.name}, {"bytes", number(largest.bytes)}};
    json["iteration_seconds"] = plan.timing->iteration.total.count();
    json["mfu"] = plan.timing->throughput.mfu;
    json["warnings"] = warnings_json(plan);
    if (inquiry.searched)
      json["searched_instead"] = strategy_flags(*inquiry.searched, plan.request.software, plan.request.model);
    if (inquiry.against_best) json["against_best"] = terms_json(*inquiry.against_best);
  }
  OrderedJson neighbours = OrderedJson::array();
  for (const Alternative& remedy : inquiry.remedies) {
    neighbours.push_back(neighbour_json(change_texts(remedy), remedy.plan));
  }
  for (const Plan& plan : inquiry.nearest) {
    neighbours.push_back(neighbour_json(
        {strategy_flags(plan.request.strategy, plan.request.software, plan.request.model)}, plan));
  }
  json["neighbours"] = std::move(neighbours);
  return json;
}

}  // namespace

OrderedJson point_json(const PlanReply& report, const PlanWords& asked, const Candidate& candidate,
                       const Outlook* outlook) {
  OrderedJson json{{"strategy", to_json(candidate.strategy)},
                   {"verdict", name_of(candidate.verdict)},
                   {"peak_bytes", number(candidate.peak)},
                   {"peak_rank", candidate.peak_rank}};
  if (compares_systems(report)) json["system"] = system_of(report, candidate).name;
  if (compares_batches(report)) json["global_batch"] = variant_of(report, candidate).global_batch;
  if (candidate.iteration > Seconds(0)) {
    json["iteration_seconds"] = candidate.iteration.count();
    json["mfu"] = candidate.mfu;
    if (outlook != nullptr) {
      json["interval"] = interval_json(outlook->iteration);
      if (outlook->training)
        json["budget"] = training_json(training_of(report, candidate), *outlook->training);
    }
  }
  json["command"] = command_of(report, asked, candidate);
  return json;
}

OrderedJson plan_json(const PlanReply& report, const PlanWords& asked) {
  const SearchResult& result = report.result;
  OrderedJson plans = OrderedJson::array();
  for (std::size_t i = 0; i < std::min(asked.shown, report.accounts.size()); ++i) {
    plans.push_back(entry_json(report, i, asked));
  }
  OrderedJson pareto = OrderedJson::array();
  for (std::size_t i = 0; i < result.pareto.size(); ++i) {
    pareto.push_back(point_json(report, asked, result.pareto[i], &report.pareto_outlooks[i]));
  }
  OrderedJson rejected = OrderedJson::object();
  for (const auto& [reason, count] : result.rejected) rejected[reason] = count;
  OrderedJson json{{"format", 2},
                   {"model", to_json(report.base.model, report.base.workload)},
                   {"parameters", to_json(parameter_counts(report.base.model))},
                   {"system", to_json(report.base.system)},
                   {"software", to_json(report.base.software)},
                   {"devices", compares_devices(report) ? OrderedJson(report.comparison.device_counts)
                                                        : OrderedJson(report.space.devices)},
                   {"global_batch", report.base.workload.global_batch},
                   {"sequence", report.base.workload.sequence},
                   {"layouts", name_of(report.space.layouts)},
                   {"margin", report.base.margin},
                   {"evaluated", result.evaluated},
                   {"feasible", result.feasible},
                   {"rejected", std::move(rejected)},
                   {"plans", std::move(plans)},
                   {"pareto", std::move(pareto)}};
  if (result.undecided) {
    const std::optional<double> slower = gap(report);
    json["stopped"] = name_of(asked.stop.reason);
    json["gap"] = slower ? OrderedJson(*slower) : OrderedJson();
    json["decided"] = result.undecided->decided;
  }
  if (report.choice) json["choice"] = choice_json(report, asked);
  if (const Candidate* const marginal = faster_but_marginal(report)) {
    json["faster_but_marginal"] = point_json(report, asked, *marginal, nullptr);
  }
  if (compares_systems(report)) {
    OrderedJson systems = OrderedJson::array();
    for (const Offer& offer : report.comparison.offers) {
      OrderedJson one{{"system", offer.system.name}, {"software", offer.software.name}};
      if (offer.price_per_device_hour) one["price_per_device_hour"] = *offer.price_per_device_hour;
      systems.push_back(std::move(one));
    }
    json["systems"] = std::move(systems);
  }
  if (compares_batches(report)) json["global_batches"] = batches_json(report);
  if (report.cheapest) json["cheapest"] = *report.cheapest;
  if (report.default_batch) json["default_batch"] = true;
  if (report.idle) {
    json["idle"] = {{"devices", report.idle->asked - report.space.devices},
                    {"asked_devices", report.idle->asked},
                    {"with_all_seconds",
                     report.idle->with_all ? OrderedJson(report.idle->with_all->count()) : OrderedJson()},
                    {"with_all_global_batch", report.idle->with_all_batch}};
  }
  if (report.found) json["found"] = found_json(*report.found);
  if (report.in_time) json["in_time"] = in_time_json(*report.in_time);
  if (report.blocked) {
    json["blocked_by_memory"] = {{"change", flags_of(report.blocked->change)},
                                 {"iteration_seconds", report.blocked->iteration.count()},
                                 {"missing_bytes", number(report.blocked->missing)},
                                 {"limit", report.blocked->of_host ? "host_memory" : "device_memory"}};
  }
  if (!report.left_out.empty()) {
    OrderedJson& left_out = json["left_out"] = OrderedJson::array();
    for (const LeftOut& choice : report.left_out) {
      left_out.push_back({{"change", choice.change},
                          {"iteration_seconds", choice.iteration.count()},
                          {"peak_bytes", number(choice.peak)}});
    }
  }
  if (report.in_fp8) {
    json["in_fp8"] = {{"precision", name_of(report.in_fp8->precision)},
                      {"iteration_seconds", report.in_fp8->iteration.count()},
                      {"peak_bytes", number(report.in_fp8->peak)},
                      {"verdict", name_of(report.in_fp8->verdict)}};
  }
  if (report.obstacle) json["obstacle"] = problem_line(*report.obstacle);
  if (result.nearest) json["nearest"] = point_json(report, asked, *result.nearest, nullptr);
  if (!report.relief.empty()) {
    OrderedJson relief = OrderedJson::array();
    for (const Found& found : report.relief) relief.push_back(found_json(found));
    json["feasible_with"] = std::move(relief);
  }
  if (report.inquiry) json["why"] = inquiry_json(*report.inquiry, asked);
  if (asked.timing) {
    json["search_seconds"] = asked.timing->search_seconds;
    json["explanation_seconds"] = asked.timing->explanation_seconds;
    json["output_seconds"] = asked.timing->output_seconds;
    json["elapsed_seconds"] = asked.timing->elapsed_seconds;
  }
  return json;
}

}  // namespace headroom
