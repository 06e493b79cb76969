// What is exchanged at the end of an iteration, once per rank and not per microbatch: gradients are reduced over data-parallel
// replicas and between the two copies of tied embeddings. The optimizer's step is time/optimizer_step.hpp.
#pragma once

#include "headroom/memory/state.hpp"
#include "headroom/time/collective.hpp"

namespace headroom {

// `parameters` are those of the rank, as memory/state.hpp counts them.

// As if nothing ran beside them.
struct DataParallelTimes {
  Seconds
      reduction;  // of the gradients: an all-reduce, or what the software uses for the shards of an optimizer
  Seconds gather;  // of the half-precision parameters, whose shards were stepped
  bool within_fit = true;
  friend bool operator==(const DataParallelTimes&, const DataParallelTimes&) = default;
};

// Each class over the ranks that hold the same weights, one after the other. Nothing of what the passes of every microbatch
// gather or reduce (time/unit_exchanges.hpp).
DataParallelTimes data_parallel_times(const Parameters& parameters, const Strategy& strategy,
                                      const Workload& workload, std::int64_t devices_per_node,
                                      const Performance& performance, const Software& software);

// Of gradients to the buckets that are reduced and back, where a stack has them apart: each is read and written twice, by kernels
// on the stream of the passes.
Seconds bucket_copies_time(const Parameters& parameters, const Strategy& strategy,
                           const Performance& performance, const Software& software);

// Of gradients, and of the parameters that are gathered.
double buckets(const Parameters& parameters, const Strategy& strategy, const Software& software);

// What of a collective in so many buckets shows where it runs beside a pass: a bucket is reduced when its part of the
// backward pass is done, so that the last one has nothing beside it; and gathered before its part of the forward pass, so
// that the first one has not. The others take multiprocessors and memory bandwidth from the pass:
// max(collective - pass (n - 1)/n, collective/n + overlap_loss * collective (n - 1)/n)
Seconds exposed_by_bucket(Seconds collective, Seconds pass, double buckets, double overlap_loss);

// All-reduce of gradients between the ranks that hold the same virtual stages of the two copies of a model, which go through the
// pipeline from either end: of a rank's shard where they were reduced to shards, at the distance of the first rank from the last.
Seconds model_copies_time(const Parameters& parameters, const Strategy& strategy,
                          std::int64_t devices_per_node, const Performance& performance,
                          const Software& software);

// All-reduce of the word embedding's gradients between first and last pipeline rank. Nothing if untied, or
// where one rank holds both ends.
Seconds tied_embedding_time(const Transformer& model, const Strategy& strategy, const Workload& workload,
                            std::int64_t devices_per_node, const Performance& performance,
                            const Software& software = {});

}  // namespace headroom
