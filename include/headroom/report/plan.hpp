// The report of `headroom plan`: the best strategies of a space, the Pareto front, and what was rejected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/plan/capacity.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/report/table.hpp"
#include "headroom/search/limits.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

// A strategy that was asked about: what is wrong with it.
struct Inquiry {
  std::string flags;              // as they were given
  std::vector<Problem> problems;  // the rules that it breaks; then there is no evaluation
  std::optional<Evaluation> evaluation;
  std::vector<Alternative> neighbours;  // the nearest that are legal and fit, where it is not or does not
};

struct PlanReport {
  Request base;  // its strategy lends what the space does not set
  Space space;
  std::vector<std::int64_t> device_counts;  // where there are several, `space` is searched on each
  std::optional<Found> found;               // the inverse question that base and space are the answer to
  Training training;
  SearchResult result;
  std::size_t shown = 10;  // plans in the table
  std::string estimate;    // the command that looks closer, without the strategy's flags
  std::optional<BlockedChange> blocked;
  std::vector<Found> relief;  // where nothing fits
  std::optional<Inquiry> inquiry;
  std::optional<double> elapsed_seconds;
};

// Whether an inverse question was asked and nothing meets it: what is planned then only comes nearest.
inline bool unanswered(const PlanReport& report) {
  return report.found && !report.found->value && !report.found->micro_batch;
}

// JSON follows schemas/plan.schema.json; CSV holds the best plans, in base units.
std::string render(const PlanReport& report, Format format);

}  // namespace headroom
