// Memory against time over what a layout recomputes: the question of `headroom frontier`, and everything that its
// answer shows. search/frontier.hpp says which families of recomputation are searched.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "headroom/search/frontier_batches.hpp"

namespace headroom {

struct FrontierQuestion {
  Request request;             // its own recomputation plays no part
  std::vector<Bytes> budgets;  // of memory for each device; none: all that the system has
  bool window = false;         // also where ranks exempt as many microbatches as memory allows
};

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

struct FrontierReply {
  Request request;
  ModelLayers layers;                 // the kinds of layers first
  std::vector<LayerFront> fronts;     // of each kind, the sets that no other one beats
  std::size_t combinations = 0;       // of these, that are tried in all layers
  std::vector<NamedPolicy> policies;  // none, selective, full
  std::vector<FrontierRow> points;
  std::vector<std::size_t> exchanges;   // of the points, those of best_exchanges()
  std::vector<FrontierBudget> budgets;  // as they were asked for
  std::vector<BatchChoice> batches;     // within the first budget
  std::optional<std::size_t> fastest;   // of these, the one that is fastest with all ranks alike
};

// Throws InputError where the layout is not legal or the system's performance not known.
FrontierReply answer(const FrontierQuestion& question);

// Whether anything fits one of the budgets.
bool fits(const FrontierReply& reply);

// The points with the best exchange of time for memory: the lower convex hull of the front's, those that recompute in
// all layers only.
std::vector<std::size_t> best_exchanges(const std::vector<FrontierRow>& points);

}  // namespace headroom
