// Rules of data sharding, of optimizers, of optimizer steps on the host, and of adapters.
#include <algorithm>
#include <array>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/model/adapters.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

void once_with_tensor_ranks(const RuleCase& it, VisitCase visit) {
  if (it.strategy.tensor_parallel >= 1) visit(it);
}

constexpr std::array vocabulary_rows{
    Rule{"sequence_parallel",
         [](const RuleCase& it) {
           return !it.strategy.sequence_parallel ||
                  vocabulary_parallel(it.model, it.strategy, it.software).loss != LossParallel::none;
         },
         "must be off on the stack {}: its output layer {} replicated on every tensor-parallel rank",
         "A rank that makes all logits makes them of all tokens",
         [](const RuleCase& it) {
           const bool of_stack = it.software.vocabulary.loss == LossParallel::none;
           return shown(it.software.name, of_stack ? "is" : "with tied embeddings is");
         }}};

bool divides_gradients(const RuleCase& it) { return it.strategy.data_sharding >= DataSharding::zero2; }
bool divides_weights(const RuleCase& it) { return it.strategy.data_sharding == DataSharding::zero3; }
bool keeps_fp32_weights(const RuleCase& it) { return it.model.architecture.kernels.weight_copies; }

constexpr std::string_view of_autocast =
    "PyTorch, torch.autocast: weights stay fp32, and their gradients have their dtype";
constexpr std::array sharding_rows{
    Rule{"no_reshard_after_forward",
         [](const RuleCase& it) { return divides_weights(it) || !it.strategy.no_reshard_after_forward; },
         "needs `data_sharding` zero3", "Megatron-LM, --torch-fsdp2-no-reshard-after-forward"},
    Rule{"sync_each_batch",
         [](const RuleCase& it) {
           return !it.strategy.sync_each_batch ||
                  (divides_gradients(it) && it.strategy.pipeline_parallel <= 1);
         },
         "needs `data_sharding` zero2 or zero3, and no `pipeline_parallel`",
         "accelerate, GradientAccumulationPlugin.sync_each_batch"},
    Rule{
        "reference_model",
        [](const RuleCase& it) { return !it.workload.reference_model || it.strategy.pipeline_parallel <= 1; },
        "needs `pipeline_parallel` 1", "trl, trl/trainer/dpo_trainer.py, DPOTrainer.__init__"},
    Rule{"shard_size",
         [](const RuleCase& it) {
           return it.strategy.data_sharding != DataSharding::none || it.strategy.shard_size == 0;
         },
         "needs `data_sharding` zero1, zero2 or zero3", "PyTorch, ShardingStrategy.HYBRID_SHARD"},
    Rule{
        "schedule",
        [](const RuleCase& it) { return !reduces_by_group(it.strategy) || it.strategy.virtual_pipeline > 1; },
        "must be one with virtual stages (`virtual_pipeline` above 1) for `data_sharding` zero2 with "
        "`pipeline_parallel`: with one stage on a rank, gradients stay unsharded until the last microbatch",
        "DeepSpeed, runtime/pipe/engine.py: ZeRO-2 does not go with pipelines"},
    Rule{"data_sharding",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return !divides_gradients(it) || strategy.pipeline_parallel > 1 ||
                  !has_weight_passes(strategy.schedule);
         },
         "must be none or zero1 for `schedule` {} on one pipeline rank",
         "Passes for weights would gather and reduce each unit a second time",
         [](const RuleCase& it) { return shown(it.strategy.schedule); }},
    Rule{"data_sharding",
         [](const RuleCase& it) { return !divides_gradients(it) || !keeps_fp32_weights(it); },
         "must be none or zero1: this model keeps FP32 weights (`kernels.weight_copies`)", of_autocast}};

// Visits a strategy with a shard size, with the ranks that hold the same weights.
void once_with_shards(const RuleCase& it, VisitCase visit) {
  const Strategy& strategy = it.strategy;
  RuleCase of = it;
  if (strategy.shard_size == 0 || strategy.context_parallel < 1 || strategy.data_parallel < 1 ||
      __builtin_mul_overflow(strategy.context_parallel, strategy.data_parallel, &of.size)) {
    return;
  }
  visit(of);
}

bool divides_ranks(const RuleCase& it) {
  return it.strategy.shard_size > 0 && it.size % it.strategy.shard_size == 0;
}

constexpr std::array shard_rows{Rule{
    "shard_size", divides_ranks, "must divide the number of ranks that hold the same weights ({}), not be {}",
    "PyTorch, device meshes: copies of what is sharded are alike",
    [](const RuleCase& it) { return shown(it.size, it.strategy.shard_size); }}};

// Visits a strategy with a shard size, with the ranks that hold the same experts and the copies of the
// shards.
void once_with_expert_shards(const RuleCase& it, VisitCase visit) {
  if (!any_experts(it.model)) return;
  once_with_shards(it, [&](const RuleCase& shards) {
    if (!divides_ranks(shards)) return;
    RuleCase of = shards;
    of.parts = shards.size / it.strategy.shard_size;
    std::int64_t of_expert = 0;
    if (__builtin_mul_overflow(it.strategy.tensor_parallel, shards.size, &of.size) ||
        __builtin_mul_overflow(it.strategy.expert_parallel, it.strategy.expert_tensor_parallel, &of_expert) ||
        of_expert < 1 || of.size % of_expert != 0) {
      return;
    }
    of.size /= of_expert;
    visit(of);
  });
}

constexpr std::array expert_shard_rows{Rule{
    "shard_size", [](const RuleCase& it) { return it.size % it.parts == 0; },
    "must make a number of replicas ({}) that divides the number of ranks that hold the same experts ({})",
    "PyTorch, device meshes: copies of what is sharded are alike",
    [](const RuleCase& it) { return shown(it.parts, it.size); }}};

void once_with_lora(const RuleCase& it, VisitCase visit) {
  if (it.strategy.lora != Lora{}) visit(it);
}

bool adapts(const RuleCase& it) { return trains_adapters(it.strategy.lora); }

constexpr std::string_view of_lora = "arXiv:2106.09685 (LoRA)";
constexpr std::string_view of_qlora = "arXiv:2305.14314 (QLoRA)";
constexpr std::array lora_rows{
    Rule{"lora_rank", [](const RuleCase& it) { return it.strategy.lora.rank >= 0; },
         "must be at least 1, not {}", of_lora,
         [](const RuleCase& it) { return shown(it.strategy.lora.rank); }},
    Rule{"lora_targets", [](const RuleCase& it) { return adapts(it) || it.strategy.lora.targets.empty(); },
         "needs `lora_rank`", of_lora},
    Rule{"lora_dropout", [](const RuleCase& it) { return adapts(it) || it.strategy.lora.dropout.value == 0; },
         "needs `lora_rank`", of_lora},
    Rule{"base_dtype",
         [](const RuleCase& it) { return adapts(it) || it.strategy.lora.base == BaseDtype::bf16; },
         "must be bf16 without `lora_rank`: trained weights cannot be quantized", of_qlora}};

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names{every_linear};
  for (const LoraTarget& target : lora_targets) {
    names.push_back(target.name);
    if (!target.also.empty()) names.push_back(target.also);
  }
  return names;
}

void each_target(const RuleCase& it, VisitCase visit) {
  if (adapts(it)) each_name(it, it.strategy.lora.targets, visit);
}

// Returns the name of an earlier target for the same linears or for all linears, or nothing.
std::string_view same_before(const RuleCase& it) {
  const LoraTarget* const target = find_target(it.name);
  if (target == nullptr) return {};
  for (const std::string& other : std::span(it.strategy.lora.targets).first(it.place)) {
    if (other == every_linear) return other;
    const LoraTarget* const known = find_target(other);
    if (known == nullptr || known->ops != target->ops) continue;
    if (known->part == target->part || known->part == all_parts || target->part == all_parts) return other;
  }
  return {};
}

constexpr std::string_view of_targets = "PEFT, LoraConfig.target_modules";
constexpr std::array target_rows{
    Rule{"lora_targets", [](const RuleCase& it) { return it.name != every_linear || it.place == 0; },
         "must be all-linear alone or a list of other targets", of_targets},
    Rule{"lora_targets",
         [](const RuleCase& it) { return it.name == every_linear || find_target(it.name) != nullptr; },
         "'{}' is none of {}{}", of_targets,
         [](const RuleCase& it) {
           return shown(it.name, joined(target_names()), did_you_mean(std::string(it.name), target_names()));
         }},
    Rule{"lora_targets", [](const RuleCase& it) { return same_before(it).empty(); },
         "names both '{}' and '{}', which overlap: remove one", of_targets,
         [](const RuleCase& it) { return shown(same_before(it), it.name); }},
    Rule{"lora_targets",
         [](const RuleCase& it) {
           const LoraTarget* const target = find_target(it.name);
           return target == nullptr || headroom::adapts(it.tables.of_model(), *target);
         },
         "names '{}', which no layer of this model has", of_targets,
         [](const RuleCase& it) { return shown(it.name); }}};

void once_adapting(const RuleCase& it, VisitCase visit) {
  if (adapts(it)) visit(it);
}

constexpr std::array adapter_rows{
    Rule{"lora_rank",
         [](const RuleCase& it) { return divides(it.strategy.tensor_parallel, it.strategy.lora.rank); },
         "must be a multiple of the {} `tensor_parallel` ranks that split it, not {}",
         "Megatron-Bridge, peft/utils.py, ParallelLinearAdapter",
         [](const RuleCase& it) { return shown(it.strategy.tensor_parallel, it.strategy.lora.rank); }},
    Rule{"lora_rank", [](const RuleCase& it) { return it.strategy.lora.rank <= it.model.hidden; },
         "must not exceed the hidden size of {}", of_lora,
         [](const RuleCase& it) { return shown(it.model.hidden); }},
    Rule{"precision",
         [](const RuleCase& it) {
           return it.strategy.lora.base == BaseDtype::bf16 || it.strategy.precision == Precision::bf16;
         },
         "must be bf16 with `base_dtype` {}: its weights are dequantized to BF16 for each use", of_qlora,
         [](const RuleCase& it) { return shown(it.strategy.lora.base); }},
    Rule{"lora_rank", [](const RuleCase& it) { return !keeps_fp32_weights(it); },
         "needs 16-bit weights; this model keeps FP32 weights (`kernels.weight_copies`)", of_autocast},
    Rule{"schedule", [](const RuleCase& it) { return !has_weight_passes(it.strategy.schedule); },
         "must be one without separate weight-gradient passes when `lora_rank` is set, not {}",
         "Frozen linears have no gradients of weights for passes of their own",
         [](const RuleCase& it) { return shown(it.strategy.schedule); }},
    Rule{"save_gathered_input", [](const RuleCase& it) { return !it.strategy.save_gathered_input; },
         "cannot be combined with `lora_rank`: frozen linears save no input", of_lora}};

bool has_fp32(const RuleCase& it, bool is_fp32) { return is_fp32 || !keeps_fp32_weights(it); }

constexpr std::array optimizer_rows{
    Rule{"gradient_dtype",
         [](const RuleCase& it) { return has_fp32(it, it.strategy.gradient_dtype == Dtype::fp32); },
         "must be fp32: this model keeps FP32 weights (`kernels.weight_copies`), and gradients have the "
         "dtype of the weights",
         of_autocast},
    Rule{"main_params_dtype",
         [](const RuleCase& it) {
           return has_fp32(it, it.strategy.optimizer.main_params == MainParams::fp32);
         },
         "must be fp32: this model keeps FP32 weights (`kernels.weight_copies`), which the optimizer updates",
         of_autocast},
    Rule{"exp_avg_dtype",
         [](const RuleCase& it) {
           const Optimizer& optimizer = it.strategy.optimizer;
           return has_first_moment(optimizer.kind) || optimizer.exp_avg == MomentDtype::fp32;
         },
         "cannot be set with `optimizer` {}, which has no first moment", "arXiv:1804.04235 (Adafactor)",
         [](const RuleCase& it) { return shown(it.strategy.optimizer.kind); }},
    Rule{"exp_avg_sq_dtype",
         [](const RuleCase& it) {
           const Optimizer& optimizer = it.strategy.optimizer;
           return has_second_moment(optimizer.kind) || optimizer.exp_avg_sq == MomentDtype::fp32;
         },
         "cannot be set with `optimizer` {}, which has no second moment per parameter",
         "arXiv:1804.04235 (Adafactor); torch.optim.SGD",
         [](const RuleCase& it) { return shown(it.strategy.optimizer.kind); }}};

// Returns whether the optimizer works with this data sharding.
bool steps_with(OptimizerKind optimizer, DataSharding sharding) {
  switch (optimizer) {
    case OptimizerKind::adafactor: return sharding == DataSharding::none || sharding == DataSharding::zero3;
    case OptimizerKind::muon: return sharding <= DataSharding::zero1;
    default: return true;
  }
}

// Returns the modes that work with the optimizer and that the stack has, or all that work if it has none.
std::string shardings_text(OptimizerKind optimizer, const Software& software) {
  std::vector<DataSharding> all;
  std::vector<DataSharding> had;
  for (const DataSharding mode :
       {DataSharding::none, DataSharding::zero1, DataSharding::zero2, DataSharding::zero3}) {
    if (!steps_with(optimizer, mode)) continue;
    all.push_back(mode);
    if (contains(software.sharding.modes, mode)) had.push_back(mode);
  }
  return joined(had.empty() ? all : had, " or ");
}

constexpr std::array stepped_rows{Rule{
    "data_sharding",
    [](const RuleCase& it) { return steps_with(it.strategy.optimizer.kind, it.strategy.data_sharding); },
    "must be {} for `optimizer` {}{}",
    "torch.optim.Adafactor; Megatron-LM, core/optimizer/emerging_optimizers.py",
    [](const RuleCase& it) {
      const OptimizerKind kind = it.strategy.optimizer.kind;
      const bool adafactor = kind == OptimizerKind::adafactor;
      return shown(shardings_text(kind, it.software), kind,
                   adafactor ? ": flat shards have no rows and columns" : ", which updates whole matrices");
    }}};

void once_stepping_in_backward(const RuleCase& it, VisitCase visit) {
  if (it.strategy.step_in_backward && it.strategy.data_parallel >= 1) visit(it);
}

constexpr std::string_view of_steps_in_backward =
    "torchtitan, components/optimizer.py, build_optimizers: refuses pipeline and expert parallelism";
constexpr std::array backward_step_rows{
    Rule{"step_in_backward",
         [](const RuleCase& it) {
           return it.workload.global_batch / it.strategy.data_parallel <= it.strategy.micro_batch;
         },
         "needs one microbatch, since each backward pass steps the weights: set `global_batch` to "
         "`micro_batch` x `data_parallel`",
         "no gradient is left to sum; torchtune, recipes/full_finetune_single_device.py, "
         "FullFinetuneRecipeSingleDevice.__init__, refuses it"},
    Rule{"step_in_backward",
         [](const RuleCase& it) {
           return it.strategy.pipeline_parallel <= 1 && !has_weight_passes(it.strategy.schedule);
         },
         "needs `pipeline_parallel` 1 and a schedule without separate weight-gradient passes",
         of_steps_in_backward},
    Rule{"step_in_backward", [](const RuleCase& it) { return it.strategy.expert_parallel <= 1; },
         "needs `expert_parallel` 1", of_steps_in_backward},
    Rule{"step_in_backward", [](const RuleCase& it) { return !adapts(it); },
         "needs full training: drop `lora_rank`",
         "torchtune, recipes/lora_finetune_single_device.py and lora_finetune_distributed.py: no "
         "optimizer_in_bwd"}};
constexpr std::array backward_shard_rows{Rule{
    "step_in_backward",
    [](const RuleCase& it) {
      const bool alone = it.strategy.data_parallel == 1 && it.strategy.context_parallel == 1;
      return divides_weights(it) || (alone && it.strategy.data_sharding == DataSharding::none);
    },
    "needs `data_sharding` zero3 where several ranks hold the same weights: FSDP2 steps a shard once it is "
    "reduced",
    "PyTorch, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce: "
    "_post_accumulate_grad_hooks"}};

bool offloads_optimizer(const RuleCase& it) { return it.strategy.offload.optimizer.value > 0; }

constexpr std::string_view of_host_steps = "Megatron-LM, core/optimizer/cpu_offloading/hybrid_optimizer.py";
constexpr std::array host_step_rows{
    Rule{"optimizer_offload_fraction",
         [](const RuleCase& it) {
           return !offloads_optimizer(it) || !steps_matrices(it.strategy.optimizer.kind);
         },
         "must be 0 for `optimizer` {}: its step on the CPU is not modelled", of_host_steps,
         [](const RuleCase& it) { return shown(it.strategy.optimizer.kind); }},
    Rule{"optimizer_offload_fraction",
         [](const RuleCase& it) {
           // FSDP2's CPUOffloadPolicy holds parameters on the host and steps them there as they are.
           return !offloads_optimizer(it) || it.strategy.offload.parameters ||
                  it.strategy.optimizer.main_params != MainParams::none;
         },
         "must be 0 when `main_params_dtype` is none", of_host_steps},
    Rule{"overlap_cpu_optimizer",
         [](const RuleCase& it) { return offloads_optimizer(it) || !it.strategy.offload.overlaps; },
         "needs `optimizer_offload_fraction` above 0", "Megatron-LM, --overlap-cpu-optimizer-d2h-h2d"}};

void once_offloading_shards(const RuleCase& it, VisitCase visit) {
  if (it.strategy.offload.parameters) visit(it);
}

constexpr std::string_view of_host_shards =
    "PyTorch, torch/distributed/fsdp, CPUOffloadPolicy; DeepSpeed, zero_optimization.offload_param";
constexpr std::array host_shard_rows{
    Rule{"offload_parameters", divides_weights,
         "needs `data_sharding` zero3: only sharded weights are fetched unit by unit", of_host_shards}};
constexpr std::array host_weight_rows{
    Rule{"offload_parameters", [](const RuleCase& it) { return it.strategy.offload.optimizer.value == 1; },
         "needs `optimizer_offload_fraction` 1: the host updates the weights that it holds", of_host_shards},
    Rule{"offload_parameters", [](const RuleCase& it) { return it.strategy.pipeline_parallel <= 1; },
         "needs `pipeline_parallel` 1: pipeline passes do not gather weights", of_host_shards}};

constexpr std::array state_topics{
    Topic{"the output layer", Whose::mechanism, Reads::layout, once_with_tensor_ranks, vocabulary_rows},
    Topic{"data sharding", Whose::mechanism, Reads::sharding, once, sharding_rows},
    Topic{"shards", Whose::mechanism, Reads::sharding, once_with_shards, shard_rows},
    Topic{"shards of experts", Whose::mechanism, Reads::sharding, once_with_expert_shards, expert_shard_rows},
    Topic{"LoRA", Whose::mechanism, Reads::layout, once_with_lora, lora_rows},
    Topic{"names of what has adapters", Whose::mechanism, Reads::names, each_target, target_rows},
    Topic{"adapters", Whose::mechanism, Reads::layout, once_adapting, adapter_rows},
    Topic{"the optimizer", Whose::mechanism, Reads::layout, once, optimizer_rows},
    Topic{"shards that are stepped", Whose::mechanism, Reads::sharding, once, stepped_rows},
    Topic{"steps in the backward pass", Whose::mechanism, Reads::layout, once_stepping_in_backward,
          backward_step_rows},
    Topic{"shards stepped in the backward pass", Whose::mechanism, Reads::sharding, once_stepping_in_backward,
          backward_shard_rows},
    Topic{"steps on the host", Whose::mechanism, Reads::layout, once, host_step_rows},
    Topic{"shards on the host", Whose::mechanism, Reads::sharding, once_offloading_shards, host_shard_rows},
    Topic{"weights on the host", Whose::mechanism, Reads::layout, once_offloading_shards, host_weight_rows}};

}  // namespace

std::span<const Topic> of_state() { return state_topics; }

}  // namespace headroom::rules
