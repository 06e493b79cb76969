// A decoder-only transformer: its sizes, the architecture choices that change what is computed, and the
// kernels that change what is kept for the backward pass. K22's GPT is the instance that the defaults give.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/core/dtype.hpp"
#include "headroom/core/names.hpp"
#include "headroom/model/attention_variants.hpp"

namespace headroom {

enum class Activation : std::uint8_t { gelu, relu, squared_relu, swiglu, geglu };
enum class Normalization : std::uint8_t { layer_norm, rms_norm };
// alibi: a bias on the scores, linear in the distance [BLOOM, arXiv:2211.05100].
enum class Positions : std::uint8_t { learned, rotary, alibi, none };

// unfused: QK^T, softmax, dropout and the product with V as kernels of their own, all of them storing.
// flash: one kernel that keeps q, k, v, its output and the log-sum-exp of each row.
// sdpa_math: PyTorch's composite scaled_dot_product_attention, which scales a copy of q.
enum class AttentionKernel : std::uint8_t { unfused, flash, sdpa_math };

// Whether an op runs as one fused kernel or as the chain of elementwise kernels an eager engine makes of it.
enum class Fusion : std::uint8_t { fused, unfused };

// fused: one kernel that keeps its input and statistics. unfused: the eager chain of an RMSNorm (to fp32,
// square, sum, rsqrt, product, to half, weight), which keeps the fp32 copy and the normalised half copy.
// unfused_mean: the same where the mean keeps the squares too, as in PyTorch 1.13.
enum class NormKernel : std::uint8_t { fused, unfused, unfused_mean };

// vocabulary_parallel: Megatron's, keeps the fp32 softmax, the target mask and the masked target; so does its native fused
// one (core/fusions/fused_cross_entropy.py).
// plain: torch cross_entropy over logits cast to `logits` precision.
// log_softmax_gather: the log-softmax and an indexed read, written by hand.
// fused: keeps only the gradient, written over the half-precision logits (Liger, Transformer Engine before its #3193).
// fused_fp32: keeps only the gradient, in fp32 (Transformer Engine since then, pytorch/cross_entropy.py).
// chunked: the output layer and its loss run over an eighth of the tokens at a time, forward and backward at once, so that no
// more logits exist, and the gradient of the hidden states is kept [torchtitan, components/loss.py, ChunkedLossWrapper].
// linear_fused: the same over as many chunks as make their logits as large as the hidden states, with the gradient of the weights
// made in the forward pass and kept [Liger, fused_linear_cross_entropy].
enum class CrossEntropy : std::uint8_t {
  vocabulary_parallel,
  plain,
  log_softmax_gather,
  fused,
  fused_fp32,
  chunked,
  linear_fused
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
// only `--detail exact`.
struct Kernels {
  AttentionKernel attention = AttentionKernel::unfused;
  Fusion softmax = Fusion::fused;     // exact: the fused kernel keeps its fp32 scale
  Fusion activation = Fusion::fused;  // unfused SwiGLU keeps silu(gate) too
  NormKernel normalization = NormKernel::fused;
  std::optional<CrossEntropy> cross_entropy = {};  // absent: the training stack's own
  QkvLinear qkv = QkvLinear::one;                  // exact: v pins the parts of the buffer q and k left
  KvSharing kv_sharing = KvSharing::grouped;
  AttentionLayout layout = AttentionLayout::sequence_first;
  Dtype softmax_dtype = Dtype::half;    // of the stored softmax output
  Dtype residual_dtype = Dtype::half;   // of the stream between blocks
  Dtype norm_statistics = Dtype::fp32;  // exact: mean and reciprocal deviation
  Dtype dropout_mask = Dtype::boolean;
  Dtype logits = Dtype::fp32;  // precision of the loss
  bool weight_copies = false;  // autocast keeps half-precision copies of fp32 weights
  friend bool operator==(const Kernels&, const Kernels&) = default;
};

// How a router makes probabilities of its logits: a softmax over those of the chosen experts, one over all of them before
// the choice, or a sigmoid of each, normalized over the chosen [Megatron-LM, --moe-router-score-function,
// --moe-router-pre-softmax].
enum class RouterScores : std::uint8_t { softmax, softmax_before_choice, sigmoid };

// The mixture of experts of a layer.
struct Experts {
  std::int64_t count = 0;               // E
  std::int64_t per_token = 0;           // q
  std::int64_t feedforward = 0;         // g, the width of one
  std::int64_t shared_feedforward = 0;  // u, the width of all shared ones together; 0: there are none
  bool shared_gate = false;             // their output is multiplied by a score of each token
  RouterScores scores = RouterScores::softmax;
  bool auxiliary_loss = true;        // for an even load, on scores of its own
  Dtype router_dtype = Dtype::fp32;  // of logits and probabilities
  // Whether the activation's kernel multiplies by the probabilities, or a chain of kernels in fp32 behind it.
  Fusion weighting = Fusion::fused;
  bool router_bias = false;   // a number for each expert, added to its scores
  bool scale_inputs = false;  // probabilities multiply what experts read, not what they make (Llama 4)
  // Tokens that an expert takes at most, times the mean; the others are dropped. Absent: none is.
  std::optional<double> capacity_factor = {};
  friend bool operator==(const Experts&, const Experts&) = default;
};

// The choices of op table rows. A literal type, so that tables can be composed at compile time.
struct Architecture {
  Activation activation = Activation::gelu;
  Normalization normalization = Normalization::layer_norm;
  Positions positions = Positions::learned;
  bool linear_bias = true;  // biases of the projection and the MLP
  bool qkv_bias = true;
  bool hidden_dropout = true;     // after attention, MLP and embedding
  bool attention_dropout = true;  // on the softmax output
  bool tied_embeddings = true;
  bool final_softcap = false;  // logits go through cap tanh(logits/cap) (Gemma 2)
  NormPosition norm_position = NormPosition::before;
  ResidualForm residual = ResidualForm::sequential;
  QkNorm qk_norm = QkNorm::none;
  std::int64_t window = 0;         // tokens that a query sees, itself among them; 0: all before it
  bool attention_sinks = false;    // a learned logit for each head in its softmax's sum (gpt-oss)
  bool attention_softcap = false;  // scores go through cap tanh(scores/cap) (Gemma 2)
  std::optional<LatentAttention> latent_attention;
  std::optional<Experts> experts;  // in place of the MLP
  Kernels kernels;
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

// Gated activations multiply two projections of width f.
constexpr bool is_gated(Activation activation) {
  return activation == Activation::swiglu || activation == Activation::geglu;
}

// Far beyond any model, and low enough for tables by layer.
inline constexpr std::int64_t most_layers = 100'000;

// A kind of layer that a model has beside others: what its layers have of their own. All layers of a model have its hidden
// size, the precision of the stream between them and the ends of the model in common.
struct LayerDescription {
  std::string name;
  std::int64_t feedforward = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_size = 0;
  Architecture architecture;
  friend bool operator==(const LayerDescription&, const LayerDescription&) = default;
};

// Consecutive layers of one kind, by its place in a list of kinds.
struct LayerRun {
  std::size_t kind = 0;
  std::int64_t count = 0;
  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};

struct Transformer {
  std::string name;
  std::string source;                // where the sizes were published
  std::int64_t hidden = 0;           // h
  std::int64_t feedforward = 0;      // f, the width of one projection
  std::int64_t heads = 0;            // a
  std::int64_t key_value_heads = 0;  // k; equals heads without grouped-query attention
  std::int64_t head_size = 0;        // e; hidden / heads unless the model says otherwise
  std::int64_t layers = 0;           // L
  std::int64_t vocabulary = 0;       // before padding
  std::int64_t vocabulary_multiple =
      1;                           // the padded vocabulary is a multiple of this times t (Megatron: 128)
  std::int64_t sequence = 0;       // default training length, tokens
  std::int64_t max_positions = 0;  // rows of a learned position table
  Architecture architecture;
  std::int64_t mtp_layers = 0;  // depths of multi-token prediction, each with a layer as the last one
  // Where not all layers are alike: their kinds, each of which some run names, and the runs in the order of the model, which
  // add up to `layers`. Otherwise both are empty, and the layers are as the members above say.
  std::vector<LayerDescription> layer_kinds = {};
  std::vector<LayerRun> layer_runs = {};
  friend bool operator==(const Transformer&, const Transformer&) = default;
};

// A layer of the sizes that the model itself has.
LayerDescription own_layer(const Transformer& model);

// Whether a rule holds for the architecture of any layer.
template <class Rule>
bool any_layer(const Transformer& model, Rule rule) {
  if (model.layer_kinds.empty()) return rule(model.architecture);
  for (const LayerDescription& kind : model.layer_kinds) {
    if (rule(kind.architecture)) return true;
  }
  return false;
}

inline bool any_experts(const Transformer& model) {
  return any_layer(model, [](const Architecture& layer) { return layer.experts.has_value(); });
}

inline bool any_flash_attention(const Transformer& model) {
  return any_layer(
      model, [](const Architecture& layer) { return layer.kernels.attention == AttentionKernel::flash; });
}

// v as a tensor-parallel rank group holds it: rounded up to a multiple of vocabulary_multiple * t
// [Megatron-LM, --make-vocab-size-divisible-by].
std::int64_t padded_vocabulary(const Transformer& model, std::int64_t tensor_parallel);

template <>
inline constexpr std::array<Spelling<RouterScores>, 3> spellings<RouterScores>{{
    {RouterScores::softmax, "softmax"},
    {RouterScores::softmax_before_choice, "softmax_before_choice"},
    {RouterScores::sigmoid, "sigmoid"},
}};
template <>
inline constexpr std::array<Spelling<Activation>, 5> spellings<Activation>{{
    {Activation::gelu, "gelu"},
    {Activation::relu, "relu"},
    {Activation::squared_relu, "squared_relu"},
    {Activation::swiglu, "swiglu"},
    {Activation::geglu, "geglu"},
}};
template <>
inline constexpr std::array<Spelling<Normalization>, 2> spellings<Normalization>{{
    {Normalization::layer_norm, "layer_norm"},
    {Normalization::rms_norm, "rms_norm"},
}};
template <>
inline constexpr std::array<Spelling<Positions>, 4> spellings<Positions>{{
    {Positions::learned, "learned"},
    {Positions::rotary, "rotary"},
    {Positions::alibi, "alibi"},
    {Positions::none, "none"},
}};
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
inline constexpr std::array<Spelling<NormKernel>, 3> spellings<NormKernel>{{
    {NormKernel::fused, "fused"},
    {NormKernel::unfused, "unfused"},
    {NormKernel::unfused_mean, "unfused_mean"},
}};
template <>
inline constexpr std::array<Spelling<CrossEntropy>, 7> spellings<CrossEntropy>{{
    {CrossEntropy::vocabulary_parallel, "vocabulary_parallel"},
    {CrossEntropy::plain, "plain"},
    {CrossEntropy::log_softmax_gather, "log_softmax_gather"},
    {CrossEntropy::fused, "fused"},
    {CrossEntropy::fused_fp32, "fused_fp32"},
    {CrossEntropy::chunked, "chunked"},
    {CrossEntropy::linear_fused, "linear_fused"},
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
