#include "headroom/report/picture.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "headroom/core/error.hpp"
#include "headroom/core/units.hpp"
#include "report/chart.hpp"
#include "report/reply.hpp"
#include "report/sweep_plots.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

using chart::Bar;
using chart::Chart;
using chart::Part;

std::string gib_label(double bytes) { return fmt::format("{:.2f} GiB", bytes / gibi); }
std::string seconds_label(double seconds) { return human(Seconds(seconds)); }
double gibibytes_of(double bytes) { return bytes / gibi; }

// Parts of a rank's memory in the order of its bar; what is left of its total are buffers.
struct RankPart {
  const char* member;
  const char* name;
  std::size_t colour;
};
constexpr std::array<RankPart, 5> rank_parts{{{"weights_bytes", "weights", 2},
                                              {"gradients_bytes", "gradients", 0},
                                              {"optimizer_bytes", "optimizer", 1},
                                              {"activation_bytes", "activations", 3},
                                              {"non_torch_bytes", "non-torch memory", 11}}};

Bar bar_of_rank(const OrderedJson& rank) {
  const double total = number_in(rank, {"total_bytes"}).value_or(0);
  Bar bar{.label = fmt::format("PP rank {}", number_in(rank, {"pipeline_rank"}).value_or(0)),
          .amount = gib_label(total)};
  double left = total;
  for (const auto& [member, name, colour] : rank_parts) {
    const double value = number_in(rank, {member}).value_or(0);
    if (value <= 0) continue;
    bar.parts.push_back({name, value, colour});
    left -= value;
  }
  if (left > 0.5) bar.parts.push_back({"buffers", left, 12});
  return bar;
}

void add_memory(const OrderedJson& account, std::vector<Chart>& charts) {
  const OrderedJson& ranks = list_in(account, {"memory", "ranks"});
  if (ranks.empty()) return;
  chart::Bars bars{.title = "Memory of each pipeline rank at its peak",
                   .text = gib_label,
                   .limit = number_in(account, {"memory", "capacity_bytes"}),
                   .limit_name = "capacity",
                   .mark_name = "held by PyTorch, with non-torch memory"};
  const auto held_rank = number_in(account, {"memory", "allocator", "rank"});
  const auto reserved = number_in(account, {"memory", "allocator", "reserved_bytes"});
  for (const OrderedJson& rank : ranks) {
    bars.bars.push_back(bar_of_rank(rank));
    if (held_rank && reserved && number_in(rank, {"pipeline_rank"}) == held_rank)
      bars.bars.back().mark = *reserved + number_in(rank, {"non_torch_bytes"}).value_or(0);
  }
  charts.push_back(drawn(bars));
}

// "tensor_communication_seconds" as "tensor communication".
std::string name_of_term(std::string_view member) {
  for (const std::string_view unit : {"_seconds", "_bytes"})
    if (member.ends_with(unit)) member.remove_suffix(unit.size());
  return words(member);
}

void add_time(const OrderedJson& account, std::vector<Chart>& charts) {
  const OrderedJson* const breakdown = member_of(account, {"time", "breakdown"});
  if (breakdown == nullptr || !breakdown->is_object()) return;
  std::vector<Part> parts;
  for (const auto& [member, value] : breakdown->items()) {
    const double seconds = number_of(value).value_or(0);
    if (seconds > 0) parts.push_back({name_of_term(member), seconds, 0});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& x, const Part& y) { return x.value > y.value; });
  chart::Bars bars{.title = "Where the iteration goes, on the busiest rank", .text = seconds_label};
  const double whole = number_in(account, {"time", "iteration_seconds"}).value_or(0);
  for (const Part& part : parts) {
    const std::string share = whole > 0 ? fmt::format(" ({})", percent(part.value / whole)) : "";
    bars.bars.push_back({.label = part.name, .parts = {part}, .amount = seconds_label(part.value) + share});
  }
  for (Bar& bar : bars.bars) bar.parts.front().name = "time";
  if (!bars.bars.empty()) charts.push_back(drawn(bars));
}

std::string layout_text(const OrderedJson& strategy) {
  constexpr std::array<std::pair<const char*, const char*>, 8> sizes{{{"tensor_parallel", "TP"},
                                                                      {"pipeline_parallel", "PP"},
                                                                      {"virtual_pipeline", "VP"},
                                                                      {"context_parallel", "CP"},
                                                                      {"expert_parallel", "EP"},
                                                                      {"expert_tensor_parallel", "ETP"},
                                                                      {"data_parallel", "DP"},
                                                                      {"micro_batch", "MBS"}}};
  std::string text;
  for (const auto& [member, letters] : sizes) {
    const double size = number_in(strategy, {member}).value_or(1);
    if (size > 1 || member == std::string_view("micro_batch"))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", letters, size);
  }
  return text;
}

// "fits, 12.3 s an iteration, MFU 45.6%; TP 8, PP 4, MBS 1"
std::string line_of_account(const OrderedJson& account) {
  std::string line = words(text_in(account, {"memory", "verdict"}));
  if (const auto iteration = number_in(account, {"time", "iteration_seconds"}))
    line += fmt::format(", {} an iteration", seconds_label(*iteration));
  if (const auto mfu = number_in(account, {"throughput", "mfu"}))
    line += fmt::format(", MFU {}", percent(*mfu));
  const OrderedJson* const strategy = member_of(account, {"strategy"});
  if (strategy == nullptr) return line;
  if (const auto devices = number_in(*strategy, {"devices"})) line += fmt::format("; {} GPUs", *devices);
  return line + ", " + layout_text(*strategy);
}

chart::Point point_of(const OrderedJson& point, std::string note) {
  return {.x = gibibytes_of(number_in(point, {"peak_bytes"}).value_or(0)),
          .y = number_in(point, {"iteration_seconds"}).value_or(0),
          .note = std::move(note)};
}

std::string point_note(const OrderedJson& point, const std::string& what) {
  return fmt::format("{}, {}\n{}", gib_label(number_in(point, {"peak_bytes"}).value_or(0)),
                     seconds_label(number_in(point, {"iteration_seconds"}).value_or(0)), what);
}

// Smallest first, as their line is drawn.
void sort_by_memory(std::vector<chart::Point>& points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const chart::Point& a, const chart::Point& b) { return a.x < b.x; });
}

void add_pareto(const OrderedJson& reply, const OrderedJson& best, std::vector<Chart>& charts) {
  chart::Series front{.name = "Pareto front", .line = chart::Line::steps};
  for (const OrderedJson& point : list_in(reply, {"pareto"}))
    if (number_in(point, {"iteration_seconds"}))
      front.points.push_back(point_of(point, point_note(point, text_in(point, {"command"}))));
  if (front.points.size() < 2) return;
  sort_by_memory(front.points);
  chart::Plot plot{.title = "Strategies of which none is both faster and smaller",
                   .x_title = "peak memory of a GPU, GiB",
                   .y_title = "seconds an iteration",
                   .series = {std::move(front)},
                   .rule_name = "capacity"};
  if (const auto iteration = number_in(best, {"time", "iteration_seconds"})) {
    const double peak = number_in(best, {"memory", "peak_bytes"}).value_or(0);
    plot.series.push_back({.name = "best plan",
                           .points = {{gibibytes_of(peak), *iteration, "best plan"}},
                           .colour = 3,
                           .line = chart::Line::none,
                           .radius = 5,
                           .labelled = true});
  }
  if (const auto capacity = number_in(best, {"memory", "capacity_bytes"}))
    plot.rules.push_back(gibibytes_of(*capacity));
  charts.push_back(drawn(plot));
}

// Bars of both sides of a comparison: the terms without their sum, which is the last.
void add_sides(const OrderedJson& reply, const char* section, const std::string& title,
               const chart::NumberText& text, std::vector<Chart>& charts) {
  const OrderedJson* const terms = member_of(reply, {section});
  if (terms == nullptr || !terms->is_object() || terms->size() < 2) return;
  chart::Bars bars{.title = title, .text = text};
  for (const char* side : {"before", "after"}) {
    Bar bar{.label = side};
    std::size_t colour = 0;  // of the terms that one side has
    for (const auto& [member, term] : terms->items()) {
      const double value = number_in(term, {side}).value_or(0);
      const bool has =
          number_in(term, {"before"}).value_or(0) > 0 || number_in(term, {"after"}).value_or(0) > 0;
      if (member == std::prev(terms->end()).key()) {
        bar.amount = text(value);
      } else if (value > 0) {
        bar.parts.push_back({name_of_term(member), value, colour});
      }
      if (has) ++colour;
    }
    bars.bars.push_back(std::move(bar));
  }
  charts.push_back(drawn(bars));
}

void add_frontier(const OrderedJson& reply, std::vector<Chart>& charts) {
  chart::Series alike{.name = "all ranks alike", .line = chart::Line::steps, .radius = 2};
  chart::Series staged{.name = "each rank for itself", .colour = 3, .line = chart::Line::steps, .radius = 0};
  for (const OrderedJson& point : list_in(reply, {"points"})) {
    alike.points.push_back(point_of(point, point_note(point, text_in(point, {"flags"}))));
    const auto seconds = number_in(point, {"staged_seconds"});
    if (seconds) staged.points.push_back({alike.points.back().x, *seconds, ""});
  }
  chart::Series policies{
      .name = "usual policies", .colour = 6, .line = chart::Line::none, .radius = 4.5, .labelled = true};
  for (const OrderedJson& point : list_in(reply, {"policies"}))
    policies.points.push_back(point_of(point, text_in(point, {"policy"})));
  if (alike.points.empty()) return;
  sort_by_memory(alike.points);
  sort_by_memory(staged.points);
  chart::Plot plot{.title = "What to recompute: time against memory",
                   .x_title = "peak memory of a GPU, GiB",
                   .y_title = "seconds an iteration",
                   .series = {std::move(alike), std::move(staged), std::move(policies)},
                   .rule_name = "budget"};
  for (const OrderedJson& budget : list_in(reply, {"budgets"}))
    if (const auto bytes = number_in(budget, {"budget_bytes"})) plot.rules.push_back(gibibytes_of(*bytes));
  charts.push_back(drawn(plot));
}

std::string line_of(const ReadReply& reply) {
  const OrderedJson& json = reply.json;
  switch (reply.kind) {
    case ReplyKind::estimate: return line_of_account(json);
    case ReplyKind::plan: {
      const OrderedJson& plans = list_in(json, {"plans"});
      return plans.empty() ? "nothing fits" : "the best plan " + line_of_account(plans.front());
    }
    case ReplyKind::compare: return "after: " + text_in(json, {"change"});
    case ReplyKind::frontier: {
      const OrderedJson* const strategy = member_of(json, {"strategy"});
      return strategy == nullptr ? "" : layout_text(*strategy);
    }
    case ReplyKind::sweep: return fmt::format("{} points", list_in(json, {"rows"}).size());
  }
  EXPECTS(!"unknown kind of reply");
  return {};
}

std::vector<Chart> charts_of(const ReadReply& reply) {
  std::vector<Chart> charts;
  const OrderedJson& json = reply.json;
  switch (reply.kind) {
    case ReplyKind::estimate:
      add_memory(json, charts);
      add_time(json, charts);
      break;
    case ReplyKind::plan:
      if (const OrderedJson& plans = list_in(json, {"plans"}); !plans.empty()) {
        add_memory(plans.front(), charts);
        add_time(plans.front(), charts);
        add_pareto(json, plans.front(), charts);
      }
      break;
    case ReplyKind::compare:
      add_sides(json, "time", "Time of the busiest rank", seconds_label, charts);
      add_sides(json, "memory", "Memory of the rank with the peak", gib_label, charts);
      break;
    case ReplyKind::frontier: add_frontier(json, charts); break;
    case ReplyKind::sweep: add_sweep_plots(json, charts); break;
  }
  return charts;
}

}  // namespace

std::string picture(std::string_view reply, const std::string& name) {
  const ReadReply read = read_reply(reply, name);
  const std::vector<Chart> charts = charts_of(read);
  if (charts.empty()) throw InputError(name, "holds nothing to draw");
  return chart::document(read.title, line_of(read), charts);
}

}  // namespace headroom
