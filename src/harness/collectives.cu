#include <array>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "collectives.cuh"
#include "filling.cuh"
#include "resources.cuh"

namespace headroom::harness {
namespace {

using Half = __nv_bfloat16;

constexpr std::array<const char*, 5> kinds{"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                           "send_receive"};

constexpr std::size_t least_bytes = std::size_t{1} << 12U;
constexpr std::size_t most_bytes = std::size_t{1} << 29U;

std::vector<std::size_t> message_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

std::vector<int> rank_counts(int devices) {
  std::vector<int> counts;
  for (int ranks = 2; ranks <= devices; ranks *= 2) counts.push_back(ranks);
  if (!counts.empty() && counts.back() != devices) counts.push_back(devices);
  return counts;
}

struct Rank {
  int device;
  Stream stream;
  Communicator communicator;
  Buffer input;
  Buffer output;
};

std::vector<Rank> make_ranks(int count) {
  std::vector<ncclComm_t> communicators(static_cast<std::size_t>(count));
  check(ncclCommInitAll(communicators.data(), count, nullptr));
  std::vector<Rank> ranks;
  for (int device = 0; device < count; ++device) {
    check(cudaSetDevice(device));
    ranks.push_back({device, make_stream(), Communicator(communicators[static_cast<std::size_t>(device)]),
                     Buffer(most_bytes), Buffer(most_bytes)});
    fill(ranks.back().input, static_cast<std::uint64_t>(device) + 1, ranks.back().stream.get());
  }
  return ranks;
}

// One call of each rank. `bytes` are those of the whole tensor, as in the time model.
void run(const std::string& kind, std::size_t bytes, const std::vector<Rank>& ranks) {
  const std::size_t count = bytes / sizeof(Half);
  const std::size_t share = count / ranks.size();
  const auto peers = static_cast<int>(ranks.size());
  check(ncclGroupStart());
  for (const Rank& rank : ranks) {
    const auto* in = rank.input.as<Half>();
    auto* out = rank.output.as<Half>();
    ncclComm_t comm = rank.communicator.get();
    cudaStream_t stream = rank.stream.get();
    if (kind == "all_reduce") {
      check(ncclAllReduce(in, out, count, ncclBfloat16, ncclSum, comm, stream));
    } else if (kind == "all_gather") {
      check(ncclAllGather(in, out, share, ncclBfloat16, comm, stream));
    } else if (kind == "reduce_scatter") {
      check(ncclReduceScatter(in, out, share, ncclBfloat16, ncclSum, comm, stream));
    } else if (kind == "all_to_all") {
      for (int peer = 0; peer < peers; ++peer) {
        const std::size_t at = share * static_cast<std::size_t>(peer);
        check(ncclSend(in + at, share, ncclBfloat16, peer, comm, stream));
        check(ncclRecv(out + at, share, ncclBfloat16, peer, comm, stream));
      }
    } else {
      check(ncclSend(in, count, ncclBfloat16, (rank.device + 1) % peers, comm, stream));
      check(ncclRecv(out, count, ncclBfloat16, (rank.device + peers - 1) % peers, comm, stream));
    }
  }
  check(ncclGroupEnd());
}

void finish(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks) check(cudaStreamSynchronize(rank.stream.get()));
}

// What element `place` of rank r's output must be.
double expected(const std::string& kind, std::size_t count, std::size_t ranks, std::size_t r,
                std::size_t place) {
  const std::size_t share = count / ranks;
  if (kind == "all_gather") return stored_element(place % share, place / share + 1);
  if (kind == "all_to_all") return stored_element(share * r + place % share, place / share + 1);
  if (kind == "send_receive") return stored_element(place, (r + ranks - 1) % ranks + 1);
  double sum = 0;
  const std::size_t at = kind == "reduce_scatter" ? share * r + place : place;
  for (std::size_t i = 0; i < ranks; ++i) sum += stored_element(at, i + 1);
  return sum;
}

void verify(const std::string& kind, std::size_t bytes, const std::vector<Rank>& ranks) {
  const std::size_t whole = bytes / sizeof(Half);
  const std::size_t share = whole / ranks.size();
  const std::size_t count = kind == "reduce_scatter"                       ? share
                            : kind == "all_gather" || kind == "all_to_all" ? share * ranks.size()
                                                                           : whole;
  for (const Rank& rank : ranks) {
    check(cudaSetDevice(rank.device));
    rank.output.poison(rank.stream.get());
  }
  finish(ranks);
  run(kind, bytes, ranks);
  finish(ranks);
  constexpr std::size_t probes = 17;
  for (const Rank& rank : ranks) {
    check(cudaSetDevice(rank.device));
    for (std::size_t i = 0; i < probes; ++i) {
      const std::size_t place = i * (count - 1) / (probes - 1);
      Half half{};
      check(cudaMemcpy(&half, rank.output.as<Half>() + place, sizeof half, cudaMemcpyDeviceToHost));
      const double found = __bfloat162float(half);
      const double wanted = expected(kind, whole, ranks.size(), static_cast<std::size_t>(rank.device), place);
      // bf16 is rounded at every step of a sum.
      if (!(std::abs(found - wanted) <= 0.01 * double(ranks.size()))) {
        throw std::runtime_error(kind + " over " + std::to_string(ranks.size()) +
                                 " ranks is wrong: " + std::to_string(found) + " where " +
                                 std::to_string(wanted) + " was expected");
      }
    }
  }
}

std::string members_of(const std::string& kind, std::size_t ranks, std::size_t bytes) {
  std::ostringstream text;
  text << R"("kind": ")" << kind << R"(", "ranks": )" << ranks << R"(, "dtype": "half", "bytes": )" << bytes;
  return text.str();
}

}  // namespace

std::size_t collective_samples(int devices) {
  return rank_counts(devices).size() * kinds.size() * message_sizes().size();
}

void measure_collectives(Report& report, int devices) {
  for (const int count : rank_counts(devices)) {
    const std::vector<Rank> ranks = make_ranks(count);
    for (const char* kind : kinds) {
      for (std::size_t bytes : message_sizes()) {
        if (interrupted()) return;
        bytes = bytes / (sizeof(Half) * ranks.size()) * (sizeof(Half) * ranks.size());
        verify(kind, bytes, ranks);
        check(cudaSetDevice(ranks.front().device));
        const Timing timing = time_launches(
            ranks.front().stream.get(), [&] { run(kind, bytes, ranks); }, [&] { finish(ranks); });
        report.add(members_of(kind, ranks.size(), bytes), timing);
      }
    }
  }
}

}  // namespace headroom::harness
