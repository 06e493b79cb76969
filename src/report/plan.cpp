#include "headroom/report/plan.hpp"

#include <algorithm>
#include <cmath>

#include "report/capacity.hpp"
#include "report/found.hpp"
#include "report/inquiry.hpp"
#include "report/plan_json.hpp"
#include "report/plan_tables.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

std::string odds_text(double odds) {
  if (odds < 0.005) return "below 1%";
  return odds > 0.995 ? "above 99%" : fmt::format("{:.0f}%", 100 * odds);
}

std::string spread_line(const IterationSpread& it) {
  const double factor = std::exp(it.spread.logarithm);
  return fmt::format("- {:.0f}% of times should lie between {:.0f}% below and {:.0f}% above prediction\n",
                     100 * interval_level, 100 * (1 - 1 / factor), 100 * (factor - 1));
}

// Why the best plan is the best: its margin, where its time goes beside products, and what memory keeps it from.
std::string choice_text(const PlanReply& report) {
  const std::vector<Candidate>& plans = report.result.plans;
  const Plan& best = account(report.accounts.front().evaluation);
  std::string text =
      fmt::format("\nBest: {}\n      {}\n", layout_line(best.request.strategy, best.request.workload),
                  policy_line(best.request.strategy));
  if (const std::string launch = launch_line(best.request.model.layers, best.request.strategy);
      !launch.empty())
    text += "      " + launch + "\n";
  if (plans.size() > 1) {
    const Plan& second = account(report.accounts[1].evaluation);
    text += fmt::format("- plan 2 takes {:.1f}% longer: {}\n",
                        100 * (plans[1].iteration / plans.front().iteration - 1), more_time(best, second, 1));
  }
  if (const auto& cost = report.accounts.front().cost) text += "- " + training_line(report.training, *cost);
  if (report.in_time) {
    text += fmt::format("- the odds that an iteration takes no longer than {}, as asked, are {}\n",
                        human(report.in_time->limit), odds_text(*report.in_time->odds));
  }
  text += spread_line(*report.spread);
  std::vector<BreakdownPart> lost;
  for (const BreakdownPart& part : breakdown_parts) {
    if (part.name != "gemm") lost.push_back(part);
  }
  const Breakdown& breakdown = best.timing->iteration.breakdown;
  std::stable_sort(lost.begin(), lost.end(), [&](const BreakdownPart& x, const BreakdownPart& y) {
    return breakdown.*x.part > breakdown.*y.part;
  });
  const auto share = [&](const BreakdownPart& part) {
    return fmt::format("{} {:.1f}%", words(part.name),
                       100 * (breakdown.*part.part / best.timing->iteration.total));
  };
  text += fmt::format("- beside GEMMs its time goes into {}, {}, {}\n", share(lost[0]), share(lost[1]),
                      share(lost[2]));
  if (const Candidate* const marginal = faster_but_marginal(report.result)) {
    text += fmt::format("- faster, but marginal: {} would take {} ({:+.1f}%) with {} free\n",
                        strategy_flags(marginal->strategy), human(marginal->iteration),
                        100 * (marginal->iteration / plans.front().iteration - 1),
                        human(report.base.system.memory - marginal->peak));
  }
  if (report.blocked) {
    text += fmt::format("- limited by memory capacity: {} would take {}, but needs {} more\n",
                        flags_of(report.blocked->change), human(report.blocked->iteration),
                        human(report.blocked->missing));
  } else {
    text += "- not limited by memory capacity: no single change that needs more of it would be faster\n";
  }
  return text;
}

std::string infeasible_text(const PlanReply& report, const PlanWords& asked) {
  const SearchResult& result = report.result;
  std::string text = "\nNothing in this space is legal" +
                     (report.obstacle ? ": " + problem_line(*report.obstacle)
                                      : ": every TP x PP x DP that makes the GPUs breaks a rule.") +
                     "\n";
  if (result.nearest) {
    const Bytes missing = result.nearest->peak - report.base.system.memory;
    text = fmt::format("\nNothing fits. What needs least, {} more than there is:\n  {} {}\n", human(missing),
                       asked.estimate, strategy_flags(result.nearest->strategy));
  }
  if (result.rejected.contains("layout")) {
    text +=
        "Layouts with unequal numbers of layers on the stages, which Megatron-Core launches, were not tried: "
        "--layout any.\n";
  }
  if (result.nearest && report.space.devices > 1) text += more_sharding;
  if (!report.relief.empty()) text += "With another number of GPUs, a smaller batch or shorter sequences:\n";
  for (const Found& found : report.relief)
    text += fmt::format("- {}\n", found_text(found, report.base, report.space.devices));
  return text;
}

std::string rejected_text(const SearchResult& result) {
  if (result.rejected.empty()) return {};
  std::string text = "\nRejected:\n";
  for (const auto& [reason, count] : result.rejected) {
    text += reason == "device_memory" ? fmt::format("  {:>8}  do not fit in GPU memory\n", count)
                                      : fmt::format("  {:>8}  break a rule of {}\n", count, flag_of(reason));
  }
  return text;
}

std::string plan_text(const PlanReply& report, const PlanWords& asked, const Style& style) {
  const auto& [base, space, device_counts, found, default_batch, training, result, accounts, in_time, spread,
               plan_outlooks, pareto_outlooks, blocked, obstacle, relief, inquiry] = report;
  const auto& [estimate, why, shown, elapsed] = asked;
  const std::string blank = style.format == Format::markdown ? "\n" : "";
  std::string text = fmt::format(
      "{}{} ({} parameters) on {} {} of {}, GBS {}{} x {} tokens\n{}{}{} strategies, {} of them fit",
      style.format == Format::markdown ? "## " : "", base.model.name,
      human_count(parameter_count(base.model)),
      device_counts.size() > 1 ? fmt::format("{}", fmt::join(device_counts, ", "))
                               : std::to_string(space.devices),
      device_counts.size() > 1 || space.devices > 1 ? "GPUs" : "GPU", base.system.name,
      base.workload.global_batch, report.default_batch ? " (4M tokens, default)" : "", base.workload.sequence,
      blank, found ? found_text(*found, base, space.devices, in_time) + "\n" + blank : "", result.evaluated,
      result.feasible);
  if (elapsed) text += fmt::format("; {}", human(Seconds(*elapsed)));
  text += ".\n";
  if (result.plans.empty()) {
    text += infeasible_text(report, asked);
  } else {
    const bool several = device_counts.size() > 1;
    text += fmt::format("\nThe best plan of each {}{}:\n", several ? "number of GPUs" : "TP x PP x DP",
                        unanswered(report) ? ", none of which meets that" : "") +
            blank + render_table(candidates_table(report, result.plans, plan_outlooks, shown), style);
    if (result.plans.size() > shown)
      text += fmt::format("and {} more (--top)\n", result.plans.size() - shown);
    text += choice_text(report);
    text +=
        fmt::format("\nLess memory {}for more time, each the fastest that needs no more (Pareto front):\n",
                    several ? "or fewer GPUs " : "") +
        blank + render_table(candidates_table(report, result.pareto, pareto_outlooks, shown), style);
    if (result.pareto.size() > shown)
      text += fmt::format("and {} more (--top)\n", result.pareto.size() - shown);
    text += "\nLook closer:\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(3, result.plans.size()); ++i) {
      text += fmt::format("  {} {}\n", estimate, strategy_flags(result.plans[i].strategy));
    }
  }
  text += rejected_text(result);
  if (inquiry) text += inquiry_text(*inquiry, why, style);
  return text;
}

}  // namespace

std::string render(const PlanReply& report, const PlanWords& asked, const Style& style) {
  switch (style.format) {
    case Format::json: return to_text(plan_json(report, asked));
    case Format::csv: return to_csv(csv_table(report));
    case Format::table:
    case Format::markdown: return fitted(plan_text(report, asked, style), style);
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
