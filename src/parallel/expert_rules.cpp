#include "parallel/expert_rules.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {
namespace {

void check_layer(Rules& rules, const Strategy& strategy, const Architecture& layer, std::string_view kind) {
  if (!layer.experts) return;
  rules.require_divides(strategy.expert_parallel, layer.experts->count, "expert_parallel", "the experts",
                        kind);
  rules.require_divides(strategy.expert_tensor_parallel, layer.experts->feedforward, "expert_tensor_parallel",
                        "the width of the experts", kind);
  rules.require(strategy.expert_tensor_parallel == 1 || !layer.linear_bias, "expert_tensor_parallel",
                [&] { return "must be 1 where experts" + of_layers(kind) + " have biases"; });
  rules.require_divides(strategy.tensor_parallel, layer.experts->shared_feedforward, "tensor_parallel",
                        "the width of the shared experts", kind);
}

// [Megatron-Core, transformer_config.py, overlap_moe_expert_parallel_comm]
void check_overlap(Rules& rules, const Transformer& model, const Strategy& strategy) {
  if (!strategy.overlap_expert_all_to_all) return;
  const char* const field = "overlap_expert_all_to_all";
  rules.require(strategy.expert_parallel > 1, field, "needs `expert_parallel` above 1");
  rules.require(
      strategy.pipeline_parallel == 1 || strategy.schedule == ScheduleKind::interleaved, field,
      "needs `schedule` interleaved, or one pipeline rank; dualpipe and dualpipe-v overlap by themselves");
  rules.require(strategy.pipeline_parallel > 1 || strategy.schedule == ScheduleKind::one_forward_one_backward,
                field, "needs `schedule` 1f1b on one pipeline rank");
  rules.require(strategy.moe_dispatcher != Dispatcher::allgather, field,
                "needs `moe_dispatcher` alltoall, deepep or hybridep");
  rules.require(goes_beside(strategy.recompute), field,
                "does not go with `recompute` full, `recompute_ops` moe or `recompute_window`");
  rules.require(model.mtp_layers <= 1, field, "does not go with more than one `mtp_layers` of the model");
}

// [Megatron-Core, transformer_config.py, moe_pad_expert_input_to_capacity]
void check_capacity(Rules& rules, const Transformer& model, const Strategy& strategy) {
  if (!strategy.moe_pad_to_capacity) return;
  const char* const field = "moe_pad_to_capacity";
  rules.require(
      !any_layer(model,
                 [](const Architecture& layer) { return layer.experts && !layer.experts->capacity_factor; }),
      field, "needs `capacity_factor` of the model's experts, the rows to pad to over the mean");
  rules.require(strategy.moe_dispatcher == Dispatcher::alltoall, field, [&] {
    return "needs `moe_dispatcher` alltoall, not " + std::string(name_of(strategy.moe_dispatcher)) +
           ", which is modelled without padding";
  });
}

void check_ranks(Rules& rules, const Transformer& model, const Strategy& strategy) {
  const std::int64_t y = strategy.expert_parallel;
  const std::int64_t z = strategy.expert_tensor_parallel;
  std::int64_t of_stage = 0;
  std::int64_t of_expert = 0;
  if (__builtin_mul_overflow(strategy.tensor_parallel, strategy.data_parallel, &of_stage) ||
      __builtin_mul_overflow(of_stage, strategy.context_parallel, &of_stage)) {
    return;
  }
  rules.require(
      !__builtin_mul_overflow(y, z, &of_expert) && of_stage % of_expert == 0, "expert_parallel", [&] {
        return "times `expert_tensor_parallel` must divide the " + std::to_string(of_stage) +
               " devices of a pipeline rank (" + std::to_string(y) + " x " + std::to_string(z) + ")";
      });
  rules.require(strategy.tensor_parallel == 1 || strategy.sequence_parallel, "sequence_parallel",
                "must be on where `tensor_parallel` is above 1 and the model has experts");
  check_overlap(rules, model, strategy);
  check_capacity(rules, model, strategy);
  const bool once = sends_once_to_each_rank(strategy.moe_dispatcher);
  const std::string name(name_of(strategy.moe_dispatcher));
  rules.require(!once || y > 1, "moe_dispatcher", [&] {
    return "must be alltoall or allgather where `expert_parallel` is 1, not " + name +
           ", which has no tokens to send there";
  });
  // Its ranks of both axes are one group, to each of whose ranks a token goes once [fused_a2a.py].
  rules.require(!once || z == 1, "moe_dispatcher", [&] {
    return "must be alltoall or allgather where `expert_tensor_parallel` is above 1: " + name +
           " is modelled without";
  });
}

void check_no_experts(Rules& rules, const Strategy& strategy) {
  const char* const rule = "needs a model with experts";
  rules.require(strategy.expert_parallel == 1, "expert_parallel", rule);
  rules.require(strategy.expert_tensor_parallel == 1, "expert_tensor_parallel", rule);
  rules.require(strategy.moe_dispatcher == Dispatcher::alltoall, "moe_dispatcher", rule);
  rules.require(!strategy.moe_router_padding, "moe_router_padding", rule);
  rules.require(!strategy.moe_pad_to_capacity, "moe_pad_to_capacity", rule);
  rules.require(!strategy.overlap_expert_all_to_all, "overlap_expert_all_to_all", rule);
}

}  // namespace

void check_experts(Rules& rules, const Transformer& model, const Strategy& strategy) {
  const std::array counts{strategy.expert_parallel, strategy.expert_tensor_parallel,
                          strategy.context_parallel, strategy.tensor_parallel, strategy.data_parallel};
  if (*std::min_element(counts.begin(), counts.end()) < 1) return;  // reported as such
  if (!any_experts(model)) return check_no_experts(rules, strategy);
  if (model.layer_kinds.empty()) check_layer(rules, strategy, model.architecture, "");
  for (const LayerDescription& kind : model.layer_kinds)
    check_layer(rules, strategy, kind.architecture, kind.name);
  check_ranks(rules, model, strategy);
}

}  // namespace headroom
