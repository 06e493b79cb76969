#include "plan/replayable.hpp"

#include <algorithm>

#include "headroom/parallel/data_shards.hpp"
#include "memory/kept_layers.hpp"

namespace headroom {
namespace {

std::string_view unmodelled_order(const Strategy& strategy) {
  const Recomputation& recompute = strategy.recompute;
  if (has_weight_passes(strategy.schedule)) return "the schedule has separate weight-gradient passes";
  if (recompute.window) return "recomputation depends on the microbatch (--recompute-window)";
  if (strategy.offload != Offload{}) return "tensors are offloaded to the host";
  if (shares_checkpoints(recompute) && recompute.layers != 1) return "checkpoints span several layers";
  const bool gathers = gathers_in_passes(strategy);
  if (strategy.keep_pipeline_outputs &&
      (strategy.schedule == ScheduleKind::dualpipe || strategy.overlap_expert_all_to_all || gathers))
    return "pipeline outputs are kept in overlapped passes, or beside gathered weights";
  if (strategy.overlap_expert_all_to_all && gathers)
    return "weights are gathered in passes that overlap all-to-alls";
  return {};
}

// Blocks do not matter far beyond the GPU's memory, and the replay would run out of addresses.
bool is_within_reach(const Plan& plan, const RankMemory& memory) {
  constexpr Bytes most(0x1p48);
  return total(memory) < std::min(100.0 * plan.request.system.memory, most);
}

}  // namespace

std::string_view unreplayed(const Plan& plan, const RankMemory& memory) {
  const std::string_view reason = unmodelled_order(plan.request.strategy);
  if (!reason.empty()) return reason;
  return is_within_reach(plan, memory) ? std::string_view() : "the plan needs 100 times the memory of a GPU";
}

}  // namespace headroom
