#include "headroom/memory/held.hpp"

namespace headroom {

Bytes total(const RankMemory& rank) {
  return total(rank.state) + total(rank.activations.at_peak) + rank.dummy_gradients + rank.workspaces +
         rank.reserved;
}

Component largest_component(const RankMemory& rank) {
  Component largest{"activations", of_activations(rank.activations.at_peak)};
  for (const MemoryPart& part : memory_parts) {
    const Bytes bytes = part.of(rank);
    if (!part.activations && bytes > largest.bytes) largest = {std::string(part.words), bytes};
  }
  return largest;
}

}  // namespace headroom
