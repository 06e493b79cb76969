#include "report/inquiry.hpp"

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/report/caveats.hpp"
#include "headroom/report/compare.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {

namespace {

std::string neighbour_line(const std::string& changes, const Plan& plan) {
  return fmt::format("  {}: {}, {} on the peak rank\n", changes, human(plan.timing->iteration.total),
                     human(peak(plan)));
}

}  // namespace

std::string inquiry_text(const InquiryReply& inquiry, const std::string& flags, const Style& style) {
  std::string text = fmt::format("\nWhy not {}\n", flags);
  for (const Problem& problem : inquiry.problems) {
    const auto [flag, rule] = by_flag(problem);
    text += fmt::format("- {}: {}\n", flag, rule);
  }
  if (inquiry.evaluation) {
    const Plan& asked = account(*inquiry.evaluation);
    if (const auto* infeasible = std::get_if<Infeasible>(&*inquiry.evaluation)) {
      if (infeasible->limit == "host_memory") {
        text += fmt::format("- does not fit: what GPUs offload needs {} of a host's {}\n",
                            human(infeasible->needed), human(infeasible->available));
      } else {
        const Component largest = largest_component(asked.ranks[asked.peak_rank]);
        text += fmt::format("- does not fit: PP rank {} needs {}, {} too much; the largest part is {} ({})\n",
                            asked.peak_rank, human(infeasible->needed),
                            human(infeasible->needed - infeasible->available), largest.name,
                            human(largest.bytes));
      }
    }
    for (const Warning& warning : asked.warnings) {
      if (!is_of_evidence(warning)) text += fmt::format("- {}\n", warning.text);
    }
    if (is_best(inquiry)) return text + "- it is the best plan\n";
    if (asked.verdict == Verdict::marginal) {
      text += fmt::format(
          "- keeps {} free on the peak rank, less than the margin of {}: `plan` shows what keeps it\n",
          human(headroom_of(asked)), human(asked.request.margin * asked.request.system.memory));
    }
    if (!inquiry.against_best && asked.verdict != Verdict::does_not_fit) {
      text += fmt::format("- fits, with {} on the peak rank, and was not searched\n", human(peak(asked)));
    }
    if (inquiry.searched) {
      text += fmt::format("- was not searched: the nearest that was is {}\n",
                          strategy_flags(*inquiry.searched, asked.request.software, asked.request.model));
    }
    if (inquiry.against_best) {
      const Plan& best = account(inquiry.against_best->before);
      const Seconds fastest = best.timing->iteration.total;
      const Seconds time = asked.timing->iteration.total;
      if (asked.verdict != Verdict::does_not_fit && time > fastest) {
        text += fmt::format("- fits, but takes {:.1f}% longer: {}\n", 100 * (time / fastest - 1),
                            more_time(best, asked, 2));
        const std::string exchanges = exchanges_line(asked);
        if (!exchanges.empty() && !across(best, asked)) text += "- " + exchanges;
      }
      text += "Against the best plan (before), this one (after) is: " +
              render(*inquiry.against_best, flags, Style(Format::table, style.columns, style.colour));
    }
  }
  if (!inquiry.remedies.empty()) text += "Changes that make it fit:\n";
  for (const Alternative& remedy : inquiry.remedies) {
    text += neighbour_line(changes_text(remedy), remedy.plan);
  }
  if (!inquiry.nearest.empty()) text += "Nearest strategies that are legal and fit:\n";
  for (const Plan& plan : inquiry.nearest)
    text += neighbour_line(strategy_flags(plan.request.strategy, plan.request.software, plan.request.model),
                           plan);
  return text;
}

}  // namespace headroom
