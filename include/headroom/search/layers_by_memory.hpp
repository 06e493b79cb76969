// Layers placed by memory. The layouts of a space place layers by time; where a rank then holds more than it may, some
// of its layers go to ranks that have room, and the placement that fits with the margin of the request and takes least time
// is tried too, embedding and head counted.
//
// Only pipelines of one virtual stage a rank and models whose layers are of one kind are placed so. A rank then holds no
// more than what its own layers take, so that the most that it may hold is found for each rank alone, and whether any
// placement fits is known exactly. Layers are laid so that the busiest rank is least busy; on up to four ranks they are then
// moved one at a time while that shortens the pipeline. A property test compares with every placement: time is at
// most 3% off the least there, mostly none.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "headroom/plan/composer.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

class LayersByMemory {
 public:
  // Keeps a reference to the request.
  LayersByMemory(const Request& base, const Space& space);

  // Whether strategies of a layout that do not fit with the margin are placed by memory: it is the one of its ranks that is
  // balanced by time, and placing is possible as said above.
  bool applies(const Strategy& layout);

  // The strategy with its layers placed by memory, if any placement fits with the margin. Expects that this applies to its
  // layout, which is the one last set, and that the strategy has no window.
  std::optional<Strategy> fitting(Composer& composer, const Strategy& strategy) const;

  // Those of a layout's strategies that placing makes fit, by their places in the list. Expects the strategies that do not
  // fit as they are, in the order of recomputations(): of full recomputation of the first K layers, K is tried
  // from the largest down until one does not fit, since less recomputation needs no less memory.
  struct Placed {
    std::size_t of = 0;
    Strategy strategy;
  };
  std::vector<Placed> fitting(Composer& composer, std::span<const Strategy> strategies) const;

 private:
  const Request& base_;
  bool possible_ = false;
  EndLoads ends_;
  std::map<std::int64_t, std::vector<std::int64_t>> balanced_;  // by ranks
};

}  // namespace headroom
