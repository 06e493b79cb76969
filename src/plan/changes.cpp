#include "headroom/plan/changes.hpp"

#include <algorithm>

#include "headroom/core/contains.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/edits.hpp"
#include "headroom/parallel/layout_text.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/module_choices.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {
namespace {

// Returns from, 2 from, 4 from, ... up to `most`.
std::vector<std::int64_t> doublings(std::int64_t from, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = from; value <= most; value *= 2) values.push_back(value);
  return values;
}

// Returns value/2, value/4, ... while whole.
std::vector<std::int64_t> halvings(std::int64_t value) {
  std::vector<std::int64_t> values;
  while (value % 2 == 0) values.push_back(value /= 2);
  return values;
}

// Returns whether a strategy has the request's numbers of microbatches, ranks and microbatches per group.
bool keeps_groups(const Request& request, const Strategy& strategy) {
  return strategy.schedule == request.strategy.schedule &&
         group_size(strategy) == group_size(request.strategy) &&
         strategy.pipeline_parallel == request.strategy.pipeline_parallel &&
         microbatches(strategy, request.workload) == microbatches(request.strategy, request.workload);
}

// Returns whether the stack runs groups with more microbatches than ranks in layouts that a search tries by
// default.
bool runs_groups(const Software& software) { return software.uneven_stages && software.microbatch_groups; }

struct Changes {
  std::vector<Edits> list;

  void add(Edits edits) { list.push_back(std::move(edits)); }
  void set(const char* field, std::int64_t to) { add({{field, std::to_string(to)}}); }
  void enable(const char* field) { add({{field, "yes"}}); }
};

bool searches(const Request& request, WideChoice choice) {
  return contains(request.software.searches, choice);
}

// Returns the sets of modules that a search tries and, on stacks that choose among all modules, each module
// alone or with one more or less than the strategy recomputes.
std::vector<std::vector<std::string>> module_sets(const Request& request) {
  const Strategy& strategy = request.strategy;
  std::vector<std::vector<std::string>> sets = module_choices(request.model, strategy.precision);
  if (!searches(request, WideChoice::recompute_modules)) return sets;
  if (sets.empty()) sets = dense_module_choices(request.model, strategy.precision);
  for (const RecomputeModule& module : recompute_modules) {
    std::vector<std::string> other = strategy.recompute.ops;
    if (std::erase(other, module.name) == 0) other.emplace_back(module.name);
    if (!other.empty() && !contains(sets, other)) sets.push_back(std::move(other));
  }
  return sets;
}

// Adds other exchanges of keys, values and tokens of experts, and other shard groups, where the stack has them.
void change_exchanges(Changes& changes, const Request& request) {
  const Strategy& strategy = request.strategy;
  const Software& software = request.software;
  const auto has = [](const auto& list, const auto& value) { return list.empty() || contains(list, value); };
  if (strategy.context_parallel > 1 && searches(request, WideChoice::cp_comm)) {
    for (const CpComm comm : admitted_cp_comm(request.model)) {
      if (comm != strategy.cp_comm && has(software.cp_comm, comm))
        changes.add({{"cp_comm", std::string(name_of(comm))}});
    }
  }
  const bool sends = strategy.expert_parallel > 1 || strategy.expert_tensor_parallel > 1;
  if (any_experts(request.model) && searches(request, WideChoice::moe_dispatcher)) {
    for (const auto& [dispatcher, name] : spellings<Dispatcher>) {
      const bool measured = dispatcher != Dispatcher::hybridep;  // none of its kernels is
      if (measured && dispatcher != strategy.moe_dispatcher && has(software.moe_dispatchers, dispatcher))
        changes.add({{"moe_dispatcher", std::string(name)}});
    }
  }
  if (sends && software.overlap_expert_all_to_all) {
    changes.add({{"overlap_expert_all_to_all", strategy.overlap_expert_all_to_all ? "no" : "yes"}});
  }
  if (strategy.data_sharding == DataSharding::none || !searches(request, WideChoice::shard_size)) return;
  for (const std::int64_t size : halvings(replicas(strategy))) {
    if (size > 1 && size != strategy.shard_size) changes.set("shard_size", size);
  }
  if (strategy.shard_size > 0) changes.set("shard_size", replicas(strategy));
}

void change_policy(Changes& changes, const Request& request) {
  const Strategy& strategy = request.strategy;
  const RecomputePolicy policy = strategy.recompute.policy;
  if (strategy.virtual_pipeline == 1 && strategy.schedule != ScheduleKind::one_forward_one_backward) {
    changes.add({{"schedule", "1f1b"}});
  }
  if (strategy.virtual_pipeline > 1 && strategy.schedule != ScheduleKind::interleaved) {
    changes.add({{"schedule", "interleaved"}});
  }
  for (const DataSharding sharding : request.software.sharding.modes) {
    if (sharding == DataSharding::none || sharding == strategy.data_sharding || replicas(strategy) == 1)
      continue;
    Edits change{{"data_sharding", std::string(name_of(sharding))}};
    if (strategy.no_reshard_after_forward) change.push_back({"no_reshard_after_forward", "no"});
    if (strategy.sync_each_batch && sharding < DataSharding::zero2)
      change.push_back({"sync_each_batch", "no"});
    changes.add(std::move(change));
  }
  if (strategy.no_reshard_after_forward) changes.add({{"no_reshard_after_forward", "no"}});
  if (searches(request, WideChoice::no_reshard_after_forward) && gathers_in_passes(strategy) &&
      !strategy.no_reshard_after_forward)
    changes.enable("no_reshard_after_forward");
  if (request.software.sharding.sync_each_batch && !strategy.sync_each_batch && shards_gradients(strategy))
    changes.enable("sync_each_batch");
  if (!strategy.sequence_parallel && strategy.tensor_parallel > 1) {
    changes.enable("sequence_parallel");
  }
  if (policy != RecomputePolicy::none) changes.add({{"recompute", "none"}});
  const bool scores_kept = any_layer(request.model, [](const Architecture& layer) {
    return has_attention(layer) && layer.kernels.attention != AttentionKernel::flash;
  });
  const auto has = [&](RecomputePolicy other) { return contains(request.software.recompute, other); };
  if (has(RecomputePolicy::selective) && policy != RecomputePolicy::selective && scores_kept)
    changes.add({{"recompute", "selective"}});
  if (has(RecomputePolicy::selective_op) && policy != RecomputePolicy::selective_op)
    changes.add({{"recompute", "selective_op"}});
  if (has(RecomputePolicy::ops)) {
    for (const std::vector<std::string>& modules : module_sets(request)) {
      if (policy == RecomputePolicy::ops && strategy.recompute.ops == modules) continue;
      Strategy recomputing = strategy;
      recomputing.recompute = {.policy = RecomputePolicy::ops, .ops = modules};
      Edits change{{"recompute_ops", value_of(*find_field("recompute_ops"), recomputing, request.workload)}};
      if (strategy.recompute.layers > 0)  // which goes with full recomputation
        change.insert(change.begin(), {"recompute", std::string(name_of(RecomputePolicy::ops))});
      changes.add(std::move(change));
    }
  }
  if (has(RecomputePolicy::full) && (policy != RecomputePolicy::full || strategy.recompute.layers > 0)) {
    if (request.software.recompute_layers) {
      for (const std::int64_t k : doublings(1, longest_stage(request.model.layers, strategy) - 1))
        changes.add({{"recompute", "full"}, {"recompute_layers", std::to_string(k)}});
    }
    changes.add({{"recompute", "full"}});
  }
}

void change_batching(Changes& changes, const Request& request) {
  const Strategy& strategy = request.strategy;
  for (const std::int64_t b : halvings(strategy.micro_batch)) {
    changes.set("micro_batch", b);
  }
  for (const std::int64_t b : {2 * strategy.micro_batch, 4 * strategy.micro_batch}) {
    if (b <= request.workload.global_batch / strategy.data_parallel) changes.set("micro_batch", b);
  }
  if (strategy.expert_parallel > 1) changes.set("expert_parallel", strategy.expert_parallel / 2);
  if (any_experts(request.model)) changes.set("expert_parallel", 2 * strategy.expert_parallel);
  if (strategy.virtual_pipeline > 1) changes.set("virtual_pipeline", 1);
  if (strategy.pipeline_parallel > 1) {
    for (const std::int64_t m : {2, 3, 4, 6, 8}) {
      if (m != strategy.virtual_pipeline) changes.set("virtual_pipeline", m);
    }
  }
}

// Adds changes that double one parallel size and halve another.
void trade(Changes& changes, const Request& request) {
  const Strategy& strategy = request.strategy;
  struct Size {
    const char* field;
    std::int64_t Strategy::*member;
    std::int64_t most;
  };
  std::int64_t parts = most_parts(request.model, request.workload.sequence);
  if (searches(request, WideChoice::context_parallel) && attends_in_parts(request.model))
    parts = std::max(parts, request.workload.sequence / shortest_wide_part);
  const std::array<Size, 4> sizes{{{"tensor_parallel", &Strategy::tensor_parallel, devices(strategy)},
                                   {"context_parallel", &Strategy::context_parallel, parts},
                                   {"pipeline_parallel", &Strategy::pipeline_parallel, devices(strategy)},
                                   {"data_parallel", &Strategy::data_parallel, devices(strategy)}}};
  for (const Size& more : sizes) {
    for (const Size& less : sizes) {
      const std::int64_t doubled = 2 * (strategy.*more.member);
      if (more.member == less.member || strategy.*less.member % 2 != 0 || doubled > more.most) continue;
      const std::int64_t halved = strategy.*less.member / 2;
      changes.add({{more.field, std::to_string(doubled)}, {less.field, std::to_string(halved)}});
    }
  }
}

// Sets another group size if the change needs one.
void set_group_size(Edits& change, const Request& request) {
  const Strategy strategy = changed(request, change).strategy;
  const std::int64_t round = strategy.micro_batch * strategy.data_parallel;
  if (!runs_groups(request.software) || strategy.schedule != ScheduleKind::interleaved ||
      request.workload.global_batch % round != 0) {
    return;
  }
  const std::int64_t n = microbatches(strategy, request.workload);
  if (keeps_groups(request, strategy) && is_group_size(group_size(strategy), strategy.pipeline_parallel, n))
    return;
  const std::int64_t least = least_group_size(strategy.pipeline_parallel, n);
  if (least > 0 && least != group_size(strategy))
    change.push_back({"microbatch_group_size", std::to_string(least)});
}

// Returns the layers of each of `stages` stages, balanced by FLOPs as a search first lays them.
std::vector<std::int64_t> balanced(const Transformer& model, std::int64_t stages) {
  const EndLoads ends = end_loads(model);
  const std::vector<double> loads = layer_loads(model);
  return loads.empty() ? balanced_layers(model.layers, stages, ends) : balanced_layers(loads, stages, ends);
}

// Lays the layers anew if the change leads from uneven stages to another number of stages.
void set_stages(Edits& change, const Request& request) {
  if (request.strategy.stage_layers.empty()) return;
  Strategy strategy = changed(request, change).strategy;
  const std::int64_t stages = strategy.pipeline_parallel * strategy.virtual_pipeline;
  if (stages == std::ssize(strategy.stage_layers) || stages > request.model.layers) return;
  if (stages == 1) return change.push_back({"stage_layers", std::string(even_stages)});
  strategy.stage_layers = balanced(request.model, stages);
  const StrategyField& field = *find_field("stage_layers");
  change.push_back({"stage_layers", value_of(field, strategy, request.workload)});
}

}  // namespace

Request changed(const Request& request, const Edits& change) {
  Request result = request;
  apply(change, result.strategy, result.workload);
  return result;
}

std::vector<Edits> changes_on_same_devices(const Request& request) {
  Changes changes;
  change_policy(changes, request);
  change_exchanges(changes, request);
  change_batching(changes, request);
  trade(changes, request);
  for (Edits& change : changes.list) {
    set_group_size(change, request);
    set_stages(change, request);
  }
  return std::move(changes.list);
}

std::vector<Edits> changes_of_state(const Request& request) {
  Changes changes;
  const Strategy& strategy = request.strategy;
  const std::string half(name_of(Dtype::bf16));
  if (request.software.memory.steps_in_backward && !strategy.step_in_backward)
    changes.enable("step_in_backward");
  if (!request.software.released) return std::move(changes.list);
  if (strategy.gradient_dtype == Dtype::fp32 && searches(request, WideChoice::gradient_dtype))
    changes.add({{"gradient_dtype", half}});
  if (request.software.optimizer_dtypes && strategy.optimizer.exp_avg == MomentDtype::fp32 &&
      strategy.optimizer.exp_avg_sq == MomentDtype::fp32 && strategy.data_sharding != DataSharding::none)
    changes.add({{"exp_avg_dtype", half}, {"exp_avg_sq_dtype", half}});
  return std::move(changes.list);
}

std::vector<Edits> changes_of_offloading(const Request& request) {
  Changes changes;
  const Offload& offload = request.strategy.offload;
  if (!request.system.host) return {};
  const Edit whole{"optimizer_offload_fraction", "1"};
  if (offload.optimizer.value < 1) changes.add({whole});
  if (offload.optimizer.value > 0) {
    changes.add({{"optimizer_offload_fraction", "0.5"}});
    changes.add(
        {{"offload_parameters", "no"}, {"optimizer_offload_fraction", "0"}, {"overlap_cpu_optimizer", "no"}});
  }
  if (!offload.parameters) changes.add({whole, {"data_sharding", "zero3"}, {"offload_parameters", "yes"}});
  const bool full = request.strategy.recompute.policy == RecomputePolicy::full;
  if (!offloads_activations(offload)) {
    const Edit checkpoints{"offload_modules", std::string(layer_input)};
    changes.add(full ? Edits{checkpoints} : Edits{{"recompute", "full"}, checkpoints});
    if (!full) changes.add({{"offload_modules", "core_attn,attn_proj"}});
  }
  return std::move(changes.list);
}

bool launchable(const Request& request, const Strategy& strategy) {
  const auto gaps = [&](const Strategy& one) {
    return launcher_gaps(request.software, request.model, one, request.workload);
  };
  const std::vector<Problem> own = gaps(request.strategy);
  for (const Problem& gap : gaps(strategy)) {
    const bool had =
        std::any_of(own.begin(), own.end(), [&](const Problem& it) { return it.where == gap.where; });
    if (!had) return false;
  }
  if (strategy.schedule != ScheduleKind::interleaved || keeps_groups(request, strategy)) return true;
  const std::int64_t p = strategy.pipeline_parallel;
  const std::int64_t size = group_size(strategy);
  return size == p || (runs_groups(request.software) &&
                       size == least_group_size(p, microbatches(strategy, request.workload)));
}

bool can_replace(const Request& request, const Strategy& strategy, KnownLayers* known) {
  return devices(strategy) == devices(request.strategy) &&
         holds(asked(request, strategy, known), all_rules) && launchable(request, strategy);
}

}  // namespace headroom
