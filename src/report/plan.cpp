#include "headroom/report/plan.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/report/caveats.hpp"
#include "report/allocator.hpp"
#include "report/capacity.hpp"
#include "report/found.hpp"
#include "report/inquiry.hpp"
#include "report/launch.hpp"
#include "report/plan_choice.hpp"
#include "report/plan_json.hpp"
#include "report/plan_tables.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

std::string spread_line(const IterationSpread& it) {
  const double factor = std::exp(it.spread.logarithm);
  return fmt::format("- {:.0f}% of times should lie between {:.0f}% below and {:.0f}% above prediction\n",
                     100 * interval_level, 100 * (1 - 1 / factor), 100 * (factor - 1));
}

// How the best global batch does beside those that were asked for; nothing where one was.
std::string batches_line(const PlanReply& report) {
  if (report.batch_rates.empty()) return {};
  const BatchRate& best = report.batch_rates.front();
  std::string text =
      fmt::format("- of {} global batches {} trains most tokens a second, {:.0f}",
                  report.comparison.global_batches.size(), best.global_batch, *best.tokens_per_second);
  for (std::size_t i = 1; i < report.batch_rates.size(); ++i) {
    const auto& [batch, rate] = report.batch_rates[i];
    text += rate ? fmt::format("; {:.1f}% more than {}", 100 * (*best.tokens_per_second / *rate - 1), batch)
                 : fmt::format("; at {} nothing fits", batch);
  }
  if (report.batches_without_plan > 0) {
    text += fmt::format("; {} have no plan that fits", report.batches_without_plan);
  }
  return text + "\n";
}

// What the best plans are each of.
std::string compared_text(const PlanReply& report) {
  std::vector<std::string> parts;
  if (compares_systems(report)) parts.emplace_back("system");
  if (compares_devices(report)) parts.emplace_back("number of GPUs");
  if (compares_batches(report)) parts.emplace_back("global batch");
  if (parts.empty()) return "TP x PP x DP";
  return listed(parts);
}

std::string systems_text(const PlanReply& report) {
  if (!compares_systems(report)) return report.base.system.name;
  std::vector<std::string> names;
  for (const Offer& offer : report.comparison.offers) names.push_back(offer.system.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string batch_text(const PlanReply& report) {
  const std::vector<std::int64_t>& batches = report.comparison.global_batches;
  if (!compares_batches(report)) {
    const Workload& workload = report.base.workload;
    std::string batch = std::to_string(workload.global_batch);
    if (!report.default_batch) return batch;
    // Chosen for the model's own sequences, not for the longest.
    if (report.found && report.found->question.extreme == Extreme::max_sequence) return batch + " (default)";
    constexpr double million = 1 << 20;
    const double tokens = real(workload.global_batch) * real(workload.sequence) / million;
    return fmt::format("{} ({:.{}f}M tokens, default)", batch, tokens,
                       tokens < 10 && tokens != std::round(tokens) ? 1 : 0);
  }
  constexpr std::size_t most_listed = 6;
  if (batches.size() <= most_listed) return fmt::format("{}", fmt::join(batches, ", "));
  return fmt::format("{} to {}{}", *std::min_element(batches.begin(), batches.end()),
                     *std::max_element(batches.begin(), batches.end()),
                     report.default_batch ? " (around 4M tokens, default)" : "");
}

// Memory and time at the 90% quantile of routing, of a plan with balanced experts.
std::string uneven_routing_line(const EstimateReply& reply) {
  if (!reply.routing || !is_even(account(reply.evaluation).request.workload.moe_imbalance)) return {};
  const LoadedPlan& loaded = reply.routing->loads.back();
  const char* const verdict = loaded.verdict == Verdict::does_not_fit ? ", and does not fit"
                              : loaded.verdict == Verdict::marginal   ? ", and is marginal"
                                                                      : "";
  return fmt::format("- with imbalanced routing (90% quantile) it takes {} and {}{} ({} {})\n",
                     human(*loaded.iteration), human(loaded.peak), verdict, flag_of("moe_balancing"),
                     name_of(reply.routing->balancing));
}

// Reasons why the best plan is the best: its margin, its time besides GEMMs, and what memory rules out.
std::string but_for_memory(Verdict verdict) {
  if (verdict == Verdict::does_not_fit) return ", but would not fit";
  return verdict == Verdict::marginal ? ", but would be marginal" : "";
}

std::string choice_text(const PlanReply& report, std::size_t shown) {
  const std::vector<Candidate>& plans = report.result.plans;
  const Plan& best = account(report.accounts.front().evaluation);
  std::string text = fmt::format("\nBest{}: {}\n      {}\n", report.result.undecided ? " so far" : "",
                                 layout_line(best.request.strategy, best.request.workload),
                                 policy_line(best.request.strategy, best.request.software));
  if (const std::string launch =
          launch_line(best.request.model, best.request.software, best.request.strategy);
      !launch.empty())
    text += "      " + launch + "\n";
  const bool by_runs =
      report.choice && report.choice->measured > 0;  // whose times predictions do not explain
  if (plans.size() > 1 && slower_by(report, plans[1]) >= 0 && !by_runs) {
    const Plan& second = account(report.accounts[1].evaluation);
    const bool same_batch = best.request.workload == second.request.workload;
    text += fmt::format("- plan 2 takes {:.1f}% longer{}\n", 100 * slower_by(report, plans[1]),
                        same_batch ? ": " + more_time(best, second, 1) : " for a token");
  }
  text += preference_text(report, shown);
  text += batches_line(report);
  if (const auto& cost = report.accounts.front().cost) text += "- " + training_line(report.training, *cost);
  if (report.cheapest) {
    const Candidate& cheapest = plans[*report.cheapest];
    text += fmt::format(
        "- cheapest: plan {}, {}", *report.cheapest + 1,
        training_line(training_of(report, cheapest), *report.plan_outlooks[*report.cheapest].training));
  }
  if (report.idle) {
    const auto& [asked, with_all, batch] = *report.idle;
    const std::int64_t idle = asked - report.space.devices;
    const Seconds of_best = best.timing->iteration.total / real(report.base.workload.global_batch);
    text += fmt::format(
        "- {} of the {} GPUs {} idle: {}\n", idle, asked, idle == 1 ? "stays" : "stay",
        with_all
            ? fmt::format("all of them take {:.1f}% longer for a sequence, {} for GBS {} (--use-all-devices)",
                          100 * (*with_all / real(batch) / of_best - 1), human(*with_all), batch)
            : "no legal plan fits on all of them");
  }
  if (report.in_time) {
    text += fmt::format("- the odds that an iteration takes no longer than {}, as asked, are {}\n",
                        human(report.in_time->limit), odds_text(*report.in_time->odds));
  }
  if (!by_runs) text += spread_line(*report.spread);
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
  text += fmt::format("- other time: {}, {}, {}\n", share(lost[0]), share(lost[1]), share(lost[2]));
  if (const std::string held = held_too_much(best); !held.empty()) {
    text += "- " + held + "\n";
  } else if (best.verdict == Verdict::marginal && !report.result.undecided) {
    text +=
        fmt::format("- no plan leaves {:.4g}% of memory free (--margin): the best that fits is marginal\n",
                    100 * best.request.margin);
  }
  text += uneven_routing_line(report.accounts.front());
  if (const Candidate* const marginal = faster_but_marginal(report)) {
    text += fmt::format("- faster, but marginal: {}{}{} would take {} ({:+.1f}%{}) with {} free\n",
                        compares_systems(report) ? system_of(report, *marginal).name + " " : "",
                        compares_batches(report) ? fmt::format("{} {} ", flag_of("global_batch"),
                                                               variant_of(report, *marginal).global_batch)
                                                 : "",
                        flags_of(report, *marginal), human(marginal->iteration),
                        100 * slower_by(report, *marginal), compares_batches(report) ? " a token" : "",
                        human(system_of(report, *marginal).memory - marginal->peak));
  }
  if (report.in_fp8) {
    const auto& [precision, iteration, peak, verdict] = *report.in_fp8;
    text += fmt::format("- {} would take {} ({:+.1f}%){}: {} bf16,{} searches both\n", name_of(precision),
                        human(iteration), 100 * (iteration / best.timing->iteration.total - 1),
                        but_for_memory(verdict), flag_of("precision"), name_of(precision));
  }
  for (const LeftOut& choice : report.left_out) {
    text += fmt::format("- not searched: {} would take {} ({:+.1f}%)\n", choice.change,
                        human(choice.iteration), 100 * (choice.iteration / best.timing->iteration.total - 1));
  }
  if (report.blocked) {
    text += fmt::format("- limited by memory capacity: {} would take {}, but needs {} more{}\n",
                        flags_of(report.blocked->change), human(report.blocked->iteration),
                        human(report.blocked->missing),
                        report.blocked->of_host ? " in the memory of a host" : "");
  } else if (!report.result.undecided) {
    text += "- not limited by memory capacity: no single change that needs more of it would be faster\n";
  }
  return text;
}

std::string infeasible_text(const PlanReply& report, const PlanWords& asked) {
  const SearchResult& result = report.result;
  if (result.undecided) {
    return fmt::format("\nNothing that fits was found before the search {}.\n",
                       asked.stop.reason == StopReason::time_limit ? "ran out of time" : "was interrupted");
  }
  if (result.feasible > 0 && !result.nearest && !report.space.ran_out.empty())
    return "\nNothing is left: what fits by prediction ran out of memory (--measured).\n";
  std::string text = "\nNothing in this space is legal" +
                     (report.obstacle ? ": " + problem_line(*report.obstacle)
                                      : ": every TP x PP x DP that makes the GPUs breaks a rule.") +
                     "\n";
  if (result.nearest) {
    const Bytes needed = std::max(result.nearest->peak, result.nearest->held.value_or(Bytes(0)));
    const Bytes missing = needed - system_of(report, *result.nearest).memory;
    text = fmt::format("\nNothing fits. What needs least, {} more than {}:\n  {}\n", human(missing),
                       report.nearest_lacks_host ? "a host has" : "there is",
                       command_of(report, asked, *result.nearest));
  }
  if (report.uneven_fits) {
    text += "Layouts with unequal numbers of layers on the stages, which Megatron-Core launches, fit: " +
            flag_of("layout") + " any searches them.\n";
  }
  if (report.space.breadth == Breadth::usual) text += "Leave out --fast to search more TP x CP x PP x DP.\n";
  if (report.offloading_fits)
    text += "Offloading to the host makes some fit: add --try-offload to search it.\n";
  text += more_sharding(report.sharding_stacks);
  if (!report.relief.empty()) text += "With another number of GPUs, a smaller batch or shorter sequences:\n";
  for (const Found& found : report.relief)
    text += fmt::format("- {}\n", found_text(found, report.base, report.space.devices));
  return text;
}

std::string rejected_text(const SearchResult& result) {
  if (result.rejected.empty()) return {};
  std::string text = "\nRejected:\n";
  for (const auto& [reason, count] : result.rejected) {
    if (reason == "device_memory") {
      text += fmt::format("  {:>8}  do not fit in GPU memory\n", count);
    } else if (reason == "host_memory") {
      text += fmt::format("  {:>8}  do not fit in the memory of a host\n", count);
    } else {
      text += fmt::format("  {:>8}  break a rule of {}\n", count, flag_of(reason));
    }
  }
  return text;
}

std::string plan_text(const PlanReply& report, const PlanWords& asked, const Style& style) {
  const Request& base = report.base;
  const SearchResult& result = report.result;
  const auto& [estimates, launched, why, shown, trials, timing, stop] = asked;
  const std::string blank = style.format == Format::markdown ? "\n" : "";
  std::string text = fmt::format(
      "{}{} ({}) on {} {} of {}, GBS {} x {} tokens\n{}{}{} strategies, {} of them fit",
      style.format == Format::markdown ? "## " : "", base.model.name,
      parameters_text(parameter_counts(base.model)),
      compares_devices(report) ? fmt::format("{}", fmt::join(report.comparison.device_counts, ", "))
      : report.idle            ? fmt::format("{} of {}", report.space.devices, report.idle->asked)
                               : std::to_string(report.space.devices),
      compares_devices(report) || report.space.devices > 1 ? "GPUs" : "GPU", systems_text(report),
      batch_text(report), base.workload.sequence, blank,
      report.found ? found_text(*report.found, base, report.space.devices, report.in_time) + "\n" + blank
                   : "",
      result.evaluated, result.feasible);
  if (unanswered(report) && result.feasible > 0 && !report.found->question.within)
    text += fmt::format(", with less than {:.4g}% of memory to spare (--margin)", 100 * base.margin);
  if (timing)
    text += fmt::format("; searched in {}, explained in {}, written in {}, answered in {}",
                        human(Seconds(timing->search_seconds)), human(Seconds(timing->explanation_seconds)),
                        human(Seconds(timing->output_seconds)), human(Seconds(timing->elapsed_seconds)));
  text += ".\n";
  if (result.undecided) text += blank + undecided_text(report, asked) + "\n";
  if (result.plans.empty()) {
    text += infeasible_text(report, asked);
  } else {
    text += fmt::format("\nThe best plan {}of each {}{}:\n", result.undecided ? "found so far " : "",
                        compared_text(report), unanswered(report) ? ", none of which meets that" : "") +
            blank +
            render_table(candidates_table(report, result.plans, report.plan_outlooks, shown,
                                          report.choice ? report.choice->plans : std::vector<PlanBelief>{}),
                         style);
    if (result.plans.size() > shown)
      text += fmt::format("and {} more (--top)\n", result.plans.size() - shown);
    text += choice_text(report, shown);
    text += proposed_trials_text(report, asked, style);
    text += caveats_text(account(report.accounts.front().evaluation), style);
    text +=
        fmt::format("\nLess memory {}for more time, each the fastest {}that needs no more (Pareto front):\n",
                    compares_systems(report)   ? "or money "
                    : compares_devices(report) ? "or fewer GPUs "
                                               : "",
                    result.undecided ? "found so far " : "") +
        blank + render_table(candidates_table(report, result.pareto, report.pareto_outlooks, shown), style);
    if (result.pareto.size() > shown)
      text += fmt::format("and {} more (--top)\n", result.pareto.size() - shown);
    text += "\nLook closer:\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(3, result.plans.size()); ++i) {
      text += fmt::format("  {}\n", command_of(report, asked, result.plans[i]));
    }
  }
  text += rejected_text(result);
  if (report.inquiry) text += inquiry_text(*report.inquiry, why, style);
  return text;
}

}  // namespace

std::string undecided_text(const PlanReply& report, const PlanWords& asked) {
  const std::optional<Undecided>& undecided = report.result.undecided;
  if (!undecided) return {};
  const bool wide = report.space.breadth == Breadth::wide;
  const char* const strategies = wide ? "usual strategies" : "strategies";
  std::string text = stopped_text(asked.stop) + ": ";
  const std::optional<double> slower = gap(report);
  if (slower) text += fmt::format("within {:.1f}% of the best possible", 100 * *slower);
  if (slower && wide) text += " of the usual strategies";
  if (undecided->decided < 1)
    return text + fmt::format("{}{:.0f}% {}decided", slower ? ", " : "", std::floor(100 * undecided->decided),
                              slower ? "" : fmt::format("of the {} ", strategies));
  return slower ? text
                : text + fmt::format("all {} decided, the rest of the search was not finished", strategies);
}

std::string render(const PlanReply& report, const PlanWords& asked, const Style& style) {
  switch (style.format) {
    case Format::json: return to_text(plan_json(report, asked));
    case Format::csv: return to_csv(csv_table(report));
    case Format::table:
    case Format::markdown:
      return fitted(plan_text(report, asked, style), style) +
             (report.accounts.empty() ? "" : launch_text(report.accounts.front().launch, style));
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
