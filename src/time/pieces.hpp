// Collectives in as many pieces as their group has ranks: those that tensor-parallel ranks overlap with
// GEMMs, and a ring beside attention to the part received before. The first or last piece has no overlap.
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
