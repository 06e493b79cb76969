// Divisions of the GPUs among the parallel axes.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/search/space.hpp"

namespace headroom {

using Division = std::array<std::int64_t, 4>;  // t, c, p, d

inline Division division_of(const Strategy& strategy) {
  return {strategy.tensor_parallel, strategy.context_parallel, strategy.pipeline_parallel,
          strategy.data_parallel};
}

// Returns the part of a space that has this division.
inline Space part_of(Space space, const Division& division) {
  space.tensor_parallel = {.only = {division[0]}};
  space.context_parallel = {.only = {division[1]}};
  space.pipeline_parallel = {.only = {division[2]}};
  space.data_parallel = {.only = {division[3]}};
  return space;
}

}  // namespace headroom
