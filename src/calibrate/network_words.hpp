// Reads the network between nodes from the words of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headroom/hardware/system.hpp"

namespace headroom {

// Gb/s of each NIC or of a whole node.
struct StatedNetwork {
  double gigabits = 0;
  std::optional<std::int64_t>
      nics;                // of a node; where none are told, `gigabits` are a node's, whatever its NICs
  bool of_device = false;  // `gigabits` are those of each device
  friend bool operator==(const StatedNetwork&, const StatedNetwork&) = default;
};

// Reads "NVLink; 4x100Gb/s RoCE per node", "8x ConnectX-7 400Gb/s", "800 Gb/s a node" or "400 Gb/s RDMA per
// GPU". Returns nothing if the words state no such figure, or state that a number means something else.
std::optional<StatedNetwork> network_of_words(std::string_view words);

// Returns the system with the nodes that a run describes: its GPUs per node, if fewer than the system's, and
// its network. A number of NICs that is not stated follows from the system's NICs and the node's bandwidth.
// Hosts connected by NVLink stay unchanged.
System system_of_run(System system, std::optional<std::int64_t> devices_per_node,
                     std::string_view interconnect);

}  // namespace headroom
