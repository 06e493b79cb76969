// Peak memory of a backward pass through a table of ops, beyond saved activations: gradients of activations
// between two ops, 16-bit logits, inputs gathered for a weight gradient, and weight gradients that a separate
// kernel adds to the sum. hardware/software.hpp says which of them a training stack has.
//
// The walk goes through the ops from the last. While an op runs, the gradients of its outputs and its inputs
// are allocated. When it ends, its output gradients are freed, and saved tensors that no other op needs.
// Bytes are of one rank.
#pragma once

#include <deque>

#include "headroom/hardware/software.hpp"
#include "headroom/memory/stage.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/recomputed_ops.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

// Returns the peaks of one pass through the table each way. `recomputed` ops hold `working_set` bytes.
// `weight_gradients`: see pass_gradients().
PassPeaks pass_peaks(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                     Bytes working_set, Detail detail, const Software& software, const Bindings& letters,
                     std::optional<PassGradients> weight_gradients = {});

// Cache of peaks by kind of layer, because recomputations of a whole model share many of them. All entries
// have the same layers, sharding, letters, detail and stack.
class KnownPeaks {
 public:
  // Returns the cached peaks; null if there are none.
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

// Sets the peaks of all kinds of layers and of both ends, if the stack has `backward_buffers`.
void set_backward_peaks(ModelActivations& parts, const ModelLayers& layers, const Sharding& sharding,
                        const Recomputation& recompute, Detail detail, const Software& software,
                        const Bindings& letters, std::optional<PassGradients> weight_gradients,
                        KnownPeaks& known);

// Returns bytes of the dummy gradients that a rank keeps for the whole run, one for each distinct shape of
// its layers' weights. `counts` selects the kinds of layers.
Bytes dummy_gradients(const ModelLayers& layers, const KindCounts& counts, const Sharding& sharding,
                      const Software& software, const Bindings& letters);

}  // namespace headroom
