// What the layers of a model can recompute where it has several kinds of them: a choice for each kind, together.
//
// Each is the best for some price of a byte. On the lower convex hull of a kind's sets, by bytes kept and device
// time, every price has its set, and as the price rises one kind after the other moves on by one set: no other
// combination saves as many bytes in less time, whatever the kinds' counts, for the bytes between which no price lies
// only near the best. The same hulls of each kind alone, with nothing recomputed in the others, come beside them,
// since a virtual stage may hold few kinds. What the recomputations make again plays no part in the choice. With one
// kind of layer every set of its front is there.
#pragma once

#include <vector>

#include "headroom/search/layer_front.hpp"

namespace headroom {

// From what recomputes nothing on. `fronts` are those of layer_front(), by kind.
std::vector<KindChoices> combined(const std::vector<LayerFront>& fronts);

// The choices of one kind's front, where the others recompute nothing.
std::vector<KindChoices> alone(const std::vector<LayerFront>& fronts, std::size_t kind);

// Whether no kind recomputes anything.
bool recomputes_nothing(const KindChoices& choices);

// Ops that are recomputed, over all kinds.
int recomputed_op_count(const KindChoices& choices);

}  // namespace headroom
