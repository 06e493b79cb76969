#include "headroom/time/scan.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

// Bytes a token that the kernels read and write.
struct TokenBytes {
  explicit TokenBytes(const Scan& scan)
      : channels(2 * scan.heads * scan.head_size),
        groups(2 * scan.groups * scan.state_size),
        states(2 * scan.heads * scan.head_size * scan.state_size / scan.chunk_size),
        scores(4 * scan.groups * scan.chunk_size),
        steps(4 * scan.heads) {}

  double channels;  // x, z, an output or a gradient of one
  double groups;    // B or C
  double states;    // at 16 bits; twice as many in fp32
  double scores;    // C with B, in fp32
  double steps;     // dt, or a running sum, in fp32
};

// Reads dt in 16 bits, writes two FP32 values.
double sums_of_steps(const TokenBytes& of) { return 2.5 * of.steps; }

double states_of_chunks(const TokenBytes& of) {
  return of.channels + of.groups + 2 * of.steps + 2 * of.states;
}
double scores_in_chunks(const TokenBytes& of) { return 2 * of.groups + of.scores; }

double forward_bytes(const TokenBytes& of) {
  const double passing = 3 * of.states;  // fp32 read, 16 bits written
  const double outputs =                 // x, C, states, scores and z read; both outputs written
      4 * of.channels + of.groups + of.states + of.scores + 2 * of.steps;
  return sums_of_steps(of) + states_of_chunks(of) + passing + scores_in_chunks(of) + outputs;
}

double backward_bytes(const TokenBytes& of) {
  const double again = sums_of_steps(of) + states_of_chunks(of) + scores_in_chunks(of) + 4 * of.states;
  // Reads x, z, the output and its gradient; writes the gradients of z and of the value before the gate.
  const double gate = 6 * of.channels;
  const double states = of.groups + of.channels + of.steps + 2 * of.states;
  const double passing = 6 * of.states;  // both in fp32 read, both at 16 bits written
  const double x = 3 * of.channels + of.groups + of.states + of.scores + 3 * of.steps;
  // Reads B with x and the gradients of states, and C with the output's gradient and states. Writes FP32
  // gradients.
  const double b_and_c = 2 * (of.channels + of.groups + of.states + 2 * of.groups) + 5 * of.steps;
  const double of_x_and_output = 2 * of.channels + of.scores + 2 * of.steps;
  const double from_scores = of.scores + 4 * of.groups;
  const double sums = 8 * of.steps;
  return again + gate + states + passing + x + b_and_c + 2 * of_x_and_output + 2 * from_scores + sums;
}

}  // namespace

Bytes convolution_bytes(const Scan& scan, AttentionPass pass) {
  const TokenBytes of(scan);
  const double convolved = of.channels + 2 * of.groups;
  // The forward pass reads and writes once. The backward pass repeats that, reads the input and a gradient,
  // and writes a gradient.
  return Bytes(scan.tokens * convolved * (pass == AttentionPass::forward ? 2 : 5));
}

Bytes scan_bytes(const Scan& scan, AttentionPass pass) {
  const TokenBytes of(scan);
  return Bytes(scan.tokens * (pass == AttentionPass::forward ? forward_bytes(of) : backward_bytes(of)));
}

std::int64_t scan_kernels(AttentionPass pass) {
  if (pass == AttentionPass::forward) return 6;
  // Kernels in order: all forward kernels but the outputs; gradients of the gate, states, their sums, x, B,
  // C, scores, C and B by these, dA, dt and the convolution; plain operators (a copy of dt, four sums of
  // gradients, three additions, a flip, a running sum and a flip).
  constexpr std::int64_t again = 5, gradients = 12, plain = 11;
  return again + gradients + plain;
}

Seconds scan_time(const Scan& scan, AttentionPass pass, const Performance& performance) {
  const double multiprocessors = real(performance.device.multiprocessors);
  const BytesPerSecond memory = streaming_bandwidth(performance);
  const auto at = [&](BytesPerSecond each) { return std::min(multiprocessors * each, memory); };
  return real(scan_kernels(pass)) * performance.rates.kernels.launch.value +
         scan_bytes(scan, pass) / at(scan_bandwidth) +
         convolution_bytes(scan, pass) / at(convolution_bandwidth);
}

}  // namespace headroom
