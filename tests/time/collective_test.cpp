#include "headroom/time/collective.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/system_file.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::megatron;
using tests::performance;

constexpr Group node{.ranks = 8, .ranks_in_node = 8};

Seconds time(CollectiveKind kind, Bytes bytes, const Group& group) {
  return collective_time(kind, bytes, group, performance());
}

std::vector<Seconds> sends(const Strategy& strategy, const Software& software = megatron()) {
  return send_times(k22::transformer("", 96, 12288, 96), strategy, {1, 2048}, 8, performance(), software);
}

}  // namespace

TEST_CASE("collective: one rank has nothing to do") {
  CHECK(time(CollectiveKind::all_reduce, Bytes(1e9), {}) == Seconds(0));
  CHECK(time(CollectiveKind::none, Bytes(1e9), node) == Seconds(0));
}

TEST_CASE("collective: a large ring in a node, by hand") {
  const double expected = 31.79e-6 + 14 * 2.112e-6 + 14.0 / 8 * 1e9 / 221.3e9 + 1e9 / 8 / 491.3e9;
  CHECK(time(CollectiveKind::all_reduce, Bytes(1e9), node).count() == tests::about(expected));
}

TEST_CASE("collective: a small message takes the low-latency protocol") {
  const Seconds small = time(CollectiveKind::all_gather, Bytes(1024), node);
  CHECK(small.count() == tests::about(9.117e-6 + 7 * 0.947e-6).epsilon(0.01));
}

TEST_CASE(
    "collective: reduce-scatter and all-gather are slower than one all-reduce, by a launch [K22 section 6]") {
  const Bytes bytes(1e8);
  const Seconds two =
      time(CollectiveKind::reduce_scatter, bytes, node) + time(CollectiveKind::all_gather, bytes, node);
  CHECK(two > time(CollectiveKind::all_reduce, bytes, node));
  CHECK(two < time(CollectiveKind::all_reduce, bytes, node) + Seconds(70e-6));
}

TEST_CASE("collective: over nodes, at the bandwidth that the rings share") {
  const Group alone{.ranks = 16, .ranks_in_node = 8, .rings_per_node = 1};
  const Group beside_others{.ranks = 16, .ranks_in_node = 1, .rings_per_node = 8};
  const double wire = 15.0 / 16 * 1e9;
  CHECK(time(CollectiveKind::all_gather, Bytes(1e9), alone).count() ==
        tests::about(wire / (0.85 * 200e9)).epsilon(0.03));
  CHECK(time(CollectiveKind::all_gather, Bytes(1e9), beside_others).count() ==
        tests::about(wire / (0.40 * 25e9)).epsilon(0.01));
}

TEST_CASE("collective: where rails are aligned, every ring has the NICs of its own devices") {
  const Performance h100 = *read_system("dgx-h100-80g").performance;
  REQUIRE(h100.network.rails.value == Rails::aligned);
  const auto wire_time = [](const Performance& performance, const Group& group) {
    const Bytes little(1e6);
    const Bytes much = 1001 * little;
    const Seconds difference = collective_time(CollectiveKind::all_gather, much, group, performance) -
                               collective_time(CollectiveKind::all_gather, little, group, performance);
    return difference.count() / (15.0 / 16);  // of a gigabyte on the wire
  };
  const Group eight_rings{.ranks = 16, .ranks_in_node = 1, .rings_per_node = 8};
  const Group four_rings{.ranks = 16, .ranks_in_node = 2, .rings_per_node = 4};
  CHECK(wire_time(h100, eight_rings) == tests::about(1 / (0.91 * 50)));
  CHECK(wire_time(h100, four_rings) == tests::about(1 / (0.91 * 100)));

  Performance meeting = h100;
  meeting.network.rails.value = Rails::shared;
  CHECK(wire_time(meeting, eight_rings) == tests::about(1 / (0.4 * 50)));

  Performance two_for_a_nic = meeting;
  two_for_a_nic.network.nics_per_device = 0.5;
  CHECK(wire_time(two_for_a_nic, eight_rings) == tests::about(1 / (0.4 * 25)));
  // One ring of one device drives the whole NIC.
  const Group lone{.ranks = 16, .ranks_in_node = 1, .rings_per_node = 1};
  CHECK(wire_time(two_for_a_nic, lone) == tests::about(1 / (0.91 * 50)));

  Performance four_for_a_device = h100;
  four_for_a_device.network.nics_per_device = 4;
  CHECK(wire_time(four_for_a_device, eight_rings) == tests::about(1 / (0.91 * 200)));
}

TEST_CASE("collective: all-reduces that switches sum reach the bus bandwidths that others measured") {
  const auto bus_bandwidth = [](const char* system, std::int64_t ranks) {
    const Performance performance = *read_system(system).performance;
    const Bytes bytes(4e9);
    const Group group{.ranks = ranks, .ranks_in_node = 8};
    const Seconds taken = collective_time(CollectiveKind::all_reduce, bytes, group, performance);
    return 2.0 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * (bytes / taken).count() / 1e9;
  };
  // Over 4, 5, 6, 7 and 8 GPUs [NVIDIA/nccl, issue 1455], of an H800 [issue 1374]. Neither was fitted to.
  CHECK(bus_bandwidth("dgx-h100-80g", 4) == doctest::Approx(370).epsilon(0.05));
  CHECK(bus_bandwidth("dgx-h100-80g", 5) == doctest::Approx(420).epsilon(0.06));
  CHECK(bus_bandwidth("dgx-h100-80g", 6) == doctest::Approx(440).epsilon(0.05));
  CHECK(bus_bandwidth("dgx-h100-80g", 7) == doctest::Approx(460).epsilon(0.05));
  CHECK(bus_bandwidth("dgx-h100-80g", 8) == doctest::Approx(480).epsilon(0.05));
  CHECK(bus_bandwidth("h800", 8) == doctest::Approx(215).epsilon(0.05));
  // Two nodes, whose NICs carry 400 GB/s, and a ring 0.91 of that [coreweave/nccl-tests, pull request 92]: 441 GB/s.
  // The prediction is 13% more, and a ring's would be 17% less.
  CHECK(bus_bandwidth("dgx-h100-80g", 16) == doctest::Approx(441).epsilon(0.15));
}

TEST_CASE("collective: a ring on its rail meets oversubscription beyond its leaf switches, by what goes up") {
  Performance blocking = *read_system("dgx-h100-80g").performance;
  const auto time = [&](const Group& group, double oversubscription) {
    blocking.network.oversubscription.value = oversubscription;
    return collective_time(CollectiveKind::reduce_scatter, Bytes(1e10), group, blocking).count();
  };
  Group group{.ranks = 32, .ranks_in_node = 1, .rings_per_node = 8, .nodes_spanned = 32};
  CHECK(time(group, 70) == time(group, 1));
  group.ranks = group.nodes_spanned = 64;  // of the 32 nodes of a leaf, one sends up
  CHECK(time(group, 7) == time(group, 1));
  CHECK(time(group, 64) == tests::about(2 * time(group, 1)).epsilon(0.02));
  group.nodes_apart = 8;  // or eight
  CHECK(time(group, 7) == tests::about(1.75 * time(group, 1)).epsilon(0.02));
  group.nodes_apart = 32;  // or all
  CHECK(time(group, 7) == tests::about(7 * time(group, 1)).epsilon(0.02));
  blocking.network.nodes_per_leaf = 64;
  CHECK(time(group, 7) == time(group, 1));
}

TEST_CASE("collective: groups know how far apart their nodes are") {
  const Strategy strategy{.tensor_parallel = 8, .pipeline_parallel = 4, .data_parallel = 16};
  const Groups groups(axis_sizes(strategy), 8);
  CHECK(groups[ParallelAxis::data].nodes_apart == 1);
  CHECK(groups[ParallelAxis::data].nodes_spanned == 16);
  CHECK(groups[ParallelAxis::pipeline].nodes_apart == 16);
  CHECK(groups[ParallelAxis::pipeline].nodes_spanned == 49);
}

TEST_CASE("collective: oversubscription costs what leaves its rail") {
  const Performance aligned = *read_system("dgx-h100-80g").performance;
  Performance blocking = aligned;
  blocking.network.oversubscription.value = 2;
  const Group rings{.ranks = 16, .ranks_in_node = 2, .rings_per_node = 4};
  const auto time = [&](CollectiveKind kind, const Performance& performance) {
    return collective_time(kind, Bytes(1e9), rings, performance).count();
  };
  CHECK(time(CollectiveKind::all_reduce, blocking) == time(CollectiveKind::all_reduce, aligned));
  CHECK(time(CollectiveKind::all_to_all, blocking) ==
        tests::about(2 * time(CollectiveKind::all_to_all, aligned)).epsilon(0.01));
  Performance shared = aligned;
  shared.network.rails.value = Rails::shared;
  Performance both = blocking;
  both.network.rails.value = Rails::shared;
  CHECK(time(CollectiveKind::all_reduce, both) ==
        tests::about(2 * time(CollectiveKind::all_reduce, shared)).epsilon(0.01));
}

TEST_CASE("collective: more bytes never take less time") {
  CHECK(rc::check([] {
    const auto kind = *rc::gen::element(CollectiveKind::all_reduce, CollectiveKind::all_gather);
    const std::int64_t ranks = *rc::gen::element<std::int64_t>(2, 4, 8, 16, 64);
    const Group group{.ranks = ranks, .ranks_in_node = std::min<std::int64_t>(ranks, 8)};
    const auto bytes = static_cast<double>(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000));
    const auto more = bytes + static_cast<double>(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000));
    RC_ASSERT(time(kind, Bytes(more), group) >= time(kind, Bytes(bytes), group));
  }));
}

TEST_CASE("groups: tensor parallel in a node, data parallel between nodes") {
  const Strategy strategy{.tensor_parallel = 4, .pipeline_parallel = 2, .data_parallel = 8};
  CHECK(tensor_parallel_group(strategy, 8) == Group{.ranks = 4, .ranks_in_node = 4, .rings_per_node = 2});
  CHECK(data_parallel_group(strategy, 8) ==
        Group{.ranks = 8, .ranks_in_node = 2, .rings_per_node = 4, .nodes_spanned = 4});
  CHECK(tied_embedding_group(strategy, 8) ==
        Group{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 8, .nodes_apart = 4, .nodes_spanned = 5});
}

TEST_CASE("groups: tensor parallelism beyond a node") {
  const Strategy strategy{.tensor_parallel = 16, .data_parallel = 2};
  CHECK(tensor_parallel_group(strategy, 8) ==
        Group{.ranks = 16, .ranks_in_node = 8, .rings_per_node = 1, .nodes_spanned = 2});
  CHECK(data_parallel_group(strategy, 8) ==
        Group{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 8, .nodes_apart = 2, .nodes_spanned = 3});
}

TEST_CASE("groups: all of a run in one node") {
  const Strategy strategy{.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2};
  CHECK(tied_embedding_group(strategy, 8).ranks_in_node == 2);
  CHECK(data_parallel_group(strategy, 8) == Group{.ranks = 2, .ranks_in_node = 2, .rings_per_node = 4});
}

TEST_CASE("groups: pipeline ranks that share a node, and that do not") {
  const AxisSizes sizes = axis_sizes({.tensor_parallel = 4, .pipeline_parallel = 4});
  const Group inside{.ranks = 2, .ranks_in_node = 2, .rings_per_node = 4};
  const Group across{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 4, .nodes_spanned = 2};
  CHECK(pipeline_link(sizes, 0, 8) == inside);
  CHECK(pipeline_link(sizes, 1, 8) == across);
  CHECK(pipeline_link(sizes, 3, 8) == across);  // back to the first
  const AxisSizes whole_nodes =
      axis_sizes({.tensor_parallel = 8, .pipeline_parallel = 2, .data_parallel = 2});
  CHECK(pipeline_link(whole_nodes, 0, 8) ==
        Group{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 8, .nodes_apart = 2, .nodes_spanned = 3});
  const NetworkRates& network = performance().rates.network;
  CHECK(time(CollectiveKind::pipeline_send, Bytes(1e9), across) ==
        Bytes(1e9) / (network.nic_efficiency.value * BytesPerSecond(25e9)));
  CHECK(time(CollectiveKind::pipeline_send, Bytes(1e9), inside) <
        time(CollectiveKind::pipeline_send, Bytes(1e9), across));
}

TEST_CASE("overlap: the collective takes a share of the product's throughput, or outlasts it") {
  const CollectiveRates& rates = performance().rates.collectives;
  CHECK(exposed_beside(Seconds(1), Seconds(0), rates) == Seconds(0));
  CHECK(exposed_beside(Seconds(1), Seconds(0.5), rates).count() == tests::about(0.472 * 0.5));
  CHECK(exposed_beside(Seconds(1), Seconds(4), rates) == Seconds(3));
}

TEST_CASE("overlap: an exchange of DeepEP or HybridEP takes the multiprocessors of its kernels from a pass") {
  const double all = static_cast<double>(performance().device.multiprocessors);
  CHECK(exchange_loss(Dispatcher::deepep, performance()) == 20 / all);
  CHECK(exchange_loss(Dispatcher::hybridep, performance()) == 16 / all);
  CHECK(exchange_loss(Dispatcher::alltoall, performance()) == 0.472);
}

TEST_CASE("sends: nothing without a pipeline, cheap inside a node, once more where transfers are serial") {
  CHECK(sends({}).empty());
  const auto in_pairs = sends({.tensor_parallel = 4, .pipeline_parallel = 4});
  REQUIRE(in_pairs.size() == 4);
  CHECK(in_pairs[0] < in_pairs[1]);
  CHECK(in_pairs[0] == in_pairs[2]);
  CHECK(in_pairs[1] == in_pairs[3]);
  const auto serial = sends({.tensor_parallel = 4, .pipeline_parallel = 4}, {.serial_transfers = true});
  CHECK(serial[1] == 2 * in_pairs[1]);
}

TEST_CASE("sends: between virtual stages a stack that overlaps them shows what they take from kernels") {
  Strategy strategy{
      .tensor_parallel = 8, .pipeline_parallel = 8, .virtual_pipeline = 2, .sequence_parallel = true};
  const Software beside{.overlap_p2p = true};
  const double blocking = sends(strategy)[0].count() - 300e-6;
  CHECK(sends(strategy, beside)[0].count() == tests::about(0.472 * blocking));
  strategy.virtual_pipeline = 1;
  CHECK(sends(strategy, beside) == sends(strategy));
}

TEST_CASE("sends: sequence parallelism spares the gather behind a scattered transfer") {
  Strategy strategy{.tensor_parallel = 8, .pipeline_parallel = 8};
  const Seconds scattered = sends(strategy)[0];
  strategy.sequence_parallel = true;
  const Bytes whole(2.0 * 2048 * 12288);
  CHECK((scattered - sends(strategy)[0]).count() ==
        tests::about(time(CollectiveKind::all_gather, whole, node).count()));
}

TEST_CASE("all-to-all: its share of a ring's bandwidth slows the transfer, not its launch") {
  Performance performance = *read_system("gb200-nvl72").performance;
  CollectiveRates& rates = performance.rates.collectives;
  CHECK(rates.all_to_all.value == 0.78);
  const Bytes large(512.0 * 1024 * 1024);
  const Seconds slow = all_to_all_time(large, 4, performance);
  const Seconds sent = send_receive_time(large, performance);
  rates.all_to_all.value = 1;
  const Seconds launch = rates.ring_launch.value + rates.ring_step.value;
  const Seconds fast = all_to_all_time(large, 4, performance);
  CHECK((slow - launch).count() == tests::about((fast - launch).count() / 0.78));
  CHECK(send_receive_time(large, performance) == sent);
  CHECK(slow.count() ==
        tests::about(825.37e-6).epsilon(0.06));  // measured on four GPUs, and 5% less than predicted
}

TEST_CASE("direct links: a group uses those to its own members") {
  // Eight MI300X: 4 GiB all-reduced at 47.7 GB/s on the wire by two, and at 313 by eight
  // [stas00/ml-engineering, network/README.md].
  const Performance performance = *read_system("mi300x").performance;
  const auto bus_bandwidth = [&](std::int64_t ranks) {
    const Bytes bytes = 4_GiB;
    const Group group{.ranks = ranks, .ranks_in_node = ranks};
    const Seconds taken = collective_time(CollectiveKind::all_reduce, bytes, group, performance);
    return 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * (bytes / taken).count();
  };
  CHECK(bus_bandwidth(8) == doctest::Approx(313e9).epsilon(0.02));
  CHECK(bus_bandwidth(2) == doctest::Approx(47.7e9).epsilon(0.05));
  // Every pair of an exchange has its link, which carries one part. A send's link carries all.
  const Bytes large = 8_GiB;
  const Seconds two = all_to_all_time(large, 2, performance);
  CHECK(all_to_all_time(large, 8, performance).count() == tests::about(two.count() / 4).epsilon(0.01));
  const Seconds copied = large / 2.0 / performance.rates.collectives.local_bandwidth.value;
  CHECK(send_receive_time(large, performance).count() ==
        tests::about(2 * (two - copied).count()).epsilon(0.01));
}

}  // namespace headroom
