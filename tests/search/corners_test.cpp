// What blocks say of points against looking at every point.
#include "search/corners.hpp"

#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace headroom {

TEST_CASE("corners: some point is within a limit where looking at all of them finds one") {
  CHECK(rc::check([] {
    // So few values that many points are alike in some of them, and enough points to split blocks.
    std::mt19937 random(*rc::gen::arbitrary<unsigned>());
    std::uniform_int_distribution<int> value(0, 40);
    const auto corner = [&] {
      return Corner{.kept = Bytes(value(random)),
                    .recomputed = Bytes(value(random)),
                    .time = Seconds(value(random)),
                    .host = Seconds(value(random))};
    };
    Corners corners;
    std::vector<Corner> all;
    const int points = *rc::gen::inRange(0, 600);
    for (int i = 0; i < points; ++i) {
      const Corner limit = corner();
      const std::size_t first = all.size() / 2;  // that holds
      bool found = false;
      for (std::size_t j = first; j < all.size(); ++j) found = found || within(all[j], limit);
      RC_ASSERT(corners.any_within(limit, [&](std::size_t name) { return name >= first; }) == found);
      all.push_back(corner());
      corners.insert(all.back(), all.size() - 1);
    }
    corners.clear();
    RC_ASSERT_FALSE(corners.any_within(corner(), [](std::size_t) { return true; }));
  }));
}

}  // namespace headroom
