#include "headroom/answer/oom.hpp"

#include <algorithm>

namespace headroom {
namespace {

constexpr Bytes gib(0x1p30);
constexpr const char* ask_headroom =
    "take a change that fits: headroom check SCRIPT --system SYSTEM names some";

OomCause cause_of(const OomReply& reply) {
  const OomMessage& message = reply.message;
  if (message.source == OutOf::host) return OomCause::host;
  if (message.source == OutOf::xla) return OomCause::excess;
  if (message.source != OutOf::torch) return OomCause::outside;
  const Bytes asked = message.asked.value_or(Bytes(0));
  const Bytes available = message.free.value_or(Bytes(0)) + message.unused.value_or(Bytes(0));
  const Bytes reserved = message.allocated.value_or(Bytes(0)) + message.pools.value_or(Bytes(0)) +
                         message.unused.value_or(Bytes(0));
  if (message.limit && reserved + asked > *message.limit && message.free >= asked) return OomCause::limit;
  if (asked <= available) return OomCause::fragmentation;
  if (reply.others && asked <= available + *reply.others) return OomCause::other_processes;
  return OomCause::excess;
}

std::vector<std::string> remedies_of(const OomReply& reply) {
  const OomMessage& message = reply.message;
  const std::string variable = message.hip ? "PYTORCH_HIP_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
  std::vector<std::string> remedies;
  switch (reply.cause) {
    case OomCause::fragmentation:
      if (message.expandable) remedies.push_back("set " + variable + "=expandable_segments:True");
      remedies.push_back("set " + variable + "=max_split_size_mb:512, which keeps large blocks whole");
      remedies.emplace_back("keep shapes the same from step to step: pad or pack sequences");
      break;
    case OomCause::limit: remedies.emplace_back("raise torch.cuda.set_per_process_memory_fraction"); break;
    case OomCause::other_processes:
      remedies.emplace_back("end the other processes of this GPU: nvidia-smi lists them");
      break;
    case OomCause::excess: remedies.emplace_back(ask_headroom); break;
    case OomCause::outside:
      remedies.emplace_back(
          "leave memory beside PyTorch's: torch.cuda.set_per_process_memory_fraction(0.95)");
      remedies.emplace_back("reserve less for collectives: fewer process groups, a smaller NCCL_BUFFSIZE");
      break;
    case OomCause::host:
      remedies.emplace_back(
          "take less of the host: fewer data-loader workers, less pinned or offloaded state, a checkpoint "
          "that "
          "is loaded by one rank at a time");
      break;
  }
  if (message.pools && *message.pools > gib)
    remedies.emplace_back("capture fewer CUDA graphs, whose pools no other tensor can use");
  return remedies;
}

}  // namespace

OomReply diagnosed(const OomMessage& message) {
  OomReply reply{.message = message, .remedies = {}};
  const Bytes reserved = message.allocated.value_or(Bytes(0)) + message.pools.value_or(Bytes(0)) +
                         message.unused.value_or(Bytes(0));
  if (message.process && message.allocated) reply.non_torch = std::max(*message.process - reserved, Bytes(0));
  if (message.process && message.capacity && message.free)
    reply.others = std::max(*message.capacity - *message.free - *message.process, Bytes(0));
  reply.cause = cause_of(reply);
  if (reply.cause == OomCause::excess && message.asked && message.free)
    reply.missing = *message.asked - *message.free - message.unused.value_or(Bytes(0));
  reply.remedies = remedies_of(reply);
  return reply;
}

}  // namespace headroom
