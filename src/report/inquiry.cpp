#include "report/inquiry.hpp"

#include "headroom/report/compare.hpp"
#include "report/plan_tables.hpp"
#include "report/text.hpp"

namespace headroom {

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
      const Seconds fastest = account(best).timing->iteration.total;
      const Seconds time = asked.timing->iteration.total;
      if (asked.request.strategy == account(best).request.strategy) {
        return text + "- it is the best plan\n";
      }
      if (asked.verdict != Verdict::does_not_fit && time > fastest) {
        text += fmt::format("- fits, but takes {:.1f}% longer: {}\n", 100 * (time / fastest - 1),
                            more_time(account(best), asked, 2));
      }
      text +=
          "Against the best plan (before), this one (after) is: " +
          render(StrategyComparison{.before = best, .after = *inquiry.evaluation, .change = inquiry.flags},
                 Format::table);
    }
  }
  if (!inquiry.neighbours.empty()) {
    text +=
        inquiry.evaluation ? "Changes that make it fit:\n" : "Nearest strategies that are legal and fit:\n";
  }
  for (const Alternative& neighbour : inquiry.neighbours) {
    text += fmt::format("  {}: {}, {} on the fullest rank\n", fmt::join(neighbour.changes, " "),
                        human(neighbour.plan.timing->iteration.total), human(peak(neighbour.plan)));
  }
  return text;
}

}  // namespace headroom
