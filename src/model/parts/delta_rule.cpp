// Bytes that the kernels of the gated delta rule read and write [fla-org/flash-linear-attention,
// ops/gated_delta_rule/chunk.py (chunk_gated_delta_rule_fwd, chunk_gated_delta_rule_bwd),
// ops/kda/chunk_fwd.py (chunk_kda_fwd), ops/kda/chunk_bwd.py (chunk_kda_bwd)]. Kernels that make states take
// the chunks of a sequence one after the other.
#include "headroom/model/parts/delta_rule.hpp"

#include <cmath>

#include "headroom/model/parts/gated_delta_net.hpp"
#include "headroom/model/parts/kimi_delta.hpp"

namespace headroom {
namespace {

// Bytes a token, at 16 bits but for numbers of heads, which are of fp32.
struct DeltaBytes {
  explicit DeltaBytes(const Scan& scan)
      : keys(2 * scan.heads * scan.state_size),
        values(2 * scan.heads * scan.head_size),
        scores(2 * scan.heads * scan.chunk_size),
        states(2 * scan.heads * scan.state_size * scan.head_size / scan.chunk_size),
        numbers(4 * scan.heads) {}

  double keys;     // q, k, w or a gradient of one
  double values;   // v, u, an output or a gradient of one
  double scores;   // in chunks
  double states;   // of chunks
  double numbers;  // of each head: a decay, a beta
};

double made_states(const DeltaBytes& of) { return 2 * of.keys + 2 * of.values + of.states + of.numbers; }
// q, k, w, the output's gradient and one of values read; gradients of states and of values written.
double gradients_of_states(const DeltaBytes& of) { return 3 * of.keys + 3 * of.values + of.states; }
// q, k, w, values, their gradient, the output's, states and theirs read; gradients of q, k and w written.
double gradients_of_keys(const DeltaBytes& of) { return 6 * of.keys + 3 * of.values + 2 * of.states; }

double w_and_u(const DeltaBytes& of) { return 2 * of.keys + 2 * of.values + of.scores + 2 * of.numbers; }

ScanWork work_of(const Scan& scan, double bytes, double in_steps, double passes, double channels,
                 std::int64_t kernels) {
  return {.bytes = scan.tokens * bytes,
          .convolved_bytes = scan.tokens * channels * passes,
          .kernels = kernels,
          .bandwidth = delta_bandwidth,
          .bytes_in_steps = scan.tokens * in_steps,
          .step_time = delta_step * std::ceil(scan.sequence / scan.chunk_size)};
}

double convolved(const DeltaBytes& of) { return 2 * of.keys + of.values; }

constexpr std::int64_t of_numbers = 8;  // operators that make decays and betas, or their gradients

}  // namespace

ScanWork gated_delta_forward(const Scan& scan) {
  const DeltaBytes of(scan);
  const double sums = 2 * of.numbers;
  const double scores = of.keys + 2 * of.numbers + 2 * of.scores;  // written in fp32
  const double inverted = 3 * of.scores;                           // read in fp32
  const double outputs = 2 * of.keys + 2 * of.values + of.states + of.numbers;
  return work_of(scan, sums + scores + inverted + w_and_u(of) + outputs, made_states(of), 2, convolved(of),
                 6 + of_numbers);
}

ScanWork gated_delta_backward(const Scan& scan) {
  const DeltaBytes of(scan);
  const double local = 2 * of.keys + 2 * of.values + of.numbers;  // gradients of values in a chunk
  const double from_w = 3 * of.keys + 3 * of.values + of.scores + 4 * of.numbers;
  const double sums = 3 * of.keys + 5 * of.numbers;  // of two gradients of k, and of decays
  return work_of(scan, w_and_u(of) + local + gradients_of_keys(of) + from_w + sums,
                 made_states(of) + gradients_of_states(of), 3, convolved(of), 9 + of_numbers);
}

// Decays are of fp32 and as many as keys, so that they are two of them.
ScanWork kimi_delta_forward(const Scan& scan) {
  const DeltaBytes of(scan);
  const double decays = of.keys + 2 * of.keys;
  // q, k, v and decays read; both scores, inverted ones in fp32 on the way, w, u and decayed keys written.
  const double in_chunks = 4 * of.keys + of.values + 6 * of.scores + 2 * of.keys + of.values + of.numbers;
  const double outputs = of.keys + 2 * of.keys + of.scores + of.states + 2 * of.values;
  return work_of(scan, decays + in_chunks + outputs, made_states(of), 2, convolved(of), 7);
}

ScanWork kimi_delta_backward(const Scan& scan) {
  const DeltaBytes of(scan);
  const double decays = 3 * of.keys;
  const double again = w_and_u(of) + 3 * of.keys;      // decays read, decayed keys written
  const double local = 3 * of.values + 3 * of.scores;  // gradients of scores in fp32
  const double keys = 4 * of.keys + 5 * of.values + of.scores + 2 * of.states;
  const double gradients = 6 * of.keys + of.values + 2 * of.scores;  // of q, k and decays in fp32
  const double in_chunks = 4 * of.keys + 2 * 6 * of.keys + 4 * of.scores;
  const double sums = 4 * of.keys + 4 * of.keys;  // of gradients of decays, and through their activation
  return work_of(scan, decays + again + local + keys + gradients + in_chunks + sums,
                 made_states(of) + gradients_of_states(of), 3, convolved(of), 10);
}

}  // namespace headroom
