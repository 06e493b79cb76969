// The kernels of a training stack that change what is kept for the backward pass, and how many passes over memory a layer takes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>

#include "headroom/core/dtype.hpp"
#include "headroom/core/names.hpp"

namespace headroom {

// unfused: QK^T, softmax, dropout and the product with V as kernels of their own, all of them storing.
// flash: one kernel that keeps q, k, v, its output and the log-sum-exp of each row.
// sdpa_math: PyTorch's composite scaled_dot_product_attention, which scales a copy of q.
enum class AttentionKernel : std::uint8_t { unfused, flash, sdpa_math };

// Whether an op runs as one fused kernel or as the chain of elementwise kernels an eager engine makes of it.
enum class Fusion : std::uint8_t { fused, unfused };

// fused: one kernel that keeps its input and statistics. unfused: the eager chain of an RMSNorm (to fp32,
// square, sum, rsqrt, product, to half, weight), which keeps the fp32 copy and the normalised half copy.
// unfused_mean: the same where the mean keeps the squares too, as in PyTorch 1.13. composite: the chain of torch.nn.RMSNorm before
// PyTorch 2.9, which multiplies by the weight in fp32, and keeps fp32 copies of both [aten/src/ATen/native/layer_norm.cpp, rms_norm_symint].
enum class NormKernel : std::uint8_t { fused, unfused, unfused_mean, composite };

// How q and k get their positions. fused: one kernel. complex: as complex numbers in fp32, to which they are cast and back [torchtitan and
// Meta's Llama, apply_rotary_emb]. rotate_half: products with cosines and, of a copy whose halves are exchanged, sines [transformers,
// apply_rotary_pos_emb]. rotate_chunks: the same with halves that are chunks of one tensor, tables of cosines and sines made by each call,
// and the part of a head that takes no positions put behind, even where it is empty [Megatron-LM,
// core/models/common/embeddings/rope_utils.py, _apply_rotary_pos_emb_bshd].
enum class RotaryKernel : std::uint8_t { fused, complex, rotate_half, rotate_chunks };

// vocabulary_parallel: Megatron's, keeps the fp32 softmax, the target mask and the masked target; so does its native fused
// one (core/fusions/fused_cross_entropy.py).
// plain: torch cross_entropy over logits cast to `logits` precision.
// plain_half: torch cross_entropy over the logits as they are, at 16 bits.
// log_softmax_gather: the log-softmax and an indexed read, written by hand.
// fused: keeps only the gradient, written over the half-precision logits (Liger, Transformer Engine before its #3193).
// fused_fp32: keeps only the gradient, in fp32 (Transformer Engine since then, pytorch/cross_entropy.py).
// chunked: the output layer and its loss run over an eighth of the tokens at a time, forward and backward at once, so that no
// more logits exist, and the gradient of the hidden states is kept [torchtitan, components/loss.py, ChunkedLossWrapper].
// linear_fused: the same over as many chunks as make their logits as large as the hidden states, with the gradient of the weights
// made in the forward pass and kept [Liger, fused_linear_cross_entropy].
// compiled: plain under torch.compile, which keeps the half-precision logits with a maximum and a sum of each token, and makes their
// gradient of them in one kernel.
enum class CrossEntropy : std::uint8_t {
  vocabulary_parallel,
  plain,
  log_softmax_gather,
  fused,
  fused_fp32,
  chunked,
  linear_fused,
  compiled,
  plain_half
};

// Whether the output layer's forward pass runs its backward pass too, chunk by chunk.
constexpr bool in_chunks(CrossEntropy kind) {
  return kind == CrossEntropy::chunked || kind == CrossEntropy::linear_fused;
}

// one: q, k and v are views into the output of a single linear; separate: three linears.
enum class QkvLinear : std::uint8_t { one, separate };

// How k < a key/value heads meet a query heads: broadcast inside the product, or copied to a heads first.
enum class KvSharing : std::uint8_t { grouped, repeated };

// Memory order of activations around flash attention: sequence first needs no copy, batch first copies.
enum class AttentionLayout : std::uint8_t { sequence_first, batch_first };

// What the training stack keeps where the architecture leaves it open. The fields marked "exact" change
// only `--detail exact`; those that are absent are the training stack's own (StackKernels).
struct Kernels {
  AttentionKernel attention = AttentionKernel::unfused;
  Fusion softmax = Fusion::fused;         // exact: the fused kernel keeps its fp32 scale
  std::optional<Fusion> activation = {};  // unfused SwiGLU keeps silu(gate) too
  std::optional<Fusion> clamp = {};       // of a clamped activation: in its kernel, or operators ahead of it
  std::optional<NormKernel> normalization = {};
  std::optional<Fusion> expert_bias = {};  // of what experts make: one kernel, or operators for each expert
  std::optional<RotaryKernel> rotary = {};
  std::optional<CrossEntropy> cross_entropy = {};
  QkvLinear qkv = QkvLinear::one;  // exact: v pins the parts of the buffer q and k left
  std::optional<KvSharing> kv_sharing = {};
  AttentionLayout layout = AttentionLayout::sequence_first;
  Dtype softmax_dtype = Dtype::half;    // of the stored softmax output
  Dtype residual_dtype = Dtype::half;   // of the stream between blocks
  Dtype norm_statistics = Dtype::fp32;  // exact: mean and reciprocal deviation
  Dtype dropout_mask = Dtype::boolean;
  Dtype logits = Dtype::fp32;  // precision of the loss
  bool weight_copies = false;  // autocast keeps half-precision copies of fp32 weights
  bool holds_logits = false;   // the training loop, as its stack says
  friend bool operator==(const Kernels&, const Kernels&) = default;
};

// Those that a training stack runs where a model states none.
struct StackKernels {
  NormKernel normalization = NormKernel::fused;  // of an RMSNorm; a LayerNorm is one kernel everywhere
  Fusion activation = Fusion::fused;             // of a gated one; any other is one kernel everywhere
  Fusion clamp = Fusion::fused;
  Fusion expert_bias = Fusion::unfused;
  RotaryKernel rotary = RotaryKernel::fused;
  RotaryKernel scaled_rotary = RotaryKernel::fused;  // of models whose cosines and sines are scaled
  KvSharing kv_sharing = KvSharing::grouped;
  CrossEntropy cross_entropy = CrossEntropy::vocabulary_parallel;
  bool holds_logits = false;     // the training loop, during the backward pass
  bool compiled_layers = false;  // a checkpoint's cache keeps no more of one than its backward pass needs
  friend auto operator<=>(const StackKernels&, const StackKernels&) = default;
};

template <>
inline constexpr std::array<Spelling<AttentionKernel>, 3> spellings<AttentionKernel>{{
    {AttentionKernel::unfused, "unfused"},
    {AttentionKernel::flash, "flash"},
    {AttentionKernel::sdpa_math, "sdpa_math"},
}};
template <>
inline constexpr std::array<Spelling<Fusion>, 2> spellings<Fusion>{{
    {Fusion::fused, "fused"},
    {Fusion::unfused, "unfused"},
}};
template <>
inline constexpr std::array<Spelling<NormKernel>, 4> spellings<NormKernel>{{
    {NormKernel::fused, "fused"},
    {NormKernel::unfused, "unfused"},
    {NormKernel::unfused_mean, "unfused_mean"},
    {NormKernel::composite, "composite"},
}};
template <>
inline constexpr std::array<Spelling<RotaryKernel>, 4> spellings<RotaryKernel>{{
    {RotaryKernel::fused, "fused"},
    {RotaryKernel::complex, "complex"},
    {RotaryKernel::rotate_half, "rotate_half"},
    {RotaryKernel::rotate_chunks, "rotate_chunks"},
}};
template <>
inline constexpr std::array<Spelling<CrossEntropy>, 9> spellings<CrossEntropy>{{
    {CrossEntropy::vocabulary_parallel, "vocabulary_parallel"},
    {CrossEntropy::plain, "plain"},
    {CrossEntropy::log_softmax_gather, "log_softmax_gather"},
    {CrossEntropy::fused, "fused"},
    {CrossEntropy::fused_fp32, "fused_fp32"},
    {CrossEntropy::chunked, "chunked"},
    {CrossEntropy::linear_fused, "linear_fused"},
    {CrossEntropy::compiled, "compiled"},
    {CrossEntropy::plain_half, "plain_half"},
}};
template <>
inline constexpr std::array<Spelling<QkvLinear>, 2> spellings<QkvLinear>{{
    {QkvLinear::one, "one"},
    {QkvLinear::separate, "separate"},
}};
template <>
inline constexpr std::array<Spelling<KvSharing>, 2> spellings<KvSharing>{{
    {KvSharing::grouped, "grouped"},
    {KvSharing::repeated, "repeated"},
}};
template <>
inline constexpr std::array<Spelling<AttentionLayout>, 2> spellings<AttentionLayout>{{
    {AttentionLayout::sequence_first, "sequence_first"},
    {AttentionLayout::batch_first, "batch_first"},
}};

}  // namespace headroom
