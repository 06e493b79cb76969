#include "headroom/report/frontier.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headroom/parallel/strategy_fields.hpp"
#include "report/choice_text.hpp"
#include "report/frontier_json.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

std::string mebibytes(Bytes bytes) { return fmt::format("{:.2f}", bytes.count() / mebi); }
std::string milliseconds(Seconds time) { return fmt::format("{:.3f}", time.count() * 1e3); }
std::string seconds(Seconds time) { return fmt::format("{:#.5g}", time.count()); }
std::string change(Seconds time, Seconds from) { return fmt::format("{:+.1f}%", 100 * (time / from - 1)); }

std::string recompute_flags(const Recomputation& recompute) {
  if (recompute.policy == RecomputePolicy::none) return flags_of({{"recompute", "none"}});
  Edits edits = edits_of({.recompute = recompute});
  std::erase_if(edits, [](const Edit& edit) { return !edit.field.starts_with("recompute"); });
  return flags_of(edits);
}

Table points_table(const FrontierReply& report, const std::vector<std::size_t>& shown) {
  const Seconds none = report.points.front().point.iteration;
  Table result{.columns = {{"peak GiB"},
                           {"free"},
                           {"seconds"},
                           {"longer"},
                           {"MFU (causal)"},
                           {"by rank", Align::right, 1},
                           {"saves MiB", Align::right, 3},
                           {"recompute ms", Align::right, 2},
                           {"layers"},
                           {"recomputes", Align::left}}};
  for (const std::size_t i : shown) {
    const auto& [point, staged] = report.points[i];
    const std::int64_t layers = point.recompute.layers;
    result.rows.push_back(
        {in_gib(point.peak), in_gib(report.request.system.memory - point.peak), seconds(point.iteration),
         change(point.iteration, none), percent(point.mfu), seconds(staged.iteration),
         mebibytes(saved_by_a_layer(point.layers, report.layers)),
         milliseconds(recompute_of_a_layer(point.layers, report.layers)),
         layers == 0 ? "all" : std::to_string(layers), set_text(point.layers, report.layers)});
  }
  return result;
}

Table policies_table(const FrontierReply& report) {
  Table result{.columns = {{"policy", Align::left},
                           {"peak GiB"},
                           {"seconds"},
                           {"MFU (causal)"},
                           {"uniform"},
                           {"gains"},
                           {"by rank"},
                           {"gains"},
                           {"the uniform optimum recomputes", Align::left}}};
  for (const auto& [point, best] : report.policies) {
    std::vector<std::string> row{std::string(name_of(point.recompute.policy)), in_gib(point.peak),
                                 seconds(point.iteration), percent(point.mfu)};
    // Whole layers may need less than any set of ops.
    if (best.uniform && best.staged) {
      const std::int64_t layers = best.uniform->recompute.layers;
      const std::string in_layers = layers > 0 ? fmt::format(" (first {} of a virtual stage)", layers) : "";
      row.insert(row.end(),
                 {seconds(best.uniform->iteration), change(best.uniform->iteration, point.iteration),
                  seconds(best.staged->iteration), change(best.staged->iteration, point.iteration),
                  set_text(best.uniform->layers, report.layers) + in_layers});
    } else {
      row.insert(row.end(), {"-", "-", "-", "-", "no set that was tried needs as little"});
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

// "3 x scores, 9 x nothing"; of several kinds "3 dense x scores, 9 wide x nothing".
std::string mix_text(const std::vector<MixRun>& runs, const ModelLayers& layers, bool kinds) {
  std::string text;
  for (const MixRun& run : runs) {
    const LayerKind& kind = layers.kinds[run.kind];
    text += fmt::format("{}{}{} x {}", text.empty() ? "" : ", ", run.layers, kinds ? " " + kind.name : "",
                        set_text(run.choice, kind));
  }
  return text;
}

// Merges neighbours that do the same into one row.
Table ranks_table(const StagedPoint& point, const ModelLayers& layers) {
  Table result{.columns = {{"ranks"},
                           {"total GiB"},
                           {"free"},
                           {"recompute ms"},
                           {"layers of a virtual stage recompute", Align::left}}};
  for (std::size_t first = 0; first < point.ranks.size();) {
    std::size_t last = first;
    const StagedRank& one = point.ranks[first];
    while (last + 1 < point.ranks.size() && point.ranks[last + 1].longest_chunk == one.longest_chunk) ++last;
    Bytes peak;
    for (std::size_t rank = first; rank <= last; ++rank) peak = std::max(peak, point.ranks[rank].total);
    result.rows.push_back({first == last ? std::to_string(first) : fmt::format("{}-{}", first, last),
                           in_gib(peak), in_gib(point.budget - peak), milliseconds(one.recompute),
                           mix_text(one.longest_chunk, layers, layer_kind_count(layers) > 1)});
    first = last + 1;
  }
  return result;
}

std::string budget_text(const FrontierBudget& budget, const ModelLayers& layers, const Style& style) {
  const std::string blank = style.format == Format::markdown ? "\n" : "";
  std::string text = fmt::format("\nWithin {} on every GPU:\n{}", human(budget.budget), blank);
  if (!budget.staged) return text + "  nothing fits, whatever is recomputed\n";
  if (budget.uniform) {
    text += fmt::format("  all ranks alike: {} s, {} at the peak, {}\n", seconds(budget.uniform->iteration),
                        human(budget.uniform->peak), recompute_flags(budget.uniform->recompute));
  } else {
    text += "  all ranks alike: nothing fits\n";
  }
  if (budget.windowed) {
    text += fmt::format("  all ranks alike, with windows: {} s, {} at the peak, {}\n",
                        seconds(budget.windowed->iteration), human(budget.windowed->peak),
                        recompute_flags(budget.windowed->recompute));
  }
  text += fmt::format("  each rank for itself, which no flag asks for: {} s, {} at the peak\n{}",
                      seconds(budget.staged->iteration), human(budget.staged->peak), blank);
  return text + render_table(ranks_table(*budget.staged, layers), style);
}

Table batches_table(const FrontierReply& report) {
  Table result{.columns = {{"MBS"},
                           {"microbatches"},
                           {"selective s"},
                           {"peak GiB"},
                           {"uniform s"},
                           {"MFU (causal)"},
                           {"peak GiB"},
                           {"by rank s"},
                           {"layers"},
                           {"the uniform optimum recomputes", Align::left}}};
  for (const auto& [b, selective, uniform, staged] : report.batches) {
    Strategy strategy = report.request.strategy;
    strategy.micro_batch = b;
    const bool fits = selective.peak <= report.budgets.front().budget;
    std::vector<std::string> row{std::to_string(b),
                                 std::to_string(microbatches(strategy, report.request.workload)),
                                 seconds(selective.iteration) + (fits ? "" : "*"), in_gib(selective.peak)};
    if (uniform) {
      const std::int64_t layers = uniform->recompute.layers;
      row.insert(row.end(), {seconds(uniform->iteration), percent(uniform->mfu), in_gib(uniform->peak)});
      row.insert(row.end(), {seconds(staged->iteration), layers == 0 ? "all" : std::to_string(layers),
                             set_text(uniform->layers, report.layers)});
    } else {
      row.insert(row.end(), {"-", "-", "-", staged ? seconds(staged->iteration) : "-", "-",
                             staged ? "nothing uniform fits" : "nothing fits"});
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

// Fastest microbatch with all ranks alike, against the selective policy at the requested microbatch.
std::string batches_text(const FrontierReply& report) {
  if (!report.fastest) return {};
  const BatchChoice* const best = &report.batches[*report.fastest];
  const NamedPolicy& selective = report.policies[1];
  return fmt::format("Fastest: {} {}: {} s, {} against selective with microbatches of {}.\n",
                     best->micro_batch == report.request.strategy.micro_batch
                         ? "the microbatch as it is,"
                         : flags_of({{"micro_batch", std::to_string(best->micro_batch)}}),
                     recompute_flags(best->uniform->recompute), seconds(best->uniform->iteration),
                     change(best->uniform->iteration, selective.point.iteration),
                     report.request.strategy.micro_batch);
}

// What there is to choose from.
std::string fronts_text(const FrontierReply& report) {
  std::string text;
  for (std::size_t kind = 0; kind < report.fronts.size(); ++kind) {
    const LayerKind& of = report.layers.kinds[kind];
    const std::string name = report.fronts.size() > 1 ? "'" + of.name + "' layer" : "layer";
    const LayerFront& front = report.fronts[kind];
    text += fmt::format("A {} has {} ops; of {:.0f} sets of them, {} may be best for some budget.\n", name,
                        of.ops.ops().size(), std::exp2(of.ops.ops().size()), front.unbeaten);
    if (front.tolerance > 0) {
      text += fmt::format("{} are tried, within {:.2f}% of the best in what they save and in time.\n",
                          front.choices.size(), 100 * front.tolerance);
    }
  }
  if (report.fronts.size() > 1) {
    text += fmt::format("{} combinations of them are tried: those that are best for some price of a byte.\n",
                        report.combinations);
  }
  return text;
}

std::string frontier_text(const FrontierReply& report, const Style& style, bool all, const Stop& stop) {
  const Strategy& strategy = report.request.strategy;
  const bool markdown = style.format == Format::markdown;
  const std::string blank = markdown ? "\n" : "";
  std::string text =
      fmt::format("{}{} ({}) on {}\n{}{}\n{}{}", markdown ? "## " : "", report.request.model.name,
                  parameters_text(parameter_counts(report.request.model)), report.request.system.name, blank,
                  layout_line(strategy, report.request.workload), blank, fronts_text(report));
  if (report.stopped)
    text += blank + stopped_text(stop) + ": the points are those of the sets that were looked at\n";

  std::vector<std::size_t> shown = report.exchanges;
  if (all) {
    shown.resize(report.points.size());
    std::iota(shown.begin(), shown.end(), std::size_t{0});
  }
  text += fmt::format("\nFrom no recomputation to all of it, all ranks alike{}:\n{}",
                      all ? "" : ", where memory costs the least time", blank) +
          render_table(points_table(report, shown), style);
  if (shown.size() < report.points.size()) {
    text += fmt::format("{} of {} points (--all)\n", shown.size(), report.points.size());
  }
  text +=
      fmt::format("\nThe named policies, and the least time within the memory that each takes:\n{}", blank) +
      render_table(policies_table(report), style);
  for (const FrontierBudget& budget : report.budgets) text += budget_text(budget, report.layers, style);
  text += fmt::format("\nFreed memory spent on a larger microbatch, within {}:\n{}",
                      human(report.budgets.front().budget), blank) +
          render_table(batches_table(report), style);
  const bool starred = std::any_of(
      report.batches.begin(), report.batches.end(),
      [&](const BatchChoice& choice) { return choice.selective.peak > report.budgets.front().budget; });
  if (starred) text += blank + "* does not fit\n";
  return text + blank + batches_text(report);
}

std::string csv_ops(const KindChoices& choices, const ModelLayers& layers) {
  return choices.size() == 1 ? op_names(choices.front(), layers.kinds.front()) : set_text(choices, layers);
}

Table csv_table(const FrontierReply& report) {
  Table result{.columns = {{"peak_bytes"},
                           {"peak_rank"},
                           {"iteration_seconds"},
                           {"mfu"},
                           {"staged_seconds"},
                           {"saved_bytes"},
                           {"recomputed_bytes"},
                           {"recompute_seconds"},
                           {"recompute_layers"},
                           {"policy"},
                           {"ops"}}};
  for (const auto& [point, staged] : report.points) {
    result.rows.push_back({whole(point.peak.count()), std::to_string(point.peak_rank),
                           fmt::format("{}", point.iteration.count()), fmt::format("{}", point.mfu),
                           fmt::format("{}", staged.iteration.count()),
                           whole(saved_by_a_layer(point.layers, report.layers).count()),
                           whole(recomputed_by_a_layer(point.layers, report.layers).count()),
                           fmt::format("{}", recompute_of_a_layer(point.layers, report.layers).count()),
                           std::to_string(point.recompute.layers),
                           std::string(name_of(point.recompute.policy)),
                           csv_ops(point.layers, report.layers)});
  }
  return result;
}

}  // namespace

std::string render(const FrontierReply& report, const Style& style, bool all, const Stop& stop) {
  switch (style.format) {
    case Format::json: return to_text(frontier_json(report, stop));
    case Format::csv: return to_csv(csv_table(report));
    case Format::table:
    case Format::markdown: return fitted(frontier_text(report, style, all, stop), style);
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
