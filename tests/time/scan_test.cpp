#include "headroom/time/scan.hpp"

#include <doctest/doctest.h>

#include "headroom/io/system_file.hpp"
#include "headroom/model/parts/mamba.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

constexpr Scan large{
    .tokens = 16384, .heads = 128, .head_size = 64, .groups = 8, .state_size = 128, .chunk_size = 128};

}  // namespace

TEST_CASE("scan: its kernels move, of a token, what a list of their inputs and outputs says") {
  const Scan scan{.tokens = 1, .heads = 2, .head_size = 4, .groups = 1, .state_size = 8, .chunk_size = 16};
  // x, z and outputs are 8 numbers, B and C 8 each, dt 2, a state 64 of each 16 tokens, scores 16.
  const double sums = 2 * 2 + 2 * 4 * 2;
  const double states = 2 * 8 + 2 * 8 + 2 * 4 * 2 + 4 * 4;
  const double passing = 4 * 4 + 2 * 4;
  const double scores = 2 * 2 * 8 + 4 * 16;
  const double outputs = 2 * 8 + 2 * 8 + 2 * 4 + 4 * 16 + 2 * 4 * 2 + 2 * 8 + 2 * 2 * 8;
  CHECK(mamba_forward(scan).bytes == sums + states + passing + scores + outputs);
  CHECK(mamba_forward(scan).convolved_bytes == 2 * 2 * (8 + 16));
  CHECK(mamba_forward(scan).kernels == 6);
}

TEST_CASE(
    "scan: the backward kernels move what the forward ones do but the outputs, and what gradients need") {
  const Scan scan{.tokens = 1, .heads = 2, .head_size = 4, .groups = 1, .state_size = 8, .chunk_size = 16};
  // In bytes: x, z, outputs and their gradients 16 each, B and C 16 each, a state 8 at 16 bits, scores 64, dt 8.
  const double again = 20 + 64 + (16 + 16) + 96;  // states are passed on in fp32
  const double gate = 4 * 16 + 2 * 16;
  const double states = 16 + 16 + 8 + 16;
  const double passing = 2 * 16 + 2 * 8;
  const double x = 3 * 16 + 16 + 8 + 64 + 3 * 8;
  const double b = 16 + 16 + 8 + 32 + 3 * 8;
  const double c = 16 + 16 + 8 + 32 + 2 * 8;
  const double scores = 2 * 16 + 64 + 2 * 8;
  const double sums = 2 * 16 + 64 + 2 * 8;
  const double b_and_c_by_scores = 2 * (64 + 16 + 32 + 16);
  const double dt = 8 * 8;
  CHECK(mamba_backward(scan).bytes ==
        again + gate + states + passing + x + b + c + scores + sums + b_and_c_by_scores + dt);
}

TEST_CASE("scan: the forward kernels on H100 are as fast as they were measured") {
  // 12.62 million tokens a second without a gate: z is not read, nor a second output written, and no convolution runs.
  const Scan measured{
      .tokens = 8192, .heads = 128, .head_size = 64, .groups = 1, .state_size = 128, .chunk_size = 256};
  const System h100 = read_system("dgx-h100-80g");
  const Bytes ungated = Bytes(mamba_forward(measured).bytes - 2 * 2 * 8192.0 * 128 * 64);
  const Seconds time = ungated / (132.0 * mamba_bandwidth);
  CHECK(8192 / time.count() == doctest::Approx(12.62e6).epsilon(0.05));
  CHECK(scan_time(mamba_forward(measured), *h100.performance) > time);
}

TEST_CASE("scan: time grows with the tokens and falls with the ranks, and memory bounds it") {
  const Performance performance = *read_system("dgx-h100-80g").performance;
  for (const auto pass : {mamba_forward, mamba_backward}) {
    Scan half = large;
    half.heads /= 2;
    half.groups /= 2;
    Scan longer = large;
    longer.tokens *= 2;
    CHECK(scan_time(pass(half), performance) < scan_time(pass(large), performance));
    CHECK(scan_time(pass(longer), performance) > 1.9 * scan_time(pass(large), performance));
    Performance slow = performance;
    slow.device.memory_bandwidth = BytesPerSecond(1e11);
    const Bytes all(pass(large).bytes + pass(large).convolved_bytes);
    CHECK(scan_time(pass(large), slow) >= all / streaming_bandwidth(slow));
  }
}

}  // namespace headroom
