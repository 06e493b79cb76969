// What a profiler recorded of a training step, as samples: products, flash attention, collectives and memory-bound kernels of
// which it says the size. Read are the traces that PyTorch's profiler (Kineto) writes, JSON or gzipped JSON, and the SQLite
// databases that Nsight Systems exports, where PyTorch's emit_nvtx and NCCL marked sizes.
//
// A kernel belongs to the innermost operator under way on the thread that launched it, which knows the shapes. All kernels of
// one call of an operator make one time. A step runs at the clock that its power limit leaves, so samples are of sustained
// load. Of the times of one shape the median counts, of collectives the shortest: the longer ones also hold the waiting for
// other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headroom/calibrate/profile.hpp"

namespace headroom {

// Reads the file event by event, so that its size matters little; what is kept is a few dozen bytes an event. A rank's node is its
// number over `devices_per_node`, rounded down. Throws InputError naming what is wrong with a file that is no profile, is
// cut off, or holds no kernels.
Profile read_profile(const std::string& path, std::int64_t devices_per_node);

// The same of a text, plain or gzipped, or of a database's bytes; `file` is its name.
Profile parse_profile(std::string_view text, const std::string& file, std::int64_t devices_per_node);

}  // namespace headroom
