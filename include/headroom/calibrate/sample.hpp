// Measured samples: times of single kernels or collectives of known size. Rates are fitted to them and
// compared with them.
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
  matrix_product,  // GEMM in one kernel, batched or not
  streaming,       // memory-bound kernel: softmax, dropout, normalization, activation, residual add, copy
  empty_kernel,    // launch-to-launch time of kernels that do nothing
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,         // predicted by the rates of collectives, which are not fitted to it
  send_receive,       // within a node; predicted by the rates of collectives, which are not fitted to it
  transformer_layer,  // forward or backward of a whole layer; no rate is fitted to it
  attention,          // flash attention, forward or backward
  expert_block,       // forward pass of a rank's experts: permuted tokens, two grouped GEMMs, their sum
};

constexpr bool is_collective(SampleKind kind) {
  return kind == SampleKind::all_reduce || kind == SampleKind::all_gather ||
         kind == SampleKind::reduce_scatter;
}

// Returns whether a sample communicates between GPUs without being a collective that rates are fitted to.
constexpr bool is_exchange(SampleKind kind) {
  return kind == SampleKind::all_to_all || kind == SampleKind::send_receive;
}

// Clock at which a GEMM was measured. burst: a few GEMMs after a pause. sustained: under a load that lasted
// until the power limit shows, as in a training step. For collectives and memory-bound kernels: whether they
// ran in a training step, with whatever ran at the same time.
enum class Load : std::uint8_t { burst, sustained };

// 16-bit format that `half` stands for in a sample. Predictions are equal; a GPU may still differ.
enum class HalfFormat : std::uint8_t { unnamed, fp16, bf16 };

enum class LayerPass : std::uint8_t { forward, backward };

// Part of one tensor-parallel rank in a transformer layer, and memory by its allocator.
struct MeasuredLayer {
  std::int64_t sequence{};
  std::int64_t micro_batch{};
  std::int64_t hidden{};
  std::int64_t heads{};  // of the whole layer, as hidden is
  std::int64_t tensor_parallel{};
  RecomputePolicy recompute{};
  LayerPass pass{};  // backward includes recomputation
  Bytes stored;      // saved between forward and backward: includes the layer's input, not its output
  Bytes peak;        // most during the pass, without weights and their gradients
  friend bool operator==(const MeasuredLayer&, const MeasuredLayer&) = default;
};

struct Sample {
  SampleKind kind{};
  std::string label;    // "softmax", "fc1 weight gradient"; may be empty
  Gemm product;         // for a matrix_product
  Attention attention;  // for attention
  AttentionPass attention_pass = AttentionPass::forward;
  ExpertBlock expert_block;  // for an expert_block
  MeasuredLayer layer;       // for a transformer_layer
  std::int64_t ranks{};      // of a collective; for a layer, 0: it ran alone, without its collectives
  std::int64_t nodes = 1;    // nodes of the ranks, with equally many ranks on each
  // Bytes that a memory-bound kernel moves; whole tensor of a collective, as in time/collective.hpp; bytes
  // that one rank has or sends in an exchange.
  Bytes bytes;
  Load load = Load::burst;
  Dtype dtype = Dtype::half;
  bool quantizes = false;  // the time of a GEMM includes casting its first input from 16 bits to `dtype`
  HalfFormat half_format = HalfFormat::unnamed;
  Seconds median;
  double spread = 0;  // half the interquartile range over the median; 0: not known
  std::string where;  // in its file: "/samples/3", "line 12"
  friend bool operator==(const Sample&, const Sample&) = default;
};

// Samples of a file. Members that the file does not state are empty.
struct SampleSet {
  std::string file;
  std::string device;       // "NVIDIA A100-SXM4-80GB", as the driver names it
  std::string environment;  // versions and clocks, in words
  std::vector<Sample> samples;
  friend bool operator==(const SampleSet&, const SampleSet&) = default;
};

// Returns whether a collective or memory-bound kernel of a training step is large enough to determine a
// bandwidth. From 16 MiB on, the launch and the steps of a ring are a few percent of its time; 64 MiB exceed
// most caches.
bool tells_bandwidth(const Sample& sample);

// Returns whether two samples measure the same thing.
bool same_shape(const Sample& x, const Sample& y);

// Returns a hash that depends only on the shape, on every platform. Cross-validation divides the shapes by
// it.
std::uint64_t shape_hash(const Sample& sample);

// Returns one sample per shape, in order of first appearance, with the median of repeated measurements.
std::vector<Sample> merge_repeated(const std::vector<Sample>& samples);

// Returns whether two names mean one GPU: "NVIDIA A100-SXM4-80GB" and "A100-SXM4-80GB", "NVIDIA H100 80GB
// HBM3" and "H100-SXM5-80GB". Memory is compared only if both names have it.
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
