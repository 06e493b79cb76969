// The report of `headroom frontier`: memory against time over what is recomputed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/report/table.hpp"
#include "headroom/search/frontier_batches.hpp"

namespace headroom {

// The least time within a budget of memory for each device.
struct FrontierBudget {
  Bytes budget;
  std::optional<FrontierPoint> uniform;
  std::optional<StagedPoint> staged;
  std::optional<FrontierPoint> windowed = {};  // where it was asked for
};

// A policy with a name, and the least time within the memory that it takes.
struct NamedPolicy {
  FrontierPoint point;
  FrontierBudget best;
};

// A point of the uniform front, and the least time where every rank has its own mix within the same memory.
struct FrontierRow {
  FrontierPoint point;
  StagedPoint staged;
};

struct FrontierReport {
  Request request;
  std::size_t ops = 0;                     // of a layer
  std::vector<LayerChoice> layer_choices;  // the sets that no other one beats
  std::vector<NamedPolicy> policies;       // none, selective, full
  std::vector<FrontierRow> points;
  std::vector<FrontierBudget> budgets;
  std::vector<BatchChoice> batches;  // within the first budget
  bool all = false;                  // every point in the table
};

// The points with the best exchange of time for memory: the lower convex hull of the front's, those that replay in
// all layers only.
std::vector<std::size_t> best_exchanges(const std::vector<FrontierRow>& points);

// JSON follows schemas/frontier.schema.json; CSV holds the points, in base units.
std::string render(const FrontierReport& report, Format format);

}  // namespace headroom
