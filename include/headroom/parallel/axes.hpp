// How many ranks a run has along each axis, which ranks form a group, and how the groups lie over the nodes.
//
// A device is numbered by its place on every axis, the first axis of a grid fastest. All groups, the communicators that
// take device memory and the ranks that hold the same weights follow from a grid.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <numeric>

#include "headroom/core/axis.hpp"
#include "headroom/core/fixed_vector.hpp"

namespace headroom {

// Ranks along each axis, 1 where an axis is not used.
class AxisSizes {
 public:
  [[nodiscard]] constexpr std::int64_t operator[](ParallelAxis axis) const {
    return sizes_[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] constexpr std::int64_t& operator[](ParallelAxis axis) {
    return sizes_[static_cast<std::size_t>(axis)];
  }
  friend constexpr bool operator==(const AxisSizes&, const AxisSizes&) = default;

 private:
  std::array<std::int64_t, axis_count> sizes_{1, 1, 1, 1, 1, 1};
};

struct AxisExtent {
  ParallelAxis axis{};
  std::int64_t size = 1;
  friend bool operator==(const AxisExtent&, const AxisExtent&) = default;
};

// The axes that number the devices of a run, fastest first. Along ParallelAxis::data lie the replicas of a class of weights.
using RankGrid = FixedVector<AxisExtent, axis_count>;

constexpr std::int64_t ranks(const RankGrid& grid) {
  std::int64_t product = 1;
  for (const AxisExtent& extent : grid) product *= extent.size;
  return product;
}

// Of the weights outside experts, or of those of experts: both have the same devices in every pipeline rank.
constexpr RankGrid grid_of(const AxisSizes& sizes, WeightClass weights = WeightClass::dense) {
  const AxisExtent pipeline{ParallelAxis::pipeline, sizes[ParallelAxis::pipeline]};
  const std::int64_t stage =
      sizes[ParallelAxis::tensor] * sizes[ParallelAxis::context] * sizes[ParallelAxis::data];
  const std::int64_t expert = sizes[ParallelAxis::expert_tensor] * sizes[ParallelAxis::expert];
  if (weights == WeightClass::dense) {
    return {{ParallelAxis::tensor, sizes[ParallelAxis::tensor]},
            {ParallelAxis::context, sizes[ParallelAxis::context]},
            {ParallelAxis::data, sizes[ParallelAxis::data]},
            pipeline};
  }
  EXPECTS(stage % expert == 0);
  return {{ParallelAxis::expert_tensor, sizes[ParallelAxis::expert_tensor]},
          {ParallelAxis::expert, sizes[ParallelAxis::expert]},
          {ParallelAxis::data, stage / expert},
          pipeline};
}

// How the ranks of a group lie over the nodes.
struct Group {
  std::int64_t ranks = 1;
  std::int64_t ranks_in_node = 1;   // of the same group
  std::int64_t rings_per_node = 1;  // groups like it that leave a node at the same time
  std::int64_t nodes_apart = 1;     // neighbours in different nodes, counted along the cluster
  std::int64_t nodes_spanned = 1;   // from its first node to its last, those between among them
  friend auto operator<=>(const Group&, const Group&) = default;
};

// The ranks that differ in their place on one axis only. Where a group's span of devices does not divide a node some
// group straddles two, and the smallest part that it has in one counts.
constexpr Group group_along(const RankGrid& grid, ParallelAxis axis, std::int64_t devices_per_node) {
  std::int64_t stride = 1;
  std::int64_t size = 1;
  for (const AxisExtent& extent : grid) {
    if (extent.axis == axis) {
      size = extent.size;
      break;
    }
    stride *= extent.size;
  }
  const std::int64_t all = ranks(grid);
  const std::int64_t in_node =
      all <= devices_per_node
          ? size
          : std::clamp<std::int64_t>(std::gcd(stride * size, devices_per_node) / stride, 1, size);
  return {.ranks = size,
          .ranks_in_node = in_node,
          .rings_per_node = std::max<std::int64_t>(1, std::min(all, devices_per_node) / in_node),
          .nodes_apart = std::max<std::int64_t>(1, stride / devices_per_node),
          .nodes_spanned = 1 + stride * (size - 1) / devices_per_node};
}

// Along every axis: the group that a rank is in. Along ParallelAxis::data, of the weights outside experts. Where the
// context-parallel group is in parts of `context_inner` ranks, also its part, and the ranks at the same place of every part.
class Groups {
 public:
  constexpr Groups() = default;
  constexpr Groups(const AxisSizes& sizes, std::int64_t devices_per_node, std::int64_t context_inner = 1) {
    const RankGrid dense = grid_of(sizes);
    const RankGrid expert = grid_of(sizes, WeightClass::expert);
    for (const AxisRow& row : parallel_axes) {
      const bool of_experts = row.divides == Divides::experts || row.divides == Divides::expert_weights;
      along_[static_cast<std::size_t>(row.axis)] =
          group_along(of_experts ? expert : dense, row.axis, devices_per_node);
    }
    const std::int64_t context = sizes[ParallelAxis::context];
    AxisSizes parts = sizes;
    parts[ParallelAxis::context] = context_inner;
    parts[ParallelAxis::data] *= context / context_inner;
    inner_ = group_along(grid_of(parts), ParallelAxis::context, devices_per_node);
    parts = sizes;
    parts[ParallelAxis::tensor] *= context_inner;
    parts[ParallelAxis::context] /= context_inner;
    outer_ = group_along(grid_of(parts), ParallelAxis::context, devices_per_node);
  }
  [[nodiscard]] constexpr const Group& operator[](ParallelAxis axis) const {
    return along_[static_cast<std::size_t>(axis)];
  }
  // Of the context-parallel group, or of a part of it.
  [[nodiscard]] constexpr const Group& context(GroupPart part) const {
    if (part == GroupPart::whole) return along_[static_cast<std::size_t>(ParallelAxis::context)];
    return part == GroupPart::inner ? inner_ : outer_;
  }
  friend constexpr bool operator==(const Groups&, const Groups&) = default;

 private:
  std::array<Group, axis_count> along_{};
  Group inner_{};
  Group outer_{};
};

// How many ranks hold the same weights of a class, and sum their gradients: the ranks that divide a sequence do, beside
// those that divide the batch.
constexpr std::int64_t replicas(const AxisSizes& sizes, WeightClass weights) {
  const std::int64_t tokens = sizes[ParallelAxis::context] * sizes[ParallelAxis::data];
  if (weights == WeightClass::dense) return tokens;
  return sizes[ParallelAxis::tensor] * tokens /
         (sizes[ParallelAxis::expert_tensor] * sizes[ParallelAxis::expert]);
}

constexpr Group replica_group(const AxisSizes& sizes, WeightClass weights, std::int64_t devices_per_node) {
  const std::int64_t stage =
      sizes[ParallelAxis::tensor] * sizes[ParallelAxis::context] * sizes[ParallelAxis::data];
  const std::int64_t alike = replicas(sizes, weights);
  const RankGrid grid{{ParallelAxis::tensor, stage / alike},
                      {ParallelAxis::data, alike},
                      {ParallelAxis::pipeline, sizes[ParallelAxis::pipeline]}};
  return group_along(grid, ParallelAxis::data, devices_per_node);
}

// Of the ranks that hold the same weights of a class, `size` that follow each other (inner), or those of the same place in
// each such part (outer).
constexpr Group part_of_replica_group(const AxisSizes& sizes, WeightClass weights, std::int64_t size,
                                      GroupPart part, std::int64_t devices_per_node) {
  const std::int64_t stage =
      sizes[ParallelAxis::tensor] * sizes[ParallelAxis::context] * sizes[ParallelAxis::data];
  const std::int64_t alike = replicas(sizes, weights);
  const RankGrid grid{{ParallelAxis::tensor, stage / alike},
                      {ParallelAxis::context, size},
                      {ParallelAxis::data, alike / size},
                      {ParallelAxis::pipeline, sizes[ParallelAxis::pipeline]}};
  return group_along(grid, part == GroupPart::inner ? ParallelAxis::context : ParallelAxis::data,
                     devices_per_node);
}

// The ranks of a pipeline rank that differ in their place on the axes of tensor and context parallelism, or on that of data
// parallelism too.
constexpr Group stage_group(const AxisSizes& sizes, bool with_data, std::int64_t devices_per_node) {
  const std::int64_t own = sizes[ParallelAxis::tensor] * sizes[ParallelAxis::context];
  const std::int64_t data = sizes[ParallelAxis::data];
  const RankGrid grid{{ParallelAxis::tensor, with_data ? own * data : own},
                      {ParallelAxis::data, with_data ? 1 : data},
                      {ParallelAxis::pipeline, sizes[ParallelAxis::pipeline]}};
  return group_along(grid, ParallelAxis::tensor, devices_per_node);
}

// The first and the last pipeline rank, which hold the same word embedding. Only they take part, so a node has no more
// of these groups than a pipeline rank has devices.
constexpr Group ends_group(const AxisSizes& sizes, std::int64_t devices_per_node) {
  const std::int64_t all = ranks(grid_of(sizes));
  const std::int64_t stage = all / sizes[ParallelAxis::pipeline];
  return {.ranks = sizes[ParallelAxis::pipeline] > 1 ? 2 : 1,
          .ranks_in_node = all <= devices_per_node ? 2 : 1,
          .rings_per_node = std::min(stage, devices_per_node),
          .nodes_apart = std::max<std::int64_t>(1, (all - stage) / devices_per_node),
          .nodes_spanned = 1 + (all - stage) / devices_per_node};
}

// A pipeline rank and the next one, from the last round to the first: in a node where every device shares one with its peer.
// All devices of a node that belong to the rank send at the same time.
constexpr Group pipeline_link(const AxisSizes& sizes, std::int64_t rank, std::int64_t devices_per_node) {
  const std::int64_t stage = ranks(grid_of(sizes)) / sizes[ParallelAxis::pipeline];
  const std::int64_t next = (rank + 1) % sizes[ParallelAxis::pipeline];
  bool in_node = stage < devices_per_node;
  for (std::int64_t device = 0; in_node && device < stage; ++device) {
    in_node = (rank * stage + device) / devices_per_node == (next * stage + device) / devices_per_node;
  }
  Group link{
      .ranks = 2, .ranks_in_node = in_node ? 2 : 1, .rings_per_node = std::min(stage, devices_per_node)};
  if (in_node) return link;
  link.nodes_apart = std::max<std::int64_t>(1, stage / devices_per_node);
  link.nodes_spanned = 1 + stage * (sizes[ParallelAxis::pipeline] - 1) / devices_per_node;  // by all stages
  return link;
}

// The groups of more than one rank that a device is in, by axis.
constexpr std::int64_t communicators(const AxisSizes& sizes) {
  std::int64_t count = 0;
  for (const AxisRow& row : parallel_axes) count += sizes[row.axis] > 1 ? 1 : 0;
  return count;
}

}  // namespace headroom
