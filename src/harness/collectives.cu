#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "collectives.cuh"
#include "filling.cuh"
#include "half.cuh"

namespace headroom::harness {
namespace {

using Half = __nv_bfloat16;
constexpr ncclDataType_t type = HalfTraits<Half>::nccl;

struct Buffers {
  Buffer input, output;
};

// A sample's sizes in elements; its bytes are those of the whole tensor, as in the time model.
std::size_t whole(const Sample& sample) {
  return static_cast<std::size_t>(sample.bytes.count()) / sizeof(Half);
}
std::size_t share(const Sample& sample) { return whole(sample) / static_cast<std::size_t>(sample.ranks); }

// This rank's part of one call.
void run(const Sample& sample, const RankGroup& group, const Buffers& buffers, cudaStream_t stream) {
  const auto* const in = buffers.input.as<const Half>();
  auto* const out = buffers.output.as<Half>();
  ncclComm_t const comm = group.communicator();
  const int ranks = static_cast<int>(group.ranks());
  const int rank = static_cast<int>(group.rank());
  switch (sample.kind) {
    case SampleKind::all_reduce:
      check(ncclAllReduce(in, out, whole(sample), type, ncclSum, comm, stream));
      return;
    case SampleKind::all_gather: check(ncclAllGather(in, out, share(sample), type, comm, stream)); return;
    case SampleKind::reduce_scatter:
      check(ncclReduceScatter(in, out, share(sample), type, ncclSum, comm, stream));
      return;
    case SampleKind::all_to_all:
      check(ncclGroupStart());
      for (int peer = 0; peer < ranks; ++peer) {
        const std::size_t at = share(sample) * static_cast<std::size_t>(peer);
        check(ncclSend(in + at, share(sample), type, peer, comm, stream));
        check(ncclRecv(out + at, share(sample), type, peer, comm, stream));
      }
      check(ncclGroupEnd());
      return;
    case SampleKind::send_receive:  // around a ring
      check(ncclGroupStart());
      check(ncclSend(in, whole(sample), type, (rank + 1) % ranks, comm, stream));
      check(ncclRecv(out, whole(sample), type, (rank + ranks - 1) % ranks, comm, stream));
      check(ncclGroupEnd());
      return;
    default: throw std::logic_error("no collective");
  }
}

// Rank r's input is filled with seed r + 1. What element `place` of this rank's output must be.
double expected(const Sample& sample, const RankGroup& group, std::size_t place) {
  const auto ranks = static_cast<std::size_t>(group.ranks());
  const auto rank = static_cast<std::size_t>(group.rank());
  const std::size_t part = share(sample);
  switch (sample.kind) {
    case SampleKind::all_gather: return filled<Half>(place % part, place / part + 1);
    case SampleKind::all_to_all: return filled<Half>(part * rank + place % part, place / part + 1);
    case SampleKind::send_receive: return filled<Half>(place, (rank + ranks - 1) % ranks + 1);
    default: break;
  }
  const std::size_t at = sample.kind == SampleKind::reduce_scatter ? part * rank + place : place;
  double sum = 0;
  for (std::size_t i = 0; i < ranks; ++i) sum += filled<Half>(at, i + 1);
  return sum;
}

// What is wrong with this rank's result; nothing where it is right.
std::optional<std::string> error_of(const Sample& sample, const RankGroup& group, const Buffers& buffers) {
  buffers.output.poison(group.stream());
  run(sample, group, buffers, group.stream());
  group.finish();
  const std::size_t count = sample.kind == SampleKind::reduce_scatter ? share(sample) : whole(sample);
  constexpr std::size_t probes = 17;
  for (std::size_t i = 0; i < probes; ++i) {
    const std::size_t place = i * (count - 1) / (probes - 1);
    const double found = read_one(buffers.output.as<Half>(), place, group.stream());
    const double wanted = expected(sample, group, place);
    // bf16 is rounded at every step of a sum, to 1/256 of it at most.
    const double allowed = 0.01 * static_cast<double>(group.ranks());
    if (!(std::abs(found - wanted) <= allowed)) {
      return std::string(name_of(sample.kind)) + " over " + std::to_string(group.ranks()) +
             " ranks is wrong: " + std::to_string(found) + " where " + std::to_string(wanted) +
             " was expected";
    }
  }
  return std::nullopt;
}

void measure(const std::vector<Sample>& samples, const RankGroup& group, const Session& session) {
  Bytes most;
  for (const Sample& sample : samples) most = std::max(most, sample.bytes);
  const auto bytes = static_cast<std::size_t>(most.count());
  const Buffers buffers{Buffer(bytes), Buffer(bytes)};
  fill(buffers.input.as<Half>(), static_cast<std::int64_t>(bytes / sizeof(Half)),
       static_cast<std::uint64_t>(group.rank()) + 1, group.stream());
  for (const Sample& sample : samples) {
    if (group.agree(interrupted() ? 1 : 0) != 0) return;
    const auto error = error_of(sample, group, buffers);
    if (group.agree(error ? 1 : 0) != 0) {
      session.wrong(sample, error.value_or(std::string(name_of(sample.kind)) + " is wrong on another rank"));
      continue;
    }
    const auto timing = time_together(
        group.stream(), [&](cudaStream_t on) { run(sample, group, buffers, on); }, group.together(),
        session.nvml);
    if (timing) session.add(sample, *timing);
  }
}

}  // namespace

void measure_collectives(const std::vector<Sample>& samples, const RankGroup& all, const Session& session) {
  for (auto from = samples.begin(); from != samples.end();) {
    const std::int64_t ranks = from->ranks;
    const auto to =
        std::find_if(from, samples.end(), [&](const Sample& sample) { return sample.ranks != ranks; });
    if (const auto group = all.first(ranks)) measure({from, to}, *group, session);
    if (all.agree(interrupted() ? 1 : 0) != 0) return;
    from = to;
  }
}

}  // namespace headroom::harness
