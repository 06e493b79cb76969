// Layers of a virtual stage that are saved alike under a recomputation.
#pragma once

#include <algorithm>

#include "headroom/parallel/stage_places.hpp"

namespace headroom {

// Layers that are saved alike one by one, or the members of a checkpoint within a run of layers.
struct KeptLayers {
  std::size_t kind = 0;
  std::int64_t count = 0;    // checkpoints
  std::int64_t members = 1;  // layers of each checkpoint
  bool recomputed = false;
  bool joins = false;  // continues the checkpoint before
};

inline bool shares_checkpoints(const Recomputation& recompute) {
  return recompute.policy == RecomputePolicy::full && recompute.method == RecomputeMethod::uniform;
}

// Visits checkpoints of K consecutive layers of any kinds.
template <class Visit>
void visit_shared_checkpoints(const StagePlace& place, std::int64_t k, Visit visit) {
  std::int64_t open = 0;  // members of a checkpoint that is not full yet
  for (const LayerRun& run : place.runs) {
    for (std::int64_t left = run.count; left > 0;) {
      const std::int64_t full = open == 0 ? left / k : 0;
      const std::int64_t members = full > 0 ? k : std::min(k - open, left);
      const std::int64_t count = std::max<std::int64_t>(full, 1);
      visit(KeptLayers{run.kind, count, members, true, open > 0});
      left -= count * members;
      open = full > 0 ? 0 : (open + members) % k;
    }
  }
}

// Visits the saved layers of a stage, in the order of the model.
template <class Visit>
void visit_kept_layers(const StagePlace& place, const Recomputation& recompute, Visit visit) {
  if (shares_checkpoints(recompute)) {
    visit_shared_checkpoints(place, recompute.layers == 0 ? place.layers : recompute.layers, visit);
    return;
  }
  std::int64_t left = recomputed_layers(place.layers, recompute);
  for (const LayerRun& run : place.runs) {
    const std::int64_t first = std::min(run.count, left);
    if (first > 0) visit(KeptLayers{run.kind, first, 1, true, false});
    if (run.count > first) visit(KeptLayers{run.kind, run.count - first, 1, false, false});
    left -= first;
  }
}

}  // namespace headroom
