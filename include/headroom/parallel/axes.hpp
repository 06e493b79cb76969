// The number of ranks along each axis, the groups that ranks form, and how groups lie over the nodes.
//
// A GPU is numbered by its place on every axis; the first axis of a grid varies fastest. A grid determines
// all groups, the communicators that take GPU memory, and the ranks that hold the same weights.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <numeric>

#include "headroom/core/axis.hpp"
#include "headroom/core/fixed_vector.hpp"

namespace headroom {

// Number of ranks along each axis; 1 if an axis is not used.
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

// The axes that number the GPUs of a run, fastest first. ParallelAxis::data counts the replicas of a class of
// weights.
using RankGrid = FixedVector<AxisExtent, axis_count>;

constexpr std::int64_t ranks(const RankGrid& grid) {
  std::int64_t product = 1;
  for (const AxisExtent& extent : grid) product *= extent.size;
  return product;
}

// Returns the grid for dense weights or for expert weights. Both have the same GPUs in every pipeline rank.
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

// Size of a group, and how its ranks lie over the nodes.
struct Group {
  std::int64_t ranks = 1;
  std::int64_t ranks_in_node = 1;   // ranks of the group in one node
  std::int64_t rings_per_node = 1;  // such groups that communicate out of a node at the same time
  std::int64_t nodes_apart = 1;     // distance in nodes between neighbours in different nodes
  std::int64_t nodes_spanned = 1;   // nodes from its first to its last, inclusive
  friend auto operator<=>(const Group&, const Group&) = default;
};

// Returns the group of the ranks that differ only in their place on one axis. If a group's span of GPUs does
// not divide a node, some group straddles two nodes; its smallest part in a node counts.
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

// The groups of a rank, one along each axis. The group along ParallelAxis::data is that of dense weights. If
// `context_inner` splits the context-parallel group into parts, there are two more groups: the rank's part,
// and the ranks at the same place of every part.
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
  // Returns the context-parallel group or one of its parts.
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

// Returns the number of ranks that hold the same weights of a class and sum their gradients. For dense
// weights these are the ranks that split the batch (DP) or a sequence (CP).
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

// Returns a part of the ranks that hold the same weights of a class. inner: `size` consecutive ranks. outer:
// the ranks at the same place in each of these parts.
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

// Returns the group of all TP x CP ranks of a pipeline rank, or with `with_data` of all its TP x CP x DP
// ranks.
constexpr Group stage_group(const AxisSizes& sizes, bool with_data, std::int64_t devices_per_node) {
  const std::int64_t own = sizes[ParallelAxis::tensor] * sizes[ParallelAxis::context];
  const std::int64_t data = sizes[ParallelAxis::data];
  const RankGrid grid{{ParallelAxis::tensor, with_data ? own * data : own},
                      {ParallelAxis::data, with_data ? 1 : data},
                      {ParallelAxis::pipeline, sizes[ParallelAxis::pipeline]}};
  return group_along(grid, ParallelAxis::tensor, devices_per_node);
}

// Returns the group of the first and the last pipeline rank, which hold the same word embedding. Only they
// take part, so a node has at most as many of these groups as a pipeline rank has GPUs.
constexpr Group ends_group(const AxisSizes& sizes, std::int64_t devices_per_node) {
  const std::int64_t all = ranks(grid_of(sizes));
  const std::int64_t stage = all / sizes[ParallelAxis::pipeline];
  return {.ranks = sizes[ParallelAxis::pipeline] > 1 ? 2 : 1,
          .ranks_in_node = all <= devices_per_node ? 2 : 1,
          .rings_per_node = std::min(stage, devices_per_node),
          .nodes_apart = std::max<std::int64_t>(1, (all - stage) / devices_per_node),
          .nodes_spanned = 1 + (all - stage) / devices_per_node};
}

// Returns the link from a pipeline rank to the next one; the last rank links to the first. The link is inside
// a node if every GPU shares a node with its peer. All GPUs of a node that belong to the rank send at the
// same time.
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
  link.nodes_spanned = 1 + stage * (sizes[ParallelAxis::pipeline] - 1) / devices_per_node;  // all stages
  return link;
}

// Returns the number of axes along which a GPU is in a group of more than one rank.
constexpr std::int64_t communicators(const AxisSizes& sizes) {
  std::int64_t count = 0;
  for (const AxisRow& row : parallel_axes) count += sizes[row.axis] > 1 ? 1 : 0;
  return count;
}

}  // namespace headroom
