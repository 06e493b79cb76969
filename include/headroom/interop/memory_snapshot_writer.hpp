// Writes memory snapshots as PyTorch does, for pytorch.org/memory_viz and torch/cuda/_memory_viz.py.
#pragma once

#include <functional>
#include <string>

#include "headroom/interop/memory_snapshot.hpp"

namespace headroom {

// Writes a snapshot as a pickle of protocol 2, about 50 bytes an event. The bytes go to `write` in order, in
// parts of about 64 KiB.
void write_snapshot(const MemorySnapshot& snapshot,
                    const std::function<void(const std::string& bytes)>& write);

}  // namespace headroom
