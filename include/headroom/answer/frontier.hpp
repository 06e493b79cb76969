// Question of `headroom frontier`: memory against time for what a layout can recompute, with everything that
// the answer shows. search/frontier.hpp describes the families of recomputation that are searched.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "headroom/search/frontier_batches.hpp"

namespace headroom {

struct FrontierQuestion {
  Request request;             // its own recomputation is ignored
  std::vector<Bytes> budgets;  // of memory per GPU; empty: all memory of the system's GPU
  bool window = false;         // also let ranks exempt as many microbatches as memory allows
};

// Least time within a memory budget per GPU.
struct FrontierBudget {
  Bytes budget;
  std::optional<FrontierPoint> uniform;
  std::optional<StagedPoint> staged;
  std::optional<FrontierPoint> windowed = {};  // if asked for
};

// A named policy, and the least time within the memory that it takes.
struct NamedPolicy {
  FrontierPoint point;
  FrontierBudget best;
};

// A point of the uniform front, and the least time if every rank has its own mix within the same memory.
struct FrontierRow {
  FrontierPoint point;
  StagedPoint staged;
};

struct FrontierReply {
  Request request;
  ModelLayers layers;                 // the kinds of transformer layers first
  std::vector<LayerFront> fronts;     // undominated sets of each kind
  std::size_t combinations = 0;       // combinations of these sets that are tried in all layers
  std::vector<NamedPolicy> policies;  // none, selective, full
  std::vector<FrontierRow> points;
  std::vector<std::size_t> exchanges;   // indices of the points of best_exchanges()
  std::vector<FrontierBudget> budgets;  // in the order of the question
  std::vector<BatchChoice> batches;     // within the first budget
  std::optional<std::size_t> fastest;   // index of the fastest batch choice with all ranks alike
  bool stopped = false;  // the watch ended the search: the front is that of the sets it came to
};

// Computes the frontier. Throws InputError if the layout is not legal or the system's performance is not
// known.
FrontierReply answer(const FrontierQuestion& question, const Watch& watch = {});

// Returns whether anything fits one of the budgets.
bool fits(const FrontierReply& reply);

// Returns the indices of the points that trade time for memory best: the lower convex hull of the points that
// recompute in all layers.
std::vector<std::size_t> best_exchanges(const std::vector<FrontierRow>& points);

}  // namespace headroom
