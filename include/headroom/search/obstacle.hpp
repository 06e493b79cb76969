// Rules that keep a space from having any legal layout: sizes that do not divide what they must. The rule is
// reported instead of alternatives, since no batch and no sequence makes anything fit.
#pragma once

#include <optional>

#include "headroom/core/error.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// Returns the first of these conditions that no choice of the space meets, as the problem of a field: y
// divides the experts; t divides the GPUs; t p divides the GPUs; t p d equals the GPUs; b d divides the batch
// for some b.
std::optional<Problem> obstacle(const Request& base, const Space& space);

// Returns a problem of the field whose rules are broken most often: the first one found. Counts each layout by
// the first rule that it breaks. Returns nothing if a layout is legal or the space has none.
std::optional<Problem> broken_rule(const Request& base, const Space& space);

// Returns the largest TP x PP of a legal layout (the most GPUs that can share a model), or 0 if there is
// none.
std::int64_t most_model_parallel(const Request& base, const Space& space);

}  // namespace headroom
