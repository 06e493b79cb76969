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
#include "headroom/model/kernels.hpp"
#include "headroom/model/parts/mixers.hpp"

namespace headroom {

enum class Activation : std::uint8_t { gelu, relu, squared_relu, swiglu, geglu };
enum class Normalization : std::uint8_t { layer_norm, rms_norm };
// alibi: a bias on the scores, linear in the distance [BLOOM, arXiv:2211.05100].
enum class Positions : std::uint8_t { learned, rotary, alibi, none };

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
  // N groups of as many experts, one behind the other, and the M that a token's experts may be in; 0: all of them [DeepSeek-V2,
  // arXiv:2405.04434, 2.2.2; Megatron-LM, --moe-router-num-groups, --moe-router-group-topk].
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 0;
  // D, the width that tokens are projected to before they go to the experts, and from when they are back: experts read and make
  // so many numbers a token [Megatron-LM, --moe-latent-size]. 0: they read the hidden size.
  std::int64_t latent = 0;
  bool shared_gate = false;  // their output is multiplied by a score of each token
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

constexpr std::int64_t groups_per_token(const Experts& experts) {
  return experts.groups_per_token > 0 ? experts.groups_per_token : experts.groups;
}

// The parts that a layer has: a mixer of tokens, which is attention or another, and an MLP or a mixture of experts; or one of them,
// with a normalization and a residual add of its own [Megatron-LM, --hybrid-layer-pattern].
enum class LayerParts : std::uint8_t { both, mixer, mlp };

// The choices of op table rows. A literal type, so that tables can be composed at compile time.
struct Architecture {
  Activation activation = Activation::gelu;
  // Both projections of a gated activation are clamped before it, and one is added to the second (gpt-oss).
  bool clamped_activation = false;
  Normalization normalization = Normalization::layer_norm;
  Positions positions = Positions::learned;
  bool scaled_rotary = false;  // cosines and sines are multiplied by a number (YaRN, arXiv:2309.00071)
  bool linear_bias = true;     // biases of the projection and the MLP
  bool qkv_bias = true;
  bool hidden_dropout = true;     // after attention, MLP and embedding
  bool attention_dropout = true;  // on the softmax output
  bool tied_embeddings = true;
  bool final_softcap = false;  // logits go through cap tanh(logits/cap) (Gemma 2)
  NormPosition norm_position = NormPosition::before;
  ResidualForm residual = ResidualForm::sequential;
  QkNorm qk_norm = QkNorm::none;
  std::int64_t window = 0;  // tokens that a query sees, itself among them; 0: all before it
  std::int64_t attention_chunk =
      0;                           // tokens of a sequence that attend to one another alone (Llama 4); 0: all
  bool attention_sinks = false;    // a learned logit for each head in its softmax's sum (gpt-oss)
  bool attention_softcap = false;  // scores go through cap tanh(scores/cap) (Gemma 2)
  // Its output is multiplied by a sigmoid of another projection of as many heads (Qwen3-Next) [Megatron-LM, --attention-output-gate].
  bool attention_gate = false;
  std::optional<LatentAttention> latent_attention;
  Mixers mixers;                   // in place of attention
  std::optional<Experts> experts;  // in place of the MLP
  LayerParts parts = LayerParts::both;
  Kernels kernels;
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

// Gated activations multiply two projections of width f.
constexpr bool is_gated(Activation activation) {
  return activation == Activation::swiglu || activation == Activation::geglu;
}

// With the kernels of a training stack where it states none.
constexpr Architecture with_kernels(Architecture architecture, const StackKernels& of_stack) {
  Kernels& own = architecture.kernels;
  const bool chain = architecture.normalization == Normalization::rms_norm;
  if (!own.normalization) own.normalization = chain ? of_stack.normalization : NormKernel::fused;
  if (!own.activation)
    own.activation = is_gated(architecture.activation) ? of_stack.activation : Fusion::fused;
  if (!own.clamp) own.clamp = of_stack.clamp;
  if (!own.expert_bias) own.expert_bias = of_stack.expert_bias;
  if (!own.rotary) own.rotary = architecture.scaled_rotary ? of_stack.scaled_rotary : of_stack.rotary;
  if (!own.kv_sharing) own.kv_sharing = of_stack.kv_sharing;
  if (!own.cross_entropy) own.cross_entropy = of_stack.cross_entropy;
  own.holds_logits = of_stack.holds_logits;
  return architecture;
}

// A layer of an MLP alone has no other mixer either, and one of a mixer alone has no experts.
constexpr bool has_attention(const Architecture& layer) {
  return layer.parts != LayerParts::mlp && !has_mixer(layer.mixers);
}
constexpr bool has_dense_mlp(const Architecture& layer) {
  return layer.parts != LayerParts::mixer && !layer.experts;
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

// Whether a model's description states its attention kernel. Who states it is no property of a model, so that all are equal.
struct StatedKernel {
  bool stated = true;
  friend constexpr bool operator==(StatedKernel, StatedKernel) { return true; }
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
  StatedKernel attention_kernel = {};  // `kernels.attention` of no layer, where it does not
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

// Whether any layer has a mixer.
template <class Mixer>
bool any_mixer(const Transformer& model, std::optional<Mixer> Mixers::*mixer) {
  return any_layer(model, [&](const Architecture& layer) { return (layer.mixers.*mixer).has_value(); });
}

inline bool any_experts(const Transformer& model) {
  return any_layer(model, [](const Architecture& layer) { return layer.experts.has_value(); });
}

// With the attention kernel of a training stack, where the model states none.
Transformer with_attention(Transformer model, AttentionKernel of_stack);

inline bool any_flash_attention(const Transformer& model) {
  return any_layer(model, [](const Architecture& layer) {
    return has_attention(layer) && layer.kernels.attention == AttentionKernel::flash;
  });
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
inline constexpr std::array<Spelling<LayerParts>, 3> spellings<LayerParts>{{
    {LayerParts::both, "both"},
    {LayerParts::mixer, "mixer"},
    {LayerParts::mlp, "mlp"},
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

}  // namespace headroom
