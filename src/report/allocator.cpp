#include "report/allocator.hpp"

#include "report/text.hpp"

namespace headroom {
namespace {

// On the device of the peak rank, with what is not the allocator's: what nvidia-smi shows.
Bytes in_use(const EstimateReply& reply, Bytes held) {
  const Plan& plan = account(reply.evaluation);
  return held + plan.ranks[plan.peak_rank].reserved;
}

bool beyond_device(const EstimateReply& reply) {
  const Plan& plan = account(reply.evaluation);
  const Bytes capacity = plan.request.system.memory;
  return peak(plan) <= capacity && in_use(reply, reply.allocator->reserved) > capacity;
}

}  // namespace

std::string allocator_line(const EstimateReply& reply) {
  if (!reply.allocator) return {};
  const auto& [reserved, allocated, expandable] = *reply.allocator;
  std::string text =
      fmt::format("PyTorch's allocator comes to hold {} GiB for its tensors, {} GiB with non-torch memory",
                  in_gib(reserved), in_gib(in_use(reply, reserved)));
  if (expandable != reserved)
    text += fmt::format("; {} GiB with expandable_segments:True", in_gib(in_use(reply, expandable)));
  text += ".\n";
  if (beyond_device(reply))
    text += "That is more than there is: it gives free blocks back and asks again, which stalls the GPU.\n";
  return text;
}

std::string allocator_hint(const EstimateReply& reply) {
  if (!reply.allocator || !beyond_device(reply)) return {};
  const auto& [reserved, allocated, expandable] = *reply.allocator;
  std::string text = fmt::format(
      "- PyTorch's allocator comes to hold more than there is for it, {} GiB with non-torch memory, and "
      "stalls",
      in_gib(in_use(reply, reserved)));
  if (expandable < reserved) {
    text += fmt::format("; {} GiB with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                        in_gib(in_use(reply, expandable)));
  }
  return text + "\n";
}

}  // namespace headroom
