#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "world.cuh"

namespace headroom::harness {
namespace {

constexpr auto longest_wait = std::chrono::minutes(5);

ncclUniqueId new_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id));
  return id;
}

// With NCCL_COMM_ID=host:port in the environment NCCL needs no message from rank to rank.
ncclUniqueId shared_id(const Launch& launch, const Rendezvous& rendezvous) {
  if (launch.ranks == 1 || std::getenv("NCCL_COMM_ID") != nullptr) return new_id();
  const ncclUniqueId own = launch.rank == 0 ? new_id() : ncclUniqueId{};
  const std::string message = exchange(rendezvous, launch, std::string(own.internal, sizeof own.internal));
  ncclUniqueId id{};
  if (message.size() != sizeof id.internal)
    throw std::runtime_error(rendezvous.file + ": holds no id of this version of NCCL");
  std::memcpy(id.internal, message.data(), sizeof id.internal);
  return id;
}

Communicator joined(int ranks, const ncclUniqueId& id, int rank) {
  ncclComm_t made = nullptr;
  check(ncclCommInitRank(&made, ranks, id, rank));
  return Communicator(made);
}

std::uint64_t this_node() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) throw std::runtime_error("this node has no name");
  return std::hash<std::string>()(name.data());
}

std::int64_t count_nodes(const RankGroup& all) {
  const auto ranks = static_cast<std::size_t>(all.ranks());
  const Buffer own(sizeof(std::uint64_t));
  const Buffer gathered(ranks * sizeof(std::uint64_t));
  const std::uint64_t node = this_node();
  check(cudaMemcpy(own.as<void>(), &node, sizeof node, cudaMemcpyHostToDevice));
  all.agree(0);
  check(ncclAllGather(own.as<void>(), gathered.as<void>(), 1, ncclUint64, all.communicator(), all.stream()));
  all.finish();
  std::vector<std::uint64_t> nodes(ranks);
  check(cudaMemcpy(nodes.data(), gathered.as<void>(), gathered.bytes(), cudaMemcpyDeviceToHost));
  return nodes_of(nodes);
}

void run_rank(int device, int ranks, const ncclUniqueId& id, int rank, MeetingPoint* meeting,
              const std::function<void(const World&)>& body) {
  check(cudaSetDevice(device));
  const Stream stream = make_stream();
  const RankGroup all(joined(ranks, id, rank), stream.get(), meeting);
  body({all, count_nodes(all)});
}

}  // namespace

void MeetingPoint::meet(std::int64_t count) {
  std::barrier<>* barrier = nullptr;
  {
    const std::lock_guard lock(mutex_);
    barrier = &barriers_.try_emplace(count, count).first->second;
  }
  barrier->arrive_and_wait();
}

RankGroup::RankGroup(Communicator communicator, cudaStream_t stream, MeetingPoint* meeting)
    : communicator_(std::move(communicator)), stream_(stream), meeting_(meeting), number_(sizeof(int)) {
  int rank = 0;
  int ranks = 0;
  check(ncclCommUserRank(communicator_.get(), &rank));
  check(ncclCommCount(communicator_.get(), &ranks));
  rank_ = rank;
  ranks_ = ranks;
}

int RankGroup::agree(int number) const {
  if (meeting_ != nullptr) meeting_->meet(ranks_);
  int* const shared = number_.as<int>();
  check(cudaMemcpyAsync(shared, &number, sizeof number, cudaMemcpyHostToDevice, stream_));
  check(ncclAllReduce(shared, shared, 1, ncclInt, ncclMax, communicator_.get(), stream_));
  finish();
  check(cudaMemcpy(&number, shared, sizeof number, cudaMemcpyDeviceToHost));
  return number;
}

void RankGroup::finish() const {
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status);
    ncclResult_t result = ncclSuccess;
    check(ncclCommGetAsyncError(communicator_.get(), &result));
    if (result != ncclInProgress) check(result);
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("other ranks did not answer for minutes");
    std::this_thread::yield();
  }
}

Together RankGroup::together() const {
  return {.agree = [this](int number) { return agree(number); }, .finish = [this] { finish(); }};
}

std::optional<RankGroup> RankGroup::first(std::int64_t count) const {
  if (meeting_ != nullptr) meeting_->meet(ranks_);
  ncclComm_t made = nullptr;
  const bool within = rank_ < count;
  check(ncclCommSplit(communicator_.get(), within ? 0 : NCCL_SPLIT_NOCOLOR, static_cast<int>(rank_), &made,
                      nullptr));
  if (!within) return std::nullopt;
  return std::optional<RankGroup>(std::in_place, Communicator(made), stream_, meeting_);
}

void run_ranks(const Launch& launch, int local_devices, const Rendezvous& rendezvous,
               const std::function<void(const World&)>& body,
               const std::function<void(const std::exception&)>& failed) {
  if (launch.ranks > 1) {
    try {
      const int device = local_devices == 1 ? 0 : launch.local_rank;
      run_rank(device, launch.ranks, shared_id(launch, rendezvous), launch.rank, nullptr, body);
    } catch (const std::exception& error) {
      failed(error);
    }
    return;
  }
  const ncclUniqueId id = new_id();
  MeetingPoint meeting;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < local_devices; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        run_rank(rank, local_devices, id, rank, &meeting, body);
      } catch (const std::exception& error) {
        failed(error);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace headroom::harness
