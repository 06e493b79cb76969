// All ranks of a job, one for each GPU: threads of this process, or processes over several nodes.
#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "rendezvous.hpp"
#include "resources.cuh"
#include "timing.cuh"

namespace headroom::harness {

// Where ranks that are threads of one process wait for each other before they launch what waits for the others on the
// device: freeing memory may wait for all devices of a process, and so for a kernel that waits for who frees.
class MeetingPoint {
 public:
  // Until `count` threads have called it with this count.
  void meet(std::int64_t count);

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::barrier<>> barriers_;
};

// Some ranks with a communicator of their own, seen from one of them.
class RankGroup {
 public:
  // `meeting`: null where each rank is a process.
  RankGroup(Communicator communicator, cudaStream_t stream, MeetingPoint* meeting);

  [[nodiscard]] std::int64_t rank() const { return rank_; }
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] ncclComm_t communicator() const { return communicator_.get(); }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  // The largest of the numbers that all ranks call it with. Comes between allocating or freeing and the next collective.
  int agree(int number) const;
  // Until the stream is empty. Throws where NCCL reports that another rank failed, or after minutes without an end.
  void finish() const;
  [[nodiscard]] Together together() const;
  // The first `count` ranks; nothing on the others. All ranks call it.
  [[nodiscard]] std::optional<RankGroup> first(std::int64_t count) const;

 private:
  Communicator communicator_;
  cudaStream_t stream_;
  MeetingPoint* meeting_;
  std::int64_t rank_;
  std::int64_t ranks_;
  Buffer number_;
};

struct World {
  const RankGroup& all;
  std::int64_t nodes;
};

// Calls body on every rank of this process, with its device current: on all of `local_devices` as threads where the
// process is alone, else on device launch.local_rank, or the only one that it sees. An exception goes to `failed`, which
// must end the process: the other ranks wait for this one.
void run_ranks(const Launch& launch, int local_devices, const Rendezvous& rendezvous,
               const std::function<void(const World&)>& body,
               const std::function<void(const std::exception&)>& failed);

}  // namespace headroom::harness
