// Recomputation choices for a model with several kinds of layers: one choice for each kind, combined.
//
// Each combination is the best for some price of a byte. On the lower convex hull of a kind's sets, by saved
// bytes and GPU time, every price selects a set. As the price rises, one kind after another moves on by one
// set. At the bytes of these combinations, no other combination saves as many bytes in less time, whatever
// the counts of the kinds. Between them, the combinations are only near the best. The hull of each kind
// alone, with nothing recomputed in the other kinds, is added, since a virtual stage may hold few kinds. The
// memory that recomputed tensors take is not considered. With one kind of layer, every set of its front is a
// choice.
#pragma once

#include <vector>

#include "headroom/search/layer_front.hpp"

namespace headroom {

// Returns the combinations, starting with the one that recomputes nothing. `fronts` are the results of
// layer_front(), by kind.
std::vector<KindChoices> combined(const std::vector<LayerFront>& fronts);

// Returns the choices of one kind's front, with nothing recomputed in the other kinds.
std::vector<KindChoices> alone(const std::vector<LayerFront>& fronts, std::size_t kind);

// Returns whether no kind recomputes anything.
bool recomputes_nothing(const KindChoices& choices);

// Returns the number of recomputed ops over all kinds.
int recomputed_op_count(const KindChoices& choices);

}  // namespace headroom
