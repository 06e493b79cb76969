#include "headroom/parallel/precision_legality.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace headroom {
namespace {

// Whether a recomputation casts again what it makes again, which delayed scaling cannot: it has no second look at what it casts
// [Megatron-LM, core/transformer/transformer_config.py].
bool recomputes_a_cast(const Recomputation& recompute) {
  constexpr std::array<std::string_view, 6> casting{"layernorm", "moe_act",           "norm_1",
                                                    "norm_2",    "expert_activation", "activation"};
  return std::any_of(recompute.ops.begin(), recompute.ops.end(), [&](const std::string& name) {
    return std::any_of(casting.begin(), casting.end(), [&](std::string_view op) {
      return name == op || name.ends_with("." + std::string(op));
    });
  });
}

// Whether some of a mixer's linears are of none of these modules: the first group is of them all, the others are its parts.
template <std::size_t N>
bool leaves_some(const PrecisionModules& modules, const FixedVector<LinearGroup, N>& groups) {
  const auto has = [&](const LinearGroup& group) {
    return modules.contains(from_name<PrecisionModule>(group.name).value());
  };
  if (groups.empty() || has(groups[0])) return false;
  return groups.size() == 1 || !std::all_of(groups.begin() + 1, groups.end(), has);
}

// Those of the weights and of the tokens of a rank, that are not as long as kernels need.
class Extents {
 public:
  Extents(const Strategy& strategy, std::vector<Problem>& problems)
      : row_(row_of(strategy.precision)), strategy_(strategy), problems_(problems) {}

  void check(std::int64_t extent, std::string_view what, std::int64_t multiple, std::string_view kind = {}) {
    if (extent % multiple == 0) return;
    const std::string of = kind.empty() ? "" : " of '" + std::string(kind) + "' layers";
    problems_.push_back({"precision", std::string(row_.name) + " needs " + std::string(what) + of +
                                          " on a rank to be a multiple of " + std::to_string(multiple) +
                                          ", not " + std::to_string(extent)});
  }

  template <class Layer>
  void check_layer(const Layer& layer, std::string_view kind) {
    const std::int64_t t = strategy_.tensor_parallel;
    using enum PrecisionModule;
    if (has_attention(layer.architecture) && !all_half(attention, linear_qkv, linear_proj)) {
      check_attention(layer, kind);
    }
    with_mixer(layer.architecture.mixers, [&](const auto& row, const auto& mixer) {
      if (!leaves_some(strategy_.precision_scope.bf16_modules, row.linears)) return;
      for (const auto& width : row.widths) check(width.of(mixer) / t, width.what, row_.multiple, kind);
    });
    if (const std::optional<Experts>& of_experts = layer.architecture.experts) {
      const auto check_width = [&](PrecisionModule module, std::int64_t width, const char* what) {
        if (!is_half(module)) check(width, what, row_.multiple, kind);
      };
      check_width(experts, of_experts->feedforward / strategy_.expert_tensor_parallel,
                  "the width of an expert");
      check_width(shared_experts, of_experts->shared_feedforward / t, "the width of the shared experts");
      // Experts read it too.
      if (!is_half(experts) || !is_half(latent_proj)) {
        check(of_experts->latent, "the latent width of the experts", row_.multiple, kind);
      }
    }
    if (has_dense_mlp(layer.architecture) && !is_half(mlp)) {
      check(layer.feedforward / t, "the feed-forward width", row_.multiple, kind);
    }
  }

  template <class Layer>
  void check_attention(const Layer& layer, std::string_view kind) {
    const std::int64_t t = strategy_.tensor_parallel;
    const std::int64_t key_value_heads = std::max(layer.key_value_heads / t, std::int64_t{1});
    check(layer.heads * layer.head_size / t, "the width of the query heads", row_.multiple, kind);
    check(key_value_heads * layer.head_size, "the width of the key heads", row_.multiple, kind);
    if (const std::optional<LatentAttention>& latent = layer.architecture.latent_attention) {
      check(latent->q_rank, "the rank of latent queries", row_.multiple, kind);
      check(latent->kv_rank, "the rank of latent keys and values", row_.multiple, kind);
      check(layer.heads * latent->value_head_size / t, "the width of the value heads", row_.multiple, kind);
    }
  }

  void check_output_layer(const Transformer& model) {
    const std::int64_t t = strategy_.tensor_parallel;
    check(padded_vocabulary(model, t) / t, "the padded vocabulary", row_.multiple);
  }

  // Rows of experts are padded.
  void check_tokens(const Workload& workload) {
    const std::int64_t ranks = strategy_.sequence_parallel ? strategy_.tensor_parallel : 1;
    check(workload.sequence * strategy_.micro_batch / ranks, "the tokens of a microbatch", row_.row_multiple);
  }

 private:
  [[nodiscard]] bool is_half(PrecisionModule module) const {
    return strategy_.precision_scope.bf16_modules.contains(module);
  }
  // Of a module, or of both of its parts.
  [[nodiscard]] bool all_half(PrecisionModule whole, PrecisionModule first, PrecisionModule second) const {
    return is_half(whole) || (is_half(first) && is_half(second));
  }

  const PrecisionRow& row_;
  const Strategy& strategy_;
  std::vector<Problem>& problems_;
};

// Adds a problem where a rule does not hold.
class Demands {
 public:
  explicit Demands(std::vector<Problem>& problems) : problems_(problems) {}
  void operator()(bool holds, const char* field, std::string rule) const {
    if (!holds) problems_.push_back({field, std::move(rule)});
  }

 private:
  std::vector<Problem>& problems_;
};

// What a precision of 16 bits has no use for.
void check_unused(const Strategy& strategy, const Demands& require) {
  const PrecisionScope& scope = strategy.precision_scope;
  constexpr const char* rule = "needs `precision` of fewer than 16 bits";
  require(!strategy.fp8_param_gather, "fp8_param_gather", rule);
  require(scope.bf16_layers_at_start == 0, "bf16_layers_at_start", rule);
  require(scope.bf16_layers_at_end == 0, "bf16_layers_at_end", rule);
  require(!scope.attention, "fp8_attention", rule);
  require(!strategy.moe_router_padding, "moe_router_padding", rule);
  require(!scope.output_layer, "fp8_output_layer", rule);
  require(scope.bf16_modules.empty(), "bf16_modules", rule);
}

bool has_linears_of(PrecisionModule module, const Architecture& layer) {
  switch (module) {
    case PrecisionModule::attention:
    case PrecisionModule::linear_qkv:
    case PrecisionModule::linear_proj: return has_attention(layer);
    case PrecisionModule::mlp: return has_dense_mlp(layer);
    case PrecisionModule::experts: return layer.experts.has_value();
    case PrecisionModule::shared_experts: return layer.experts && layer.experts->shared_feedforward > 0;
    case PrecisionModule::latent_proj: return layer.experts && layer.experts->latent > 0;
    case PrecisionModule::mtp: return false;
    case PrecisionModule::first_of_mixers: break;
  }
  bool has = false;
  with_mixer(layer.mixers, [&](const auto& row, const auto&) {
    for (const LinearGroup& group : row.linears) has = has || group.name == name_of(module);
  });
  return has;
}

// Whether a layer has linears of none of these modules. Asked for every strategy of a search, so of the layer, not of its table.
bool leaves_linears(const PrecisionModules& modules, const Architecture& layer) {
  using enum PrecisionModule;
  struct Part {
    PrecisionModule part;
    PrecisionModule whole;
  };
  constexpr std::array<Part, 6> parts{{{linear_qkv, attention},
                                       {linear_proj, attention},
                                       {mlp, mlp},
                                       {experts, experts},
                                       {shared_experts, shared_experts},
                                       {latent_proj, latent_proj}}};
  bool leaves = false;
  with_mixer(layer.mixers, [&](const auto& row, const auto&) { leaves = leaves_some(modules, row.linears); });
  return leaves || std::any_of(parts.begin(), parts.end(), [&](const Part& it) {
           return has_linears_of(it.part, layer) && !modules.contains(it.part) && !modules.contains(it.whole);
         });
}

void check_bf16_modules(const Transformer& model, const Strategy& strategy, const Demands& require) {
  const PrecisionModules& modules = strategy.precision_scope.bf16_modules;
  if (modules.empty()) return;
  const char* const field = "bf16_modules";
  // Those of multi-token prediction are built at 16 bits [Megatron-LM, --keep-mtp-spec-in-bf16].
  require(!strategy.fp8_param_gather || modules == PrecisionModules(PrecisionModule::mtp), field,
          "must be mtp alone with `fp8_param_gather`, which makes the weights of other linears in the type");
  for (const PrecisionModuleRow& row : precision_modules) {
    if (!modules.contains(row.module)) continue;
    const bool predicts = row.module == PrecisionModule::mtp && model.mtp_layers > 0;
    const auto has_some = [&](const Architecture& layer) { return has_linears_of(row.module, layer); };
    require(predicts || any_layer(model, has_some), field,
            "must be of the model, which has no " + std::string(row.name));
  }
  require(any_layer(model, [&](const Architecture& layer) { return leaves_linears(modules, layer); }), field,
          "must leave some linears of layers to `precision`");
}

void check_bf16_layers(const Transformer& model, const Strategy& strategy, const Demands& require) {
  const PrecisionScope& scope = strategy.precision_scope;
  if (!has_bf16_layers(scope)) return;
  const char* const field = scope.bf16_layers_at_start > 0 ? "bf16_layers_at_start" : "bf16_layers_at_end";
  require(strategy.precision != Precision::fp8_delayed, field,
          "needs a `precision` other than fp8_delayed, whose scales are those of all layers together");
  const bool leaves_some = scope.bf16_layers_at_start < model.layers &&
                           scope.bf16_layers_at_end < model.layers - scope.bf16_layers_at_start;
  require(leaves_some, field,
          "must leave some of the " + std::to_string(model.layers) + " layers to `precision`");
  require(layers_of(model, strategy).kinds.size() <= most_kinds, field,
          "makes more kinds of layers than the " + std::to_string(most_kinds - most_end_kinds) +
              " that a model can have");
}

void check_attention(const Transformer& model, const Strategy& strategy, const Demands& require) {
  if (!strategy.precision_scope.attention) return;
  require(multiplies_attention(strategy.precision), "fp8_attention",
          "needs `precision` fp8, fp8_delayed or mxfp8");
  require(!any_layer(model,
                     [](const Architecture& layer) {
                       return has_attention(layer) && layer.kernels.attention != AttentionKernel::flash;
                     }),
          "fp8_attention", "needs flash attention in every layer (`kernels.attention`)");
  if (strategy.context_parallel <= 1) return;
  // Transformer Engine [pytorch/attention/dot_product_attention, context_parallel.py and utils.py].
  require(strategy.precision != Precision::mxfp8, "fp8_attention",
          "needs `precision` fp8 or fp8_delayed under `context_parallel`, which exchanges types with a scale "
          "a tensor");
  require(
      strategy.cp_comm != CpComm::all_gather, "fp8_attention",
      "needs `cp_comm` p2p, a2a or a2a_p2p: with all_gather Transformer Engine runs attention at 16 bits");
  require(!any_layer(model, [](const Architecture& layer) { return layer.latent_attention.has_value(); }),
          "fp8_attention",
          "needs `context_parallel` 1 with multi-head latent attention: Transformer Engine has no kernel for "
          "both");
  require(!any_layer(model, [](const Architecture& layer) { return layer.attention_sinks; }), "fp8_attention",
          "needs `context_parallel` 1 with attention sinks: Transformer Engine has no kernel for both");
}

}  // namespace

std::vector<Problem> precision_illegalities(const Transformer& model, const Strategy& strategy,
                                            const Workload& workload) {
  std::vector<Problem> problems;
  const Demands require(problems);
  require(!strategy.tp_only_amax_red || strategy.precision == Precision::fp8_delayed, "tp_only_amax_red",
          "needs `precision` fp8_delayed");
  if (!is_narrow(strategy.precision)) {
    check_unused(strategy, require);
    return problems;
  }
  check_bf16_layers(model, strategy, require);
  check_bf16_modules(model, strategy, require);
  check_attention(model, strategy, require);
  require(!strategy.precision_scope.output_layer || strategy.precision == Precision::mxfp8,
          "fp8_output_layer", "needs `precision` mxfp8");
  require(!model.architecture.kernels.weight_copies, "precision",
          "must be bf16 where `kernels.weight_copies` keeps fp32 weights");
  // Frozen weights, which nobody steps, need no gathering after a step.
  const bool gathers = strategy.fp8_param_gather && !trains_adapters(strategy.lora);
  require(!gathers || shards_optimizer(strategy) || strategy.data_parallel == 1, "fp8_param_gather",
          "needs `data_sharding` zero1, or frozen weights (`lora_rank`)");
  require(strategy.precision != Precision::fp8_delayed || !recomputes_a_cast(strategy.recompute), "precision",
          "fp8_delayed cannot cast again what a normalization or an activation makes again");
  if (strategy.tensor_parallel < 1 || strategy.expert_tensor_parallel < 1 || strategy.micro_batch < 1 ||
      workload.sequence < 1) {
    return problems;
  }
  Extents extents(strategy, problems);
  extents.check(model.hidden, "the hidden size", row_of(strategy.precision).multiple);
  if (model.layer_kinds.empty()) extents.check_layer(model, {});
  for (const LayerDescription& kind : model.layer_kinds) extents.check_layer(kind, kind.name);
  if (strategy.precision_scope.output_layer) extents.check_output_layer(model);
  std::int64_t tokens = 0;
  if (!__builtin_mul_overflow(workload.sequence, strategy.micro_batch, &tokens))
    extents.check_tokens(workload);
  return problems;
}

std::vector<Problem> precision_illegalities(const System& system, const Strategy& strategy) {
  if (!is_narrow(strategy.precision) || !system.performance) return {};
  const PrecisionRow& row = row_of(strategy.precision);
  const Device& device = system.performance->device;
  const std::string rule = "must be one that " + system.device + " multiplies: " + std::string(row.name);
  if (row.dtype == Dtype::nvfp4 && !device.fp4_peak && device.mxfp4_peak)
    return {{"precision", rule + " has no peak there, where FP4 is MXFP4"}};
  if (!has_peak(device, row.dtype)) return {{"precision", rule + " has no peak there"}};
  if (row.scales_blocks && !scales_blocks(device))
    return {{"precision", rule + " takes a device that scales blocks of 32 (Blackwell, MI350 and later)"}};
  return {};
}

}  // namespace headroom
