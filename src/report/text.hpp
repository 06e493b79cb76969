// Text of numbers and strategies in reports.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/dtype.hpp"
#include "headroom/core/units.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// In the unit that keeps three or more digits before it grows: "61.23 GiB", "512.0 MiB".
inline std::string human(Bytes bytes) {
  const double count = bytes.count() < 0 ? -bytes.count() : bytes.count();
  const char* sign = bytes.count() < 0 ? "-" : "";
  if (count >= gibi) return fmt::format("{}{:.2f} GiB", sign, count / gibi);
  if (count >= mebi) return fmt::format("{}{:.2f} MiB", sign, count / mebi);
  if (count >= kibi) return fmt::format("{}{:.2f} KiB", sign, count / kibi);
  return fmt::format("{}{:.0f} B", sign, count);
}

// Returns a number in GiB, for tables whose header names the unit.
inline std::string in_gib(Bytes bytes) { return fmt::format("{:.2f}", bytes.count() / gibi); }

// "9.5%", of a part of one.
inline std::string percent(double part, int digits = 1) {
  return fmt::format("{:.{}f}%", 100 * part, digits);
}
inline std::string signed_percent(double part, int digits = 1) {
  return fmt::format("{:+.{}f}%", 100 * part, digits);
}

// A cell with both ends of an interval.
inline std::string range_cell(std::string_view low, std::string_view high) {
  return fmt::format("{} to {}", low, high);
}

// A whole number of base units.
inline std::string whole(double count) { return fmt::format("{:.0f}", count); }

// Returns the type of a dense peak, as data sheets write it: "BF16", "FP8". Peaks of FP16 and BF16 are alike,
// and `half` is either.
inline std::string peak_name(Dtype dtype) {
  std::string name(name_of(dtype == Dtype::half ? Dtype::bf16 : dtype));
  name.resize(std::min(name.size(), name.find('_')));
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

// Seconds with four digits: "13.75 s", "7.701 ms".
inline std::string human(Seconds seconds) {
  const double count = seconds.count();
  if (count >= 1) return fmt::format("{:#.4g} s", count);
  if (count >= 1e-3) return fmt::format("{:#.4g} ms", count * 1e3);
  return fmt::format("{:#.4g} us", count * 1e6);
}

// Counts of parameters and tokens as the field writes them: "15.0T", "174.6B", "124M".
inline std::string human_count(double count) {
  if (count >= 2e12) return fmt::format("{:.1f}T", count / 1e12);
  if (count >= 1e9) return fmt::format("{:.1f}B", count / 1e9);
  return fmt::format("{:.0f}M", count / 1e6);
}

// "46.7B parameters, 12.9B active, 12.7B of them without the embedding".
std::string parameters_text(const ParameterCounts& counts);

// Microbatches in flight on a rank, as fractions if the rank holds several virtual stages.
double in_flight(const Plan& plan, const RankMemory& rank);

// One line: parallel sizes, microbatch and batch.
std::string layout_line(const Strategy& strategy, const Workload& workload);

// Returns a line on what passes gather and reduce of sharded weights and gradients, with the exposed part;
// empty if they do neither.
std::string exchanges_line(const Plan& plan);

// Return whether two plans run on different systems or training stacks, and how their times differ:
// "torchtitan-2025 takes 21.0% longer than nemo-2025: 2.1 s more for exposed DP communication; 0.5 s less for
// GEMMs". The text includes what each exchanges.
bool across(const Plan& before, const Plan& after);
std::string across_text(const Plan& before, const Plan& after);

// Returns one line with the choices that trade memory for time, and the dtype in which the stack sums
// gradients under such a strategy.
std::string policy_line(const Strategy& strategy, const Software& software);

// Returns the changes of an alternative, each as flags.
std::vector<std::string> change_texts(const Alternative& alternative);
std::string changes_text(const Alternative& alternative);

// Returns the name of a part in reports: "GEMMs" for gemm, "launch overhead" for launch_overhead.
std::string words(std::string_view name);

// Returns the parts of an iteration in which one plan is furthest behind another, largest first: "5.1 s more
// for bubble". Expects plans whose time is known.
std::string more_time(const Plan& best, const Plan& other, std::size_t most, const char* word = "more");

// Returns what other stacks do if a plan does not fit on a stack that shards no weights; empty for a stack
// that shards them.
std::string more_sharding(const std::vector<std::string>& stacks);

// Returns "2, 3 and 5".
std::string listed(const std::vector<std::string>& parts);

// Renders a table in one of the formats that print tables.
std::string render_table(const Table& table, const Style& style);

// Returns a report as it is printed: lines for readers fit the width of the screen. Markdown is left to its
// viewer.
std::string fitted(const std::string& text, const Style& style);

// Returns a verdict, or a text that states it, in the verdict's colour.
std::string painted(const std::string& text, Verdict verdict, const Style& style);
std::string painted(const std::string& text, bool good, const Style& style);

// Returns the column heading of a field: "TP" for tensor_parallel; without a short name, the field itself.
std::string heading_of(std::string_view field);

}  // namespace headroom
