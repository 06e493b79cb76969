#include "headroom/report/snapshot.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/counts.hpp"
#include "report/json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t shown_groups = 20;  // of a table, as many as fit a screen

// What the prediction says of one group of blocks.
struct Explained {
  std::vector<std::string> names;
  std::int64_t count = 0;
};

std::vector<Explained> explained_groups(const SnapshotReply& reply) {
  std::vector<Explained> groups(reply.use.groups.size());
  if (!reply.match) return groups;
  for (const MatchedBlocks& blocks : reply.match->blocks) {
    Explained& group = groups[blocks.group];
    group.count += blocks.count;
    group.names.push_back(blocks.name);
  }
  return groups;
}

OrderedJson to_json(const BlockGroup& group) {
  OrderedJson json{{"each_bytes", group.each}, {"count", group.count}, {"life", name_of(group.life)}};
  if (!group.place.empty()) json["place"] = group.place;
  return json;
}

std::string snapshot_json(const SnapshotReply& reply) {
  const SnapshotUse& use = reply.use;
  OrderedJson json{{"format", 2},
                   {"device", use.device},
                   {"devices", use.devices},
                   {"segments", use.segments},
                   {"reserved_bytes", number(use.reserved)},
                   {"allocated_bytes", number(use.allocated)},
                   {"awaiting_free_bytes", number(use.awaiting)},
                   {"free_bytes", number(use.reserved - use.allocated - use.awaiting)},
                   {"largest_free_bytes", number(use.largest_free)},
                   {"expandable_segments", use.settings.expandable},
                   {"events", use.events},
                   {"out_of_memory_events", use.failures},
                   {"peak",
                    {{"event", use.peak_event},
                     {"allocated_bytes", number(use.peak)},
                     {"reserved_bytes", number(use.reserved_at_peak)}}}};
  OrderedJson& blocks = json["blocks"] = OrderedJson::array();
  const std::vector<Explained> explained = explained_groups(reply);
  for (std::size_t i = 0; i < use.groups.size(); ++i) {
    OrderedJson& group = blocks.emplace_back(to_json(use.groups[i]));
    if (!reply.match) continue;
    group["matched_count"] = explained[i].count;
    group["matches"] = explained[i].names;
  }
  if (!reply.match) return to_text(json);
  const SnapshotMatch& match = *reply.match;
  OrderedJson missing = OrderedJson::array();
  for (const BlockGroup& group : match.missing) missing.push_back(to_json(group));
  json["account"] = {{"pipeline_rank", match.rank},
                     {"peak_bytes", number(match.predicted_peak)},
                     {"reserved_bytes", number(match.predicted_reserved)},
                     {"matched_bytes", number(match.matched)},
                     {"unmatched_bytes", number(use.peak - match.matched)},
                     {"missing", std::move(missing)}};
  return to_text(json);
}

std::string explanation(const Explained& explained, const BlockGroup& group) {
  if (explained.count == 0) return "unmatched";
  std::string text = explained.names.front();
  if (explained.names.size() > 1) text += fmt::format(" and {} more", explained.names.size() - 1);
  if (explained.count < group.count) text += fmt::format(" ({} of {})", explained.count, group.count);
  return text;
}

Table groups_table(const SnapshotReply& reply, std::size_t most) {
  Table table{.columns = {{"blocks at the peak", Align::left},
                          {"life", Align::left},
                          {"number"},
                          {"MiB each"},
                          {"GiB"},
                          {"predicted as", Align::left}}};
  const std::vector<Explained> explained = explained_groups(reply);
  for (std::size_t i = 0; i < std::min(most, reply.use.groups.size()); ++i) {
    const BlockGroup& group = reply.use.groups[i];
    table.rows.push_back({group.place.empty() ? "not recorded" : group.place,
                          std::string(name_of(group.life)), std::to_string(group.count),
                          fmt::format("{:.2f}", real(group.each) / mebi), in_gib(total(group)),
                          reply.match ? explanation(explained[i], group) : ""});
  }
  return table;
}

std::string segments_text(const SnapshotUse& use) {
  const Bytes free = use.reserved - use.allocated - use.awaiting;
  std::string text =
      fmt::format("{}GPU {}{} reserves {} in {} segment{}; tensors take {}.\n",
                  use.events > 0 ? "At the end of the trace, " : "", use.device,
                  use.devices > 1 ? fmt::format(" of {} in the snapshot", use.devices) : "",
                  human(use.reserved), use.segments, use.segments == 1 ? "" : "s", human(use.allocated));
  if (use.awaiting > Bytes(0))
    text += fmt::format("Freed, but still in use by another stream: {}.\n", human(use.awaiting));
  text += fmt::format("Free in the segments: {} ({}), the largest block {}.\n", human(free),
                      percent(use.reserved > Bytes(0) ? free / use.reserved : 0), human(use.largest_free));
  if (use.events == 0) return text + "The snapshot has no trace: what it holds now counts as the peak.\n";
  text += fmt::format("Peak of the trace, after event {} of {}: {} in tensors, {} reserved.\n",
                      use.peak_event, use.events, human(use.peak), human(use.reserved_at_peak));
  if (use.failures > 0) text += fmt::format("Allocations that failed (out of memory): {}.\n", use.failures);
  return text;
}

std::string match_text(const SnapshotReply& reply) {
  const SnapshotMatch& match = *reply.match;
  std::string text = fmt::format("Prediction for PP rank {}: peak {} in tensors, {} reserved.\n", match.rank,
                                 human(match.predicted_peak), human(match.predicted_reserved));
  const Bytes unmatched = reply.use.peak - match.matched;
  text += unmatched <= Bytes(0)
              ? "All of the snapshot's peak is predicted.\n"
              : fmt::format("Predicted: {} of the snapshot's peak ({}). Not predicted: {}.\n",
                            human(match.matched), percent(match.matched / reply.use.peak), human(unmatched));
  Bytes missing;
  for (const BlockGroup& group : match.missing) missing += total(group);
  if (match.missing.empty()) return text;
  const auto largest =
      std::max_element(match.missing.begin(), match.missing.end(),
                       [](const BlockGroup& x, const BlockGroup& y) { return total(x) < total(y); });
  return text + fmt::format("Predicted, but not in the snapshot: {}, mostly {} x {} of {}.\n", human(missing),
                            largest->count, human(Bytes(real(largest->each))), largest->place);
}

}  // namespace

std::string render(const SnapshotReply& reply, const Style& style) {
  if (style.format == Format::json) return snapshot_json(reply);
  const std::size_t groups = reply.use.groups.size();
  const bool all = style.verbose || style.format == Format::csv;
  const Table table = groups_table(reply, all ? groups : shown_groups);
  if (style.format == Format::csv) return to_csv(table);
  std::string text = segments_text(reply.use);
  if (reply.match) text += match_text(reply);
  if (style.format != Format::markdown) text = in_lines(text, style.columns);
  if (table.rows.empty()) return text;
  text += "\n" + render_table(table, style);
  if (table.rows.size() < groups)
    text += fmt::format("Hidden: {} smaller groups (show them: -v)\n", groups - table.rows.size());
  return text;
}

}  // namespace headroom
