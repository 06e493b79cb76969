#include "calibrate/network_words.hpp"

#include <doctest/doctest.h>

#include "headroom/io/system_file.hpp"

namespace headroom {
namespace {

TEST_CASE("network: words state the NICs of a node, or what a node or a device has of them") {
  CHECK(network_of_words("NVLink; 4x100Gb/s RoCE per node") == StatedNetwork{.gigabits = 100, .nics = 4});
  CHECK(network_of_words("8x ConnectX-7 400Gb/s NDR IB per node") ==
        StatedNetwork{.gigabits = 400, .nics = 8});
  CHECK(network_of_words("NVLink4 + 8x400Gb/s IB") == StatedNetwork{.gigabits = 400, .nics = 8});
  CHECK(network_of_words("800 Gb/s a node") == StatedNetwork{.gigabits = 800});
  CHECK(network_of_words("A100: 1600 Gb/s RoCE node-node (table title)") == StatedNetwork{.gigabits = 1600});
  CHECK(network_of_words("NVLink; 400Gb/s RDMA per GPU") ==
        StatedNetwork{.gigabits = 400, .of_device = true});
}

TEST_CASE("network: other words state nothing") {
  for (const char* words : {"", "NVLink5 NVL72 domain", "400 Gb/s", "4x NVLink", "0x100Gb/s", "0 Gb/s a node",
                            "99999999999999 Gb/s", "4 Omni-Path links per node"})
    CHECK(!network_of_words(words));
}

TEST_CASE("network: a system with the nodes of a run") {
  const System a100 = read_system("dgx-a100-80g");  // 8 NICs of 25 GB/s
  const auto network_of = [&](const char* words) {
    return system_of_run(a100, 8, words).performance->network;
  };
  CHECK(network_of("4x100Gb/s").nics_per_device == 0.5);
  CHECK(network_of("4x100Gb/s").nic_bandwidth == BytesPerSecond(12.5e9));
  CHECK(network_of("400 Gb/s a node").nics_per_device == 0.25);
  CHECK(network_of("400 Gb/s a node").nic_bandwidth == BytesPerSecond(25e9));
  CHECK(network_of("100 Gb/s a node").nics_per_device == 0.125);
  CHECK(network_of("100 Gb/s a node").nic_bandwidth == BytesPerSecond(12.5e9));
  CHECK(system_of_run(a100, 4, "").devices_per_node == 4);
  CHECK(system_of_run(a100, 16, "") == a100);
  const System rack = read_system("gb200-nvl72");
  CHECK(system_of_run(rack, 4, "4x100Gb/s") == rack);
}

}  // namespace
}  // namespace headroom
