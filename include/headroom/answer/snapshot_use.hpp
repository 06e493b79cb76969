// Question of `headroom memory SNAPSHOT`: what a memory snapshot holds, what is alive at its peak, and which
// of these blocks a plan predicts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/interop/memory_snapshot.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// Life of a block. state: over the whole trace. activation: allocated or freed in the trace. temporary: the
// same, and shorter than a tenth of the longest life at the peak, in events. unknown: there is no trace.
enum class BlockLife : std::uint8_t { state, activation, temporary, unknown };

// Equal blocks that are alive at the peak: of one size, allocated at one place, and of one life.
struct BlockGroup {
  std::int64_t each = 0;  // bytes of a block, a multiple of 512
  std::int64_t count = 0;
  std::string place;  // first frame of the run's own code; empty: not recorded
  BlockLife life = BlockLife::unknown;
  friend bool operator==(const BlockGroup&, const BlockGroup&) = default;
};
inline Bytes total(const BlockGroup& group) {
  return static_cast<double>(group.count) * Bytes(static_cast<double>(group.each));
}

// What a snapshot says of one GPU. Segments are as the trace ends, the peak is of the trace.
struct SnapshotUse {
  std::int64_t device = 0;
  std::int64_t devices = 0;  // that have segments or events
  std::int64_t segments = 0;
  Bytes reserved;
  Bytes allocated;  // blocks of tensors
  Bytes awaiting;   // freed blocks that another stream still uses
  Bytes largest_free;
  std::int64_t events = 0;
  std::int64_t failures = 0;    // "oom" events
  std::int64_t peak_event = 0;  // from 1; 0: the peak is before the first event
  Bytes peak;                   // most that tensors take at once, in bytes of blocks
  Bytes reserved_at_peak;
  std::vector<BlockGroup> groups;  // alive at the peak, those that take most first
  SnapshotSettings settings;
};

// Blocks of a group that are predicted. `name`: predicted tensor and op, or a whole part of the state.
struct MatchedBlocks {
  std::size_t group = 0;  // index into SnapshotUse::groups
  std::string name;
  std::int64_t count = 0;
  friend bool operator==(const MatchedBlocks&, const MatchedBlocks&) = default;
};

// The prediction for a run beside its snapshot.
struct SnapshotMatch {
  std::size_t rank = 0;  // pipeline rank
  Bytes predicted_peak;  // in bytes of blocks
  Bytes predicted_reserved;
  Bytes matched;                      // of the snapshot's peak
  std::vector<MatchedBlocks> blocks;  // by group
  std::vector<BlockGroup> missing;    // predicted, without a block in the snapshot
};

struct SnapshotQuestion {
  MemorySnapshot snapshot;
  std::string file;                                 // its name
  std::optional<Request> request = std::nullopt;    // of the run, to match its blocks
  std::optional<std::int64_t> rank = std::nullopt;  // pipeline rank; absent: the one that reserves the most
};

struct SnapshotReply {
  SnapshotUse use;
  std::optional<SnapshotMatch> match;
  std::optional<Evaluation> evaluation;  // of the request
};

// Returns what a snapshot says of the GPU that reserves the most. Throws InputError, with the file's name,
// for a snapshot without segments and events.
SnapshotUse snapshot_use(const MemorySnapshot& snapshot, const std::string& file);

// Returns the reply. Throws InputError also if the request is illegal, or its allocator is not followed.
SnapshotReply answer(const SnapshotQuestion& question);

template <>
inline constexpr std::array<Spelling<BlockLife>, 4> spellings<BlockLife>{{
    {BlockLife::state, "state"},
    {BlockLife::activation, "activation"},
    {BlockLife::temporary, "temporary"},
    {BlockLife::unknown, "unknown"},
}};

}  // namespace headroom
