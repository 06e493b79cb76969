#include "headroom/parallel/expert_legality.hpp"

#include <string>
#include <string_view>

namespace headroom {
namespace {

class ExpertRules {
 public:
  ExpertRules(const Strategy& strategy, std::vector<Problem>& problems)
      : strategy_(strategy), problems_(problems) {}

  void check_layer(const Architecture& layer, std::string_view kind) {
    if (!layer.experts) return;
    const std::string of = kind.empty() ? std::string() : " of '" + std::string(kind) + "' layers";
    divides(strategy_.expert_parallel, layer.experts->count, "expert_parallel", "the experts" + of);
    divides(strategy_.expert_tensor_parallel, layer.experts->feedforward, "expert_tensor_parallel",
            "the width of the experts" + of);
    require(strategy_.expert_tensor_parallel == 1 || !layer.linear_bias, "expert_tensor_parallel",
            "must be 1 where experts" + of + " have biases");
    divides(strategy_.tensor_parallel, layer.experts->shared_feedforward, "tensor_parallel",
            "the width of the shared experts" + of);
  }

  void check_ranks() {
    const std::int64_t y = strategy_.expert_parallel;
    const std::int64_t z = strategy_.expert_tensor_parallel;
    std::int64_t of_stage = 0;
    std::int64_t of_expert = 0;
    if (__builtin_mul_overflow(strategy_.tensor_parallel, strategy_.data_parallel, &of_stage) ||
        __builtin_mul_overflow(of_stage, strategy_.context_parallel, &of_stage)) {
      return;
    }
    require(!__builtin_mul_overflow(y, z, &of_expert) && of_stage % of_expert == 0, "expert_parallel",
            "times `expert_tensor_parallel` must divide the " + std::to_string(of_stage) +
                " devices of a pipeline rank (" + std::to_string(y) + " x " + std::to_string(z) + ")");
    require(strategy_.tensor_parallel == 1 || strategy_.sequence_parallel, "sequence_parallel",
            "must be on where `tensor_parallel` is above 1 and the model has experts");
    check_overlap();
    require(y > 1 || z > 1 || strategy_.moe_dispatcher != Dispatcher::flex, "moe_dispatcher",
            "must be alltoall or allgather where `expert_parallel` and `expert_tensor_parallel` are 1, not "
            "flex, which has no tokens to send there");
  }

 private:
  // [Megatron-Core, transformer_config.py, overlap_moe_expert_parallel_comm]
  void check_overlap() {
    if (!strategy_.overlap_expert_all_to_all) return;
    const char* const field = "overlap_expert_all_to_all";
    require(strategy_.expert_parallel > 1, field, "needs `expert_parallel` above 1");
    require(
        strategy_.pipeline_parallel == 1 || strategy_.schedule == ScheduleKind::interleaved, field,
        "needs `schedule` interleaved, or one pipeline rank; dualpipe and dualpipe-v overlap by themselves");
    require(strategy_.pipeline_parallel > 1 || strategy_.schedule == ScheduleKind::one_forward_one_backward,
            field, "needs `schedule` 1f1b on one pipeline rank");
    require(strategy_.moe_dispatcher != Dispatcher::allgather, field,
            "needs `moe_dispatcher` alltoall or flex");
    require(strategy_.recompute.policy != RecomputePolicy::full && !strategy_.recompute.window, field,
            "does not go with `recompute` full or `recompute_window`");
  }

  void require(bool holds, const char* field, const std::string& rule) {
    if (!holds) problems_.push_back({field, rule});
  }
  void divides(std::int64_t parts, std::int64_t whole, const char* field, const std::string& what) {
    require(whole % parts == 0, field,
            "must divide " + what + " (" + std::to_string(whole) + " % " + std::to_string(parts) + " = " +
                std::to_string(whole % parts) + ")");
  }

  const Strategy& strategy_;
  std::vector<Problem>& problems_;
};

}  // namespace

std::vector<Problem> expert_illegalities(const Transformer& model, const Strategy& strategy) {
  std::vector<Problem> problems;
  const std::int64_t y = strategy.expert_parallel;
  const std::int64_t z = strategy.expert_tensor_parallel;
  if (y < 1 || z < 1 || strategy.context_parallel < 1 || strategy.tensor_parallel < 1 ||
      strategy.data_parallel < 1) {
    return problems;
  }
  if (!any_experts(model)) {
    const char* const rule = "needs a model with experts";
    if (y != 1) problems.push_back({"expert_parallel", rule});
    if (z != 1) problems.push_back({"expert_tensor_parallel", rule});
    if (strategy.moe_dispatcher != Dispatcher::alltoall) problems.push_back({"moe_dispatcher", rule});
    if (strategy.overlap_expert_all_to_all) problems.push_back({"overlap_expert_all_to_all", rule});
    return problems;
  }
  ExpertRules rules(strategy, problems);
  if (model.layer_kinds.empty()) rules.check_layer(model.architecture, "");
  for (const LayerDescription& kind : model.layer_kinds) rules.check_layer(kind.architecture, kind.name);
  rules.check_ranks();
  return problems;
}

}  // namespace headroom
