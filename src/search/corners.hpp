// Points in four dimensions, searched for one that exceeds a limit in none of them. Points with similar times
// form blocks; each block has the minimum of its points, so most blocks are skipped as a whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "headroom/core/units.hpp"

namespace headroom {

struct Corner {
  Bytes kept;
  Bytes recomputed;
  Seconds time;
  Seconds host;
};

inline bool within(const Corner& x, const Corner& y) {
  return x.kept <= y.kept && x.recomputed <= y.recomputed && x.time <= y.time && x.host <= y.host;
}

class Corners {
 public:
  void clear() { blocks_.clear(); }

  // Inserts a point; any_within() passes `name` to its predicate.
  void insert(const Corner& corner, std::size_t name) {
    if (blocks_.empty()) blocks_.push_back({.least = corner, .points = {}});
    // The last block that begins no later, or else the first one.
    auto block = std::upper_bound(blocks_.begin(), blocks_.end(), corner.time,
                                  [](Seconds time, const Block& it) { return time < it.least.time; });
    if (block != blocks_.begin()) --block;
    block->least = {.kept = std::min(block->least.kept, corner.kept),
                    .recomputed = std::min(block->least.recomputed, corner.recomputed),
                    .time = std::min(block->least.time, corner.time),
                    .host = std::min(block->least.host, corner.host)};
    block->points.push_back({corner, name});
    if (block->points.size() > most_points) split(block);
  }

  // Returns whether `holds(name)` for some point within the limit.
  template <class Holds>
  [[nodiscard]] bool any_within(const Corner& limit, Holds holds) const {
    for (const Block& block : blocks_) {
      if (block.least.time > limit.time) return false;
      if (!within(block.least, limit)) continue;
      for (const Point& point : block.points) {
        if (within(point.corner, limit) && holds(point.name)) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t most_points = 128;

  struct Point {
    Corner corner;
    std::size_t name = 0;
  };
  struct Block {
    Corner least;
    std::vector<Point> points;
  };

  static Corner least_of(const std::vector<Point>& points) {
    Corner least = points.front().corner;
    for (const auto& [corner, name] : points) {
      least = {.kept = std::min(least.kept, corner.kept),
               .recomputed = std::min(least.recomputed, corner.recomputed),
               .time = std::min(least.time, corner.time),
               .host = std::min(least.host, corner.host)};
    }
    return least;
  }

  void split(std::vector<Block>::iterator block) {
    std::vector<Point>& points = block->points;
    std::sort(points.begin(), points.end(),
              [](const Point& x, const Point& y) { return x.corner.time < y.corner.time; });
    const auto middle = points.begin() + static_cast<std::ptrdiff_t>(points.size() / 2);
    Block later{.least = {}, .points = {middle, points.end()}};
    points.erase(middle, points.end());
    block->least = least_of(points);
    later.least = least_of(later.points);
    blocks_.insert(block + 1, std::move(later));
  }

  std::vector<Block> blocks_;  // in the order of their first times
};

}  // namespace headroom
