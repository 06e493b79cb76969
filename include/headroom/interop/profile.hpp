// Reads a profiler's record of a training step as samples: GEMMs, flash attention, collectives and
// memory-bound kernels of known size. Supported are traces of PyTorch's profiler (Kineto), JSON or gzipped
// JSON, and SQLite databases exported by Nsight Systems, in which PyTorch's emit_nvtx and NCCL marked sizes.
//
// A kernel belongs to the innermost operator running on the thread that launched it; the operator knows the
// shapes. All kernels of one call of an operator make one time. A step runs at the clock that its power limit
// leaves, so samples have sustained load. Of several times of one shape, the median counts; for collectives
// the shortest, since longer ones include waiting for other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headroom/calibrate/profile.hpp"

namespace headroom {

// Reads the file event by event, so its size matters little; a few dozen bytes an event are kept. The node of
// a rank is its number over `devices_per_node`, rounded down. Throws InputError, naming the reason, if a file
// is no profile, is cut off, or has no kernels.
Profile read_profile(const std::string& path, std::int64_t devices_per_node);

// Reads a profile from a text, plain or gzipped, or from a database's bytes. `file` is its name.
Profile parse_profile(std::string_view text, const std::string& file, std::int64_t devices_per_node);

}  // namespace headroom
