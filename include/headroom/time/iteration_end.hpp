// Exchanges at the end of an iteration, once per rank: gradients are reduced over data-parallel replicas and
// between the two copies of tied embeddings. time/optimizer_step.hpp has the optimizer's step. `parameters`
// are a rank's, as memory/state.hpp counts them.
#pragma once

#include "headroom/memory/state.hpp"
#include "headroom/time/collective.hpp"

namespace headroom {

// Times of data-parallel collectives without overlap.
struct DataParallelTimes {
  Seconds reduction;  // gradients: an all-reduce, or the stack's collective for optimizer shards
  // All-gather of the 16-bit parameters whose shards were stepped.
  Seconds gather;
  bool within_fit = true;
  friend bool operator==(const DataParallelTimes&, const DataParallelTimes&) = default;
};

// Returns the times of gradient reduction and parameter gather, class after class of weights, over the ranks
// that hold the same weights. Excludes what every microbatch's passes gather or reduce
// (time/unit_exchanges.hpp).
DataParallelTimes data_parallel_times(const Parameters& parameters, const Strategy& strategy,
                                      const Workload& workload, std::int64_t devices_per_node,
                                      const Performance& performance, const Software& software);

// Returns the time of copying gradients to the buckets that are reduced and back, for stacks that keep
// separate buckets. Each gradient is read and written twice, on the stream of the passes.
Seconds bucket_copies_time(const Parameters& parameters, const Strategy& strategy,
                           const Performance& performance, const Software& software);

// Returns the number of buckets of gradients, which is also that of gathered parameters.
double buckets(const Parameters& parameters, const Strategy& strategy, const Software& software);

// Returns the exposed time of a collective in `buckets` buckets beside a pass. A bucket is reduced after its
// part of the backward pass, so the last bucket has nothing beside it. A bucket is gathered before its part
// of the forward pass, so the first bucket has nothing beside it. The others take multiprocessors and memory
// bandwidth from the pass:
//   max(collective - pass (n - 1)/n, collective/n + overlap_loss * collective (n - 1)/n)
Seconds exposed_by_bucket(Seconds collective, Seconds pass, double buckets, double overlap_loss);

// Returns the time of the gradient all-reduce between the two copies of a model (DualPipe), over ranks that
// hold the same virtual stages. It covers a rank's shard if gradients were reduced to shards. The ranks are
// as far apart as the first and the last pipeline rank.
Seconds model_copies_time(const Parameters& parameters, const Strategy& strategy,
                          std::int64_t devices_per_node, const Performance& performance,
                          const Software& software);

// Returns the time to all-reduce the word embedding's gradients between the first and the last pipeline rank.
// Zero if the embeddings are untied, or if one rank holds both ends.
Seconds tied_embedding_time(const Transformer& model, const Strategy& strategy, const Workload& workload,
                            std::int64_t devices_per_node, const Performance& performance,
                            const Software& software = {});

}  // namespace headroom
