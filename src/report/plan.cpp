#include "headroom/report/plan.hpp"

#include <algorithm>

#include "headroom/report/compare.hpp"
#include "report/plan_json.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

Request request_of(const PlanReport& report, const Candidate& candidate) {
  Request request = report.base;
  request.strategy = candidate.strategy;
  return request;
}

std::string recompute_cell(const Recomputation& recompute) {
  std::string text(name_of(recompute.policy));
  if (recompute.layers > 0) text += fmt::format(" {}", recompute.layers);
  return recompute.window ? text + " window" : text;
}

Table candidates_table(const PlanReport& report, const std::vector<Candidate>& candidates, std::size_t most) {
  Table table{.columns = {{"#"},
                          {"tensor"},
                          {"pipeline"},
                          {"interleave"},
                          {"data"},
                          {"micro"},
                          {"sp", Align::left},
                          {"recompute", Align::left},
                          {"optimizer", Align::left},
                          {"seconds"},
                          {"MFU"},
                          {"peak GiB"},
                          {"to spare"}}};
  for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) {
    const Candidate& one = candidates[i];
    const Strategy& strategy = one.strategy;
    table.rows.push_back({std::to_string(i + 1), std::to_string(strategy.tensor_parallel),
                          std::to_string(strategy.pipeline_parallel), std::to_string(strategy.interleave),
                          std::to_string(strategy.data_parallel), std::to_string(strategy.micro_batch),
                          strategy.sequence_parallel ? "yes" : "no", recompute_cell(strategy.recompute),
                          strategy.distributed_optimizer ? "sharded" : "whole",
                          fmt::format("{:#.4g}", one.iteration.count()),
                          fmt::format("{:.1f}%", 100 * one.mfu), in_gib(one.peak),
                          in_gib(report.base.system.memory - one.peak)});
  }
  return table;
}

// In base units, for spreadsheets.
Table csv_table(const PlanReport& report) {
  Table table{.columns = {{"tensor_parallel"},
                          {"pipeline_parallel"},
                          {"interleave"},
                          {"data_parallel"},
                          {"micro_batch"},
                          {"sequence_parallel"},
                          {"recompute"},
                          {"recompute_layers"},
                          {"recompute_window"},
                          {"schedule"},
                          {"distributed_optimizer"},
                          {"iteration_seconds"},
                          {"mfu"},
                          {"peak_bytes"},
                          {"headroom_bytes"}}};
  const auto yes = [](bool value) { return std::string(value ? "true" : "false"); };
  for (const Candidate& one : report.result.plans) {
    const Strategy& strategy = one.strategy;
    table.rows.push_back({std::to_string(strategy.tensor_parallel),
                          std::to_string(strategy.pipeline_parallel), std::to_string(strategy.interleave),
                          std::to_string(strategy.data_parallel), std::to_string(strategy.micro_batch),
                          yes(strategy.sequence_parallel), std::string(name_of(strategy.recompute.policy)),
                          std::to_string(strategy.recompute.layers), yes(strategy.recompute.window),
                          std::string(name_of(strategy.schedule)), yes(strategy.distributed_optimizer),
                          fmt::format("{}", one.iteration.count()), fmt::format("{}", one.mfu),
                          whole(one.peak.count()), whole((report.base.system.memory - one.peak).count())});
  }
  return table;
}

std::string words(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// The part of an iteration in which one plan is furthest behind another.
std::string largest_difference(const Plan& best, const Plan& other) {
  const Breakdown& x = best.timing->iteration.breakdown;
  const Breakdown& y = other.timing->iteration.breakdown;
  const auto worst =
      std::max_element(breakdown_parts.begin(), breakdown_parts.end(), [&](const auto& one, const auto& two) {
        return y.*one.part - x.*one.part < y.*two.part - x.*two.part;
      });
  return fmt::format("{} more for {}", human(y.*(worst->part) - x.*(worst->part)), words(worst->name));
}

// Why the best plan is the best: its margin, where its time goes beside products, and what memory keeps it from.
std::string choice_text(const PlanReport& report) {
  const std::vector<Candidate>& plans = report.result.plans;
  const Plan best = account(evaluate(request_of(report, plans.front())));
  std::string text =
      fmt::format("\nBest: {}\n      {}\n", layout_line(best.request.strategy, best.request.workload),
                  policy_line(best.request.strategy));
  if (plans.size() > 1) {
    const Plan second = account(evaluate(request_of(report, plans[1])));
    text += fmt::format("- plan 2 takes {:.1f}% longer: {}\n",
                        100 * (plans[1].iteration / plans.front().iteration - 1),
                        largest_difference(best, second));
  }
  std::vector<BreakdownPart> lost;
  for (const BreakdownPart& part : breakdown_parts) {
    if (part.name != "matrix_products") lost.push_back(part);
  }
  const Breakdown& breakdown = best.timing->iteration.breakdown;
  std::stable_sort(lost.begin(), lost.end(), [&](const BreakdownPart& x, const BreakdownPart& y) {
    return breakdown.*x.part > breakdown.*y.part;
  });
  const auto share = [&](const BreakdownPart& part) {
    return fmt::format("{} {:.1f}%", words(part.name),
                       100 * (breakdown.*part.part / best.timing->iteration.total));
  };
  text += fmt::format("- beside matrix products its time goes into {}, {}, {}\n", share(lost[0]),
                      share(lost[1]), share(lost[2]));
  if (report.blocked) {
    text += fmt::format("- memory binds: {} would take {}, but needs {} more\n", report.blocked->flags,
                        human(report.blocked->iteration), human(report.blocked->missing));
  } else {
    text += "- memory does not bind: no single change that needs more of it would be faster\n";
  }
  return text;
}

std::string infeasible_text(const PlanReport& report) {
  const SearchResult& result = report.result;
  if (!result.nearest) return "\nNo layout of this space is legal.\n";
  const Bytes missing = result.nearest->peak - report.base.system.memory;
  std::string text = fmt::format("\nNothing fits. What needs least, {} more than there is:\n  {} {}\n",
                                 human(missing), report.estimate, strategy_flags(result.nearest->strategy));
  const Relief& relief = report.relief;
  if (relief.devices) text += fmt::format("It would fit on {} devices.\n", *relief.devices);
  if (relief.batch) text += fmt::format("It would fit with a batch of {}.\n", *relief.batch);
  if (relief.sequence) text += fmt::format("It would fit with sequences of {} tokens.\n", *relief.sequence);
  if (relief == Relief{})
    text += "Neither more devices nor a smaller batch nor shorter sequences would help.\n";
  return text;
}

std::string rejected_text(const SearchResult& result) {
  if (result.rejected.empty()) return {};
  std::string text = "\nRejected:\n";
  for (const auto& [reason, count] : result.rejected) {
    std::string flag = reason;
    std::replace(flag.begin(), flag.end(), '_', '-');
    text += reason == "device_memory"
                ? fmt::format("  {:>8}  do not fit in device memory\n", count)
                : fmt::format("  {:>8}  layouts that break a rule of --{}\n", count, flag);
  }
  return text;
}

std::string inquiry_text(const PlanReport& report) {
  const Inquiry& inquiry = *report.inquiry;
  std::string text = fmt::format("\nWhy not {}\n", inquiry.flags);
  for (const Problem& problem : inquiry.problems)
    text += fmt::format("- {}: {}\n", problem.where, problem.rule);
  if (inquiry.evaluation) {
    const Plan& asked = account(*inquiry.evaluation);
    if (const auto* infeasible = std::get_if<Infeasible>(&*inquiry.evaluation)) {
      const RankMemory& rank = asked.ranks[asked.peak_rank];
      const Component largest = largest_component(rank);
      text +=
          fmt::format("- does not fit: rank {} needs {}, {} too much; the largest part is {} ({})\n",
                      asked.peak_rank, human(infeasible->needed),
                      human(infeasible->needed - infeasible->available), largest.name, human(largest.bytes));
    }
    if (!report.result.plans.empty()) {
      const Evaluation best = evaluate(request_of(report, report.result.plans.front()));
      text += "Against the best plan (before), this one (after) is: " +
              render(Comparison{.before = best, .after = *inquiry.evaluation, .change = inquiry.flags},
                     Format::table);
    }
  }
  if (!inquiry.neighbours.empty()) text += "Nearest changes that are legal and fit:\n";
  for (const Alternative& neighbour : inquiry.neighbours) {
    text += fmt::format("  {}: {}, {} on the fullest rank\n", fmt::join(neighbour.changes, " "),
                        human(neighbour.plan.timing->iteration.total), human(peak(neighbour.plan)));
  }
  return text;
}

std::string plan_text(const PlanReport& report, Format format) {
  const auto& [base, space, result, shown, estimate, blocked, limits, inquiry, elapsed] = report;
  const std::string blank = format == Format::markdown ? "\n" : "";
  std::string text = fmt::format(
      "{}{} ({} parameters) on {} devices of {}, batch {} x {} tokens\n{}{} strategies, {} of them fit",
      format == Format::markdown ? "## " : "", base.model.name, human_count(parameter_count(base.model)),
      space.devices, base.system.name, base.workload.global_batch, base.workload.sequence, blank,
      result.evaluated, result.feasible);
  if (elapsed) text += fmt::format("; {}", human(Seconds(*elapsed)));
  text += ".\n";
  if (result.plans.empty()) {
    text += infeasible_text(report);
  } else {
    text += "\nThe best plan of each division of the devices:\n" + blank +
            render_table(candidates_table(report, result.plans, shown), format);
    if (result.plans.size() > shown)
      text += fmt::format("and {} more (--top)\n", result.plans.size() - shown);
    text += choice_text(report);
    text += "\nLess memory for more time, each the fastest that needs no more (Pareto front):\n" + blank +
            render_table(candidates_table(report, result.pareto, shown), format);
    if (result.pareto.size() > shown)
      text += fmt::format("and {} more (--top)\n", result.pareto.size() - shown);
    text += "\nLook closer:\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(3, result.plans.size()); ++i) {
      text += fmt::format("  {} {}\n", estimate, strategy_flags(result.plans[i].strategy));
    }
  }
  text += rejected_text(result);
  if (inquiry) text += inquiry_text(report);
  return text;
}

}  // namespace

std::string render(const PlanReport& report, Format format) {
  switch (format) {
    case Format::json: return to_text(plan_json(report));
    case Format::csv: return to_csv(csv_table(report));
    case Format::table:
    case Format::markdown: return plan_text(report, format);
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
