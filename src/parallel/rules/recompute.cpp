// Rules of recomputation and of offloading to the host.
#include <algorithm>
#include <array>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

void once_recomputing(const RuleCase& it, VisitCase visit) {
  const Recomputation& recompute = it.strategy.recompute;
  const bool plain = recompute.policy == RecomputePolicy::none && recompute.layers == 0 &&
                     recompute.method == RecomputeMethod::block && !recompute.window &&
                     !recompute.distribute_saved_activations;
  if (!plain) visit(it);
}

bool is_full(const RuleCase& it) { return it.strategy.recompute.policy == RecomputePolicy::full; }

constexpr std::string_view of_checkpoints =
    "Megatron-LM, --recompute-granularity, --recompute-method and --recompute-num-layers";
constexpr std::string_view of_windows = "K22 (arXiv:2205.05198), appendix C";
constexpr std::array recompute_rows{
    Rule{"recompute_layers",
         [](const RuleCase& it) {
           const std::int64_t layers = it.strategy.recompute.layers;
           return layers >= 0 && layers <= it.model.layers;
         },
         "must be between 1 and the {} layers, not {}", of_checkpoints,
         [](const RuleCase& it) { return shown(it.model.layers, it.strategy.recompute.layers); }},
    Rule{"recompute_layers",
         [](const RuleCase& it) {
           const Recomputation& recompute = it.strategy.recompute;
           const bool of_ops = recompute.policy == RecomputePolicy::ops && !recompute.ops.empty();
           return recompute.layers == 0 || is_full(it) || of_ops;
         },
         "needs `recompute` full or `recompute_ops`", of_checkpoints},
    Rule{"recompute_window",
         [](const RuleCase& it) {
           return !it.strategy.recompute.window || it.strategy.recompute.policy != RecomputePolicy::none;
         },
         "needs `recompute` selective or full: without recomputation there is nothing to exempt", of_windows},
    Rule{"recompute_window",
         [](const RuleCase& it) {
           return !it.strategy.recompute.window || admits_window(it.strategy.schedule);
         },
         "needs a `schedule` with unsplit backward passes in the order of the forward passes, not {}",
         of_windows, [](const RuleCase& it) { return shown(it.strategy.schedule); }},
    Rule{
        "distribute_saved_activations",
        [](const RuleCase& it) { return is_full(it) || !it.strategy.recompute.distribute_saved_activations; },
        "needs `recompute` full", "Megatron-LM, --distribute-saved-activations"},
    Rule{"distribute_saved_activations",
         [](const RuleCase& it) {
           return !it.strategy.recompute.distribute_saved_activations ||
                  (it.strategy.tensor_parallel > 1 && !it.strategy.sequence_parallel);
         },
         "needs `tensor_parallel` above 1 and no `sequence_parallel`, which already shards activation "
         "checkpoints",
         "Megatron-LM, core/transformer/transformer_config.py, distribute_saved_activations"},
    Rule{"recompute_method",
         [](const RuleCase& it) {
           const Recomputation& recompute = it.strategy.recompute;
           return recompute.method == RecomputeMethod::block || (is_full(it) && recompute.layers > 0);
         },
         "uniform needs `recompute` full and `recompute_layers` (layers per checkpoint)", of_checkpoints},
    // With block it recomputes them not at all.
    Rule{"recompute_layers",
         [](const RuleCase& it) {
           const Recomputation& recompute = it.strategy.recompute;
           return recompute.method != RecomputeMethod::uniform || recompute.layers <= 1 ||
                  it.model.mtp_layers == 0;
         },
         "must be 1 with `recompute_method` uniform when the model has `mtp_layers`",
         "Megatron-LM, core/transformer/multi_token_prediction.py, _checkpointed_forward"}};

struct KnownNames {
  std::vector<std::string_view> of_layers;  // ops and modules
  std::vector<std::string> of_one_kind;     // as "wide.moe", where layers are of several kinds
};

KnownNames known_names(const RuleCase& it) {
  const ModelLayers& layers = it.tables.of_strategy();
  KnownNames known;
  for (const LayerKind& kind : layers.kinds) {
    if (kind.position != KindPosition::layer) continue;
    const auto add = [&](std::string_view name) {
      if (!contains(known.of_layers, name)) known.of_layers.push_back(name);
      if (layer_kind_count(layers) > 1) known.of_one_kind.push_back(qualified_name(kind, name));
    };
    for (const Op& op : kind.ops.ops()) add(op.name);
    for (const RecomputeModule& part : recompute_modules) {
      if (ops_of(part, kind.ops) != 0) add(part.name);
    }
  }
  return known;
}

void each_recomputed(const RuleCase& it, VisitCase visit) { each_name(it, it.strategy.recompute.ops, visit); }

bool is_first(const RuleCase& it, const std::vector<std::string>& names) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), it.name) - names.begin()) == it.place;
}

constexpr std::array recomputed_name_rows{
    Rule{"recompute_ops", [](const RuleCase& it) { return is_first(it, it.strategy.recompute.ops); },
         "names '{}' twice", "A list of what is recomputed",
         [](const RuleCase& it) { return shown(it.name); }},
    Rule{"recompute_ops",
         [](const RuleCase& it) {
           const KnownNames known = known_names(it);
           return contains(known.of_layers, it.name) || contains(known.of_one_kind, it.name);
         },
         "'{}' is not an op or a module of {}{}; use one of {}{}", "Megatron-Core, --recompute-modules",
         [](const RuleCase& it) {
           const KnownNames known = known_names(it);
           const bool by_kind = !known.of_one_kind.empty();
           return shown(it.name, by_kind ? "these layers" : "this layer",
                        did_you_mean(std::string(it.name), known.of_layers), joined(known.of_layers),
                        by_kind ? ", or one of a single kind of layer, such as " + known.of_one_kind.front()
                                : std::string());
         }}};

void once_with_window(const RuleCase& it, VisitCase visit) {
  if (it.strategy.recompute.window) visit(it);
}

constexpr std::array window_rows{Rule{
    "recompute_window", [](const RuleCase& it) { return it.strategy.data_sharding < DataSharding::zero2; },
    "needs `data_sharding` none or zero1",
    "K22 (arXiv:2205.05198), appendix C: windows are described where gradients stay whole"}};

void once_beside(const RuleCase& it, VisitCase visit) {
  if (it.strategy.overlap_expert_all_to_all && any_experts(it.model)) visit(it);
}

constexpr std::array beside_rows{
    Rule{"overlap_expert_all_to_all", [](const RuleCase& it) { return goes_beside(it.strategy.recompute); },
         "cannot be combined with `recompute` full, `recompute_ops` moe or `recompute_window`",
         "Megatron-Core, transformer_config.py, overlap_moe_expert_parallel_comm"}};

void each_offloaded(const RuleCase& it, VisitCase visit) {
  each_name(it, it.strategy.offload.modules, visit);
}

std::vector<std::string_view> offloadable(const RuleCase& it) {
  std::vector<std::string_view> known = parts_of(it.tables.of_strategy());
  known.push_back(layer_input);
  return known;
}

constexpr std::string_view of_modules = "Megatron-Core, --offload-modules";
constexpr std::array offloaded_name_rows{
    Rule{"offload_modules", [](const RuleCase& it) { return is_first(it, it.strategy.offload.modules); },
         "names '{}' twice", "A list of what is offloaded",
         [](const RuleCase& it) { return shown(it.name); }},
    Rule{"offload_modules", [](const RuleCase& it) { return contains(offloadable(it), it.name); },
         "'{}' is not a module that these layers can offload{}; use one of {}", of_modules,
         [](const RuleCase& it) {
           const std::vector<std::string_view> known = offloadable(it);
           return shown(it.name, did_you_mean(std::string(it.name), known), joined(known));
         }}};

void once_with_modules(const RuleCase& it, VisitCase visit) {
  if (!it.strategy.offload.modules.empty()) visit(it);
}

bool has_whole_backward(const RuleCase& it) { return !has_weight_passes(it.strategy.schedule); }
constexpr std::string_view whole_backward_text =
    "cannot be combined with `schedule` {}: its weight-gradient passes run later and still need saved "
    "activations";
constexpr std::string_view whole_backward_source =
    "Passes for weights come later than what was fetched for the backward pass is freed";
std::vector<std::string> schedule_shown(const RuleCase& it) { return shown(it.strategy.schedule); }

constexpr std::array offloaded_module_rows{
    Rule{"offload_modules",
         [](const RuleCase& it) {
           const std::vector<std::string>& modules = it.strategy.offload.modules;
           return !contains(modules, "attn_proj") || contains(modules, "core_attn");
         },
         "attn_proj needs core_attn as well: both save the same tensor",
         "Megatron-Core, transformer_config.py, offload_modules"},
    Rule{"offload_modules", has_whole_backward, whole_backward_text, whole_backward_source, schedule_shown}};

void once_with_layers(const RuleCase& it, VisitCase visit) {
  if (it.strategy.offload.layers != 0) visit(it);
}

constexpr std::string_view of_layers =
    "Megatron-LM, core/transformer/transformer_config.py: --cpu-offloading-num-layers";
constexpr std::array offloaded_layer_rows{
    Rule{"offload_layers",
         [](const RuleCase& it) {
           const std::int64_t layers = it.strategy.offload.layers;
           return layers >= 0 && layers < it.model.layers;
         },
         "must be less than the {} layers, not {}", of_layers,
         [](const RuleCase& it) { return shown(it.model.layers, it.strategy.offload.layers); }},
    Rule{"offload_layers",
         [](const RuleCase& it) {
           return it.strategy.offload.layers < 0 || it.strategy.pipeline_parallel <= 1;
         },
         "needs `pipeline_parallel` 1", of_layers},
    Rule{"offload_layers",
         [](const RuleCase& it) {
           return it.strategy.offload.layers < 0 || it.strategy.offload.modules.empty();
         },
         "cannot be combined with `offload_modules`: it already offloads everything that these layers save",
         of_modules},
    Rule{"offload_layers",
         [](const RuleCase& it) { return it.strategy.offload.layers < 0 || has_whole_backward(it); },
         whole_backward_text, whole_backward_source, schedule_shown}};

// Visits offloaded modules, unless layers are offloaded, whose rules come first.
void once_with_modules_alone(const RuleCase& it, VisitCase visit) {
  if (it.strategy.offload.layers == 0) once_with_modules(it, visit);
}

// Returns whether all layers have full recomputation, so that they save only their inputs.
bool saves_inputs_alone(const RuleCase& it) {
  return is_full(it) && recomputes_all_layers(it.strategy.recompute);
}

constexpr std::string_view of_inputs = "Full recomputation saves the input of a layer and nothing else";
constexpr std::array kept_layer_rows{
    Rule{"offload_layers",
         [](const RuleCase& it) { return it.strategy.recompute.policy == RecomputePolicy::none; },
         "needs `recompute` none", of_layers}};
constexpr std::array kept_module_rows{
    Rule{
        "offload_modules",
        [](const RuleCase& it) { return is_full(it) || !contains(it.strategy.offload.modules, layer_input); },
        "layer_input needs `recompute` full", of_inputs},
    Rule{"offload_modules",
         [](const RuleCase& it) {
           const std::vector<std::string>& modules = it.strategy.offload.modules;
           return (modules.size() == 1 && contains(modules, layer_input)) || !saves_inputs_alone(it);
         },
         "must be layer_input alone when every layer has `recompute` full: the layers save nothing else",
         of_inputs},
    Rule{"offload_modules", [](const RuleCase& it) { return !it.strategy.recompute.window; },
         "cannot be combined with `recompute_window`",
         "Passes of a window save other tensors than the rest"}};

// Returns whether the ops of a part save anything for the backward pass when those are recomputed. An op holds
// what it saves, or what it reads if it is recomputed (holders_of).
bool saves_anything(const LayerKind& kind, OpSet part, const RecomputedOps& recomputed) {
  const auto is_kept = [&](ValueId value) {
    const ValueUse use = use_of(kind.ops, value);
    const Fate fate = fate_of(use, recomputed);
    const auto index = static_cast<std::size_t>(value);
    const bool cached = recomputed.cached.contains(index) || recomputed.half_cached.contains(index);
    return ((fate.needed && fate.kept) || cached) && (holders_of(use, recomputed) & part) != 0;
  };
  for (std::size_t i = 0; i < kind.ops.ops().size(); ++i) {
    if ((part & op_bit(i)) == 0) continue;
    const Op& op = kind.ops.ops()[i];
    const auto saves = [&](const Save& save) { return is_kept(save.value); };
    if (std::any_of(op.saves.begin(), op.saves.end(), saves)) return true;
    if (std::any_of(op.inputs.begin(), op.inputs.end(), is_kept)) return true;
  }
  return false;
}

void each_partly_recomputed(const RuleCase& it, VisitCase visit) {
  const Recomputation& recompute = it.strategy.recompute;
  if (it.strategy.offload.modules.empty() || it.strategy.offload.layers != 0 ||
      it.strategy.tensor_parallel < 1) {
    return;
  }
  if (recompute.policy == RecomputePolicy::none || recompute.window || !recomputes_all_layers(recompute) ||
      is_full(it)) {
    return;
  }
  each_offloaded(it, visit);
}

constexpr std::array saved_part_rows{
    Rule{"offload_modules",
         [](const RuleCase& it) {
           const OffloadModule* const part = find_offload_module(it.name);
           if (part == nullptr) return true;
           const Sharding sharding = sharding_of(it.model, it.strategy);
           bool had = false;
           for (const LayerKind& kind : it.tables.of_strategy().kinds) {
             const OpSet ops = kind.position == KindPosition::layer ? ops_of(*part, kind.ops) : OpSet();
             if (ops == 0) continue;
             had = true;
             if (saves_anything(kind, ops, recomputed_ops_of(kind, it.strategy.recompute, sharding)))
               return true;
           }
           return !had;
         },
         "{} saves nothing with this recomputation: remove it", of_modules,
         [](const RuleCase& it) { return shown(it.name); }}};

constexpr std::array recompute_topics{
    Topic{"recomputation beside exchanges", Whose::mechanism, Reads::recompute, once_beside, beside_rows},
    Topic{"recomputation", Whose::mechanism, Reads::recompute, once_recomputing, recompute_rows},
    Topic{"names of what is recomputed", Whose::mechanism, Reads::names, each_recomputed,
          recomputed_name_rows},
    Topic{"windows", Whose::mechanism, Reads::recompute, once_with_window, window_rows},
    Topic{"names of what is offloaded", Whose::mechanism, Reads::names, each_offloaded, offloaded_name_rows},
    Topic{"modules offloaded", Whose::mechanism, Reads::layout, once_with_modules, offloaded_module_rows},
    Topic{"layers offloaded", Whose::mechanism, Reads::layout, once_with_layers, offloaded_layer_rows},
    Topic{"what offloaded layers save", Whose::mechanism, Reads::recompute, once_with_layers,
          kept_layer_rows},
    Topic{"what offloaded modules save", Whose::mechanism, Reads::recompute, once_with_modules_alone,
          kept_module_rows},
    Topic{"what is left to offload", Whose::mechanism, Reads::recompute, each_partly_recomputed,
          saved_part_rows}};

}  // namespace

std::span<const Topic> of_recompute() { return recompute_topics; }

}  // namespace headroom::rules
