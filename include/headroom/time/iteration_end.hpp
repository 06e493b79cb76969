// What ends an iteration, once per rank and not per microbatch: reducing gradients over data-parallel replicas and
// between the two copies of tied embeddings, and the optimizer's step.
#pragma once

#include "headroom/memory/state.hpp"
#include "headroom/time/collective.hpp"

namespace headroom {

// `parameters` are those of the rank, as memory/state.hpp counts them.

// As if nothing ran beside them.
struct DataParallelTimes {
  Seconds
      reduction;  // of the gradients: an all-reduce, or what the software uses for the shards of an optimizer
  Seconds gather;  // of the half-precision parameters, after the step of a distributed optimizer
  bool within_fit = true;
  friend bool operator==(const DataParallelTimes&, const DataParallelTimes&) = default;
};

// Each class over the ranks that hold the same weights, one after the other.
DataParallelTimes data_parallel_times(const Parameters& parameters, const Strategy& strategy,
                                      std::int64_t devices_per_node, const Performance& performance,
                                      const Software& software);

// What of the reduction shows: all, unless the software overlaps it with `backward`, the last backward pass of the rank.
Seconds exposed_data_parallel_time(Seconds reduction, Seconds backward, const Performance& performance,
                                   const Software& software);

// All-reduce of the word embedding's gradients between first and last pipeline rank. Nothing if p = 1 or untied.
Seconds tied_embedding_time(const Transformer& model, const Strategy& strategy, std::int64_t devices_per_node,
                            const Performance& performance);

// Mixed-precision Adam, from zeroing the gradients to casting the weights: memory traffic only.
Seconds optimizer_time(const Parameters& parameters, const Strategy& strategy,
                       const Performance& performance);

}  // namespace headroom
