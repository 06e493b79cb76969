// Measured samples: how long one kernel or one collective took, of a size that is known. What rates are fitted to, and
// what they are compared with.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headroom/core/dtype.hpp"
#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/time/attention.hpp"
#include "headroom/time/expert_block.hpp"
#include "headroom/time/gemm.hpp"

namespace headroom {

enum class SampleKind : std::uint8_t {
  matrix_product,  // one kernel, batched or not
  streaming,  // a kernel that only moves memory: softmax, dropout, normalization, activation, residual add, copy
  empty_kernel,  // launch to launch of kernels that do nothing
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,         // predicted by the rates of collectives, which are not fitted to it
  send_receive,       // within a node; likewise
  transformer_layer,  // forward or backward of a whole layer: predicted; no rate is fitted to it
  attention,          // flash attention, forward or backward
  expert_block,       // forward pass of a rank's experts: permuted rows, two grouped products, their sum
};

constexpr bool is_collective(SampleKind kind) {
  return kind == SampleKind::all_reduce || kind == SampleKind::all_gather ||
         kind == SampleKind::reduce_scatter;
}

// Between devices, but no collective that rates are fitted to.
constexpr bool is_exchange(SampleKind kind) {
  return kind == SampleKind::all_to_all || kind == SampleKind::send_receive;
}

// Clock that a product was measured at. burst: a few products after a pause. sustained: under a load that has lasted
// until the power limit shows, as in a training step. Of collectives and streaming kernels: whether they ran in a training step,
// with whatever ran beside them.
enum class Load : std::uint8_t { burst, sustained };

// Which 16 bits `half` stands for in a sample. Nothing is predicted differently; a device may still tell them apart.
enum class HalfFormat : std::uint8_t { unnamed, fp16, bf16 };

enum class LayerPass : std::uint8_t { forward, backward };

// What one tensor-parallel rank does of a transformer layer, and what its allocator counted.
struct MeasuredLayer {
  std::int64_t sequence{};
  std::int64_t micro_batch{};
  std::int64_t hidden{};
  std::int64_t heads{};  // of the whole layer, as hidden is
  std::int64_t tensor_parallel{};
  RecomputePolicy recompute{};
  LayerPass pass{};  // backward: replaying included
  Bytes stored;  // between forward and backward: the layer's input is in it, its output is the next layer's
  Bytes peak;    // the most during the pass, without weights and their gradients
  friend bool operator==(const MeasuredLayer&, const MeasuredLayer&) = default;
};

struct Sample {
  SampleKind kind{};
  std::string label;    // "softmax", "fc1 weight gradient"; may be empty
  Gemm product;         // of a matrix_product
  Attention attention;  // of attention
  AttentionPass attention_pass = AttentionPass::forward;
  ExpertBlock expert_block;  // of an expert_block
  MeasuredLayer layer;       // of a transformer_layer
  std::int64_t ranks{};      // of a collective; of a layer: 0 when it ran alone, without its collectives
  std::int64_t nodes = 1;    // that the ranks are spread over, as many on each
  // Moved by a streaming kernel; whole tensor of a collective, as in time/collective.hpp; what one rank holds or sends of
  // an exchange.
  Bytes bytes;
  Load load = Load::burst;
  Dtype dtype = Dtype::half;
  bool quantizes =
      false;  // the time of a product includes turning its first factor from 16 bits into `dtype`
  HalfFormat half_format = HalfFormat::unnamed;
  Seconds median;
  double spread = 0;  // half the distance between the quartiles, over the median; 0 where it is not known
  std::string where;  // in its file: "/samples/3", "line 12"
  friend bool operator==(const Sample&, const Sample&) = default;
};

// The samples of a file. Where the file says nothing, members are empty.
struct SampleSet {
  std::string file;
  std::string device;       // "NVIDIA A100-SXM4-80GB", as the driver names it
  std::string environment;  // versions and clocks, in words
  std::vector<Sample> samples;
  friend bool operator==(const SampleSet&, const SampleSet&) = default;
};

// Whether a collective or a streaming kernel of a training step is large enough to tell a bandwidth: from 16 MiB on the
// launch and the steps of a ring are a few percent of its time, and 64 MiB are more than most caches hold.
bool tells_bandwidth(const Sample& sample);

// Whether two samples measure the same thing.
bool same_shape(const Sample& x, const Sample& y);

// A number that depends on the shape alone, and on no platform: shapes are dealt into parts by it.
std::uint64_t shape_hash(const Sample& sample);

// One sample for each shape, in order of first appearance: its median where a shape is measured more than once.
std::vector<Sample> merge_repeated(const std::vector<Sample>& samples);

// Whether two names mean one device: "NVIDIA A100-SXM4-80GB" and "A100-SXM4-80GB", "NVIDIA H100 80GB HBM3" and
// "H100-SXM5-80GB". Memory counts only where both give it.
bool same_device(const std::string& x, const std::string& y);

template <>
inline constexpr std::array<Spelling<SampleKind>, 11> spellings<SampleKind>{{
    {SampleKind::matrix_product, "matrix_product"},
    {SampleKind::streaming, "streaming"},
    {SampleKind::empty_kernel, "empty_kernel"},
    {SampleKind::all_reduce, "all_reduce"},
    {SampleKind::all_gather, "all_gather"},
    {SampleKind::reduce_scatter, "reduce_scatter"},
    {SampleKind::all_to_all, "all_to_all"},
    {SampleKind::send_receive, "send_receive"},
    {SampleKind::transformer_layer, "transformer_layer"},
    {SampleKind::attention, "attention"},
    {SampleKind::expert_block, "expert_block"},
}};
template <>
inline constexpr std::array<Spelling<HalfFormat>, 3> spellings<HalfFormat>{{
    {HalfFormat::unnamed, "unnamed"},
    {HalfFormat::fp16, "fp16"},
    {HalfFormat::bf16, "bf16"},
}};
template <>
inline constexpr std::array<Spelling<LayerPass>, 2> spellings<LayerPass>{{
    {LayerPass::forward, "forward"},
    {LayerPass::backward, "backward"},
}};
template <>
inline constexpr std::array<Spelling<Load>, 2> spellings<Load>{{
    {Load::burst, "burst"},
    {Load::sustained, "sustained"},
}};

}  // namespace headroom
