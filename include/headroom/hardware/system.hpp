// A training system: its devices, their memory, the part of it that is not the model's, and their rates of
// computing and communicating.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/core/on_heap.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/hardware/rates.hpp"
#include "headroom/hardware/sourced.hpp"

namespace headroom {

// How often a reserve counts.
// device: once. communicator: once for every group of more than one rank that the device communicates in.
enum class ReservePer : std::uint8_t { device, communicator };

// Non-torch memory of a device: CUDA context, NCCL buffers, library workspaces.
struct Reserve {
  std::string name;
  Bytes bytes;
  ReservePer per = ReservePer::device;
  Origin origin = Origin::assumed;
  std::string source;
  // The reserve is a GEMM workspace. It does not count if the stack counts workspaces itself
  // (StackMemory::workspaces).
  bool workspace = false;
  friend bool operator==(const Reserve&, const Reserve&) = default;
};

// How the NICs of different nodes are connected.
// aligned: NICs of devices at the same place in their nodes share a leaf switch, and every device has at
// least one NIC of its own. Rings of different devices never meet.
// shared: rings of several devices meet in a NIC or on the way.
enum class Rails : std::uint8_t { aligned, shared };

inline constexpr std::int64_t usual_nodes_per_leaf = 32;

// How a node reaches the other nodes. A node is an NVLink domain.
struct Network {
  double nics_per_device = 1;    // below 1 if several devices share a NIC
  BytesPerSecond nic_bandwidth;  // line rate of a NIC, in each direction
  Origin origin = Origin::assumed;
  std::string source;
  Sourced<Rails> rails{Rails::shared, Origin::assumed, ""};
  Sourced<double> oversubscription{1, Origin::assumed, ""};  // of the switches above the leaves
  // Nodes under one leaf switch. Default: the nodes of a 64-port switch with half of its ports down [NVIDIA
  // Quantum-2 QM9700; DGX SuperPOD reference architecture: 32 nodes a scalable unit].
  std::optional<std::int64_t> nodes_per_leaf;
  friend bool operator==(const Network&, const Network&) = default;
};

constexpr std::int64_t nodes_of_leaf(const Network& network) {
  return network.nodes_per_leaf.value_or(usual_nodes_per_leaf);
}

// Spread of measured over predicted iteration time on a system, for runs that the rates were not fitted to.
// 80% of the logarithms of that ratio have magnitudes of at most `logarithm`. Assumed if there are too few
// runs.
struct RunSpread {
  double logarithm = 0;
  std::int64_t configurations = 0;  // held-out configurations
  bool flash_attention = false;     // models of these runs use flash attention
  bool slower = false;              // odds count every error as a longer time (plan/interval.hpp)
  Origin origin = Origin::assumed;
  std::string source;
  friend bool operator==(const RunSpread&, const RunSpread&) = default;
};

// Figures that predictions of time need. The source of the device's figures is System::source.
struct Performance {
  Device device;
  Network network;
  Rates rates;
  std::optional<RunSpread> run_spread;  // present if rates were fitted to training runs
  friend bool operator==(const Performance&, const Performance&) = default;
};

// A host of devices: its memory and memory bandwidth, and the one-way bandwidth between each device and the
// host.
struct Host {
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  BytesPerSecond device_link;
  std::string source;
  friend bool operator==(const Host&, const Host&) = default;
};

struct System {
  std::string name;
  std::string source;  // where the device's figures were published
  std::string device;  // "A100-SXM4-80GB"
  // Names of devices in runs. A run that names no system but one of these devices belongs to this system.
  std::vector<std::string> runs_of;
  Bytes memory;                       // capacity of one device; the "80 GB" A100 holds 80 GiB
  std::int64_t devices_per_node = 1;  // devices that NVLink connects, whatever the number of hosts
  // Devices of one host, if NVLink connects several hosts, as in a rack of trays. A job gets whole hosts.
  std::optional<std::int64_t> devices_per_host;
  std::optional<Host> host;           // if absent, nothing can be offloaded
  std::optional<Sourced<Watts>> tdp;  // data-sheet design power of one device
  // Exponent of the power limit in a device's sustained rate. Absent: 1, so that the rate is proportional to
  // the limit.
  std::optional<Sourced<double>> power_exponent;
  std::vector<Reserve> reserves;
  std::string default_software = "megatron-2022";  // stack of runs that name none
  OnHeap<Performance> performance;                 // if absent, plans predict memory but not time
  friend bool operator==(const System&, const System&) = default;
};

// Returns the number of devices of a host. A host is a node unless NVLink connects several hosts.
constexpr std::int64_t host_size(const System& system) {
  return system.devices_per_host.value_or(system.devices_per_node);
}

// Returns how many devices of a job NVLink connects, for a job of `job` devices. A job that needs several
// racks gets equally many whole hosts of each rack, a number that divides the job's hosts. Launchers ask for
// hosts this way (--segment in scripts/performance of NVIDIA-NeMo/Megatron-Bridge).
constexpr std::int64_t connected_devices(const System& system, std::int64_t job) {
  const std::int64_t host = host_size(system);
  if (job <= system.devices_per_node || job % host != 0) return system.devices_per_node;
  std::int64_t hosts = system.devices_per_node / host;
  while (job / host % hosts != 0) --hosts;
  return hosts * host;
}

template <>
inline constexpr std::array<Spelling<Rails>, 2> spellings<Rails>{{
    {Rails::aligned, "aligned"},
    {Rails::shared, "shared"},
}};
template <>
inline constexpr std::array<Spelling<ReservePer>, 2> spellings<ReservePer>{{
    {ReservePer::device, "device"},
    {ReservePer::communicator, "communicator"},
}};

}  // namespace headroom
