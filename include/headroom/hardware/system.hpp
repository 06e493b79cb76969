// What a training system offers: its devices, their memory, what of it the software stack takes away, and how fast it
// computes and communicates.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/hardware/rates.hpp"
#include "headroom/hardware/sourced.hpp"

namespace headroom {

// device: once. communicator: for every group of more than one rank that the device communicates in.
enum class ReservePer : std::uint8_t { device, communicator };

// Device memory that is not the model's: CUDA context, NCCL buffers, library workspaces.
struct Reserve {
  std::string name;
  Bytes bytes;
  ReservePer per = ReservePer::device;
  Origin origin = Origin::assumed;
  std::string source;
  // Of matrix products: not counted where the training stack counts its own (StackMemory::workspaces).
  bool workspace = false;
  friend bool operator==(const Reserve&, const Reserve&) = default;
};

// How the NICs of many nodes meet. aligned: the NICs of devices of the same place in their nodes share a leaf switch, and
// every device has one or more of its own, so that rings of different devices never meet. shared: rings of several
// devices meet in a NIC, or on their way.
enum class Rails : std::uint8_t { aligned, shared };

inline constexpr std::int64_t usual_nodes_per_leaf = 32;

// How a node, which is the domain that NVLink connects, reaches the others.
struct Network {
  double nics_per_device = 1;    // below one where several devices share a NIC
  BytesPerSecond nic_bandwidth;  // line rate of one, each direction
  Origin origin = Origin::assumed;
  std::string source;
  Sourced<Rails> rails{Rails::shared, Origin::assumed, ""};
  Sourced<double> oversubscription{1, Origin::assumed, ""};  // of the switches above the leaves
  // Nodes whose NICs meet in a leaf switch; without it those of a switch of 64 ports, half of them down [NVIDIA Quantum-2 QM9700;
  // DGX SuperPOD reference architecture: 32 nodes a scalable unit].
  std::optional<std::int64_t> nodes_per_leaf;
  friend bool operator==(const Network&, const Network&) = default;
};

constexpr std::int64_t nodes_of_leaf(const Network& network) {
  return network.nodes_per_leaf.value_or(usual_nodes_per_leaf);
}

// How far the iteration times of runs on a system lay from what rates predict that were fitted to others of them: 80% of the
// logarithms of measured over predicted stay within `logarithm`, whatever their sign. Assumed where too few runs told it.
struct RunSpread {
  double logarithm = 0;
  std::int64_t configurations = 0;  // that were held out
  bool flash_attention = false;     // whether models of these runs use it
  bool slower = false;              // whether odds count every error as a longer time (plan/interval.hpp)
  Origin origin = Origin::assumed;
  std::string source;
  friend bool operator==(const RunSpread&, const RunSpread&) = default;
};

// What predictions of time need. Device figures are those of System::source.
struct Performance {
  Device device;
  Network network;
  Rates rates;
  std::optional<RunSpread> run_spread;  // where the rates were fitted to training runs on the system
  friend bool operator==(const Performance&, const Performance&) = default;
};

// One host of devices: its memory, how fast that is, and the link between each device and it, one way.
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
  // Devices as runs name them: where such a run names no system, it is of this one.
  std::vector<std::string> runs_of;
  Bytes memory;                       // capacity of one device; the "80 GB" A100 holds 80 GiB
  std::int64_t devices_per_node = 1;  // devices that NVLink connects, whatever the number of hosts
  // Of one host, where NVLink connects several, as in a rack of trays: what a job is given whole ones of.
  std::optional<std::int64_t> devices_per_host;
  std::optional<Host> host;           // without it nothing can be offloaded
  std::optional<Sourced<Watts>> tdp;  // the power that the data sheet designs one device for
  // How what a device sustains goes with its power limit: as this power of it. Absent: 1, as much as that.
  std::optional<Sourced<double>> power_exponent;
  std::vector<Reserve> reserves;
  std::string default_software = "megatron-2022";  // the stack of runs on it, where nobody names one
  std::optional<Performance> performance;          // without it a run can be planned for memory, not for time
  friend bool operator==(const System&, const System&) = default;
};

// Devices come by hosts, which are nodes where NVLink connects no more than one.
constexpr std::int64_t host_size(const System& system) {
  return system.devices_per_host.value_or(system.devices_per_node);
}

// How many devices of a job of so many NVLink connects. A job that needs several racks gets equally many whole hosts of
// each, as many as divide its hosts: so launchers ask for them (--segment in scripts/performance of
// NVIDIA-NeMo/Megatron-Bridge).
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
