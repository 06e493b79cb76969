#include "plan/replayed_state.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "plan/gathered_units.hpp"

namespace headroom {

using Block = CachingAllocator::Block;

ReplayedState::ReplayedState(const ReplayedRanks& of, const RankMemory& memory,
                             const std::vector<std::vector<StageMember>>& chunks, LoggedAllocator& allocator)
    : of_(of), memory_(memory), chunks_(chunks), allocator_(allocator) {
  for (const std::vector<StageMember>& members : chunks) {
    for (const StageMember& member : members) all_parameters_ += of.parameters_of(member);
  }
}

Block ReplayedState::allocate_whole(Bytes bytes, BlockPart part) {
  return allocator_.allocate(bytes, compute, [&] { return TracedTensor{.part = part, .source = {}}; });
}

// Allocates `bytes` for all parameters, for all ops of all members in turn.
void ReplayedState::allocate_by_op(Bytes bytes, BlockPart part) {
  for (const std::vector<StageMember>& members : chunks_) {
    for (const StageMember& member : members) {
      const KindParameters& of_kind = of_.parameters[member.kind];
      for (std::size_t i = 0; i < of_kind.of_ops.size(); ++i) {
        allocator_.allocate(of_kind.of_ops[i] / all_parameters_ * bytes, compute, [&] {
          return TracedTensor{.part = part,
                              .kind = std::int64_t(member.kind),
                              .layer = member.layer,
                              .source = {.op = of_kind.ops[i]}};
        });
      }
    }
  }
}

// Returns the bytes of a rank's flat gradient in 16 bits, or zero if the stack makes none.
Bytes ReplayedState::flat_gradient() const {
  const Request& request = of_.plan.request;
  const StackMemory& stack = request.software.memory;
  const Optimizer& optimizer = request.strategy.optimizer;
  const bool sums_fp32 = stack.keeps_half_gradients && request.strategy.gradient_dtype == Dtype::fp32;
  if (stack.flat_gradients == FlatGradients::none || !shards_optimizer(request.strategy) || sums_fp32)
    return Bytes(0);
  const double of_each = size_of(optimizer.main_params) + moments_size(optimizer);
  if (of_each <= 0) return Bytes(0);
  const double stepped = memory_.state.optimizer.count() / of_each;
  constexpr double sub_group = 1e9;  // parameters [runtime/zero/config.py, sub_group_size]
  const bool by_groups = shards_weights(request.strategy);
  return Bytes(real(size_of(Dtype::half)) * (by_groups ? std::min(stepped, sub_group) : stepped));
}

FlatGradients ReplayedState::flat_gradients() const {
  return of_.plan.request.software.memory.flat_gradients;
}

// Returns the gradients that exist from one iteration to the next.
Bytes ReplayedState::resident_gradients() const {
  return memory_.state.gradients - (of_.grows ? memory_.activations.grown_gradients : Bytes(0));
}

void ReplayedState::step(bool first) {
  const Bytes half = flat_gradient();
  const bool makes_state = first && flat_gradients() != FlatGradients::from_start;
  std::optional<Block> fp32;
  if (half > Bytes(0)) {
    const bool is_cast = of_.plan.request.strategy.gradient_dtype != Dtype::fp32;
    const std::optional<Block> flat =
        is_cast ? std::optional(allocate_whole(half, BlockPart::flat_gradients)) : std::nullopt;
    fp32 = allocate_whole(2 * half, BlockPart::flat_gradients);
    if (flat) allocator_.free(*flat);
  }
  if (makes_state) allocate_by_op(memory_.state.optimizer, BlockPart::optimizer);
  if (fp32) allocator_.free(*fp32);
  widen_state();
}

// Allocates and frees the FP32 copies that a step makes of narrow state: those of one optimizer, of the dense
// parameters or of the experts, at a time.
void ReplayedState::widen_state() {
  const Request& request = of_.plan.request;
  const Strategy& strategy = request.strategy;
  const int copies = request.software.memory.widens_state ? widened_state(strategy.optimizer) : 0;
  if (copies == 0 || memory_.state.optimizer <= Bytes(0)) return;
  for (const WeightClass weights : {WeightClass::dense, WeightClass::expert}) {
    const double bytes = copies * real(size_of(Dtype::fp32)) * (1 - strategy.offload.optimizer.value) /
                         real(shards(strategy, weights));
    std::vector<Block> blocks;
    for (const std::vector<StageMember>& members : chunks_) {
      for (const StageMember& member : members) {
        const KindParameters& of_kind = of_.parameters[member.kind];
        const auto& ops = of_.layers.kinds[member.kind].ops.ops();
        for (std::size_t i = 0; i < of_kind.of_ops.size(); ++i) {
          const Op& op = ops[static_cast<std::size_t>(of_kind.ops[i])];
          if (op.weights != weights || op.frozen) continue;
          blocks.push_back(allocate_whole(Bytes(bytes * of_kind.of_ops[i]), BlockPart::widened_state));
        }
      }
    }
    for (const Block& block : blocks) allocator_.free(block);
  }
}

// Allocates the state that a step on a gradient of zeros makes.
void ReplayedState::allocate_first_state() {
  if (memory_.state.optimizer <= Bytes(0)) return;
  const Bytes half = flat_gradient();
  std::optional<Block> zeros;
  if (half > Bytes(0)) zeros = allocate_whole(2 * half, BlockPart::flat_gradients);
  allocate_whole(memory_.state.optimizer, BlockPart::optimizer);
  if (zeros) allocator_.free(*zeros);
}

void ReplayedState::allocate() {
  if (all_parameters_ > 0) {
    allocate_by_op(memory_.state.weights, BlockPart::weights);
    if (flat_gradients() == FlatGradients::from_start) allocate_first_state();
    if (!of_.reduces) allocate_by_op(resident_gradients(), BlockPart::gradients);
  }
  const std::pair<Bytes, BlockPart> whole[] = {{memory_.workspaces, BlockPart::workspaces},
                                               {memory_.dummy_gradients, BlockPart::dummy_gradients},
                                               {of_.units.buckets, BlockPart::buckets},
                                               {memory_.activations.kept_logits, BlockPart::kept_logits}};
  for (const auto& [bytes, part] : whole) {
    if (bytes > Bytes(0)) allocate_whole(bytes, part);
  }
}

}  // namespace headroom
