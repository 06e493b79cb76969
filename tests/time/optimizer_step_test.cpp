// What a step of each optimizer takes: bytes over the bandwidth of memory, and of Muon the products of its iterations.
#include "headroom/time/optimizer_step.hpp"

#include <doctest/doctest.h>

#include "headroom/time/streaming.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::performance;

constexpr double a_billion = 1e9;

Seconds step(Strategy strategy, OptimizerKind kind, const MatrixList& matrices = {}) {
  strategy.optimizer.kind = kind;
  return optimizer_time(a_billion, strategy, Workload{}, performance(), {}, matrices);
}

}  // namespace

TEST_CASE(
    "optimizer step: SGD reads and writes one moment fewer than Adam, Adafactor makes its estimate anew") {
  const BytesPerSecond bandwidth = streaming_bandwidth(performance());
  CHECK(step({}, OptimizerKind::adam) == Bytes(58e9) / bandwidth);
  CHECK(step({}, OptimizerKind::sgd) == Bytes(50e9) / bandwidth);
  // Zeroed (4), unscaled (8), normed and clipped (12), to 16 bits (6); 76 of its own.
  CHECK(step({}, OptimizerKind::adafactor) == Bytes(106e9) / bandwidth);
}

TEST_CASE("optimizer step: Newton-Schulz iterations take 4 p^2 q + 2 p^3 FLOPs each") {
  const double p = 1024;
  const double q = 4096;
  CHECK(newton_schulz_flops(p, q) == Flops(5 * (4 * p * p * q + 2 * p * p * p)));
  CHECK(newton_schulz_flops(q, p) == newton_schulz_flops(p, q));
  const double least = newton_schulz_flops(p, q) / performance().device.half_peak.count() / Flops(1);
  CHECK(newton_schulz_time(p, q, performance(), {}).count() > least);
}

TEST_CASE("optimizer step: Muon's iterations are of the matrices that a rank steps") {
  const MatrixList matrices{{.rows = 4096, .columns = 4096, .count = 32}};
  const Seconds one = newton_schulz_time(4096, 4096, performance(), {});
  const double in_matrices = parameters_in(matrices);
  const BytesPerSecond bandwidth = streaming_bandwidth(performance());
  // Zeroed, and of a matrix 26 bytes around and 42 of its own.
  const double bytes = 4e9 + 68 * in_matrices + 54 * (a_billion - in_matrices);
  CHECK(step({}, OptimizerKind::muon, matrices).count() ==
        doctest::Approx((32.0 * one + Bytes(bytes) / bandwidth).count()));
  const Strategy sharded{.data_parallel = 8, .data_sharding = DataSharding::zero1};
  const double bytes_of_shard = 4e9 + (68 * in_matrices + 54 * (a_billion - in_matrices)) / 8;
  CHECK(step(sharded, OptimizerKind::muon, matrices).count() ==
        doctest::Approx((4.0 * one + Bytes(bytes_of_shard) / bandwidth).count()));
  // An embedding is stepped by Adam.
  MatrixList embedding = matrices;
  embedding.front().of_vocabulary = true;
  CHECK(step({}, OptimizerKind::muon, embedding) == step({}, OptimizerKind::adam));
}

}  // namespace headroom
