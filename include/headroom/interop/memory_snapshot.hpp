// A snapshot of PyTorch's CUDA caching allocator: its segments and blocks, and what it allocated and freed
// before. torch.cuda.memory._dump_snapshot() writes one, a pickle that pytorch.org/memory_viz opens [PyTorch,
// torch/csrc/cuda/memory_snapshot.cpp, _memory_snapshot_pickled].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "headroom/core/names.hpp"

namespace headroom {

struct SnapshotFrame {
  std::string name;  // of a function
  std::string file;
  std::int64_t line = 0;
  friend bool operator==(const SnapshotFrame&, const SnapshotFrame&) = default;
  // Emscripten's libc++ has no <=> of strings.
  friend bool operator<(const SnapshotFrame& a, const SnapshotFrame& b) {
    return std::tie(a.name, a.file, a.line) < std::tie(b.name, b.file, b.line);
  }
};

// awaiting_free: freed, but other streams still use the block (record_stream).
enum class SnapshotState : std::uint8_t { allocated, awaiting_free, inactive };

// Sizes are in bytes. requested: of the tensor, at most `size`. stack: index into MemorySnapshot::stacks.
struct SnapshotBlock {
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;
  SnapshotState state = SnapshotState::inactive;
  std::uint32_t stack = 0;
  friend bool operator==(const SnapshotBlock&, const SnapshotBlock&) = default;
};

struct SnapshotSegment {
  std::int64_t device = 0;
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::int64_t stream = 0;
  bool small = false;  // of the pool of tensors up to 1 MiB
  bool expandable = false;
  std::array<std::int64_t, 2> pool{};  // of a CUDA graph; zeros: none
  std::uint32_t stack = 0;
  std::vector<SnapshotBlock> blocks;  // by address, without gaps
  friend bool operator==(const SnapshotSegment&, const SnapshotSegment&) = default;
};

// segment_map, segment_unmap: an expandable segment grows or shrinks. other: an action that has no size.
enum class SnapshotAction : std::uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,
  other
};

struct SnapshotEvent {
  SnapshotAction action = SnapshotAction::other;
  std::int64_t address = 0;
  std::int64_t size = 0;  // requested by the tensor, or of the segment
  std::int64_t stream = 0;
  std::int64_t time_us = 0;
  std::uint32_t stack = 0;
  friend bool operator==(const SnapshotEvent&, const SnapshotEvent&) = default;
};

// The settings of the allocator that Headroom knows.
struct SnapshotSettings {
  std::string configuration;  // PYTORCH_CUDA_ALLOC_CONF
  bool expandable = false;
  friend bool operator==(const SnapshotSettings&, const SnapshotSettings&) = default;
};

struct MemorySnapshot {
  std::vector<SnapshotFrame> frames;
  // Indices into `frames`, innermost first. The first stack is empty: of what was not recorded.
  std::vector<std::vector<std::uint32_t>> stacks = {{}};
  std::vector<SnapshotSegment> segments;
  std::vector<std::vector<SnapshotEvent>> traces;  // by device, oldest first
  SnapshotSettings settings;
  friend bool operator==(const MemorySnapshot&, const MemorySnapshot&) = default;
};

// Returns whether a file, gzipped or not, begins as a pickle does. A pipe counts as none. Throws InputError
// if the file cannot be read.
bool is_pickle(const std::string& path);

// Reads a snapshot of PyTorch 2.0 or later from a file, gzipped or not. Nothing in it is executed. Throws
// InputError for a file that is no pickle, imports or calls anything, holds more than 2^26 values, or is no
// snapshot.
MemorySnapshot read_snapshot(const std::string& path);

// Reads the same from bytes in memory. `file` is their name.
MemorySnapshot parse_snapshot(std::string_view bytes, const std::string& file);

template <>
inline constexpr std::array<Spelling<SnapshotState>, 3> spellings<SnapshotState>{{
    {SnapshotState::allocated, "active_allocated"},
    {SnapshotState::awaiting_free, "active_pending_free"},
    {SnapshotState::inactive, "inactive"},
}};
// Another spelling, of PyTorch's documentation.
template <>
inline constexpr std::array<Spelling<SnapshotState>, 1> other_spellings<SnapshotState>{{
    {SnapshotState::awaiting_free, "active_awaiting_free"},
}};
template <>
inline constexpr std::array<Spelling<SnapshotAction>, 9> spellings<SnapshotAction>{{
    {SnapshotAction::alloc, "alloc"},
    {SnapshotAction::free_requested, "free_requested"},
    {SnapshotAction::free_completed, "free_completed"},
    {SnapshotAction::segment_alloc, "segment_alloc"},
    {SnapshotAction::segment_free, "segment_free"},
    {SnapshotAction::segment_map, "segment_map"},
    {SnapshotAction::segment_unmap, "segment_unmap"},
    {SnapshotAction::oom, "oom"},
    {SnapshotAction::other, "snapshot"},
}};

}  // namespace headroom
