// Places the layers of one strategy on its virtual stages by the composer's own times, under each rank's
// memory. Layers may be of several kinds, and ranks may hold several virtual stages. The layouts of a space
// (search/space.hpp) balance FLOPs, which is the same for all strategies and quick; this takes milliseconds,
// so a search asks it for the plans that it would show (search/widen.hpp).
//
// The strategy's own layout and a cut of lightest_stages() by the time of a microbatch's forward and backward
// pass are improved, and the faster one is returned. On up to eight virtual stages, more cuts are tried. Of
// the moves of a layer from one stage to another, the one that makes the pipeline shortest is made, as long
// as it shortens the pipeline by a 2000th and every rank fits. On up to eight virtual stages, up to three
// layers move at once.
//
//   exact      What a rank holds at its peak. The makespan. With one virtual stage a rank: whether any layout
//              fits, and the cut, which has the lightest heaviest stage of all cuts that fit.
//   not exact  The makespan also depends on how a pipeline fills and drains, and with several virtual stages a rank
//              on which of them meet. Moves improve it, but may end before the best layout. With several virtual
//              stages a rank, memory is looked at after the cut: moves take layers off ranks that are too full. Units
//              of sharded weights are not timed. The end of an iteration is taken to be the same for all layouts.
//
// A property test compares with every layout of models of 6 to 9 layers on up to 6 virtual stages: with one
// stage a rank, the time is at most 1.5% above the least. With several, nine in ten are within 1%, and the
// worst takes 14% more.
#pragma once

#include <optional>

#include "headroom/plan/composer.hpp"

namespace headroom {

// Returns the strategy with the fastest layout found that has at most this verdict, if it differs from the
// strategy's own. Returns nothing if there is none, or if the strategy's schedule has two copies of the
// model, or a window. Expects a legal strategy and known performance.
std::optional<Strategy> with_layers_by_time(const Request& base, Composer& composer, const Strategy& strategy,
                                            Verdict verdict = Verdict::fits);

}  // namespace headroom
