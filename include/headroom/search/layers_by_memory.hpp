// Places layers by memory. The layouts of a space place layers by time. If a rank then exceeds its memory,
// some of its layers move to ranks that have room. The placement that fits with the request's margin and
// takes the least time is tried too; embedding and output layer count.
//
// Only pipelines with one virtual stage a rank and models with one kind of layer are placed by memory. A rank
// then holds no more than its own layers need. The most layers that it may hold is found for each rank alone,
// so whether any placement fits is known exactly. Layers are placed to make the busiest rank least busy. On
// up to four ranks they are then moved one at a time while that shortens the pipeline. A property test
// compares with every placement: the time is at most 3% above the least, and mostly equal.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "headroom/plan/layout.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

class LayersByMemory {
 public:
  // Keeps a reference to the request.
  LayersByMemory(const Request& base, const Space& space);

  // Returns whether strategies of this layout that do not fit with the margin are placed by memory: the
  // layout must be the one balanced by time for its ranks, and placement possible as described above.
  bool applies(const Strategy& layout);

  // Returns the strategy with its layers placed by memory, if any placement fits with the margin. Expects the
  // strategy's layout, to which placement applies(), and no window.
  std::optional<Strategy> fitting(const Layout& layout, const Strategy& strategy) const;

  // Returns false if no placement can fit, because state and layer inputs alone are too much. Expects what
  // fitting() expects.
  [[nodiscard]] bool may_fit(const Layout& layout, const Strategy& strategy) const;

  // Returns the strategies that placement makes fit, each with its index in the list (`of`). Expects the
  // strategies of a layout and one data sharding that do not fit as they are, in the order of
  // recomputations(). For full recomputation of the first K layers, K is tried from the largest down until
  // one does not fit, since less recomputation needs no less memory.
  struct Placed {
    std::size_t of = 0;
    Strategy strategy;
  };
  std::vector<Placed> fitting(const Layout& layout, std::span<const Strategy> strategies) const;

 private:
  const Request& base_;
  bool possible_ = false;
  EndLoads ends_;
  std::map<std::int64_t, std::vector<std::int64_t>> balanced_;  // by number of ranks
};

}  // namespace headroom
