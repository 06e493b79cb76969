#include "report/allocator.hpp"

#include "headroom/plan/allocator_use.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

Bytes grown(const Plan& plan) {
  return plan.allocator->expandable + plan.ranks[plan.allocator->rank].reserved;
}

// " on PP rank 1" where that is not the rank of the peak.
std::string on_rank(const Plan& plan) {
  const std::size_t rank = plan.allocator->rank;
  return rank == plan.peak_rank ? std::string() : fmt::format(" on PP rank {}", rank);
}

}  // namespace

std::string allocator_line(const Plan& plan) {
  if (!plan.allocator) return {};
  std::string text = fmt::format("PyTorch's allocator reserves {} GiB{}, {} GiB with non-torch memory",
                                 in_gib(plan.allocator->reserved), on_rank(plan), in_gib(*held_bytes(plan)));
  if (plan.allocator->expandable != plan.allocator->reserved)
    text += fmt::format("; {} GiB with expandable_segments:True", in_gib(grown(plan)));
  return text + ".\n";
}

std::string held_too_much(const Plan& plan) {
  const Bytes capacity = plan.request.system.memory;
  if (peak(plan) > capacity || !plan.allocator || *held_bytes(plan) <= capacity) return {};
  const std::string text = fmt::format("PyTorch would hold {}{}", human(*held_bytes(plan)), on_rank(plan));
  if (grown(plan) <= capacity)
    return fmt::format("{}: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, with which it holds {}",
                       text, human(grown(plan)));
  if (plan.allocator->fits_with_retries)
    return text + ": expect allocator retries, each of which frees cached blocks and stalls the GPU";
  return text + ": expect an out-of-memory error";
}

}  // namespace headroom
