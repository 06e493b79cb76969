// What keeps a space from having any legal layout: sizes that do not divide what they must. Where nothing fits, it is said
// instead, since no batch and no sequence mends it.
#pragma once

#include <optional>

#include "headroom/core/error.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// The first of these that no choice of the space meets, as the problem of a field: y divides the experts, t the devices, t p
// does, t p d makes them, some b d divides the batch.
std::optional<Problem> obstacle(const Request& base, const Space& space);

// The rule of one field that every layout breaks, as the first breaks it; none where one is legal, or breaks those of another.
std::optional<Problem> broken_rule(const Request& base, const Space& space);

// The largest TP x PP of a legal layout, which is as many devices as can share a model; 0 where there is none.
std::int64_t most_model_parallel(const Request& base, const Space& space);

}  // namespace headroom
