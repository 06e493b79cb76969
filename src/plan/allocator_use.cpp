#include "headroom/plan/allocator_use.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "plan/allocator_replay.hpp"
#include "plan/replayable.hpp"

namespace headroom {
namespace {

// What the allocator of a rank held after its iterations.
struct Held {
  Bytes reserved;
  Bytes most_allocated;
};
Held held(const CachingAllocator& allocator) {
  return {.reserved = allocator.reserved(), .most_allocated = allocator.most_allocated()};
}

// Answers about the ranks of one plan.
class Replayed {
 public:
  explicit Replayed(const Plan& plan) : plan_(plan) {}

  // Returns what a rank's allocator holds as the stack sets it.
  std::optional<Held> as_set(std::size_t rank) {
    if (known_ && known_->first == rank) return known_->second;
    const std::optional<CachingAllocator> allocator =
        run(rank, CachingAllocator(plan_.request.software.memory.expandable_segments));
    if (!allocator) return std::nullopt;
    return (known_ = {rank, held(*allocator)})->second;
  }

  std::optional<AllocatorUse> use_of(std::size_t rank) {
    const std::optional<Held> usual = as_set(rank);
    if (!usual) return std::nullopt;
    const bool grows = plan_.request.software.memory.expandable_segments;
    const Held expandable = grows ? *usual : held(*run(rank, CachingAllocator(true)));
    AllocatorUse use{.rank = rank,
                     .reserved = usual->reserved,
                     .allocated = expandable.most_allocated,
                     .expandable = expandable.reserved};
    const RankMemory& memory = plan_.ranks[rank];
    const Bytes available = plan_.request.system.memory - memory.reserved;
    if (!grows && use.reserved > available && total(memory) <= plan_.request.system.memory)
      use.fits_with_retries = !run(rank, CachingAllocator(available))->out_of_memory();
    return use;
  }

  std::optional<DeviceUse> fullest() {
    std::optional<DeviceUse> fullest;
    std::optional<Held> of_fullest;
    std::vector<std::size_t> followed;
    const auto takes_no_more = [&](std::size_t rank, std::size_t than) {
      return std::all_of(memory_parts.begin(), memory_parts.end(), [&](const MemoryPart& part) {
        return part.of(plan_.ranks[rank]) <= part.of(plan_.ranks[than]);
      });
    };
    const auto follow = [&](std::size_t rank) {
      const auto covers = [&](std::size_t other) { return takes_no_more(rank, other); };
      if (std::any_of(followed.begin(), followed.end(), covers)) return true;
      followed.push_back(rank);
      const std::optional<Held> held = as_set(rank);
      if (!held) return false;
      const DeviceUse use{.rank = rank, .bytes = held->reserved + plan_.ranks[rank].reserved};
      if (fullest && use.bytes <= fullest->bytes) return true;
      fullest = use;
      of_fullest = held;
      return true;
    };
    if (!follow(plan_.peak_rank)) return std::nullopt;
    for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
      if (!follow(rank)) return std::nullopt;
    }
    known_ = {fullest->rank, *of_fullest};
    return fullest;
  }

 private:
  std::optional<CachingAllocator> run(std::size_t rank, CachingAllocator allocator) {
    if (!unreplayed(plan_, plan_.ranks[rank]).empty()) return std::nullopt;
    if (!ranks_) ranks_.emplace(replayed_ranks(plan_));
    std::optional<ReplayedAllocator> replayed = replay(*ranks_, std::int64_t(rank), std::move(allocator));
    return replayed ? std::optional(std::move(replayed->allocator)) : std::nullopt;
  }

  const Plan& plan_;
  std::optional<ReplayedRanks> ranks_;
  std::optional<std::pair<std::size_t, Held>> known_;  // of the rank last asked about, or the fullest
};

}  // namespace

std::optional<Bytes> reserved_bytes(const Plan& plan, std::int64_t rank) {
  const std::optional<Held> held = Replayed(plan).as_set(index(rank));
  return held ? std::optional(held->reserved) : std::nullopt;
}

std::optional<AllocatorUse> allocator_use(const Plan& plan, std::int64_t rank) {
  return Replayed(plan).use_of(index(rank));
}

std::optional<DeviceUse> fullest_device(const Plan& plan) { return Replayed(plan).fullest(); }

std::optional<Bytes> held_bytes(const Plan& plan) {
  if (!plan.allocator) return std::nullopt;
  return plan.allocator->reserved + plan.ranks[plan.allocator->rank].reserved;
}

namespace {

// Returns the verdict on a plan whose tensors fit, and whose fullest GPU would hold more than it has.
Verdict verdict_beyond(const Plan& plan, const AllocatorUse& use) {
  const Bytes grown = use.expandable + plan.ranks[use.rank].reserved;
  return use.fits_with_retries || grown <= plan.request.system.memory ? Verdict::marginal
                                                                      : Verdict::does_not_fit;
}

}  // namespace

Settling settling(const Evaluation& evaluation) {
  const Plan& plan = account(evaluation);
  Replayed replayed(plan);
  Settling result{.fullest = replayed.fullest(), .verdict = plan.verdict};
  const bool too_much = result.fullest && result.fullest->bytes > plan.request.system.memory;
  if (too_much && std::holds_alternative<Plan>(evaluation))
    result.verdict = verdict_beyond(plan, *replayed.use_of(result.fullest->rank));
  return result;
}

Verdict settled_verdict(const Evaluation& evaluation) {
  return std::holds_alternative<Plan>(evaluation) ? settling(evaluation).verdict : Verdict::does_not_fit;
}

Evaluation settled(Evaluation evaluation) {
  auto* const infeasible = std::get_if<Infeasible>(&evaluation);
  Plan& plan = infeasible != nullptr ? infeasible->attempt : std::get<Plan>(evaluation);
  Replayed replayed(plan);
  const std::optional<DeviceUse> fullest = replayed.fullest();
  if (!fullest) return evaluation;
  plan.allocator = replayed.use_of(fullest->rank);
  const Bytes capacity = plan.request.system.memory;
  if (infeasible != nullptr || fullest->bytes <= capacity) return evaluation;
  plan.verdict = verdict_beyond(plan, *plan.allocator);
  if (plan.verdict == Verdict::marginal) return evaluation;
  const Bytes grown = plan.allocator->expandable + plan.ranks[fullest->rank].reserved;
  return Infeasible{.attempt = std::move(plan),
                    .limit = "reserved_memory",
                    .needed = std::min(fullest->bytes, grown),
                    .available = capacity};
}

}  // namespace headroom
