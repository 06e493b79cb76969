// Rules of launchers: what has no flag in any of them, and what Megatron-LM and the launchers built on it refuse.
// Lines are those of Megatron-LM at d98e8a64ddf3 (2026-08-22).
#include <algorithm>
#include <array>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/launcher_fields.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

// Visits each field that differs from the stack's default and that its launcher has no words for.
void each_without_words(const RuleCase& it, VisitCase visit) {
  if (!it.software.launcher) return;
  const Strategy usual = with_stack_defaults({}, it.software, it.model);
  const Workload none;
  RuleCase of = it;
  std::string value;
  for (const StrategyField& field : strategy_fields) {
    if (has_words(*it.software.launcher, field.name)) continue;
    value = value_of(field, it.strategy, it.workload);
    if (value == value_of(field, usual, none)) continue;
    of.field = field.name;
    of.name = value;
    visit(of);
  }
}

constexpr std::array wordless_rows{
    Rule{"", [](const RuleCase&) { return false; }, "`{}` {}: {} has no flag for it",
         "The launcher's flags (parallel/launcher_fields.hpp)",
         [](const RuleCase& it) { return shown(it.field, it.name, *it.software.launcher); }, nullptr, true}};

bool starts_with(const RuleCase& it, Launcher launcher) { return it.software.launcher == launcher; }
bool is_fork(const RuleCase& it) { return starts_with(it, Launcher::zero_bubble); }
bool is_megatron(const RuleCase& it) {
  return starts_with(it, Launcher::megatron_lm) || starts_with(it, Launcher::megatron_bridge);
}

void once_on_megatron(const RuleCase& it, VisitCase visit) {
  if (is_megatron(it) || is_fork(it)) visit(it);
}

std::vector<std::string> shown_schedule(const RuleCase& it) { return shown(it.strategy.schedule); }
void put_schedule(Strategy& strategy) {
  const bool in_v = runs_in_v(strategy.schedule);
  strategy.schedule = implied_schedule(in_v ? 1 : strategy.virtual_pipeline);
  if (in_v) strategy.virtual_pipeline = 1;
}

bool has_megatron_schedule(ScheduleKind kind) {
  return kind == ScheduleKind::one_forward_one_backward || kind == ScheduleKind::interleaved;
}

constexpr std::string_view of_schedules =
    "Megatron-LM, core/pipeline_parallel/schedules.py, get_forward_backward_func";
constexpr std::array schedule_rows{
    Rule{"schedule",
         [](const RuleCase& it) {
           return is_fork(it) || it.strategy.pipeline_parallel == 1 ||
                  has_megatron_schedule(it.strategy.schedule);
         },
         "`schedule` {}: {} runs 1F1B, or interleaved 1F1B where ranks have virtual stages", of_schedules,
         [](const RuleCase& it) { return shown(it.strategy.schedule, *it.software.launcher); }, put_schedule},
    Rule{"schedule",
         [](const RuleCase& it) {
           const ScheduleKind kind = it.strategy.schedule;
           const bool zero_bubble = kind >= ScheduleKind::zero_bubble_h1 && kind <= ScheduleKind::v_min;
           return !is_fork(it) || it.strategy.pipeline_parallel == 1 || has_megatron_schedule(kind) ||
                  zero_bubble;
         },
         "`schedule` {}: this fork has 1F1B, interleaved 1F1B and zero-bubble schedules",
         "sail-sg/zero-bubble-pipeline-parallelism, README.md", shown_schedule, put_schedule},
    Rule{"virtual_pipeline",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return !starts_with(it, Launcher::megatron_lm) || it.software.overlap_p2p ||
                  strategy.virtual_pipeline == 1 || strategy.pipeline_parallel != 2 ||
                  strategy.schedule != ScheduleKind::interleaved;
         },
         "`virtual_pipeline` {} on 2 pipeline ranks: without overlapped transfers Megatron-LM needs "
         "more than 2 ranks to interleave",
         "Megatron-LM, training/arguments.py:1006",
         [](const RuleCase& it) { return shown(it.strategy.virtual_pipeline); }},
    Rule{"keep_pipeline_outputs",
         [](const RuleCase& it) {
           return !it.strategy.keep_pipeline_outputs || starts_with(it, Launcher::megatron_bridge);
         },
         "`keep_pipeline_outputs` yes: Megatron-LM frees the outputs of stages",
         "Megatron-LM, training/arguments.py: deallocate_pipeline_outputs is set", nullptr,
         [](Strategy& strategy) { strategy.keep_pipeline_outputs = false; }}};

void once_on_megatron_with_experts(const RuleCase& it, VisitCase visit) {
  if (any_experts(it.model)) once_on_megatron(it, visit);
}

bool records(const RuleCase& it, GraphModule module) {
  const std::vector<GraphModule>& modules = it.software.cuda_graph_modules;
  return it.software.cuda_graphs == CudaGraphs::layers &&
         (modules.empty() ? module != GraphModule::moe : contains(modules, module));
}

bool has_dense_mlps(const Transformer& model) {
  return any_layer(model, [](const Architecture& layer) { return has_dense_mlp(layer); });
}

constexpr std::array expert_rows{
    Rule{"expert_tensor_parallel",
         [](const RuleCase& it) {
           return !is_fork(it) || it.strategy.expert_tensor_parallel == it.strategy.tensor_parallel;
         },
         "`expert_tensor_parallel` {}: this fork shards experts by tensor parallelism, as other layers",
         "sail-sg/zero-bubble-pipeline-parallelism, megatron/training/arguments.py",
         [](const RuleCase& it) { return shown(it.strategy.expert_tensor_parallel); }},
    Rule{"moe_dispatcher",
         [](const RuleCase& it) {
           return !is_fork(it) || !sends_once_to_each_rank(it.strategy.moe_dispatcher);
         },
         "`moe_dispatcher` {}: this fork has allgather and alltoall",
         "sail-sg/zero-bubble-pipeline-parallelism, megatron/training/arguments.py",
         [](const RuleCase& it) { return shown(it.strategy.moe_dispatcher); },
         [](Strategy& strategy) { strategy.moe_dispatcher = Dispatcher::alltoall; }},
    Rule{"moe_router_padding",
         [](const RuleCase& it) {
           return !it.strategy.moe_router_padding || it.strategy.moe_dispatcher != Dispatcher::allgather;
         },
         "`moe_router_padding` with `moe_dispatcher` allgather: Megatron-Core refuses the two together",
         "Megatron-LM, core/transformer/transformer_config.py:2655"},
    Rule{"moe_dispatcher",
         [](const RuleCase& it) {
           return !it.software.overlap_shared_experts ||
                  it.strategy.moe_dispatcher != Dispatcher::allgather ||
                  !any_layer(it.model, [](const Architecture& layer) {
                    return layer.experts && layer.experts->shared_feedforward > 0;
                  });
         },
         "`moe_dispatcher` allgather: not with shared experts that overlap the all-to-all "
         "(`overlap_shared_experts` of the stack)",
         "Megatron-LM, core/transformer/transformer_config.py:1820"},
    Rule{"overlap_expert_all_to_all",
         [](const RuleCase& it) {
           const bool dense = records(it, GraphModule::mlp) && has_dense_mlps(it.model);
           return !it.strategy.overlap_expert_all_to_all || (!records(it, GraphModule::moe) && !dense);
         },
         "`overlap_expert_all_to_all` yes: Megatron-Core refuses it with CUDA graphs of mlp or moe "
         "(`cuda_graph_modules` of the "
         "stack)",
         "Megatron-LM, core/transformer/transformer_config.py:3065", nullptr}};

constexpr std::array graph_rows{
    Rule{"cuda_graph_modules",
         [](const RuleCase& it) {
           return !records(it, GraphModule::moe) || !records(it, GraphModule::moe_router);
         },
         "CUDA graphs of moe and of moe_router: moe includes moe_router",
         "Megatron-LM, core/transformer/transformer_config.py:2817"},
    Rule{"cuda_graph_modules",
         [](const RuleCase& it) {
           return it.software.cuda_graph_modules.empty() || !records(it, GraphModule::moe_preprocess) ||
                  records(it, GraphModule::moe_router);
         },
         "CUDA graphs of moe_preprocess: not without moe_router",
         "Megatron-LM, core/transformer/transformer_config.py:2821"},
    Rule{"offload_layers",
         [](const RuleCase& it) {
           return it.strategy.offload.layers == 0 || it.software.cuda_graphs != CudaGraphs::layers;
         },
         "`offload_layers` {}: Megatron-Core refuses it with CUDA graphs of layers",
         "Megatron-LM, core/transformer/transformer_config.py:2800",
         [](const RuleCase& it) { return shown(it.strategy.offload.layers); }}};

void once_on_core(const RuleCase& it, VisitCase visit) {
  if (is_megatron(it)) visit(it);
}

void once_with_graphs(const RuleCase& it, VisitCase visit) {
  if (it.software.cuda_graphs != CudaGraphs::none) once_on_core(it, visit);
}

std::int64_t layers_of_rank(const RuleCase& it) {
  return it.strategy.pipeline_parallel < 1 ? 0 : it.model.layers / it.strategy.pipeline_parallel;
}

constexpr std::array state_rows{
    Rule{"optimizer",
         [](const RuleCase& it) {
           const OptimizerKind kind = it.strategy.optimizer.kind;
           return kind == OptimizerKind::adam || kind == OptimizerKind::sgd ||
                  (kind == OptimizerKind::muon && !is_fork(it));
         },
         "`optimizer` {}: {}", "Megatron-LM, training/arguments.py, --optimizer",
         [](const RuleCase& it) {
           return shown(it.strategy.optimizer.kind, is_fork(it)
                                                        ? "this fork supports adam and sgd"
                                                        : "Megatron-Core supports adam, sgd and muon");
         },
         [](Strategy& strategy) { strategy.optimizer.kind = OptimizerKind::adam; }},
    Rule{"exp_avg_dtype", [](const RuleCase& it) { return !has_int8(it.strategy.optimizer); },
         "moments of int8: Megatron-Core supports fp32, bf16, fp16 and fp8",
         "Megatron-LM, core/optimizer/optimizer_config.py, exp_avg_dtype", nullptr,
         [](Strategy& strategy) {
           strategy.optimizer.exp_avg = strategy.optimizer.exp_avg_sq = MomentDtype::fp32;
         }},
    Rule{"main_params_dtype",
         [](const RuleCase& it) { return it.strategy.optimizer.main_params != MainParams::none; },
         "`main_params_dtype` none: Megatron-Core always keeps main parameters",
         "Megatron-LM, core/optimizer/optimizer_config.py, main_params_dtype", nullptr,
         [](Strategy& strategy) { strategy.optimizer.main_params = MainParams::fp32; }},
    Rule{"main_params_dtype",
         [](const RuleCase& it) {
           const Optimizer& optimizer = it.strategy.optimizer;
           return is_fork(it) || keeps_fp32(optimizer) || has_int8(optimizer) ||
                  optimizer.kind == OptimizerKind::adam;
         },
         "moments or main parameters of 16 bits with `optimizer` {}: --use-precision-aware-optimizer needs "
         "adam",
         "Megatron-LM, core/optimizer/optimizer_config.py:434",
         [](const RuleCase& it) { return shown(it.strategy.optimizer.kind); }},
    // Its optimizer of moments of 16 bits drops the high bits, which the weights hold; what the host steps
    // and FP8 weights keep them.
    Rule{"main_params_dtype",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return is_fork(it) || strategy.optimizer.main_params != MainParams::fp32 ||
                  keeps_fp32(strategy.optimizer) || has_int8(strategy.optimizer) ||
                  strategy.offload.optimizer.value > 0 || strategy.fp8_param_gather;
         },
         "`main_params_dtype` fp32 with moments of fewer bits: --use-precision-aware-optimizer keeps the low "
         "16 "
         "bits, `main_params_dtype` remainder",
         "Megatron-LM, core/optimizer/optimizer_config.py, store_param_remainders", nullptr,
         [](Strategy& strategy) { strategy.optimizer.main_params = MainParams::remainder; }},
    Rule{"gradient_dtype", [](const RuleCase& it) { return it.strategy.gradient_dtype != Dtype::fp16; },
         "`gradient_dtype` fp16: Megatron-Core sums BF16 gradients in fp32 or bf16",
         "Megatron-LM, training/arguments.py:1210", nullptr,
         [](Strategy& strategy) { strategy.gradient_dtype = Dtype::fp32; }},
    Rule{"offload_parameters", [](const RuleCase& it) { return !it.strategy.offload.parameters; },
         "`offload_parameters` yes: Megatron-LM keeps weights on the GPUs",
         "Megatron-LM, training/arguments.py, --optimizer-cpu-offload", nullptr,
         [](Strategy& strategy) { strategy.offload.parameters = false; }},
    Rule{"offload_modules",
         [](const RuleCase& it) { return !contains(it.strategy.offload.modules, layer_input); },
         "`offload_modules` layer_input: no flag of Megatron-LM sends checkpoints to the host",
         "Megatron-LM, core/transformer/transformer_config.py:2131", nullptr,
         [](Strategy& strategy) { std::erase(strategy.offload.modules, layer_input); }},
    Rule{"optimizer_offload_fraction",
         [](const RuleCase& it) {
           return it.strategy.offload.optimizer.value == 0 || !it.strategy.fp8_param_gather ||
                  it.strategy.precision == Precision::fp8_delayed;
         },
         "`optimizer_offload_fraction` with `fp8_param_gather`: only with `precision` fp8_delayed",
         "Megatron-LM, training/arguments.py:1889"},
    Rule{"lora_rank",
         [](const RuleCase& it) {
           return it.strategy.lora.rank == 0 || starts_with(it, Launcher::megatron_bridge);
         },
         "LoRA: Megatron-LM has no adapters (Megatron-Bridge does)", "Megatron-LM, training/arguments.py",
         nullptr, [](Strategy& strategy) { strategy.lora = {}; }},
    Rule{"base_dtype", [](const RuleCase& it) { return it.strategy.lora.base == BaseDtype::bf16; },
         "`base_dtype` {}: Megatron-Bridge keeps frozen weights in 16 bits",
         "NVIDIA-NeMo/Megatron-Bridge, peft/lora.py",
         [](const RuleCase& it) { return shown(it.strategy.lora.base); },
         [](Strategy& strategy) { strategy.lora.base = BaseDtype::bf16; }},
    Rule{"bf16_layers_at_start",
         [](const RuleCase& it) {
           return it.strategy.precision_scope.bf16_layers_at_start <= layers_of_rank(it);
         },
         "`bf16_layers_at_start` {}: Megatron-Core takes at most the {} layers of a pipeline rank",
         "Megatron-LM, core/transformer/transformer_config.py:1540",
         [](const RuleCase& it) {
           return shown(it.strategy.precision_scope.bf16_layers_at_start, layers_of_rank(it));
         }},
    Rule{"bf16_layers_at_end",
         [](const RuleCase& it) {
           return it.strategy.precision_scope.bf16_layers_at_end <= layers_of_rank(it);
         },
         "`bf16_layers_at_end` {}: Megatron-Core takes at most the {} layers of a pipeline rank",
         "Megatron-LM, core/transformer/transformer_config.py:1549",
         [](const RuleCase& it) {
           return shown(it.strategy.precision_scope.bf16_layers_at_end, layers_of_rank(it));
         }},
    Rule{"bf16_modules",
         [](const RuleCase& it) {
           PrecisionModules modules = it.strategy.precision_scope.bf16_modules;
           std::vector<std::string_view> names = names_of(modules);
           std::erase(names, name_of(PrecisionModule::mtp));
           return names.empty();
         },
         "`bf16_modules` {}: needs a --te-precision-config-file whose patterns give these modules an empty "
         "training_recipe",
         "Megatron-LM, training/arguments.py, --te-precision-config-file",
         [](const RuleCase& it) {
           std::vector<std::string_view> names = names_of(it.strategy.precision_scope.bf16_modules);
           std::erase(names, name_of(PrecisionModule::mtp));
           return shown(joined(names, ","));
         }}};

constexpr std::array core_sharding_rows{
    Rule{"no_reshard_after_forward", [](const RuleCase& it) { return !it.strategy.no_reshard_after_forward; },
         "`no_reshard_after_forward` yes: Megatron-FSDP gathers weights again in the backward pass",
         "Megatron-LM, core/distributed/fsdp", nullptr,
         [](Strategy& strategy) { strategy.no_reshard_after_forward = false; }}};

// core/transformer/transformer_config.py:1958
constexpr std::array<std::string_view, 8> recomputable{
    "core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts", "gdn_norm_out"};

std::vector<std::string> unnamed_ops(const RuleCase& it) {
  std::vector<std::string> others = it.strategy.recompute.ops;
  std::erase_if(others, [&](const std::string& op) { return !is_fork(it) && contains(recomputable, op); });
  return others;
}

void put_no_recomputation(Strategy& strategy) { strategy.recompute = {}; }

void once_recomputing_on_megatron(const RuleCase& it, VisitCase visit) {
  if (it.strategy.recompute.policy != RecomputePolicy::none) once_on_megatron(it, visit);
}

constexpr std::array core_recompute_rows{
    Rule{"recompute_ops", [](const RuleCase& it) { return unnamed_ops(it).empty(); },
         "`recompute_ops` {}: {}", "Megatron-LM, core/transformer/transformer_config.py:1958",
         [](const RuleCase& it) {
           return shown(joined(it.strategy.recompute.ops, ","),
                        is_fork(it) ? "this fork recomputes core attention or layers"
                                    : "Megatron-Core recomputes its own modules only");
         },
         put_no_recomputation},
    Rule{"recompute_ops",
         [](const RuleCase& it) {
           // Layers without Transformer Engine, which keeps dummy gradients by shape, have no grouped GEMMs.
           return !contains(it.strategy.recompute.ops, "moe_act") ||
                  it.software.memory.dummy_gradients == DummyGradients::kept_by_shape;
         },
         "`recompute_ops` moe_act: needs --moe-grouped-gemm, which local layers do not have",
         "Megatron-LM, core/transformer/transformer_config.py:1964", nullptr, put_no_recomputation},
    Rule{"recompute_ops",
         [](const RuleCase& it) {
           return it.strategy.recompute.ops.empty() || it.strategy.recompute.layers == 0;
         },
         "`recompute_ops` {} of some layers: Megatron-Core recomputes modules of all layers",
         "Megatron-LM, core/transformer/transformer_config.py:1927",
         [](const RuleCase& it) { return shown(joined(it.strategy.recompute.ops, ",")); },
         put_no_recomputation},
    Rule{"recompute",
         [](const RuleCase& it) {
           return it.strategy.recompute.policy != RecomputePolicy::full ||
                  it.software.cuda_graphs != CudaGraphs::layers;
         },
         "`recompute` full: Megatron-Core refuses it with CUDA graphs of layers",
         "Megatron-LM, core/transformer/transformer_config.py:2855"},
    Rule{"recompute",
         [](const RuleCase& it) {
           const Recomputation& recompute = it.strategy.recompute;
           if (it.software.cuda_graphs != CudaGraphs::layers) return true;
           const auto repeats = [&](std::string_view module) {
             return recompute.policy == RecomputePolicy::ops && contains(recompute.ops, module);
           };
           const bool core = recompute.policy == RecomputePolicy::selective || repeats("core_attn");
           const bool mlp = (repeats("mlp") && records(it, GraphModule::mlp)) ||
                            (repeats("moe") && records(it, GraphModule::moe));
           return !any_layer(it.model, [&](const Architecture& layer) {
             return (layer.attention_dropout && core && records(it, GraphModule::attn)) ||
                    (layer.hidden_dropout && mlp);
           });
         },
         "`recompute` of modules with dropout: not where CUDA graphs record them",
         "Megatron-LM, core/transformer/transformer_config.py:2878"},
    Rule{"recompute_ops",
         [](const RuleCase& it) {
           return !contains(it.strategy.recompute.ops, "moe") || !records(it, GraphModule::moe_router);
         },
         "`recompute_ops` moe: Megatron-Core refuses it with CUDA graphs of moe_router",
         "Megatron-LM, core/transformer/transformer_config.py:2862"}};

constexpr std::array launcher_topics{
    Topic{"fields without a flag", Whose::launcher, Reads::names, each_without_words, wordless_rows},
    Topic{"schedules of Megatron-LM", Whose::launcher, Reads::layout, once_on_megatron, schedule_rows},
    Topic{"experts of Megatron-LM", Whose::launcher, Reads::layout, once_on_megatron_with_experts,
          expert_rows},
    Topic{"CUDA graphs of Megatron-Core", Whose::launcher, Reads::layout, once_with_graphs, graph_rows},
    Topic{"state in Megatron-LM", Whose::launcher, Reads::layout, once_on_megatron, state_rows},
    Topic{"sharding in Megatron-LM", Whose::launcher, Reads::sharding, once_on_core, core_sharding_rows},
    Topic{"recomputation in Megatron-LM", Whose::launcher, Reads::recompute, once_recomputing_on_megatron,
          core_recompute_rows}};

}  // namespace

std::span<const Topic> of_launchers() { return launcher_topics; }

}  // namespace headroom::rules
