#include "cli/launched_space.hpp"

#include <utility>
#include <vector>

#include "cli/notes.hpp"
#include "headroom/core/contains.hpp"

namespace headroom::cli {
namespace {

// Fills an open list with the stack's values for which has(value) holds. An empty list of the stack means all values.
template <class Value, class Has>
void narrow(std::vector<Value>& open, const std::vector<Value>& of_stack, const Has& has) {
  if (!open.empty()) return;
  for (const auto& [value, name] : spellings<Value>) {
    if ((of_stack.empty() || contains(of_stack, value)) && has(value)) open.push_back(value);
  }
}

// Leaves 1 alone of sizes that are open.
void only_one(Counts& open) {
  if (open == Counts{}) open.only = {1};
}

// Keeps those of several precisions for which has(value) holds.
template <class Has>
void keep(std::vector<Precision>& precisions, const Has& has) {
  if (precisions.size() > 1) std::erase_if(precisions, [&](Precision it) { return !has(it); });
}

void narrow_to_nemo(const Request& base, Space& space) {
  const Software& software = base.software;
  narrow(space.data_sharding, software.sharding.modes,
         [](DataSharding it) { return it <= DataSharding::zero1; });
  narrow(space.cp_comm, software.cp_comm, [](CpComm it) { return it == CpComm::p2p; });
  keep(space.precision, [](Precision it) { return it == Precision::bf16 || it == Precision::fp8_delayed; });
  if (any_experts(base.model)) {
    narrow(space.moe_dispatcher, software.moe_dispatchers,
           [](Dispatcher it) { return !sends_once_to_each_rank(it); });
    // Experts are split over the TP ranks, which takes the same ETP [nemo/collections/nlp/modules/common/megatron/
    // megatron_init.py, initialize_model_parallel_for_nemo: no size of its own]. No space ties the two, but for 1.
    if (space.expert_tensor_parallel == Counts{} && space.tensor_parallel == Counts{}) {
      only_one(space.tensor_parallel);
      tell_once(
          {"--launch nemo: TP above 1 is not searched, since NeMo's files split experts over the TP ranks: "
           "give "
           "-t N --expert-tensor-parallel N"});
    }
  }
  if (space.recompute_modules.only.empty()) space.recompute_modules.of_model = false;
  if (space.overlap_expert_all_to_all.empty()) space.overlap_expert_all_to_all = {false};
  space.layouts = Layouts::even;
}

void narrow_to_nanotron(const Software& software, Space& space) {
  if (space.recompute_modules.only.empty()) {
    narrow(space.recompute, software.recompute,
           [](RecomputePolicy it) { return it == RecomputePolicy::none || it == RecomputePolicy::full; });
    space.recompute_modules.of_model = false;
  }
  keep(space.precision, [](Precision it) { return it == Precision::bf16; });
  space.recompute_layers = false;
  only_one(space.virtual_pipeline);
  if (space.schedules == searched_schedules(software))
    space.schedules = {ScheduleKind::one_forward_one_backward};
}

}  // namespace

Software searched_by(Software software, LaunchTarget target) {
  software = started_by(std::move(software), target);
  if (target == LaunchTarget::nemo) {
    std::erase(software.searches, WideChoice::shard_size);
    std::erase(software.searches, WideChoice::cuda_graphs);
  }
  return software;
}

void narrow_to(LaunchTarget target, const Request& base, Space& space) {
  switch (target) {
    case LaunchTarget::nemo: return narrow_to_nemo(base, space);
    case LaunchTarget::nanotron: return narrow_to_nanotron(base.software, space);
    case LaunchTarget::deepspeed:
      return only_one(space.pipeline_parallel);  // train.py builds no PipelineModule
    case LaunchTarget::llama_factory:
    case LaunchTarget::axolotl:
      if (space.sync_each_batch == Space().sync_each_batch) space.sync_each_batch = {false};
      return;
    default: return;
  }
}

}  // namespace headroom::cli
