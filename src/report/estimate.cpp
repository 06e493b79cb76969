#include "headroom/report/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/report/caveats.hpp"
#include "headroom/report/memory_plot.hpp"
#include "report/allocator.hpp"
#include "report/capacity.hpp"
#include "report/estimate_json.hpp"
#include "report/estimate_lines.hpp"
#include "report/launch.hpp"
#include "report/text.hpp"
#include "report/text_bar.hpp"

namespace headroom {
namespace {

// Table of every rank, in bytes, for spreadsheets.
Table bytes_table(const Plan& plan) {
  Table table{.columns = {{"pipeline_rank"}, {"layers"}, {"in_flight"}}};
  const auto first = std::find_if(memory_parts.begin(), memory_parts.end(),
                                  [](const MemoryPart& part) { return part.activations; });
  for (const MemoryPart& part : memory_parts) {
    if (&part == &*first) table.columns.push_back({"activation_bytes"});
    table.columns.push_back({fmt::format("{}_bytes", part.name)});
  }
  table.columns.push_back({"total_bytes"});
  table.columns.push_back({"headroom_bytes"});
  for (const RankMemory& rank : plan.ranks) {
    std::vector<std::string> row{std::to_string(rank.activations.pipeline_rank),
                                 std::to_string(rank.activations.layers),
                                 fmt::format("{:g}", in_flight(plan, rank))};
    for (const MemoryPart& part : memory_parts) {
      if (&part == &*first) row.push_back(whole(of_activations(rank.activations.at_peak).count()));
      row.push_back(whole(part.of(rank).count()));
    }
    row.push_back(whole(total(rank).count()));
    row.push_back(whole((plan.request.system.memory - total(rank)).count()));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Ranks worth a line on one screen: both ends and the peak rank.
std::vector<std::size_t> shown_ranks(const Plan& plan, bool all) {
  constexpr std::size_t at_each_end = 4;
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    const bool end = i < at_each_end || i + at_each_end >= plan.ranks.size();
    if (all || end || i == plan.peak_rank) shown.push_back(i);
  }
  return shown;
}

Table gib_table(const Plan& plan, bool all) {
  Table table{.columns = {{"PP rank"},
                          {"layers"},
                          {"in flight"},
                          {"total GiB"},
                          {"free"},
                          {"weights"},
                          {"gradients"},
                          {"optimizer"},
                          {"activations"},
                          {"non-torch"},
                          {"", Align::left}}};
  std::size_t next = 0;
  for (const std::size_t i : shown_ranks(plan, all)) {
    if (i != next) table.rows.push_back({"..", "", "", "", "", "", "", "", "", "", ""});
    next = i + 1;
    const RankMemory& rank = plan.ranks[i];
    table.rows.push_back({std::to_string(i), std::to_string(rank.activations.layers),
                          fmt::format("{:.4g}", in_flight(plan, rank)), in_gib(total(rank)),
                          in_gib(plan.request.system.memory - total(rank)), in_gib(rank.state.weights),
                          in_gib(gradients_at_peak(rank)), in_gib(rank.state.optimizer),
                          in_gib(of_activations(rank.activations.at_peak)), in_gib(rank.reserved),
                          i == plan.peak_rank ? "<- peak" : ""});
  }
  return table;
}

// The table of ranks with how much of a GPU's memory each takes as a bar, where the screen has room for it.
Table with_bars(const Plan& plan, const Style& style, const Table& table) {
  constexpr double columns = 11;
  Bytes scale = plan.request.system.memory;
  for (const RankMemory& rank : plan.ranks) scale = std::max(scale, total(rank));
  Table drawn = table;
  drawn.columns.push_back({.name = "of capacity", .align = Align::left, .expendable = 1});
  std::size_t row = 0;
  for (const std::size_t i : shown_ranks(plan, false)) {
    if (drawn.rows[row].front() == "..") drawn.rows[row++].emplace_back();
    drawn.rows[row++].push_back(text_bar(total(plan.ranks[i]) / scale, columns, true));
  }
  const bool hidden = to_aligned(drawn, style.columns).find("Hidden columns") != std::string::npos;
  return hidden ? table : drawn;
}

constexpr double bar_columns = 40;

// Memory of the peak rank: a bar for each part that takes any.
Table memory_bars(const Plan& plan, const Style& style) {
  const RankMemory& rank = plan.ranks[plan.peak_rank];
  const Bytes capacity = plan.request.system.memory;
  const Bytes scale = std::max(total(rank), capacity);
  Table table{.columns = {{"memory", Align::left}, {"GiB"}, {"of capacity"}, {"", Align::left}}};
  for (const MemoryPart& part : memory_parts) {
    const Bytes bytes = part.of(rank);
    if (bytes == Bytes(0)) continue;
    table.rows.push_back({std::string(part.words), in_gib(bytes),
                          fmt::format("{:.1f}%", 100 * (bytes / capacity)),
                          text_bar(bytes / scale, bar_columns, style.blocks)});
  }
  return table;
}

// Time of an iteration: a bar for each part that takes any.
Table time_bars(const IterationTime& iteration, const Style& style) {
  Table table{.columns = {{"time", Align::left}, {"seconds"}, {"of iteration"}, {"", Align::left}}};
  for (const auto& [name, part] : breakdown_parts) {
    const double share = iteration.breakdown.*part / iteration.total;
    constexpr double worth_a_row = 5e-5;
    if (share < worth_a_row) continue;
    table.rows.push_back({words(name), fmt::format("{:.3f}", (iteration.breakdown.*part).count()),
                          fmt::format("{:.1f}%", 100 * share), text_bar(share, bar_columns, style.blocks)});
  }
  return table;
}

std::string training_text(const EstimateReply& report) {
  return report.cost ? training_line(report.training, *report.cost) : std::string();
}

std::string timeline_text(const Trace& trace, const Plan& plan, const Style& style) {
  const IterationTime& iteration = plan.timing->iteration;
  const Seconds end = iteration.schedule.makespan;
  const TimelineSize size{.columns = static_cast<std::int64_t>(style.columns), .blocks = style.blocks};
  return "\n" + timeline(trace.steps, iteration.shape.ranks, end, size) + "\n" +
         memory_plot(trace, static_cast<std::int64_t>(plan.peak_rank), end, size);
}

// The largest saved tensors of the peak rank, and the sum of the others.
std::string tensors_text(const std::vector<PeakTensor>& tensors, const Style& style) {
  constexpr std::size_t most = 12;
  if (tensors.empty())
    return "\nSaved tensors are not listed where layers share a checkpoint, or for windows.\n";
  Table table{.columns = {{"saved tensor", Align::left},
                          {"by", Align::left},
                          {"of", Align::left, 1},
                          {"bytes of one", Align::left, 3},
                          {"number", Align::right, 2},
                          {"MiB"},
                          {"all GiB"},
                          {"freed by recomputing", Align::left}}};
  Bytes others;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const PeakTensor& tensor = tensors[i];
    if (i >= most) {
      others += total(tensor);
      continue;
    }
    table.rows.push_back({tensor.name, tensor.op, tensor.layers, tensor.expression,
                          std::to_string(tensor.count), fmt::format("{:.2f}", tensor.each.count() / 0x1p20),
                          in_gib(total(tensor)), fmt::format("{}", fmt::join(tensor.freed_by, ", "))});
  }
  if (tensors.size() > most)
    table.rows.push_back(
        {fmt::format("{} others", tensors.size() - most), "", "", "", "", "", in_gib(others), ""});
  return "\n" + render_table(table, style);
}

// Alternative on one line: its flags, and its effect on time and memory.
std::string alternative_line(const Alternative& alternative, const Plan& plan) {
  std::string effect;
  if (plan.timing && alternative.plan.timing) {
    const Seconds time = alternative.plan.timing->iteration.total;
    effect = fmt::format("{} ({:+.1f}%), ", human(time), 100 * (time / plan.timing->iteration.total - 1));
  }
  effect += human(peak(alternative.plan)) + " on the peak rank";
  if (alternative.plan.verdict == Verdict::marginal) effect += ", marginal";
  return fmt::format("  {}: {}\n", changes_text(alternative), effect);
}

std::string_view balancing_words(MoeBalancing balancing) {
  switch (balancing) {
    case MoeBalancing::aux_loss: return "balanced by an auxiliary loss";
    case MoeBalancing::loss_free: return "balanced by a bias of the router";
    case MoeBalancing::none: break;
  }
  return "without balance";
}

std::string chance_text(double chance) {
  if (chance < 0.001) return "under 0.1%";
  return chance > 0.999 ? "over 99.9%" : percent(chance);
}

std::string quantile_words(double quantile) {
  return quantile == 0 ? "even" : quantile == 0.5 ? "median" : fmt::format("{:.0f}%", 100 * quantile);
}

// Plan at quantiles of the loads of its expert ranks.
std::string routing_text(const EstimateReply& report, const Plan& plan, const Style& style) {
  if (!report.routing) return {};
  const Routing& routing = *report.routing;
  Table table{.columns = {{"routing", Align::left},
                          {"rank's load"},
                          {"total GiB"},
                          {"free"},
                          {"layer's load"},
                          {"iteration"}}};
  const Bytes memory = plan.request.system.memory;
  const MoeImbalance& asked = plan.request.workload.moe_imbalance;
  const auto times = [](double load) { return fmt::format("{:.2f} x", load); };
  if (!is_even(asked)) {
    const double load = fullest_rank(asked, plan.request.model, plan.request.strategy.expert_parallel);
    table.rows.push_back({"this plan", times(load), in_gib(peak(plan)), in_gib(memory - peak(plan)),
                          times(load), plan.timing ? human(plan.timing->iteration.total) : ""});
  }
  for (const LoadedPlan& loaded : routing.loads) {
    table.rows.push_back({quantile_words(loaded.quantile), times(loaded.memory_load), in_gib(loaded.peak),
                          in_gib(memory - loaded.peak), times(loaded.time_load),
                          loaded.iteration ? human(*loaded.iteration) : ""});
  }
  const char* const more = style.format == Format::markdown ? "\n" : "";
  std::string text =
      fmt::format("\nRouting {} (--moe-balancing {}):\n{}{}", balancing_words(routing.balancing),
                  name_of(routing.balancing), more, render_table(table, style));
  if (routing.loads.front().verdict == Verdict::does_not_fit) return text;
  return text + fmt::format(
                    "Chance to run out of memory: {} within {} steps; {} in the first steps, before "
                    "routing is balanced.\n",
                    chance_text(routing.out_of_memory), routing.steps,
                    chance_text(routing.out_of_memory_early));
}

std::string alternatives_text(const EstimateReply& report, const EstimateWords& words) {
  const Plan& plan = account(report.evaluation);
  const bool fits = std::holds_alternative<Plan>(report.evaluation);
  std::string elsewhere;
  elsewhere = more_sharding(report.sharding_stacks);
  if (!elsewhere.empty()) elsewhere.insert(0, "\n");
  if (report.alternatives.empty()) {
    if (fits || !report.looked_for_alternatives) return elsewhere;
    const std::string text = "\nNo two changes of parallelism or recomputation make it fit on the same GPUs.";
    return (words.plan.empty() ? text + "\n" : text + " To search them all:\n  " + words.plan + "\n") +
           elsewhere;
  }
  std::string text = fits ? "\nChanges that would help most:\n" : "\nChanges that make it fit:\n";
  for (const Alternative& alternative : report.alternatives) text += alternative_line(alternative, plan);
  return text + elsewhere;
}

std::string estimate_text(const EstimateReply& report, const EstimateWords& words, const Style& style) {
  const Plan& plan = account(report.evaluation);
  const Request& request = plan.request;
  const bool markdown = style.format == Format::markdown;
  const std::string heading = markdown ? "## " : "";
  std::string text = fmt::format("{}{} ({}) on {}\n", heading, request.model.name,
                                 parameters_text(parameter_counts(request.model)), request.system.name);
  if (markdown) text += '\n';
  text += layout_line(request.strategy, request.workload) + "\n" +
          policy_line(request.strategy, request.software) + "\n";
  if (const std::string stages = launch_line(request.model, request.software, request.strategy);
      !stages.empty())
    text += stages + "\n";
  text += "\n";
  text += verdict_line(plan, style) + "\n";
  if (plan.host && !lacks(*plan.host)) text += host_memory_text(*plan.host) + ".\n";
  if (plan.timing) text += (markdown ? "\n" : "") + time_line(report, plan, style) + "\n";
  text += training_text(report);
  const Table ranks = gib_table(plan, markdown);
  text += '\n' + render_table(style.blocks && !markdown ? with_bars(plan, style, ranks) : ranks, style);
  text += fmt::format("\nPP rank {} has the peak {}:\n{}", plan.peak_rank,
                      moment_text(plan, plan.ranks[plan.peak_rank]), markdown ? "\n" : "");
  text += render_table(memory_bars(plan, style), style);
  text += allocator_line(plan);
  if (report.peak_tensors) text += tensors_text(*report.peak_tensors, style);
  if (plan.timing) {
    const IterationTime& iteration = plan.timing->iteration;
    text += fmt::format("\nOn PP rank {}, the busiest:\n{}", iteration.critical_rank, markdown ? "\n" : "");
    text += render_table(time_bars(iteration, style), style);
    text += exchanges_line(plan);
    if (report.trace) text += timeline_text(*report.trace, plan, style);
  }
  text += routing_text(report, plan, style);
  text += alternatives_text(report, words);
  return text + '\n' + caveats_text(plan, style);
}

}  // namespace

std::string render(const EstimateReply& report, const EstimateWords& words, const Style& style) {
  switch (style.format) {
    case Format::json: {
      OrderedJson json = estimate_json(report);
      if (!words.estimate.empty()) json["command"] = words.estimate;
      if (!words.plan.empty()) json["plan_command"] = words.plan;
      return to_text(json);
    }
    case Format::csv: return to_csv(bytes_table(account(report.evaluation)));
    case Format::table:
    case Format::markdown:
      return fitted(estimate_text(report, words, style), style) + launch_text(report.launch, style);
  }
  EXPECTS(!"unknown format");
  return {};
}

}  // namespace headroom
