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
  friend bool operator==(const Reserve&, const Reserve&) = default;
};

// How a node reaches the others.
struct Network {
  std::int64_t adapters = 1;         // of a node
  BytesPerSecond adapter_bandwidth;  // of one, each direction
  Origin origin = Origin::assumed;
  std::string source;
  friend bool operator==(const Network&, const Network&) = default;
};

constexpr BytesPerSecond node_bandwidth(const Network& network) {
  return static_cast<double>(network.adapters) * network.adapter_bandwidth;
}

// What predictions of time need. Device figures are those of System::source.
struct Performance {
  Device device;
  Network network;
  Rates rates;
  friend bool operator==(const Performance&, const Performance&) = default;
};

struct System {
  std::string name;
  std::string source;  // where the device's figures were published
  std::string device;  // "A100-SXM4-80GB"
  // Devices as runs name them: where such a run names no system, it is of this one.
  std::vector<std::string> runs_of;
  Bytes memory;                       // capacity of one device; the "80 GB" A100 holds 80 GiB
  std::int64_t devices_per_node = 1;  // devices that share the fast interconnect
  std::vector<Reserve> reserves;
  std::optional<Performance> performance;  // without it a run can be planned for memory, not for time
  friend bool operator==(const System&, const System&) = default;
};

template <>
inline constexpr std::array<Spelling<ReservePer>, 2> spellings<ReservePer>{{
    {ReservePer::device, "device"},
    {ReservePer::communicator, "communicator"},
}};

}  // namespace headroom
