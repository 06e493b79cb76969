// What is alive at the worst moment of a backward pass through a table of ops beside what forward passes left:
// gradients of activations between two ops, half-precision logits, inputs gathered for a weight gradient, and weight
// gradients that a kernel of their own adds to the sum. Which of them a training stack has, hardware/software.hpp
// says.
//
// The walk goes through the ops from the last. While an op is under way, the gradients of its outputs and of its inputs
// are alive; when it ends, those of its outputs and what only it had saved are freed. Bytes are of one rank.
#pragma once

#include <deque>

#include "headroom/hardware/software.hpp"
#include "headroom/memory/stage.hpp"

namespace headroom {

// Of one pass through the table each way, under a recomputation of some of its ops that holds so many bytes. Where gradients are
// reduced when a unit is done (memory/units.hpp), those of the ops that are done stay until then.
PassPeaks pass_peaks(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                     Bytes working_set, Detail detail, const Software& software, const Bindings& letters,
                     bool reduces_units = false);

// Peaks that are known of the kinds of layers of a model, since recomputations of the whole model have many of them in common. All are of
// the same layers, sharding, letters, detail and stack.
class KnownPeaks {
 public:
  // Null where it is not known.
  [[nodiscard]] const PassPeaks* find(std::size_t kind, const RecomputedOps& recomputed,
                                      Bytes working_set) const;
  const PassPeaks& add(std::size_t kind, const RecomputedOps& recomputed, Bytes working_set,
                       const PassPeaks& peaks);

 private:
  struct Known {
    std::size_t kind = 0;
    RecomputedOps recomputed;
    Bytes working_set;
    PassPeaks peaks;
  };
  std::deque<Known> known_;
};

// Sets those of all kinds of layers and of both ends, where the stack has `backward_buffers`.
void set_backward_peaks(ModelActivations& parts, const ModelLayers& layers, const Sharding& sharding,
                        const Recomputation& recompute, Detail detail, const Software& software,
                        const Bindings& letters, bool reduces_units, KnownPeaks& known);

// What a rank keeps for the whole run where the stack keeps a dummy gradient for each distinct shape of its layers'
// weights: those of the kinds of layers that `counts` has.
Bytes dummy_gradients(const ModelLayers& layers, const KindCounts& counts, const Sharding& sharding,
                      const Software& software, const Bindings& letters);

}  // namespace headroom
