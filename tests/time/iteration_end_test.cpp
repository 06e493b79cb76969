#include "headroom/time/iteration_end.hpp"

#include <limits>

#include <doctest/doctest.h>

#include "headroom/plan/iteration.hpp"
#include "headroom/time/optimizer_step.hpp"
#include "headroom/time/streaming.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::megatron;
using tests::performance;

constexpr double billion = 1e9;

}  // namespace

TEST_CASE(
    "optimizer: 58 bytes a parameter with fp32 gradients, 62 with half, a share with a distributed one") {
  const BytesPerSecond bandwidth = streaming_bandwidth(performance());
  CHECK(optimizer_time(billion, {}, Workload{}, performance()) == Bytes(58e9) / bandwidth);
  CHECK(optimizer_time(billion, {.gradient_dtype = Dtype::half}, Workload{}, performance()) ==
        Bytes(62e9) / bandwidth);
  // One kernel over half-precision gradients, weights and moments: zeroed (2), normed and clipped (6), read (2), and
  // weight and both moments read and written (12).
  const Optimizer no_master{MainParams::none, MomentDtype::bf16, MomentDtype::bf16};
  CHECK(optimizer_time(billion, {.gradient_dtype = Dtype::half, .optimizer = no_master}, Workload{},
                       performance()) == Bytes(22e9) / bandwidth);
  CHECK(optimizer_time(billion, {.data_parallel = 8, .data_sharding = DataSharding::zero1}, Workload{},
                       performance())
            .count() == tests::about((Bytes(4e9 + 54e9 / 8) / bandwidth).count()));
}

TEST_CASE("data parallel: nothing to reduce for one replica") {
  CHECK(data_parallel_times(billion, {}, Workload{}, 8, performance(), megatron()) == DataParallelTimes{});
}

TEST_CASE("data parallel: gradients that are copied to buckets and back are read and written twice") {
  Software software = megatron();
  const Strategy strategy{.data_parallel = 8};
  CHECK(bucket_copies_time(billion, strategy, performance(), software) == Seconds(0));
  software.sharding.copies_gradients = true;
  CHECK(bucket_copies_time(billion, strategy, performance(), software) ==
        Bytes(16e9) / streaming_bandwidth(performance()));
  CHECK(bucket_copies_time(billion, {}, performance(), software) == Seconds(0));
  CHECK(bucket_copies_time(billion, {.data_parallel = 8, .data_sharding = DataSharding::zero1}, performance(),
                           software) == Seconds(0));
  const IterationEnd end{.bucket_copies = Seconds(3)};
  CHECK(end_times(end, {}).data_communication == Seconds(3));
}

TEST_CASE("data parallel: a distributed optimizer scatters sums and gathers weights") {
  const Strategy strategy{.tensor_parallel = 8, .data_parallel = 8, .data_sharding = DataSharding::zero1};
  const Group group = data_parallel_group(strategy, 8);
  const auto time = [&](CollectiveKind kind, double bytes) {
    return collective_time(kind, Bytes(bytes), group, performance());
  };
  const DataParallelTimes sharded =
      data_parallel_times(billion, strategy, Workload{}, 8, performance(), megatron());
  CHECK(sharded.reduction == time(CollectiveKind::reduce_scatter, 4e9));
  CHECK(sharded.gather == time(CollectiveKind::all_gather, 2e9));
  CHECK_FALSE(sharded.within_fit);  // four gigabytes
  const Software reduces_all{.gradient_reduction = GradientReduction::all_reduce};
  const DataParallelTimes whole =
      data_parallel_times(billion, strategy, Workload{}, 8, performance(), reduces_all);
  CHECK(whole.reduction == time(CollectiveKind::all_reduce, 4e9));
  CHECK(whole.gather == sharded.gather);
}

TEST_CASE("data parallel: overlapped with a pass, some of it still shows") {
  const auto exposed = [](double pass, double buckets) {
    return exposed_by_bucket(Seconds(1), Seconds(pass), buckets, 0.472).count();
  };
  constexpr double many = 1e9;
  CHECK(exposed(10, many) == tests::about(0.472));
  CHECK(exposed(0.25, many) == tests::about(0.75));
  CHECK(exposed(10, 1) == 1);  // it starts when the pass has ended
  CHECK(exposed(std::numeric_limits<double>::infinity(), 1) == 1);
  CHECK(exposed(10, 4) == tests::about(0.25 + 0.75 * 0.472));
  CHECK(exposed(0.4, 4) == tests::about(1 - 0.75 * 0.4));
}

TEST_CASE("data parallel: buckets hold what the stack says, more with many replicas") {
  const Software software{.bucket_parameters = 40'000'000, .bucket_parameters_per_replica = 1'000'000};
  CHECK(buckets(billion, {.data_parallel = 8}, software) == 25);
  CHECK(buckets(billion, {.data_parallel = 100}, software) == 10);
  CHECK(buckets(1000, {.data_parallel = 8}, software) == 1);
}

TEST_CASE("data parallel: gradients hide behind the backward pass, parameters behind the forward pass") {
  const Strategy strategy{.tensor_parallel = 8, .data_parallel = 8, .data_sharding = DataSharding::zero1};
  const auto shown = [&](const Software& software, const PassesBeside& passes) {
    const IterationEnd end =
        iteration_end(k22::gpt3_175b().model, strategy, Workload{}, billion, {}, 8, performance(), software);
    return end_times(end, passes).data_communication;
  };
  const DataParallelTimes alone =
      data_parallel_times(billion, strategy, Workload{}, 8, performance(), megatron());
  const PassesBeside passes{.forward = Seconds(100), .backward = Seconds(200)};
  CHECK(shown(megatron(), passes) == alone.reduction + alone.gather);
  const auto hidden = [&](Seconds collective) {
    return exposed_by_bucket(collective, Seconds(100), 25,
                             performance().rates.collectives.overlap_loss.value);
  };
  CHECK(shown({.overlap_grad_reduce = true}, passes) == hidden(alone.reduction) + alone.gather);
  CHECK(shown({.overlap_param_gather = true}, passes) == alone.reduction + hidden(alone.gather));
  // Each has only its own pass beside it.
  CHECK(shown({.overlap_param_gather = true}, {.forward = {}, .backward = Seconds(200)}) ==
        alone.reduction + alone.gather);
}

TEST_CASE("data parallel: with ZeRO 2 under a pipeline, every group of microbatches reduces its gradients") {
  const Software beside{.overlap_grad_reduce = true};
  const auto times = [&](DataSharding sharding, std::int64_t batch, const Software& software) {
    const Strategy strategy{.tensor_parallel = 8,
                            .pipeline_parallel = 4,
                            .virtual_pipeline = 2,
                            .data_parallel = 8,
                            .data_sharding = sharding};
    const Workload workload{.global_batch = batch, .sequence = 2048};
    const IterationEnd end =
        iteration_end(k22::gpt3_175b().model, strategy, workload, billion, {}, 8, performance(), software);
    return end_times(end, {}).data_communication - end.tied_embeddings;
  };
  using enum DataSharding;
  const auto groups = [&](const Software& software) {
    return times(zero2, 3 * 4 * 8, software) - times(zero1, 3 * 4 * 8, software);
  };
  CHECK(times(zero2, 4 * 8, beside) == times(zero1, 4 * 8, beside));
  const Seconds apart = groups(Software{});
  CHECK(apart > Seconds(0));
  CHECK(groups(beside) / apart == tests::about(performance().rates.collectives.overlap_loss.value));
}

TEST_CASE("tied embeddings: reduced between two pipeline ranks, and only there") {
  const Transformer model = k22::gpt3_175b().model;
  Strategy strategy{.tensor_parallel = 8, .pipeline_parallel = 8};
  const Bytes gradients(4.0 * 51200 / 8 * 12288);
  CHECK(tied_embedding_time(model, strategy, Workload{}, 8, performance()) ==
        collective_time(CollectiveKind::all_reduce, gradients, tied_embedding_group(strategy, 8),
                        performance()));
  strategy.pipeline_parallel = 1;
  CHECK(tied_embedding_time(model, strategy, Workload{}, 8, performance()) == Seconds(0));
}

}  // namespace headroom
