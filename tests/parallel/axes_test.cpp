#include "headroom/parallel/axes.hpp"

#include <map>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/parallel/strategy.hpp"

namespace headroom {
namespace {

// The groups along an axis by brute force: every device by its place on all other axes.
std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> groups_by_place(const RankGrid& grid,
                                                                               ParallelAxis axis) {
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> groups;
  for (std::int64_t device = 0; device < ranks(grid); ++device) {
    std::vector<std::int64_t> place;
    std::int64_t rest = device;
    for (const AxisExtent& extent : grid) {
      if (extent.axis != axis) place.push_back(rest % extent.size);
      rest /= extent.size;
    }
    groups[place].push_back(device);
  }
  return groups;
}

// The fewest devices that a group has in a node in which it has any.
std::int64_t fewest_in_node(const std::vector<std::int64_t>& group, std::int64_t devices_per_node) {
  std::map<std::int64_t, std::int64_t> by_node;
  for (const std::int64_t device : group) ++by_node[device / devices_per_node];
  std::int64_t fewest = std::ssize(group);
  for (const auto& [node, count] : by_node) fewest = std::min(fewest, count);
  return fewest;
}

}  // namespace

TEST_CASE("axes: every axis has its row, in order, and a letter of its own") {
  for (std::size_t i = 0; i < axis_count; ++i) {
    CHECK(static_cast<std::size_t>(parallel_axes[i].axis) == i);
    CHECK(row_of(parallel_axes[i].axis).name == name_of(parallel_axes[i].axis));
    for (std::size_t j = 0; j < i; ++j) CHECK(parallel_axes[i].letter != parallel_axes[j].letter);
  }
}

TEST_CASE("axes: groups are those of devices that differ on one axis only") {
  CHECK(rc::check([] {
    const auto power = [] { return std::int64_t{1} << *rc::gen::inRange(0, 4); };
    AxisSizes sizes;
    for (const ParallelAxis axis :
         {ParallelAxis::tensor, ParallelAxis::context, ParallelAxis::data, ParallelAxis::pipeline}) {
      sizes[axis] = power();
    }
    const std::int64_t node = power();
    const RankGrid grid = grid_of(sizes);
    for (const AxisExtent& extent : grid) {
      const Group group = group_along(grid, extent.axis, node);
      RC_ASSERT(group.ranks == sizes[extent.axis]);
      std::int64_t in_first_node = 0;
      for (const auto& [place, devices] : groups_by_place(grid, extent.axis)) {
        RC_ASSERT(std::ssize(devices) == group.ranks);
        RC_ASSERT(fewest_in_node(devices, node) == group.ranks_in_node);
        in_first_node += devices.front() < node ? 1 : 0;
      }
      RC_ASSERT(group.rings_per_node == in_first_node);
    }
  }));
}

TEST_CASE("axes: a group that straddles nodes counts by its smallest part") {
  AxisSizes sizes;
  sizes[ParallelAxis::tensor] = 6;
  sizes[ParallelAxis::data] = 4;
  const RankGrid grid = grid_of(sizes);
  std::int64_t fewest = 6;
  for (const auto& [place, devices] : groups_by_place(grid, ParallelAxis::tensor))
    fewest = std::min(fewest, fewest_in_node(devices, 8));
  CHECK(fewest == 2);
  CHECK(group_along(grid, ParallelAxis::tensor, 8).ranks_in_node == 2);
}

TEST_CASE("axes: the devices of a pipeline rank are numbered twice, for experts and for the rest") {
  AxisSizes sizes;
  sizes[ParallelAxis::tensor] = 2;
  sizes[ParallelAxis::context] = 2;
  sizes[ParallelAxis::data] = 8;
  sizes[ParallelAxis::pipeline] = 4;
  sizes[ParallelAxis::expert] = 16;
  CHECK(ranks(grid_of(sizes)) == ranks(grid_of(sizes, WeightClass::expert)));
  CHECK(replicas(sizes, WeightClass::dense) == 16);
  CHECK(replicas(sizes, WeightClass::expert) == 2);
  const Groups groups(sizes, 8);
  CHECK(groups[ParallelAxis::expert] ==
        Group{.ranks = 16, .ranks_in_node = 8, .rings_per_node = 1, .nodes_spanned = 2});
  CHECK(groups[ParallelAxis::context] == Group{.ranks = 2, .ranks_in_node = 2, .rings_per_node = 4});
  // Gradients of dense weights are summed over context and data ranks, those of experts over the two that are left.
  CHECK(replica_group(sizes, WeightClass::dense, 8) ==
        Group{.ranks = 16, .ranks_in_node = 4, .rings_per_node = 2, .nodes_spanned = 4});
  CHECK(replica_group(sizes, WeightClass::expert, 8) ==
        Group{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 8, .nodes_apart = 2, .nodes_spanned = 3});
}

TEST_CASE("axes: sizes, devices and communicators of a strategy") {
  const Strategy strategy{.tensor_parallel = 8, .pipeline_parallel = 4, .data_parallel = 2};
  const AxisSizes sizes = axis_sizes(strategy);
  for (const AxisField& axis : axis_fields) CHECK(sizes[axis.axis] == strategy.*axis.size);
  CHECK(sizes[ParallelAxis::context] == 1);
  CHECK(devices(strategy) == 64);
  CHECK(communicators(sizes) == 3);
  CHECK(communicators(axis_sizes({.data_parallel = 2})) == 1);
  CHECK(communicators({}) == 0);
}

}  // namespace headroom
