// The fields of a strategy and of its workload, each described once: its name, its member and its spellings.
// Flags, JSON, sweeps, suggested changes, distances and the manual all come from this table. A new field is a
// member and a row.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/core/fixed_text.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_member.hpp"

namespace headroom {

using FieldMember =
    std::variant<Member<std::int64_t>, Member<MoeImbalance>, Member<MoeBalancing>, Member<bool>,
                 Member<ScheduleKind>, Member<CpComm>, Member<Dispatcher>, Member<DataSharding>,
                 Member<RecomputePolicy>, Member<RecomputeMethod>, Member<Dtype>, Member<Precision>,
                 Member<OptimizerKind>, Member<Fraction>, Member<PrecisionModules>, Member<BaseDtype>,
                 Member<MainParams>, Member<MomentDtype>, Member<std::vector<std::int64_t>>,
                 Member<std::vector<std::string>>>;

// Group of a field's flag in the help, which also decides the commands that have the flag.
enum class FieldGroup : std::uint8_t {
  model,      // listed with the model, for every command
  layout,     // use of the GPUs; searched
  sharing,    // other sharding, and precision; searched
  saved,      // other saved or kept tensors; fixed in a search
  recompute,  // recomputation; varied by searches and frontiers
};

// Contribution of a field to the distance between two strategies. All fields of recomputation count together
// as one.
enum class FieldDistance : std::uint8_t { none, doublings, differs };

struct StrategyField {
  std::string_view name;  // name in sweeps; with dashes, the flag
  FieldMember member;
  std::string_view json;     // path of its key: "strategy/recompute/policy"
  std::string_view letter;   // the short flag, without dashes: "t", "sp"
  std::string_view aliases;  // other programs' names of the flag, separated by commas
  std::int64_t least;        // smallest value of a count, or of each count of a list
  FieldGroup group;
  FieldDistance distance;
  bool searched;           // a search varies it
  std::string_view value;  // placeholder in the help; empty: a flag without a value
  std::string_view help;
};

inline constexpr auto recompute_help = [] {
  FixedText<512> text;
  text += "Recompute these ops (see: headroom explain) or Megatron-Core's modules: ";
  for (std::size_t i = 0; i < recompute_modules.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += recompute_modules[i].name;
  }
  return text;
}();

inline constexpr auto bf16_modules_help = [] {
  FixedText<512> text;
  text += "With FP8 or FP4: linears that stay in BF16: attention or linear_qkv, linear_proj; ";
  for_each_mixer([&](const auto& row, auto) {
    for (std::size_t i = 0; i < row.linears.size(); ++i) {
      text += i == 0 ? "" : i == 1 ? " or " : ", ";
      text += row.linears[i].name;
    }
    text += "; ";
  });
  text += "mlp, experts, shared_experts, latent_proj, mtp";
  return text;
}();

// The fields, in the order in which flags are written.
inline constexpr std::array strategy_fields{
    StrategyField{"tensor_parallel", member<&Strategy::tensor_parallel>(), "strategy/tensor_parallel", "t",
                  "tp,tensor-model-parallel-size,tensor-parallel-size", 1, FieldGroup::layout,
                  FieldDistance::doublings, true, "T", "Tensor-parallel (TP) size (default 1)"},
    StrategyField{"pipeline_parallel", member<&Strategy::pipeline_parallel>(), "strategy/pipeline_parallel",
                  "p", "pp,pipeline-model-parallel-size,pipeline-parallel-size", 1, FieldGroup::layout,
                  FieldDistance::doublings, true, "P", "Pipeline-parallel (PP) size (default 1)"},
    StrategyField{"virtual_pipeline", member<&Strategy::virtual_pipeline>(), "strategy/virtual_pipeline", "m",
                  "vp,vpp,interleave,virtual-pipeline-model-parallel-size", 1, FieldGroup::layout,
                  FieldDistance::doublings, true, "M",
                  "Virtual pipeline (VP) stages on each PP rank (default 1)"},
    StrategyField{"context_parallel", member<&Strategy::context_parallel>(), "strategy/context_parallel", "c",
                  "cp,context-parallel-size", 1, FieldGroup::layout, FieldDistance::doublings, true, "C",
                  "Context-parallel (CP) size: ranks that split every sequence (default 1)"},
    StrategyField{"cp_comm", member<&Strategy::cp_comm>(), "strategy/cp_comm", "", "cp-comm-type", 0,
                  FieldGroup::layout, FieldDistance::differs, true, "KIND",
                  "With CP: p2p (a ring, default), all_gather, a2a (Ulysses) or a2a_p2p"},
    StrategyField{"hierarchical_cp_sizes", member<&Strategy::hierarchical_cp_sizes>(),
                  "strategy/hierarchical_cp_sizes", "", "hierarchical-context-parallel-sizes", 1,
                  FieldGroup::layout, FieldDistance::none, false, "U,R",
                  "With a2a_p2p: all-to-all over U ranks, a ring of R (default: as KV heads allow)"},
    StrategyField{"data_parallel", member<&Strategy::data_parallel>(), "strategy/data_parallel", "d",
                  "dp,data-parallel-size", 1, FieldGroup::layout, FieldDistance::none, true, "D",
                  "Data-parallel (DP) size (default 1)"},
    StrategyField{
        "expert_parallel", member<&Strategy::expert_parallel>(), "strategy/expert_parallel", "",
        "ep,expert-parallel-size,expert-model-parallel-size", 1, FieldGroup::layout, FieldDistance::doublings,
        true, "EP",
        "Expert-parallel (EP) size: ranks of TP x DP that share the experts of a layer (default 1)"},
    StrategyField{"expert_tensor_parallel", member<&Strategy::expert_tensor_parallel>(),
                  "strategy/expert_tensor_parallel", "", "etp,expert-tensor-parallel-size", 1,
                  FieldGroup::layout, FieldDistance::doublings, true, "ETP",
                  "Ranks that share each expert (ETP, default 1; Megatron-LM's is TP)"},
    StrategyField{"moe_dispatcher", member<&Strategy::moe_dispatcher>(), "strategy/moe_dispatcher", "",
                  "moe-token-dispatcher-type", 0, FieldGroup::layout, FieldDistance::differs, true, "KIND",
                  "Token dispatcher of experts: alltoall (default), allgather, deepep or hybridep"},
    StrategyField{"moe_router_padding", member<&Strategy::moe_router_padding>(),
                  "strategy/moe_router_padding", "",
                  "moe-router-padding-for-quantization,moe-router-padding-for-fp8", 0, FieldGroup::saved,
                  FieldDistance::none, false, "",
                  "With FP8: pad tokens of experts while routing, without a copy (hybridep always does)"},
    StrategyField{"moe_pad_to_capacity", member<&Strategy::moe_pad_to_capacity>(),
                  "strategy/moe_pad_to_capacity", "", "moe-pad-expert-input-to-capacity", 0,
                  FieldGroup::saved, FieldDistance::none, false, "",
                  "Pad tokens of every expert to the model's experts.capacity_factor (MaxText always does)"},
    StrategyField{"micro_batch", member<&Strategy::micro_batch>(), "strategy/micro_batch", "b",
                  "mbs,micro-batch-size", 1, FieldGroup::layout, FieldDistance::doublings, true, "B",
                  "Sequences per microbatch (MBS, default 1)"},
    StrategyField{"global_batch", member<&Workload::global_batch>(), "workload/global_batch", "",
                  "gbs,global-batch-size", 1, FieldGroup::layout, FieldDistance::none, false, "N",
                  "Sequences per iteration (GBS), or '4M tokens' (default: 4 microbatches for each PP rank)"},
    StrategyField{"sequence", member<&Workload::sequence>(), "workload/sequence", "", "seq-length", 1,
                  FieldGroup::model, FieldDistance::none, false, "TOKENS",
                  "Sequence length (default: the model's)"},
    StrategyField{"moe_imbalance", member<&Workload::moe_imbalance>(), "workload/moe_imbalance", "", "", 1,
                  FieldGroup::model, FieldDistance::none, false, "LOAD",
                  "Load of the busiest expert rank: balanced (default), typical or worst placement, or "
                  "a multiple of the mean (1.25)"},
    StrategyField{"moe_balancing", member<&Workload::moe_imbalance, &MoeImbalance::balancing>(),
                  "workload/moe_balancing", "", "moe-router-load-balancing-type", 0, FieldGroup::model,
                  FieldDistance::none, false, "KIND",
                  "What balances the load of experts: aux_loss (default), loss_free (a bias) or none"},
    StrategyField{"reference_model", member<&Workload::reference_model>(), "workload/reference_model", "", "",
                  0, FieldGroup::model, FieldDistance::none, false, "",
                  "Keep a frozen reference model that scores every sequence (DPO, KTO); count a pair as two "
                  "sequences"},
    StrategyField{"schedule", member<&Strategy::schedule>(), "strategy/schedule", "", "pipeline-schedule", 0,
                  FieldGroup::layout, FieldDistance::none, true, "KIND",
                  "gpipe, 1f1b, interleaved, looped-bfs, zero-bubble-h1, -h2, -2p or -v, v-half, v-min, "
                  "dualpipe or dualpipe-v (default: what VP implies)"},
    StrategyField{
        "overlap_expert_all_to_all", member<&Strategy::overlap_expert_all_to_all>(),
        "strategy/overlap_expert_all_to_all", "", "overlap-moe-expert-parallel-comm", 0, FieldGroup::layout,
        FieldDistance::differs, true, "",
        "With EP: run forward passes beside backward passes, so that each hides the other's all-to-alls"},
    StrategyField{"stage_layers", member<&Strategy::stage_layers>(), "strategy/stage_layers", "",
                  "pipeline-model-parallel-layout,hybrid-layer-pattern", 0, FieldGroup::layout,
                  FieldDistance::none, true, "N,N,...",
                  "Layers of each virtual stage, in the order of the model; 8*14 for fourteen of 8; or "
                  "Megatron-Core's layout; or first=7,last=6 for the end ranks"},
    StrategyField{"microbatch_group_size", member<&Strategy::microbatch_group_size>(),
                  "strategy/microbatch_group_size", "", "microbatch-group-size-per-vp-stage", 1,
                  FieldGroup::layout, FieldDistance::none, true, "N",
                  "Interleaved: microbatches that go through a virtual stage in a row (default PP)"},
    StrategyField{"sequence_parallel", member<&Strategy::sequence_parallel>(), "strategy/sequence_parallel",
                  "sp", "", 0, FieldGroup::sharing, FieldDistance::differs, true, "",
                  "Split norms, dropouts and block inputs along the sequence over TP ranks"},
    StrategyField{"split_hidden", member<&Strategy::split_hidden>(), "strategy/split_hidden", "", "", 0,
                  FieldGroup::saved, FieldDistance::none, false, "",
                  "With SP: split the hidden dimension instead of the sequence, to compare the two"},
    StrategyField{"recompute", member<&Strategy::recompute, &Recomputation::policy>(),
                  "strategy/recompute/policy", "", "recompute-granularity", 0, FieldGroup::recompute,
                  FieldDistance::none, true, "POLICY",
                  "none (default), selective (core attention), full, or selective_op (torchtitan's, by op)"},
    StrategyField{"recompute_ops", member<&Strategy::recompute, &Recomputation::ops>(),
                  "strategy/recompute/ops", "", "recompute-modules", 0, FieldGroup::recompute,
                  FieldDistance::none, false, "OP,OP,...", recompute_help.view()},
    StrategyField{"recompute_layers", member<&Strategy::recompute, &Recomputation::layers>(),
                  "strategy/recompute/layers", "", "recompute-num-layers", 1, FieldGroup::recompute,
                  FieldDistance::none, true, "K",
                  "With full or ops: recompute K layers of each virtual stage (block), or with full save an "
                  "input every K layers (uniform)"},
    StrategyField{"recompute_method", member<&Strategy::recompute, &Recomputation::method>(),
                  "strategy/recompute/method", "", "", 0, FieldGroup::recompute, FieldDistance::none, false,
                  "METHOD", "block (default) or uniform"},
    StrategyField{"recompute_window", member<&Strategy::recompute, &Recomputation::window>(),
                  "strategy/recompute/window", "", "", 0, FieldGroup::recompute, FieldDistance::none, true,
                  "", "Exempt as many in-flight microbatches from recomputation as memory allows"},
    StrategyField{"distribute_saved_activations",
                  member<&Strategy::recompute, &Recomputation::distribute_saved_activations>(),
                  "strategy/recompute/distribute_saved_activations", "", "shard-checkpoint", 0,
                  FieldGroup::recompute, FieldDistance::none, false, "",
                  "With full: each TP rank saves its part of a layer's input"},
    StrategyField{"save_gathered_input", member<&Strategy::save_gathered_input>(),
                  "strategy/save_gathered_input", "", "store-gathered", 0, FieldGroup::saved,
                  FieldDistance::none, false, "", "Save gathered inputs instead of gathering them again"},
    StrategyField{"keep_pipeline_outputs", member<&Strategy::keep_pipeline_outputs>(),
                  "strategy/keep_pipeline_outputs", "", "keep-outputs,no-deallocate-pipeline-outputs", 0,
                  FieldGroup::saved, FieldDistance::none, false, "",
                  "Keep a stage's output after sending it"},
    StrategyField{"data_sharding", member<&Strategy::data_sharding>(), "strategy/data_sharding", "",
                  "zero-stage,zero,distributed-optimizer,use-distributed-optimizer,sharding-strategy,fsdp-"
                  "sharding-strategy,"
                  "data-parallel-sharding-strategy",
                  0, FieldGroup::sharing, FieldDistance::differs, true, "MODE",
                  "What DP ranks shard: none, zero1 (optimizer state), zero2 (gradients too) or zero3 "
                  "(weights too: FSDP) (default: the least that the stack has)"},
    StrategyField{"shard_size", member<&Strategy::shard_size>(), "strategy/shard_size", "",
                  "data-parallel-shard-degree,fsdp-size", 1, FieldGroup::sharing, FieldDistance::none, true,
                  "N", "Ranks that shard together, of all that hold the same weights (HSDP; default: all)"},
    StrategyField{"no_reshard_after_forward", member<&Strategy::no_reshard_after_forward>(),
                  "strategy/no_reshard_after_forward", "", "torch-fsdp2-no-reshard-after-forward", 0,
                  FieldGroup::sharing, FieldDistance::none, true, "",
                  "With zero3: keep gathered weights from forward to backward pass"},
    StrategyField{"sync_each_batch", member<&Strategy::sync_each_batch>(), "strategy/sync_each_batch", "", "",
                  0, FieldGroup::sharing, FieldDistance::none, true, "",
                  "With zero2 or zero3: reduce gradients in every microbatch instead of summing them first"},
    StrategyField{
        "precision", member<&Strategy::precision>(), "strategy/precision", "", "", 0, FieldGroup::sharing,
        FieldDistance::differs, true, "PRECISION",
        "Precision of linear layers: bf16 (default), fp8, fp8_delayed, fp8_blockwise, mxfp8 or nvfp4"},
    StrategyField{"fp8_param_gather", member<&Strategy::fp8_param_gather>(), "strategy/fp8_param_gather", "",
                  "fp4-param-gather,fp4-param,fp8-primary-weights", 0, FieldGroup::saved, FieldDistance::none,
                  false, "", "Keep and gather weights of FP8 or FP4 GEMMs in that dtype only"},
    StrategyField{"bf16_layers_at_start",
                  member<&Strategy::precision_scope, &PrecisionScope::bf16_layers_at_start>(),
                  "strategy/bf16_layers_at_start", "", "num-layers-at-start-in-bf16", 0, FieldGroup::saved,
                  FieldDistance::none, false, "N",
                  "First N layers that stay in BF16 (default 0); --first-last-layers-bf16: 1 at either end"},
    StrategyField{"bf16_layers_at_end",
                  member<&Strategy::precision_scope, &PrecisionScope::bf16_layers_at_end>(),
                  "strategy/bf16_layers_at_end", "", "num-layers-at-end-in-bf16", 0, FieldGroup::saved,
                  FieldDistance::none, false, "N", "Last N layers that stay in BF16 (default 0)"},
    StrategyField{"fp8_attention", member<&Strategy::precision_scope, &PrecisionScope::attention>(),
                  "strategy/fp8_attention", "", "fp8-dot-product-attention", 0, FieldGroup::saved,
                  FieldDistance::none, false, "", "With FP8: attention in FP8 too"},
    StrategyField{"fp8_output_layer", member<&Strategy::precision_scope, &PrecisionScope::output_layer>(),
                  "strategy/fp8_output_layer", "", "fp8-output-proj", 0, FieldGroup::saved,
                  FieldDistance::none, false, "", "With mxfp8: the output layer in MXFP8 too"},
    StrategyField{
        "fp8_activation_input", member<&Strategy::precision_scope, &PrecisionScope::activation_input>(),
        "strategy/fp8_activation_input", "", "activation-func-fp8-input-store", 0, FieldGroup::saved,
        FieldDistance::none, false, "", "Save the input of SwiGLU in FP8, in any precision"},
    StrategyField{"bf16_modules", member<&Strategy::precision_scope, &PrecisionScope::bf16_modules>(),
                  "strategy/bf16_modules", "", "", 0, FieldGroup::saved, FieldDistance::none, false,
                  "NAME,NAME,...", bf16_modules_help.view()},
    StrategyField{"tp_only_amax_red", member<&Strategy::tp_only_amax_red>(), "strategy/tp_only_amax_red", "",
                  "", 0, FieldGroup::saved, FieldDistance::none, false, "",
                  "With fp8_delayed: reduce amax over TP x CP ranks only, not over DP ranks"},
    StrategyField{"gradient_dtype", member<&Strategy::gradient_dtype>(), "strategy/gradient_dtype", "",
                  "gradients,main-grads-dtype", 0, FieldGroup::saved, FieldDistance::none, false, "DTYPE",
                  "Dtype that gradients are summed in: fp32, bf16, fp16 or half (default: the stack's)"},
    StrategyField{"optimizer", member<&Strategy::optimizer, &Optimizer::kind>(), "strategy/optimizer", "",
                  "optim", 0, FieldGroup::saved, FieldDistance::none, false, "NAME",
                  "adam, sgd (with momentum), adafactor or muon (default: the stack's); adam8bit: adam with "
                  "int8 moments"},
    StrategyField{"main_params_dtype", member<&Strategy::optimizer, &Optimizer::main_params>(),
                  "strategy/main_params_dtype", "", "", 0, FieldGroup::saved, FieldDistance::none, false,
                  "DTYPE",
                  "Dtype of the main parameters: fp32, fp16, remainder (2 bytes beside BF16 weights) or none "
                  "(it steps the weights) (default: the stack's)"},
    StrategyField{"exp_avg_dtype", member<&Strategy::optimizer, &Optimizer::exp_avg>(),
                  "strategy/exp_avg_dtype", "", "", 0, FieldGroup::saved, FieldDistance::none, false, "DTYPE",
                  "Dtype of the first moment: fp32, bf16, fp16, fp8 or int8 (default: the stack's)"},
    StrategyField{"exp_avg_sq_dtype", member<&Strategy::optimizer, &Optimizer::exp_avg_sq>(),
                  "strategy/exp_avg_sq_dtype", "", "", 0, FieldGroup::saved, FieldDistance::none, false,
                  "DTYPE", "Dtype of the second moment: likewise"},
    StrategyField{"step_in_backward", member<&Strategy::step_in_backward>(), "strategy/step_in_backward", "",
                  "early-step-in-backward,optimizer-in-bwd", 0, FieldGroup::saved, FieldDistance::none, false,
                  "", "Step each weight in the backward pass and free its gradient at once; one microbatch"},
    StrategyField{"optimizer_offload_fraction", member<&Strategy::offload, &Offload::optimizer>(),
                  "strategy/offload/optimizer_fraction", "", "", 0, FieldGroup::saved, FieldDistance::none,
                  false, "X",
                  "Share of main parameters and moments on the host, which steps them: 0 (default) to 1; "
                  "--optimizer-cpu-offload: all"},
    StrategyField{"overlap_cpu_optimizer", member<&Strategy::offload, &Offload::overlaps>(),
                  "strategy/offload/overlaps", "", "overlap-cpu-optimizer-d2h-h2d", 0, FieldGroup::saved,
                  FieldDistance::none, false, "",
                  "Overlap sending gradients to the host, the step there and fetching weights"},
    StrategyField{"offload_parameters", member<&Strategy::offload, &Offload::parameters>(),
                  "strategy/offload/parameters", "", "offload-param", 0, FieldGroup::saved,
                  FieldDistance::none, false, "",
                  "With zero3 and the optimizer on the host: offload shards of weights and gradients too"},
    StrategyField{"offload_modules", member<&Strategy::offload, &Offload::modules>(),
                  "strategy/offload/modules", "", "", 0, FieldGroup::saved, FieldDistance::none, false,
                  "NAME,NAME,...",
                  "Offload saved activations of these modules to the host: attn_norm, qkv_linear, core_attn, "
                  "attn_proj, mlp_norm, expert_fc1, moe_act, or layer_input with recompute full"},
    StrategyField{"offload_layers", member<&Strategy::offload, &Offload::layers>(), "strategy/offload/layers",
                  "", "cpu-offloading-num-layers", 0, FieldGroup::saved, FieldDistance::none, false, "K",
                  "Offload all saved activations of the first K layers to the host (default 0)"},
    StrategyField{"lora_rank", member<&Strategy::lora, &Lora::rank>(), "strategy/lora/rank", "",
                  "lora-r,lora-dim,peft-dim", 1, FieldGroup::saved, FieldDistance::none, false, "R",
                  "Train low-rank adapters (LoRA) of rank R; weights are frozen"},
    StrategyField{"lora_targets", member<&Strategy::lora, &Lora::targets>(), "strategy/lora/targets", "",
                  "target-modules,lora-target-modules,lora-target", 0, FieldGroup::saved, FieldDistance::none,
                  false, "NAME,NAME,...",
                  "Linears with adapters: q_proj,v_proj or linear_qkv,linear_proj; all-linear (default)"},
    StrategyField{"lora_dropout", member<&Strategy::lora, &Lora::dropout>(), "strategy/lora/dropout", "", "",
                  0, FieldGroup::saved, FieldDistance::none, false, "P",
                  "Dropout of an adapter's input, 0 (default) to 1"},
    StrategyField{"base_dtype", member<&Strategy::lora, &Lora::base>(), "strategy/lora/base_dtype", "", "", 0,
                  FieldGroup::saved, FieldDistance::none, false, "DTYPE",
                  "Dtype of frozen linears: bf16 (default), nf4 (QLoRA, double quantization), nf4_single "
                  "(single quantization) or int8 (LLM.int8())"},
};

// Returns the field with this name, or whose flag has this alias or letter. Returns null if there is none.
const StrategyField* find_field(std::string_view name);

// Returns the long flag of a field: "--tensor-parallel" for tensor_parallel. Works for any name with
// underscores.
std::string flag_of(std::string_view name);

// Returns a problem with its fields as flags: `where`, if it names a field, and fields in backquotes in its
// rule.
Problem by_flag(const Problem& problem);

// Returns the short flag of a field: "-t", "--sp". Expects a field with a letter.
std::string short_flag_of(const StrategyField& field);

std::vector<std::string_view> aliases_of(const StrategyField& field);

// Returns whether a strategy's description always includes this field, whatever its value.
bool always_told(const StrategyField& field);

// Returns the smallest value of a count in JSON: 0 if the field is 0 by default, even if its flag needs more.
std::int64_t least_in_files(const StrategyField& field);

// Returns the schedule of a strategy that names none.
ScheduleKind implied_schedule(std::int64_t virtual_pipeline);

// Returns the value of a field as flags and sweeps write it: "8", "yes", "selective", "3,4,4".
std::string value_of(const StrategyField& field, const Strategy& strategy, const Workload& workload);

// Returns a value as value_of() writes it, however a text spells it ("2k", "Et*2|t*2L"). A text that the field cannot
// have is returned as it is. `workload` has the sequence length that a batch in tokens needs.
std::string plain_value(const StrategyField& field, const std::string& text, Workload workload);

// Reads the text of a value into the member of a field. Returns the rule that the text breaks ("must be a
// whole number, not 'x'"), or an empty string.
std::string set_value(const StrategyField& field, std::string_view text, Strategy& strategy,
                      Workload& workload);

}  // namespace headroom
