// A decoder-only transformer: its sizes, the architecture choices that change what is computed, and the
// kernels that change what is saved for the backward pass. The defaults give K22's GPT.
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
// Position information. alibi: a bias on the scores, linear in the distance [BLOOM, arXiv:2211.05100].
enum class Positions : std::uint8_t { learned, rotary, alibi, none };

// Probabilities of a router from its logits: a softmax over the chosen experts, a softmax over all experts
// before the choice, or a sigmoid of each, normalized over the chosen experts [Megatron-LM,
// --moe-router-score-function, --moe-router-pre-softmax].
enum class RouterScores : std::uint8_t { softmax, softmax_before_choice, sigmoid };

// The mixture of experts of a layer.
struct Experts {
  std::int64_t count = 0;               // E
  std::int64_t per_token = 0;           // q
  std::int64_t feedforward = 0;         // g, the width of one
  std::int64_t shared_feedforward = 0;  // u, the width of all shared ones together; 0: there are none
  // N groups of equally many consecutive experts, and M, the largest number of groups that a token's experts
  // may be in; M = 0: all groups [DeepSeek-V2, arXiv:2405.04434, 2.2.2; Megatron-LM, --moe-router-num-groups,
  // --moe-router-group-topk].
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 0;
  // D, the latent width. Tokens are projected to it before dispatch and back after they return, so experts
  // read and write D numbers a token [Megatron-LM, --moe-latent-size]. 0: experts read the hidden size.
  std::int64_t latent = 0;
  bool shared_gate = false;  // multiplies the shared experts' output by a score of each token
  RouterScores scores = RouterScores::softmax;
  bool auxiliary_loss = true;        // for balanced load, on its own scores
  Dtype router_dtype = Dtype::fp32;  // of logits and probabilities
  // fused: the activation's kernel multiplies by the probabilities. unfused: a chain of FP32 kernels after it
  // does.
  Fusion weighting = Fusion::fused;
  bool router_bias = false;   // a number for each expert, added to its scores
  bool scale_inputs = false;  // probabilities multiply what experts read, not what they make (Llama 4)
  // Largest number of tokens of an expert, over the mean; further tokens are dropped. Absent: no limit.
  std::optional<double> capacity_factor = {};
  friend bool operator==(const Experts&, const Experts&) = default;
};

constexpr std::int64_t groups_per_token(const Experts& experts) {
  return experts.groups_per_token > 0 ? experts.groups_per_token : experts.groups;
}

// Parts of a layer: a token mixer (attention or another) and an MLP or a mixture of experts, or only one of
// the two, with its own normalization and residual add [Megatron-LM, --hybrid-layer-pattern].
enum class LayerParts : std::uint8_t { both, mixer, mlp };

// Choices that determine the rows of an op table. A literal type, so that tables can be composed at compile
// time.
struct Architecture {
  Activation activation = Activation::gelu;
  // Both projections of a gated activation are clamped before it, and 1 is added to the second (gpt-oss).
  bool clamped_activation = false;
  Normalization normalization = Normalization::layer_norm;
  bool norm_bias = true;  // of layer_norm; rms_norm has none
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
  std::int64_t window = 0;  // tokens that a query attends to, itself included; 0: all previous tokens
  std::int64_t attention_chunk =
      0;                           // tokens of a sequence that attend to one another alone (Llama 4); 0: all
  bool attention_sinks = false;    // a learned logit for each head in its softmax's sum (gpt-oss)
  bool attention_softcap = false;  // scores go through cap tanh(scores/cap) (Gemma 2)
  // Attention output is multiplied by a sigmoid of another projection with as many heads (Qwen3-Next)
  // [Megatron-LM, --attention-output-gate].
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

// Returns whether the activation can save its input in fewer than 16 bits: a fused SwiGLU [Megatron-LM,
// core/fusions/fused_bias_swiglu.py, fp8_input_store].
constexpr bool can_store_narrow(const Architecture& layer) {
  return layer.activation == Activation::swiglu &&
         layer.kernels.activation.value_or(Fusion::fused) == Fusion::fused;
}
// Returns whether it does: it reads 16 bits and saves an FP8 copy of them.
constexpr bool stores_narrow(const Architecture& layer) {
  return can_store_narrow(layer) && layer.kernels.activation_input == Dtype::fp8;
}
// Returns whether the activation reads its input in FP8, with scales for blocks, and saves that.
constexpr bool reads_quantized(const Architecture& layer) {
  return can_store_narrow(layer) && layer.kernels.activation_input == Dtype::fp8_blockwise;
}

// Returns the architecture with a training stack's kernels where the architecture states none.
constexpr Architecture with_kernels(Architecture architecture, const StackKernels& of_stack) {
  Kernels& own = architecture.kernels;
  const bool chain = architecture.normalization == Normalization::rms_norm;
  if (!own.normalization) own.normalization = chain ? of_stack.normalization : NormKernel::fused;
  if (!own.activation)
    own.activation = is_gated(architecture.activation) ? of_stack.activation : Fusion::fused;
  if (!own.clamp) own.clamp = of_stack.clamp;
  if (!own.expert_bias) own.expert_bias = of_stack.expert_bias;
  // Kernels of latent attention scale the tables by themselves.
  const bool scaled = architecture.scaled_rotary && !architecture.latent_attention;
  if (!own.rotary) own.rotary = scaled ? of_stack.scaled_rotary : of_stack.rotary;
  if (!own.qkv) own.qkv = of_stack.qkv;
  if (!own.kv_sharing) own.kv_sharing = of_stack.kv_sharing;
  if (!own.softmax_dtype)
    own.softmax_dtype = own.attention == AttentionKernel::unfused ? of_stack.softmax_dtype : Dtype::half;
  if (of_stack.autocast) {
    own.weight_copies = true;
    own.residual_dtype = Dtype::fp32;
  }
  if (!own.cross_entropy) own.cross_entropy = of_stack.cross_entropy;
  own.holds_logits = of_stack.holds_logits;
  own.copies_context = of_stack.copies_context;
  own.expert_weighting = of_stack.expert_weighting;
  own.expert_routing = of_stack.expert_routing;
  return architecture;
}

// In a layer with only an MLP, `mixers` is empty. In a layer with only a mixer, `experts` is absent.
constexpr bool has_attention(const Architecture& layer) {
  return layer.parts != LayerParts::mlp && !has_mixer(layer.mixers);
}
constexpr bool has_dense_mlp(const Architecture& layer) {
  return layer.parts != LayerParts::mixer && !layer.experts;
}

// Largest number of layers: far beyond any model, and low enough for tables by layer.
inline constexpr std::int64_t most_layers = 100'000;

// Description of one kind of layer in a model with several kinds. All layers share the model's hidden size,
// the dtype of the residual stream, and the two ends.
struct LayerDescription {
  std::string name;
  std::int64_t feedforward = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_size = 0;
  Architecture architecture;
  friend bool operator==(const LayerDescription&, const LayerDescription&) = default;
};

// Consecutive layers of one kind, given by its index in a list of kinds.
struct LayerRun {
  std::size_t kind = 0;
  std::int64_t count = 0;
  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};

// Flag: the model's description states its attention kernel. All values compare equal, since the origin of a
// kernel is not a property of the model.
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
  // If the layers differ: their kinds, each named by some run, and the runs in the model's order, whose
  // counts add up to `layers`. Otherwise both are empty, and the members above describe every layer.
  std::vector<LayerDescription> layer_kinds = {};
  std::vector<LayerRun> layer_runs = {};
  StatedKernel attention_kernel = {};  // not stated: no layer's `kernels.attention` is
  friend bool operator==(const Transformer&, const Transformer&) = default;
};

// Returns a layer with the model's own sizes.
LayerDescription own_layer(const Transformer& model);

// Returns whether a rule holds for the architecture of any layer.
template <class Rule>
bool any_layer(const Transformer& model, Rule rule) {
  if (model.layer_kinds.empty()) return rule(model.architecture);
  for (const LayerDescription& kind : model.layer_kinds) {
    if (rule(kind.architecture)) return true;
  }
  return false;
}

// Returns whether any layer has the mixer.
template <class Mixer>
bool any_mixer(const Transformer& model, std::optional<Mixer> Mixers::*mixer) {
  return any_layer(model, [&](const Architecture& layer) { return (layer.mixers.*mixer).has_value(); });
}

inline bool any_experts(const Transformer& model) {
  return any_layer(model, [](const Architecture& layer) { return layer.experts.has_value(); });
}

// Returns the model with a training stack's attention kernel if the model states none.
Transformer with_attention(Transformer model, AttentionKernel of_stack);

inline bool any_flash_attention(const Transformer& model) {
  return any_layer(model, [](const Architecture& layer) {
    return has_attention(layer) && layer.kernels.attention == AttentionKernel::flash;
  });
}

// Returns v as a group of TP ranks holds it: rounded up to a multiple of vocabulary_multiple * t
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
