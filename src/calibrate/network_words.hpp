// The network between nodes that the words of a run state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headroom/hardware/system.hpp"

namespace headroom {

// Gb/s, of each NIC or of a whole node.
struct StatedNetwork {
  double gigabits = 0;
  std::optional<std::int64_t>
      nics;                // of a node; where none are told, `gigabits` are a node's, whatever its NICs
  bool of_device = false;  // `gigabits` are those of each device
  friend bool operator==(const StatedNetwork&, const StatedNetwork&) = default;
};

// Of "NVLink; 4x100Gb/s RoCE per node", "8x ConnectX-7 400Gb/s", "800 Gb/s a node" or "400 Gb/s RDMA per GPU". None where nothing of the
// kind is said, or where it says of a number that it is of something else.
std::optional<StatedNetwork> network_of_words(std::string_view words);

// A system as a run says that its nodes are: with so many devices where that is fewer than the system's, and with its network. NICs that are
// not told are the system's, as many as make up what a node has. Hosts that NVLink connects stay as they are.
System system_of_run(System system, std::optional<std::int64_t> devices_per_node,
                     std::string_view interconnect);

}  // namespace headroom
