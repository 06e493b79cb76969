// Collectives that run in as many pieces as their group has ranks: what tensor-parallel ranks overlap, and a ring beside the
// attention to what came round before. A product starts on, or ends with, a piece that has no transfer beside it.
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"

namespace headroom {

struct Pieces {
  Seconds time;
  std::int64_t ranks = 1;
  void add(Seconds more, std::int64_t in_group) {
    time += more;
    ranks = in_group;
  }
  [[nodiscard]] Seconds beside(Seconds products) const {
    return products * (static_cast<double>(ranks - 1) / static_cast<double>(ranks));
  }
};

}  // namespace headroom
