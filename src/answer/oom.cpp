#include "headroom/answer/oom.hpp"

#include <algorithm>

namespace headroom {
namespace {

constexpr Bytes gib(0x1p30);
constexpr const char* ask_headroom =
    "run headroom check SCRIPT --system SYSTEM: it lists changes of the launch that make it fit";

OomCause cause_of(const OomReply& reply) {
  const OomMessage& message = reply.message;
  if (message.source == OutOf::host) return OomCause::host;
  if (message.source == OutOf::xla) return OomCause::excess;
  if (message.source != OutOf::torch) return OomCause::outside;
  const Bytes asked = message.asked.value_or(Bytes(0));
  const Bytes available = message.free.value_or(Bytes(0)) + message.unused.value_or(Bytes(0));
  if (message.limit && reserved(message) + asked > *message.limit && message.free >= asked)
    return OomCause::limit;
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
      // Releases without expandable segments advise the other setting.
      remedies.push_back(message.expandable
                             ? "set " + variable + "=expandable_segments:True"
                             : "set " + variable +
                                   "=max_split_size_mb:N, where N is the size of the largest tensors in MiB");
      remedies.emplace_back("keep tensor shapes the same in every step: pad or pack sequences");
      break;
    case OomCause::limit: remedies.emplace_back("raise torch.cuda.set_per_process_memory_fraction"); break;
    case OomCause::other_processes:
      remedies.emplace_back("end the other processes of this GPU: nvidia-smi lists them");
      break;
    case OomCause::excess: remedies.emplace_back(ask_headroom); break;
    case OomCause::outside:
      remedies.emplace_back(
          "leave memory outside PyTorch: set torch.cuda.set_per_process_memory_fraction below 1");
      remedies.emplace_back("reserve less for collectives: fewer process groups, a smaller NCCL_BUFFSIZE");
      break;
    case OomCause::host:
      remedies.emplace_back("use fewer data-loader workers, and offload less to the host");
      remedies.emplace_back("load checkpoints on one rank of a node at a time");
      break;
  }
  if (message.pools && *message.pools > gib)
    remedies.emplace_back("capture fewer CUDA graphs, whose pools no other tensor can use");
  return remedies;
}

}  // namespace

OomReply diagnosed(const OomMessage& message) {
  OomReply reply{.message = message, .remedies = {}};
  if (message.process && message.allocated)
    reply.non_torch = std::max(*message.process - reserved(message), Bytes(0));
  if (message.process && message.capacity && message.free)
    reply.others = std::max(*message.capacity - *message.free - *message.process, Bytes(0));
  reply.cause = cause_of(reply);
  if (reply.cause == OomCause::excess && message.asked && message.free)
    reply.missing = *message.asked - *message.free - message.unused.value_or(Bytes(0));
  reply.remedies = remedies_of(reply);
  return reply;
}

}  // namespace headroom
