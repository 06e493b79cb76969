// Rules of precisions: of which linears, with which extents, and on which GPUs.
#include <algorithm>
#include <array>

#include "headroom/hardware/software.hpp"
#include "headroom/model/kernels.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/transformer.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

bool is_narrow(const RuleCase& it) { return headroom::is_narrow(it.strategy.precision); }
bool is_delayed(const RuleCase& it) { return it.strategy.precision == Precision::fp8_delayed; }
const PrecisionScope& scope_of(const RuleCase& it) { return it.strategy.precision_scope; }

void once_wide(const RuleCase& it, VisitCase visit) {
  if (!is_narrow(it)) visit(it);
}
void once_narrow(const RuleCase& it, VisitCase visit) {
  if (is_narrow(it)) visit(it);
}

constexpr std::array amax_rows{Rule{
    "tp_only_amax_red", [](const RuleCase& it) { return !it.strategy.tp_only_amax_red || is_delayed(it); },
    "needs `precision` fp8_delayed", "Megatron-LM, --tp-only-amax-red: amax is of delayed scaling"}};

constexpr std::string_view needs_narrow = "needs a `precision` below 16 bits";
constexpr std::string_view of_wide = "Linears of 16 bits have no scales, copies or padding";
constexpr std::array wide_rows{
    Rule{"fp8_param_gather", [](const RuleCase& it) { return !it.strategy.fp8_param_gather; }, needs_narrow,
         of_wide},
    Rule{"bf16_layers_at_start", [](const RuleCase& it) { return scope_of(it).bf16_layers_at_start == 0; },
         needs_narrow, of_wide},
    Rule{"bf16_layers_at_end", [](const RuleCase& it) { return scope_of(it).bf16_layers_at_end == 0; },
         needs_narrow, of_wide},
    Rule{"fp8_attention", [](const RuleCase& it) { return !scope_of(it).attention; }, needs_narrow, of_wide},
    Rule{"moe_router_padding", [](const RuleCase& it) { return !it.strategy.moe_router_padding; },
         needs_narrow, of_wide},
    Rule{"fp8_output_layer", [](const RuleCase& it) { return !scope_of(it).output_layer; }, needs_narrow,
         of_wide},
    Rule{"bf16_modules", [](const RuleCase& it) { return scope_of(it).bf16_modules.empty(); }, needs_narrow,
         of_wide}};

constexpr std::array stored_rows{
    Rule{"fp8_activation_input",
         [](const RuleCase& it) {
           return !scope_of(it).activation_input || any_layer(it.model, [&](const Architecture& layer) {
             return can_store_narrow(with_kernels(layer, kernels_of(it.software)));
           });
         },
         "needs a fused SwiGLU (the model's `activation` and `kernels.activation`)",
         "Megatron-LM, core/transformer/transformer_config.py, activation_func_fp8_input_store"}};

void once_with_bf16_layers(const RuleCase& it, VisitCase visit) {
  if (!is_narrow(it) || !has_bf16_layers(scope_of(it))) return;
  RuleCase of = it;
  of.field = scope_of(it).bf16_layers_at_start > 0 ? "bf16_layers_at_start" : "bf16_layers_at_end";
  visit(of);
}

constexpr std::string_view of_bf16_layers = "Megatron-LM, --first-last-layers-bf16";
constexpr std::array bf16_layer_rows{
    Rule{"", [](const RuleCase& it) { return !is_delayed(it); },
         "needs a `precision` other than fp8_delayed, whose scales are computed for all layers together",
         of_bf16_layers},
    Rule{"",
         [](const RuleCase& it) {
           const PrecisionScope& scope = scope_of(it);
           return scope.bf16_layers_at_start < it.model.layers &&
                  scope.bf16_layers_at_end < it.model.layers - scope.bf16_layers_at_start;
         },
         "must leave at least one of the {} layers to `precision`", of_bf16_layers,
         [](const RuleCase& it) { return shown(it.model.layers); }},
    Rule{"", [](const RuleCase& it) { return it.tables.of_strategy().kinds.size() <= most_kinds; },
         "makes too many kinds of layers: the limit is {}", "Tables by kind are of fixed size",
         [](const RuleCase&) { return shown(most_kinds - most_end_kinds); }}};

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

// Returns whether some linears of a mixer are in the precision. The first group has all of them, the others
// parts.
template <std::size_t N>
bool leaves_some(const PrecisionModules& modules, const FixedVector<LinearGroup, N>& groups) {
  const auto has = [&](const LinearGroup& group) {
    return modules.contains(from_name<PrecisionModule>(group.name).value());
  };
  if (groups.empty() || has(groups[0])) return false;
  return groups.size() == 1 || !std::all_of(groups.begin() + 1, groups.end(), has);
}

// Returns whether a layer has linears outside these modules. A search asks for every layout, so it reads the
// layer and not its op table.
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

void once_with_bf16_modules(const RuleCase& it, VisitCase visit) {
  if (!scope_of(it).bf16_modules.empty()) once_narrow(it, visit);
}

constexpr std::string_view of_bf16_modules = "Megatron-LM, --te-precision-config-file";
constexpr std::array bf16_module_rows{
    // Those of multi-token prediction are built at 16 bits.
    Rule{"bf16_modules",
         [](const RuleCase& it) {
           return !it.strategy.fp8_param_gather ||
                  scope_of(it).bf16_modules == PrecisionModules(PrecisionModule::mtp);
         },
         "must be mtp alone with `fp8_param_gather`, which stores the weights of all other linears in low "
         "precision",
         "Megatron-LM, --keep-mtp-spec-in-bf16"},
    Rule{"bf16_modules",
         [](const RuleCase& it) {
           return any_layer(it.model, [&](const Architecture& layer) {
             return leaves_linears(scope_of(it).bf16_modules, layer);
           });
         },
         "must leave at least one linear of the layers to `precision`", of_bf16_modules}};

void each_bf16_module(const RuleCase& it, VisitCase visit) {
  if (scope_of(it).bf16_modules.empty() || !is_narrow(it)) return;
  RuleCase of = it;
  for (const PrecisionModuleRow& row : precision_modules) {
    of.name = row.name;
    of.place = static_cast<std::size_t>(row.module);
    if (scope_of(it).bf16_modules.contains(row.module)) visit(of);
  }
}

constexpr std::array bf16_name_rows{Rule{
    "bf16_modules",
    [](const RuleCase& it) {
      const auto module = static_cast<PrecisionModule>(it.place);
      return (module == PrecisionModule::mtp && it.model.mtp_layers > 0) ||
             any_layer(it.model, [&](const Architecture& layer) { return has_linears_of(module, layer); });
    },
    "must name modules of the model, which has no {}", of_bf16_modules,
    [](const RuleCase& it) { return shown(it.name); }}};

void once_narrow_attention(const RuleCase& it, VisitCase visit) {
  if (scope_of(it).attention) once_narrow(it, visit);
}

constexpr std::array attention_rows{
    Rule{"fp8_attention", [](const RuleCase& it) { return multiplies_attention(it.strategy.precision); },
         "needs `precision` fp8, fp8_delayed or mxfp8",
         "Transformer Engine, pytorch/attention/dot_product_attention"},
    Rule{"fp8_attention",
         [](const RuleCase& it) {
           return !any_layer(it.model, [](const Architecture& layer) {
             return has_attention(layer) && layer.kernels.attention != AttentionKernel::flash;
           });
         },
         "needs flash attention in every layer (`kernels.attention`)",
         "Transformer Engine, pytorch/attention/dot_product_attention/backends.py"}};

void once_narrow_parts(const RuleCase& it, VisitCase visit) {
  if (it.strategy.context_parallel > 1) once_narrow_attention(it, visit);
}

constexpr std::string_view of_fp8_parts =
    "Transformer Engine, pytorch/attention/dot_product_attention, context_parallel.py and utils.py";
constexpr std::array attention_part_rows{
    Rule{"fp8_attention", [](const RuleCase& it) { return it.strategy.precision != Precision::mxfp8; },
         "needs `precision` fp8 or fp8_delayed with `context_parallel`, which exchanges only tensors with "
         "per-tensor scales",
         of_fp8_parts},
    Rule{"fp8_attention", [](const RuleCase& it) { return it.strategy.cp_comm != CpComm::all_gather; },
         "needs `cp_comm` p2p, a2a or a2a_p2p: with all_gather, Transformer Engine runs attention in 16 bits",
         of_fp8_parts},
    Rule{"fp8_attention",
         [](const RuleCase& it) {
           return !any_layer(it.model,
                             [](const Architecture& layer) { return layer.latent_attention.has_value(); });
         },
         "needs `context_parallel` 1 with multi-head latent attention: Transformer Engine has no FP8 kernel "
         "for the two together",
         of_fp8_parts},
    Rule{"fp8_attention",
         [](const RuleCase& it) {
           return !any_layer(it.model, [](const Architecture& layer) { return layer.attention_sinks; });
         },
         "needs `context_parallel` 1 with attention sinks: Transformer Engine has no FP8 kernel for the two "
         "together",
         of_fp8_parts}};

constexpr std::array narrow_rows{
    Rule{"fp8_output_layer",
         [](const RuleCase& it) {
           return !scope_of(it).output_layer || it.strategy.precision == Precision::mxfp8;
         },
         "needs `precision` mxfp8", "Megatron-LM, --fp8-output-proj"},
    Rule{"precision", [](const RuleCase& it) { return !it.model.architecture.kernels.weight_copies; },
         "must be bf16: this model keeps FP32 weights (`kernels.weight_copies`)",
         "PyTorch, torch.autocast: copies of fp32 weights are of 16 bits"}};

constexpr std::array gathered_rows{
    Rule{"fp8_param_gather",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           // Frozen weights, which nobody steps, need no gathering after a step.
           return !strategy.fp8_param_gather || trains_adapters(strategy.lora) ||
                  shards_optimizer(strategy) || strategy.data_parallel == 1;
         },
         "needs `data_sharding` zero1, or frozen weights (`lora_rank`)",
         "Megatron-LM, training/arguments.py: --fp8-param-gather needs --use-distributed-optimizer"}};

// Returns whether a recomputation repeats a cast. Delayed scaling cannot: it sees each value only once.
bool recomputes_a_cast(const Recomputation& recompute) {
  constexpr std::array<std::string_view, 6> casting{"layernorm", "moe_act",           "norm_1",
                                                    "norm_2",    "expert_activation", "activation"};
  return std::any_of(recompute.ops.begin(), recompute.ops.end(), [&](std::string_view name) {
    name.remove_prefix(name.rfind('.') + 1);  // of one kind of layers
    return std::find(casting.begin(), casting.end(), name) != casting.end();
  });
}

void once_delayed(const RuleCase& it, VisitCase visit) {
  if (is_delayed(it)) visit(it);
}

constexpr std::array recast_rows{
    Rule{"precision", [](const RuleCase& it) { return !recomputes_a_cast(it.strategy.recompute); },
         "fp8_delayed cannot be combined with recomputing a normalization or an activation: it cannot repeat "
         "the FP8 cast",
         "Megatron-LM, core/transformer/transformer_config.py: recompute_modules with delayed scaling"}};

bool is_half(const RuleCase& it, PrecisionModule module) {
  return scope_of(it).bf16_modules.contains(module);
}

// Returns whether a module, or both of its parts, stay in BF16.
bool all_half(const RuleCase& it, PrecisionModule whole, PrecisionModule first, PrecisionModule second) {
  return is_half(it, whole) || (is_half(it, first) && is_half(it, second));
}

// Calls check(extent, name) for the extents on a rank of a layer's linears in the precision.
template <class Check>
void visit_extents(const RuleCase& it, const LayerSizes& layer, const Check& check) {
  using enum PrecisionModule;
  const Architecture& has = layer.architecture;
  const std::int64_t t = it.strategy.tensor_parallel;
  if (has_attention(has) && !all_half(it, attention, linear_qkv, linear_proj)) {
    check(layer.heads * layer.head_size / t, "the width of the query heads");
    check(std::max(layer.key_value_heads / t, std::int64_t{1}) * layer.head_size,
          "the width of the key heads");
    if (const std::optional<LatentAttention>& latent = has.latent_attention) {
      check(latent->q_rank, "the rank of latent queries");
      check(latent->kv_rank, "the rank of latent keys and values");
      check(layer.heads * latent->value_head_size / t, "the width of the value heads");
    }
  }
  with_mixer(has.mixers, [&](const auto& row, const auto& mixer) {
    if (!leaves_some(scope_of(it).bf16_modules, row.linears)) return;
    for (const auto& width : row.widths) check(width.of(mixer) / t, width.what);
  });
  if (const std::optional<Experts>& of = has.experts) {
    if (!is_half(it, experts))
      check(of->feedforward / it.strategy.expert_tensor_parallel, "the width of an expert");
    if (!is_half(it, shared_experts)) check(of->shared_feedforward / t, "the width of the shared experts");
    // Experts read it too.
    if (!is_half(it, experts) || !is_half(it, latent_proj)) {
      check(of->latent, "the latent width of the experts");
    }
  }
  if (has_dense_mlp(has) && !is_half(it, mlp)) check(layer.feedforward / t, "the feed-forward width");
}

// Visits the extents of weights and tokens on a rank, with the multiple that each needs.
void each_extent(const RuleCase& it, VisitCase visit) {
  const Strategy& strategy = it.strategy;
  const std::int64_t t = strategy.tensor_parallel;
  if (!is_narrow(it) || t < 1 || strategy.expert_tensor_parallel < 1 || strategy.micro_batch < 1 ||
      it.workload.sequence < 1) {
    return;
  }
  const PrecisionRow& row = row_of(strategy.precision);
  const auto check = [&](RuleCase of, std::int64_t extent, std::string_view name, std::int64_t multiple) {
    of.size = extent;
    of.name = name;
    of.parts = multiple;
    visit(of);
  };
  check(it, it.model.hidden, "the hidden size", row.multiple);
  each_layer(it, [&](const RuleCase& layer) {
    visit_extents(it, *layer.layer, [&](std::int64_t extent, std::string_view name) {
      check(layer, extent, name, row.multiple);
    });
  });
  if (scope_of(it).output_layer)
    check(it, padded_vocabulary(it.model, t) / t, "the padded vocabulary", row.multiple);
  // Tokens of experts are padded.
  std::int64_t tokens = 0;
  if (!__builtin_mul_overflow(it.workload.sequence, strategy.micro_batch, &tokens)) {
    check(it, tokens / (strategy.sequence_parallel ? t : 1), "the tokens of a microbatch", row.row_multiple);
  }
}

constexpr std::array extent_rows{
    Rule{"precision", [](const RuleCase& it) { return it.size % it.parts == 0; },
         "{} needs {}{} on a rank to be a multiple of {}, not {}",
         "Transformer Engine, pytorch/utils.py, assert_dim_for_fp8_exec; blocks of scales are whole",
         [](const RuleCase& it) {
           return shown(it.strategy.precision, it.name, of_kind(it), it.parts, it.size);
         }}};

constexpr std::array precision_topics{
    Topic{"amax", Whose::mechanism, Reads::layout, once, amax_rows},
    Topic{"stored input", Whose::mechanism, Reads::layout, once, stored_rows},
    Topic{"16 bits", Whose::mechanism, Reads::layout, once_wide, wide_rows},
    Topic{"layers at 16 bits", Whose::mechanism, Reads::layout, once_with_bf16_layers, bf16_layer_rows},
    Topic{"modules at 16 bits", Whose::mechanism, Reads::layout, once_with_bf16_modules, bf16_module_rows},
    Topic{"names of modules at 16 bits", Whose::mechanism, Reads::layout, each_bf16_module, bf16_name_rows},
    Topic{"FP8 attention", Whose::mechanism, Reads::layout, once_narrow_attention, attention_rows},
    Topic{"FP8 attention to parts", Whose::mechanism, Reads::layout, once_narrow_parts, attention_part_rows},
    Topic{"fewer than 16 bits", Whose::mechanism, Reads::layout, once_narrow, narrow_rows},
    Topic{"weights gathered in FP8", Whose::mechanism, Reads::sharding, once_narrow, gathered_rows},
    Topic{"casts made again", Whose::mechanism, Reads::recompute, once_delayed, recast_rows},
    Topic{"extents", Whose::mechanism, Reads::layout, each_extent, extent_rows}};

}  // namespace

std::span<const Topic> of_precision() { return precision_topics; }

}  // namespace headroom::rules
