// Rules of torchtitan (lines of v0.2.2), DeepSpeed (edaa72212672) and transformers on accelerate (16cb6eb80dd9).
#include <algorithm>
#include <array>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/parallel/titan_words.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

void once_on_titan(const RuleCase& it, VisitCase visit) {
  if (it.software.launcher == Launcher::torchtitan) visit(it);
}

// Ranks that share one copy of the weights, whatever their context: torchtitan's data_parallel_shard_degree.
std::int64_t titan_shards(const Strategy& strategy) {
  return strategy.shard_size > 0 ? strategy.shard_size / std::max<std::int64_t>(strategy.context_parallel, 1)
                                 : strategy.data_parallel;
}

bool has_latent_attention(const Transformer& model) {
  return any_layer(model, [](const Architecture& layer) { return layer.latent_attention.has_value(); });
}

void put_schedule_of_torch(Strategy& strategy) {
  strategy.schedule = implied_schedule(strategy.virtual_pipeline);
}

constexpr std::array titan_rows{
    Rule{"sequence_parallel",
         [](const RuleCase& it) { return it.strategy.tensor_parallel <= 1 || it.strategy.sequence_parallel; },
         "no sequence parallelism: torchtitan always uses it with tensor parallelism",
         "torchtitan v0.2.2, models/llama3/infra/parallelize.py, apply_tp", nullptr,
         [](Strategy& strategy) { strategy.sequence_parallel = true; }},
    Rule{"tensor_parallel",
         [](const RuleCase& it) {
           const std::int64_t parts = 2 * it.strategy.tensor_parallel * it.strategy.context_parallel;
           return parts <= 2 || divides(parts, it.workload.sequence);
         },
         "`tensor_parallel` {} and `context_parallel` {}: twice their product must divide the {} tokens",
         "torchtitan v0.2.2, models/llama3/infra/parallelize.py:70",
         [](const RuleCase& it) {
           return shown(it.strategy.tensor_parallel, it.strategy.context_parallel, it.workload.sequence);
         }},
    Rule{"pipeline_parallel",
         [](const RuleCase& it) {
           return it.strategy.pipeline_parallel <= 1 || !it.model.architecture.tied_embeddings;
         },
         "`pipeline_parallel` {}: torchtitan keeps tied embeddings on one pipeline rank",
         "torchtitan, models/common/decoder.py:169",
         [](const RuleCase& it) { return shown(it.strategy.pipeline_parallel); }},
    Rule{"data_parallel",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return replicas(strategy) > 1 || strategy.tensor_parallel * strategy.pipeline_parallel <= 1;
         },
         "`data_parallel` 1: without FSDP torchtitan trains tensor- and pipeline-parallel ranks in fp32",
         "torchtitan v0.2.2, distributed/utils.py:252"},
    Rule{"cp_comm",
         [](const RuleCase& it) {
           return it.strategy.context_parallel <= 1 || it.strategy.cp_comm == CpComm::all_gather ||
                  it.strategy.cp_comm == CpComm::p2p;
         },
         "`cp_comm` {}: torchtitan supports all_gather and p2p",
         "torchtitan v0.2.2, config/job_config.py, context_parallel_rotate_method",
         [](const RuleCase& it) { return shown(it.strategy.cp_comm); },
         [](Strategy& strategy) { strategy.cp_comm = CpComm::p2p; }},
    Rule{"expert_tensor_parallel",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return strategy.expert_tensor_parallel <= 1 || strategy.expert_parallel <= 1 ||
                  strategy.expert_tensor_parallel == strategy.tensor_parallel;
         },
         "`expert_tensor_parallel` {}: torchtitan supports 1 or the TP size ({})",
         "torchtitan v0.2.2, distributed/parallel_dims.py:59",
         [](const RuleCase& it) {
           return shown(it.strategy.expert_tensor_parallel, it.strategy.tensor_parallel);
         }},
    Rule{"moe_dispatcher",
         [](const RuleCase& it) {
           const Dispatcher dispatcher = it.strategy.moe_dispatcher;
           return dispatcher == Dispatcher::alltoall || dispatcher == Dispatcher::deepep;
         },
         "`moe_dispatcher` {}: torchtitan sends tokens by all-to-all or DeepEP",
         "torchtitan v0.2.2, config/job_config.py, expert_parallel_comm_backend",
         [](const RuleCase& it) { return shown(it.strategy.moe_dispatcher); },
         [](Strategy& strategy) { strategy.moe_dispatcher = Dispatcher::alltoall; }},
    Rule{"schedule",
         [](const RuleCase& it) {
           return it.strategy.pipeline_parallel <= 1 || !pytorch_schedule(it.strategy.schedule).empty();
         },
         "`schedule` {}: torch.distributed.pipelining has no such schedule",
         "PyTorch, torch/distributed/pipelining/schedules.py, get_schedule_class",
         [](const RuleCase& it) { return shown(it.strategy.schedule); }, put_schedule_of_torch},
    Rule{"gradient_dtype", [](const RuleCase& it) { return it.strategy.gradient_dtype == Dtype::fp32; },
         "`gradient_dtype` {}: --training.mixed_precision_reduce accepts only float32",
         "torchtitan v0.2.2, config/job_config.py, mixed_precision_reduce",
         [](const RuleCase& it) { return shown(it.strategy.gradient_dtype); },
         [](Strategy& strategy) { strategy.gradient_dtype = Dtype::fp32; }, true},
    Rule{"precision",
         [](const RuleCase& it) {
           const Precision precision = it.strategy.precision;
           return precision == Precision::bf16 || precision == Precision::fp8 ||
                  precision == Precision::mxfp8;
         },
         "`precision` {}: torchtitan has converters to fp8 and mxfp8",
         "torchtitan v0.2.2, components/quantization",
         [](const RuleCase& it) { return shown(it.strategy.precision); },
         [](Strategy& strategy) { strategy.precision = Precision::bf16; }},
    Rule{"precision",
         [](const RuleCase& it) {
           return it.strategy.precision != Precision::fp8 || it.strategy.tensor_parallel <= 1 ||
                  !has_latent_attention(it.model);
         },
         "`precision` fp8 with `tensor_parallel` {}: torchtitan's latent attention refuses tensorwise scales",
         "torchtitan v0.2.2, models/deepseek_v3/infra/parallelize.py:85",
         [](const RuleCase& it) { return shown(it.strategy.tensor_parallel); }},
    Rule{"optimizer_offload_fraction",
         [](const RuleCase& it) {
           const Offload& offload = it.strategy.offload;
           return offload.parameters || offload.optimizer.value == 0;
         },
         "`optimizer_offload_fraction` without `offload_parameters`: torchtitan sends both to the host",
         "torchtitan v0.2.2, config/job_config.py, enable_cpu_offload", nullptr,
         [](Strategy& strategy) { strategy.offload.optimizer.value = 0; }}};

constexpr std::array titan_kind_rows{
    Rule{"tensor_parallel",
         [](const RuleCase& it) {
           return !has_attention(it.layer->architecture) || it.layer->architecture.latent_attention ||
                  divides(it.strategy.tensor_parallel, it.layer->key_value_heads);
         },
         "`tensor_parallel` {}: torchtitan does not copy the {} key/value heads{}",
         "torchtitan, models/common/decoder.py:196",
         [](const RuleCase& it) {
           return shown(it.strategy.tensor_parallel, it.layer->key_value_heads, of_kind(it));
         }}};

void each_layer_on_titan(const RuleCase& it, VisitCase visit) {
  if (it.software.launcher == Launcher::torchtitan) each_layer(it, visit);
}

constexpr std::array titan_sharding_rows{
    Rule{"data_sharding",
         [](const RuleCase& it) {
           return it.strategy.data_sharding == DataSharding::zero3 || replicas(it.strategy) <= 1;
         },
         "`data_sharding` {}: torchtitan shards by FSDP2", "torchtitan v0.2.2, distributed/fsdp.py",
         [](const RuleCase& it) { return shown(it.strategy.data_sharding); },
         [](Strategy& strategy) { strategy.data_sharding = DataSharding::zero3; }},
    Rule{"data_sharding",
         [](const RuleCase& it) {
           return devices(it.strategy) > 1 || it.strategy.data_sharding != DataSharding::zero3;
         },
         "must not be zero3 on one GPU: torchtitan shards only over several",
         "torchtitan v0.2.2, distributed/parallel_dims.py, fsdp_enabled", nullptr,
         [](Strategy& strategy) { strategy.data_sharding = DataSharding::none; }},
    Rule{"shard_size",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           const std::int64_t c = strategy.context_parallel;
           return strategy.shard_size == 0 ||
                  (strategy.shard_size % c == 0 && strategy.data_parallel % titan_shards(strategy) == 0);
         },
         "`shard_size` {}: torchtitan's shards are over all context-parallel ranks",
         "torchtitan v0.2.2, distributed/parallel_dims.py:53",
         [](const RuleCase& it) { return shown(it.strategy.shard_size); },
         [](Strategy& strategy) { strategy.shard_size = 0; }},
    Rule{"shard_size",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           const bool alone = strategy.shard_size == 1 && replicas(strategy) > 1;
           return !alone || strategy.tensor_parallel * strategy.pipeline_parallel <= 1;
         },
         "`shard_size` 1: torchtitan's DDP does not combine with other parallelism",
         "torchtitan v0.2.2, models/llama3/infra/parallelize.py:151"}};

constexpr std::array titan_recompute_rows{
    Rule{"recompute_layers",
         [](const RuleCase& it) {
           const Recomputation& recompute = it.strategy.recompute;
           return recompute.policy != RecomputePolicy::full || recompute.layers == 0 ||
                  titan_checkpoint_step(it.model, it.strategy).has_value();
         },
         "`recompute_layers` {}{}: torchtitan checkpoints all layers or every n-th "
         "(activation_checkpoint.selective_ac_option)",
         "torchtitan v0.2.2, distributed/activation_checkpoint.py, _apply_ac_to_transformer_block",
         [](const RuleCase& it) {
           const Recomputation& recompute = it.strategy.recompute;
           return shown(recompute.layers,
                        recompute.method == RecomputeMethod::uniform ? " `recompute_method` uniform" : "");
         },
         [](Strategy& strategy) {
           strategy.recompute.layers = 0;
           strategy.recompute.method = RecomputeMethod::block;
         }},
    Rule{"recompute",
         [](const RuleCase& it) {
           const bool folded = it.strategy.overlap_expert_all_to_all ||
                               (it.strategy.schedule == ScheduleKind::dualpipe_v &&
                                it.strategy.pipeline_parallel > 1 && it.strategy.expert_parallel > 1);
           return !folded || it.strategy.recompute.policy == RecomputePolicy::none;
         },
         "`recompute` {}: torchtitan's DualPipeV overlaps the all-to-alls of experts and does not "
         "support activation checkpointing",
         "torchtitan v0.2.2, distributed/dual_pipe_v.py:46",
         [](const RuleCase& it) { return shown(it.strategy.recompute.policy); }}};

void once_on_deepspeed(const RuleCase& it, VisitCase visit) {
  if (it.software.launcher == Launcher::deepspeed) visit(it);
}

std::vector<std::string> other_offloads(const Strategy& strategy) {
  std::vector<std::string> others = strategy.offload.modules;
  std::erase(others, layer_input);
  return others;
}

constexpr std::array deepspeed_rows{
    Rule{"pipeline_parallel", [](const RuleCase& it) { return it.strategy.pipeline_parallel <= 1; },
         "`pipeline_parallel` {}: DeepSpeed's pipelines need PipelineModule(num_stages={}) in Python",
         "DeepSpeed, runtime/pipe/module.py:142",
         [](const RuleCase& it) {
           return shown(it.strategy.pipeline_parallel, it.strategy.pipeline_parallel);
         }},
    Rule{"optimizer", [](const RuleCase& it) { return it.strategy.optimizer == it.software.optimizer; },
         "the optimizer: pass it in Python, deepspeed.initialize(optimizer=...)",
         "DeepSpeed, runtime/engine.py:1693", nullptr, nullptr, true},
    Rule{"offload_modules", [](const RuleCase& it) { return other_offloads(it.strategy).empty(); },
         "`offload_modules` {}: DeepSpeed offloads only layer inputs",
         "DeepSpeed, runtime/activation_checkpointing/checkpointing.py, cpu_checkpointing",
         [](const RuleCase& it) { return shown(joined(other_offloads(it.strategy), ",")); },
         [](Strategy& strategy) {
           const bool inputs = contains(strategy.offload.modules, layer_input);
           strategy.offload.modules.clear();
           if (inputs) strategy.offload.modules.emplace_back(layer_input);
         }}};

constexpr std::array deepspeed_recompute_rows{
    Rule{"recompute",
         [](const RuleCase& it) {
           const RecomputePolicy policy = it.strategy.recompute.policy;
           return policy == RecomputePolicy::none || policy == RecomputePolicy::full;
         },
         "`recompute` of parts of a layer: gradient_checkpointing_enable() of transformers checkpoints whole "
         "layers",
         "transformers, modeling_utils.py, gradient_checkpointing_enable", nullptr,
         [](Strategy& strategy) { strategy.recompute = {}; }},
    Rule{"recompute_layers",
         [](const RuleCase& it) {
           const Recomputation& recompute = it.strategy.recompute;
           return recompute.layers == 0 || recompute.policy != RecomputePolicy::full;
         },
         "`recompute_layers` {}: gradient_checkpointing_enable() of transformers checkpoints all layers",
         "transformers, modeling_utils.py, gradient_checkpointing_enable",
         [](const RuleCase& it) { return shown(it.strategy.recompute.layers); },
         [](Strategy& strategy) {
           strategy.recompute.layers = 0;
           strategy.recompute.method = RecomputeMethod::block;
         }}};

constexpr std::array deepspeed_sharding_rows{
    Rule{"shard_size",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return strategy.shard_size == 0 || strategy.shard_size >= replicas(strategy) ||
                  strategy.data_sharding == DataSharding::zero3;
         },
         "`shard_size` {}: DeepSpeed shards over fewer ranks only in ZeRO 3 (MiCS)",
         "DeepSpeed, runtime/zero/mics.py", [](const RuleCase& it) { return shown(it.strategy.shard_size); },
         [](Strategy& strategy) { strategy.shard_size = 0; }},
    Rule{"optimizer_offload_fraction",
         [](const RuleCase& it) {
           const double fraction = it.strategy.offload.optimizer.value;
           return fraction == 0 || fraction == 1 || it.strategy.data_sharding == DataSharding::zero3;
         },
         "`optimizer_offload_fraction` {}: DeepSpeed offloads part of the optimizer state only in ZeRO 3",
         "DeepSpeed, runtime/zero/config.py:391",
         [](const RuleCase& it) {
           return shown(value_of(*find_field("optimizer_offload_fraction"), it.strategy, {}));
         },
         [](Strategy& strategy) { strategy.offload.optimizer.value = 1; }}};

void once_on_accelerate(const RuleCase& it, VisitCase visit) {
  if (it.software.launcher == Launcher::accelerate) visit(it);
}

// OptimizerNames of transformers/training_args.py, and AdamW of bitsandbytes with int8 moments.
bool has_optim_name(const Optimizer& optimizer, const Optimizer& usual) {
  Optimizer of_kind = usual;
  of_kind.kind = optimizer.kind;
  Optimizer of_8_bits = usual;
  of_8_bits.exp_avg = of_8_bits.exp_avg_sq = MomentDtype::int8;
  const bool named = optimizer.kind == OptimizerKind::adafactor || optimizer.kind == OptimizerKind::sgd;
  return optimizer == usual || optimizer == of_8_bits || (optimizer == of_kind && named);
}

constexpr std::array accelerate_rows{
    Rule{"optimizer",
         [](const RuleCase& it) { return has_optim_name(it.strategy.optimizer, it.software.optimizer); },
         "the optimizer: pass it in Python, Trainer(optimizers=...)",
         "transformers, training_args.py, OptimizerNames", nullptr, nullptr, true},
    Rule{"optimizer_offload_fraction",
         [](const RuleCase& it) {
           const Offload& offload = it.strategy.offload;
           return offload.parameters || offload.optimizer.value == 0;
         },
         "`optimizer_offload_fraction` without `offload_parameters`: FSDP sends both to the host",
         "accelerate, utils/dataclasses.py, FullyShardedDataParallelPlugin.cpu_offload", nullptr,
         [](Strategy& strategy) { strategy.offload.optimizer.value = 0; }}};

constexpr std::array accelerate_sharding_rows{
    Rule{"gradient_dtype",
         [](const RuleCase& it) {
           const Dtype dtype = it.strategy.gradient_dtype;
           return it.strategy.data_sharding != DataSharding::zero3 || dtype == Dtype::half ||
                  dtype == Dtype::bf16 || dtype == it.software.gradient_dtype;
         },
         "`gradient_dtype` {}: accelerate reduces in the dtype of mixed precision",
         "accelerate, utils/dataclasses.py:2137",
         [](const RuleCase& it) { return shown(it.strategy.gradient_dtype); }}};

constexpr std::array torch_topics{
    Topic{"torchtitan", Whose::launcher, Reads::layout, once_on_titan, titan_rows},
    Topic{"layers on torchtitan", Whose::launcher, Reads::layout, each_layer_on_titan, titan_kind_rows},
    Topic{"sharding in torchtitan", Whose::launcher, Reads::sharding, once_on_titan, titan_sharding_rows},
    Topic{"recomputation in torchtitan", Whose::launcher, Reads::recompute, once_on_titan,
          titan_recompute_rows},
    Topic{"DeepSpeed", Whose::launcher, Reads::layout, once_on_deepspeed, deepspeed_rows},
    Topic{"sharding in DeepSpeed", Whose::launcher, Reads::sharding, once_on_deepspeed,
          deepspeed_sharding_rows},
    Topic{"recomputation in DeepSpeed", Whose::launcher, Reads::recompute, once_on_deepspeed,
          deepspeed_recompute_rows},
    Topic{"accelerate", Whose::launcher, Reads::layout, once_on_accelerate, accelerate_rows},
    Topic{"sharding in accelerate", Whose::launcher, Reads::sharding, once_on_accelerate,
          accelerate_sharding_rows}};

}  // namespace

std::span<const Topic> of_torch_launchers() { return torch_topics; }

}  // namespace headroom::rules
