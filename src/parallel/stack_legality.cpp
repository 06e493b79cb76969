#include "headroom/parallel/stack_legality.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stage_layout.hpp"

namespace headroom {
namespace {

std::string_view field_of_axis(ParallelAxis axis) {
  switch (axis) {
    case ParallelAxis::tensor: return "tensor_parallel";
    case ParallelAxis::context: return "context_parallel";
    case ParallelAxis::expert_tensor: return "expert_tensor_parallel";
    case ParallelAxis::expert: return "expert_parallel";
    case ParallelAxis::data: return "data_parallel";
    case ParallelAxis::pipeline: return "pipeline_parallel";
  }
  EXPECTS(!"unknown axis");
  return {};
}

// Whether it lists what it has, rather than running whatever others are compared with.
bool lists_layouts(const Software& software) { return !software.schedules.empty() || !software.axes.empty(); }

std::string text_of_policy(const Software& software, const Strategy& strategy) {
  const RecomputePolicy policy = strategy.recompute.policy;
  const std::string what = policy == RecomputePolicy::ops ? "recomputation of ops or modules"
                                                          : std::string(name_of(policy)) + " recomputation";
  return what + ": the stack " + software.name + " has `recompute` " + joined(software.recompute, " or ");
}

// Where nothing is listed, the stack runs whatever others are compared with.
constexpr std::array rules_of_launchers{
    LauncherRule{"recompute",
                 [](const Software& software, const Transformer&, const Strategy& strategy) {
                   const RecomputePolicy policy = strategy.recompute.policy;
                   return policy == RecomputePolicy::none || contains(software.recompute, policy);
                 },
                 text_of_policy, [](Strategy& strategy) { strategy.recompute = {}; }},
    LauncherRule{"recompute_layers",
                 [](const Software& software, const Transformer&, const Strategy& strategy) {
                   return strategy.recompute.layers == 0 || software.recompute_layers;
                 },
                 [](const Software& software, const Strategy& strategy) {
                   const Recomputation& recompute = strategy.recompute;
                   const bool uniform = recompute.method == RecomputeMethod::uniform;
                   return (uniform ? "checkpoints of " : "recomputation of ") +
                          std::to_string(recompute.layers) + (recompute.layers == 1 ? " layer" : " layers") +
                          (uniform ? " each" : " of each stage") + ": the stack " + software.name +
                          (uniform ? " checkpoints each layer" : " recomputes all of them");
                 },
                 [](Strategy& strategy) {
                   strategy.recompute.layers = 0;
                   strategy.recompute.method = RecomputeMethod::block;
                 }},
    LauncherRule{"stage_layers",
                 [](const Software& software, const Transformer& model, const Strategy& strategy) {
                   return software.uneven_stages || stage_layout(model.layers, strategy) == StageLayout::even;
                 },
                 [](const Software& software, const Strategy&) {
                   return "uneven stages: the stack " + software.name + " lays as many layers on each";
                 },
                 [](Strategy& strategy) { strategy.stage_layers.clear(); }},
    LauncherRule{"microbatch_group_size",
                 [](const Software& software, const Transformer&, const Strategy& strategy) {
                   return software.microbatch_groups || group_size(strategy) == strategy.pipeline_parallel;
                 },
                 [](const Software& software, const Strategy& strategy) {
                   return "groups of " + std::to_string(group_size(strategy)) + " microbatches: the stack " +
                          software.name + " interleaves groups of as many as pipeline ranks, " +
                          std::to_string(strategy.pipeline_parallel);
                 },
                 [](Strategy& strategy) { strategy.microbatch_group_size = 0; }},
};

}  // namespace

std::span<const LauncherRule> launcher_rules() { return rules_of_launchers; }

std::vector<Problem> launcher_gaps(const Software& software, const Transformer& model,
                                   const Strategy& strategy) {
  std::vector<Problem> gaps;
  for (const LauncherRule& rule : rules_of_launchers) {
    if (!rule.holds(software, model, strategy))
      gaps.push_back({std::string(rule.field), rule.text(software, strategy)});
  }
  return gaps;
}

DataSharding least_sharding(const Software& software) {
  const std::vector<DataSharding>& modes = software.sharding.modes;
  return modes.empty() ? DataSharding::none : *std::min_element(modes.begin(), modes.end());
}

DataSharding sharding_of_one(const Software& software, const Strategy& strategy) {
  const bool alone = strategy.tensor_parallel == 1 && software.sharding.plain_alone;
  return alone ? DataSharding::none : least_sharding(software);
}

std::string_view offload_lacking(const Software& software, const Offload& offload) {
  const auto lacks = [&](Offloads kind) {
    return !software.offloads.empty() && !contains(software.offloads, kind);
  };
  const bool checkpoints = contains(offload.modules, layer_input);
  const bool activations = offload.modules.size() > (checkpoints ? 1U : 0U);
  if (offload.layers > 0 && lacks(Offloads::activations)) return "offload_layers";
  if ((checkpoints && lacks(Offloads::checkpoints)) || (activations && lacks(Offloads::activations)))
    return "offload_modules";
  if (offload.parameters) return lacks(Offloads::parameters) ? "offload_parameters" : "";
  return offload.optimizer.value > 0 && lacks(Offloads::optimizer) ? "optimizer_offload_fraction" : "";
}

bool recomputes_shared_experts(const Recomputation& recompute) {
  return std::any_of(recompute.ops.begin(), recompute.ops.end(), [](std::string_view name) {
    name.remove_prefix(name.rfind('.') + 1);  // of one kind of layers
    return name.starts_with("shared");
  });
}

std::string policy_rule(const Software& software, RecomputePolicy policy) {
  if (policy != RecomputePolicy::selective_op || contains(software.recompute, policy)) return {};
  return "must not be selective_op on the stack " + software.name + ": it is torchtitan's";
}

bool may_overlap_experts(const Software& software) {
  return software.overlap_expert_all_to_all || !lists_layouts(software);
}

std::vector<Problem> stack_illegalities(const Software& software, const Strategy& strategy) {
  std::vector<Problem> problems;
  const auto require = [&](bool holds, std::string_view field, const auto& rule) {
    if (!holds) problems.push_back({std::string(field), rule()});
  };
  for (const auto& [axis, size] : axis_fields) {
    if (strategy.*size == 1 || software.axes.empty() || contains(software.axes, axis)) continue;
    problems.push_back(
        {std::string(field_of_axis(axis)),
         "must be 1: the stack " + software.name + " has no " + std::string(name_of(axis)) + " parallelism"});
  }
  const auto require_one_of = [&](const auto& had, auto value, std::string_view field) {
    require(had.empty() || contains(had, value), field, [&] {
      return "must be " + joined(had, " or ") + " on the stack " + software.name + ", not " +
             std::string(name_of(value));
    });
  };
  if (strategy.pipeline_parallel > 1) require_one_of(software.schedules, strategy.schedule, "schedule");
  if (strategy.context_parallel > 1) require_one_of(software.cp_comm, strategy.cp_comm, "cp_comm");
  if (strategy.expert_parallel > 1 || strategy.expert_tensor_parallel > 1)
    require_one_of(software.moe_dispatchers, strategy.moe_dispatcher, "moe_dispatcher");
  require_one_of(software.precisions, strategy.precision, "precision");
  const StackSharding& has = software.sharding;
  require(replicas(strategy) == 1 || contains(has.modes, strategy.data_sharding), "data_sharding", [&] {
    return "must be " + joined(has.modes, " or ") + " on the stack " + software.name + ", not " +
           std::string(name_of(strategy.data_sharding));
  });
  const bool both_had = contains(has.modes, strategy.data_sharding) &&
                        (software.axes.empty() || contains(software.axes, ParallelAxis::pipeline));
  require(!both_had || has.with_pipeline || strategy.pipeline_parallel == 1 || !shards_weights(strategy),
          "data_sharding", [&] {
            return std::string(name_of(strategy.data_sharding)) +
                   " does not go with `pipeline_parallel` on the stack " + software.name;
          });
  require(!strategy.sync_each_batch || has.sync_each_batch, "sync_each_batch", [&] {
    return "must be off on the stack " + software.name +
           (has.sums_before_reduction ? ", which has no switch for it"
                                      : ", which reduces sharded gradients in every microbatch anyway");
  });
  const MainParams main_params = strategy.optimizer.main_params;
  require(has.weights == ShardedWeights::copies || main_params == MainParams::fp32 ||
              main_params == MainParams::none,
          "main_params_dtype", [&] {
            return "must be fp32 or none on the stack " + software.name +
                   ", whose weights, of 32 or 16 bits, are what the optimizer steps";
          });
  const std::string_view lacking = offload_lacking(software, strategy.offload);
  require(lacking.empty(), lacking, [&] {
    const bool together = contains(software.offloads, Offloads::parameters) &&
                          !contains(software.offloads, Offloads::optimizer);
    return "is not what the stack " + software.name + " offloads: it has " +
           joined(software.offloads, " or ") + (together ? ", the optimizer with parameters only" : "");
  });
  if (std::string rule = policy_rule(software, strategy.recompute.policy); !rule.empty())
    problems.push_back({"recompute", std::move(rule)});
  // [Megatron-Core, transformer_config.py, moe_shared_expert_overlap]
  require(
      !strategy.overlap_expert_all_to_all || !software.overlap_shared_experts, "overlap_expert_all_to_all",
      [&] {
        return "is not available where shared experts run beside exchanges (`overlap_shared_experts` of the "
               "stack " +
               software.name + ")";
      });
  require(
      !recomputes_shared_experts(strategy.recompute) || !software.overlap_shared_experts, "recompute_ops",
      [&] {
        return "must leave out shared_experts, which run beside exchanges (`overlap_shared_experts` of the "
               "stack " +
               software.name + ")";
      });
  require(!strategy.overlap_expert_all_to_all || may_overlap_experts(software), "overlap_expert_all_to_all",
          [&] { return "must be off on the stack " + software.name + ", which runs pass after pass"; });
  const bool in_pieces = software.overlap_tensor_parallel == TensorOverlap::full;
  require(!strategy.split_hidden || !(lists_layouts(software) || in_pieces), "split_hidden", [&] {
    return "must be off on the stack " + software.name +
           (in_pieces ? ", which gathers sequences in pieces" : ": no stack has it");
  });
  return problems;
}

}  // namespace headroom
