// Bytes that the kernels of a Mamba-2 scan read and write [state-spaces/mamba, ops/triton/ssd_combined.py].
//
//   forward    convolution; running sums of dt A; states of chunks; their sums; C with B in chunks; outputs
//   backward   all of these but the outputs again, and the gradients of each
#include "headroom/model/parts/mamba.hpp"

namespace headroom {
namespace {

// Bytes a token. Values are of 16 bits; states, scores, dt and their gradients of fp32 until they are factors
// of products.
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

// Dt at 16 bits read, two in fp32 written.
double sums_of_steps(const TokenBytes& of) { return 2.5 * of.steps; }

double states_of_chunks(const TokenBytes& of) {
  return of.channels + of.groups + 2 * of.steps + 2 * of.states;
}
double scores_in_chunks(const TokenBytes& of) { return 2 * of.groups + of.scores; }
double convolved(const TokenBytes& of) { return of.channels + 2 * of.groups; }

}  // namespace

ScanWork mamba_forward(const Scan& scan) {
  const TokenBytes of(scan);
  const double passing = 3 * of.states;  // fp32 read, 16 bits written
  const double outputs =                 // x, C, states, scores and z read; both outputs written
      4 * of.channels + of.groups + of.states + of.scores + 2 * of.steps;
  const double bytes = sums_of_steps(of) + states_of_chunks(of) + passing + scores_in_chunks(of) + outputs;
  return {.bytes = scan.tokens * bytes,
          .convolved_bytes = scan.tokens * convolved(of) * 2,  // read and written
          .kernels = 6,
          .bandwidth = mamba_bandwidth};
}

ScanWork mamba_backward(const Scan& scan) {
  const TokenBytes of(scan);
  const double again = sums_of_steps(of) + states_of_chunks(of) + scores_in_chunks(of) + 4 * of.states;
  // x, z, the output and its gradient read; gradients of z and before the gate written.
  const double gate = 6 * of.channels;
  const double states = of.groups + of.channels + of.steps + 2 * of.states;
  const double passing = 6 * of.states;  // both in fp32 read, both at 16 bits written
  const double x = 3 * of.channels + of.groups + of.states + of.scores + 3 * of.steps;
  // B with x and the gradients of states, C with the output's gradient and states: read; gradients in fp32
  // written.
  const double b_and_c = 2 * (of.channels + of.groups + of.states + 2 * of.groups) + 5 * of.steps;
  const double of_x_and_output = 2 * of.channels + of.scores + 2 * of.steps;
  const double from_scores = of.scores + 4 * of.groups;
  const double sums = 8 * of.steps;
  const double bytes =
      again + gate + states + passing + x + b_and_c + 2 * of_x_and_output + 2 * from_scores + sums;
  // All but the outputs; then of the gate, states, their sums, x, B, C, scores, C and B by these, dA, dt and
  // the convolution; then plain operators: a copy of dt, four sums of gradients, three additions, a flip, a
  // running sum and a flip.
  constexpr std::int64_t kernels_again = 5, gradients = 12, plain = 11;
  return {.bytes = scan.tokens * bytes,
          // Read and written again; then both the input and a gradient read, and one written.
          .convolved_bytes = scan.tokens * convolved(of) * 5,
          .kernels = kernels_again + gradients + plain,
          .bandwidth = mamba_bandwidth};
}

}  // namespace headroom
