// Kernels of a training stack that change what is saved for the backward pass, and how many passes over
// memory a layer takes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>

#include "headroom/core/dtype.hpp"
#include "headroom/core/names.hpp"

namespace headroom {

// Attention kernel.
// unfused: QK^T, softmax, dropout and the product with V are separate kernels, and each stores its result.
// flash: one kernel that saves q, k, v, its output and the log-sum-exp of each row.
// sdpa_math: PyTorch's composite scaled_dot_product_attention, which scales a copy of q.
enum class AttentionKernel : std::uint8_t { unfused, flash, sdpa_math };

// Form of an op: one fused kernel, or the chain of elementwise kernels that an eager engine runs.
enum class Fusion : std::uint8_t { fused, unfused };

// Kernel of a normalization. fused: one kernel that saves its input and statistics. unfused: the eager chain
// of an RMSNorm (to fp32, square, sum, rsqrt, product, to half, weight), which saves the fp32 copy and the
// normalized half copy. unfused_mean: unfused, and the mean saves the squares too, as in PyTorch 1.13.
// composite: the chain of torch.nn.RMSNorm before PyTorch 2.9, which multiplies by the weight in fp32 and
// saves fp32 copies of both [aten/src/ATen/native/layer_norm.cpp, rms_norm_symint].
enum class NormKernel : std::uint8_t { fused, unfused, unfused_mean, composite };

// Kernel of rotary positions.
// fused: one kernel.
// complex: q and k are cast to FP32 complex numbers and back [torchtitan and Meta's Llama, apply_rotary_emb].
// rotate_half: products with cosines and, for a copy with exchanged halves, with sines [transformers,
// apply_rotary_pos_emb].
// rotate_chunks: rotate_half, with halves that are chunks of one tensor, and with tables of cosines and sines
// that each call makes. The part of a head without positions is concatenated, even if it is empty
// [Megatron-LM, core/models/common/embeddings/rope_utils.py, _apply_rotary_pos_emb_bshd].
enum class RotaryKernel : std::uint8_t { fused, complex, rotate_half, rotate_chunks };

// Cross entropy.
// vocabulary_parallel: Megatron's, which saves the fp32 softmax, the target mask and the masked target. Its
// native fused kernel saves the same (core/fusions/fused_cross_entropy.py).
// plain: torch cross_entropy over logits cast to `logits` precision.
// plain_half: torch cross_entropy over 16-bit logits, without a cast.
// log_softmax_gather: a log-softmax and an indexed read, written by hand.
// fused: saves only the gradient, written over the half-precision logits (Liger, Transformer Engine before
// its #3193).
// fused_fp32: saves only the gradient, in fp32 (Transformer Engine since #3193, pytorch/cross_entropy.py).
// chunked: output layer and loss run on an eighth of the tokens at a time, forward and backward at once. Only
// one chunk's logits exist at a time, and the gradient of the hidden states is saved [torchtitan,
// components/loss.py, ChunkedLossWrapper].
// linear_fused: chunked, with as many chunks as make their logits as large as the hidden states. The forward
// pass computes and saves the weight gradient [Liger, fused_linear_cross_entropy].
// compiled: plain under torch.compile, which saves the half-precision logits with a maximum and a sum of each
// token. One kernel computes the logit gradient from these.
// compiled_fp32: compiled, with logits that the model casts to fp32; saves the fp32 logits.
enum class CrossEntropy : std::uint8_t {
  vocabulary_parallel,
  plain,
  log_softmax_gather,
  fused,
  fused_fp32,
  chunked,
  linear_fused,
  compiled,
  plain_half,
  compiled_fp32
};

// Returns whether the output layer's forward pass also runs its backward pass, chunk by chunk.
constexpr bool in_chunks(CrossEntropy kind) {
  return kind == CrossEntropy::chunked || kind == CrossEntropy::linear_fused;
}

// one: q, k and v are views into the output of a single linear; separate: three linears.
enum class QkvLinear : std::uint8_t { one, separate };

// Use of k < a key/value heads by a query heads. grouped: broadcast inside the GEMM. repeated: first copied
// to a heads.
enum class KvSharing : std::uint8_t { grouped, repeated };

// Memory order of activations around flash attention: sequence first needs no copy, batch first copies.
enum class AttentionLayout : std::uint8_t { sequence_first, batch_first };

// Where an expert's result is multiplied with its probability.
// activation: before the down projection [Megatron-Core, weighted_bias_swiglu].
// output: the 16-bit output, which is saved for the gradient of the probability [Transformers].
// output_fp32: the output in FP32, which is saved [torchtitan, models/moe/moe.py].
enum class ExpertWeighting : std::uint8_t { activation, output, output_fp32 };

// How tokens reach experts that are padded to their capacity.
// indexed: a copy by row index.
// masked: GEMMs with a one-hot mask for each sequence, tokens x rows of all experts. Their FLOPs grow with
// the square of the sequence length [GShard, arXiv:2006.16668, algorithm 1; MaxText, layers/moe.py,
// dense_matmul].
enum class ExpertRouting : std::uint8_t { indexed, masked };

// What FP8 training also stores or sends in fewer than 16 bits, beside the inputs of linears.
// activation_input: what a SwiGLU saves, in E4M3 with a scale for 128 elements.
// context: what attention and its projection save, one copy for both, in E5M6.
// dispatch: tokens on their way to experts, and the gradients of the experts' output likewise, in E4M3.
// [DeepSeek-V3, arXiv:2412.19437, section 3.3.3]
enum class NarrowPart : std::uint8_t { activation_input, context, dispatch };
struct NarrowParts {
  bool activation_input = false;
  bool context = false;
  bool dispatch = false;
  friend auto operator<=>(const NarrowParts&, const NarrowParts&) = default;
};

// Kernels where the architecture leaves them open. Fields marked "exact" change only `--detail exact`. Absent
// fields are the training stack's (StackKernels).
struct Kernels {
  AttentionKernel attention = AttentionKernel::unfused;
  Fusion softmax = Fusion::fused;         // exact: the fused kernel saves its fp32 scale
  std::optional<Fusion> activation = {};  // unfused SwiGLU saves silu(gate) too
  std::optional<Fusion> clamp = {};       // of a clamped activation: in its kernel, or operators ahead of it
  std::optional<NormKernel> normalization = {};
  std::optional<Fusion> expert_bias = {};  // of what experts make: one kernel, or operators for each expert
  std::optional<RotaryKernel> rotary = {};
  std::optional<CrossEntropy> cross_entropy = {};
  std::optional<QkvLinear> qkv = {};  // exact: in one buffer, v pins the parts that q and k left
  std::optional<KvSharing> kv_sharing = {};
  AttentionLayout layout = AttentionLayout::sequence_first;
  std::optional<Dtype> softmax_dtype = {};  // of the stored softmax output
  Dtype residual_dtype = Dtype::half;       // of the stream between blocks
  Dtype norm_statistics = Dtype::fp32;      // exact: mean and reciprocal deviation
  Dtype dropout_mask = Dtype::boolean;
  Dtype logits = Dtype::fp32;   // precision of the loss
  bool weight_copies = false;   // autocast keeps half-precision copies of fp32 weights
  bool holds_logits = false;    // the training loop, as its stack says
  bool copies_context = false;  // flash attention writes one head after another, as its stack says
  ExpertWeighting expert_weighting = ExpertWeighting::activation;  // likewise
  ExpertRouting expert_routing = ExpertRouting::indexed;           // likewise
  Dtype activation_input = Dtype::half;  // what a fused SwiGLU saves of its input; the strategy says it
  friend bool operator==(const Kernels&, const Kernels&) = default;
};

// Kernels that a training stack runs if a model states none.
struct StackKernels {
  NormKernel normalization = NormKernel::fused;  // of an RMSNorm; a LayerNorm is one kernel everywhere
  Fusion activation = Fusion::fused;             // of a gated one; any other is one kernel everywhere
  Fusion clamp = Fusion::fused;
  Fusion expert_bias = Fusion::unfused;
  ExpertWeighting expert_weighting = ExpertWeighting::activation;
  ExpertRouting expert_routing = ExpertRouting::indexed;
  RotaryKernel rotary = RotaryKernel::fused;
  RotaryKernel scaled_rotary = RotaryKernel::fused;  // of models whose cosines and sines are scaled
  QkvLinear qkv = QkvLinear::one;
  KvSharing kv_sharing = KvSharing::grouped;
  Dtype softmax_dtype = Dtype::half;  // of unfused attention
  // Linears cast their FP32 weights to 16 bits at each use. The residual stream and the weights of
  // normalizations stay in FP32 [PyTorch, torch.autocast].
  bool autocast = false;
  CrossEntropy cross_entropy = CrossEntropy::vocabulary_parallel;
  bool holds_logits = false;     // the training loop, during the backward pass
  bool copies_context = false;   // flash attention writes one head after another, which the projection copies
  bool compiled_layers = false;  // a checkpoint's cache keeps no more of one than its backward pass needs
  NarrowParts fp8_parts = {};    // of layers whose linears are in fewer than 16 bits
  friend auto operator<=>(const StackKernels&, const StackKernels&) = default;
};

template <>
inline constexpr std::array<Spelling<AttentionKernel>, 3> spellings<AttentionKernel>{{
    {AttentionKernel::unfused, "unfused"},
    {AttentionKernel::flash, "flash"},
    {AttentionKernel::sdpa_math, "sdpa_math"},
}};
template <>
inline constexpr std::array<Spelling<NarrowPart>, 3> spellings<NarrowPart>{{
    {NarrowPart::activation_input, "activation_input"},
    {NarrowPart::context, "context"},
    {NarrowPart::dispatch, "dispatch"},
}};
template <>
inline constexpr std::array<Spelling<ExpertWeighting>, 3> spellings<ExpertWeighting>{{
    {ExpertWeighting::activation, "activation"},
    {ExpertWeighting::output, "output"},
    {ExpertWeighting::output_fp32, "output_fp32"},
}};
template <>
inline constexpr std::array<Spelling<ExpertRouting>, 2> spellings<ExpertRouting>{{
    {ExpertRouting::indexed, "indexed"},
    {ExpertRouting::masked, "masked"},
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
inline constexpr std::array<Spelling<CrossEntropy>, 10> spellings<CrossEntropy>{{
    {CrossEntropy::vocabulary_parallel, "vocabulary_parallel"},
    {CrossEntropy::plain, "plain"},
    {CrossEntropy::log_softmax_gather, "log_softmax_gather"},
    {CrossEntropy::fused, "fused"},
    {CrossEntropy::fused_fp32, "fused_fp32"},
    {CrossEntropy::chunked, "chunked"},
    {CrossEntropy::linear_fused, "linear_fused"},
    {CrossEntropy::compiled, "compiled"},
    {CrossEntropy::plain_half, "plain_half"},
    {CrossEntropy::compiled_fp32, "compiled_fp32"},
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
