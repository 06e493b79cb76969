// The points of a grid, their order and their count.
#include "headroom/answer/grid.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/core/error.hpp"

namespace headroom {
namespace {

using Texts = std::vector<std::string>;

std::vector<Texts> points(const Grid& grid) {
  std::vector<Texts> all;
  for (std::int64_t i = 0; i < point_count(grid); ++i) all.push_back(point_of(grid, i));
  return all;
}

std::vector<Problem> problems(const Texts& varied, const Texts& zipped) {
  try {
    read_grid(varied, zipped);
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

TEST_CASE("the last field moves fastest") {
  const Grid grid = read_grid({"a=1,2", "b=x,y,z"}, {});
  CHECK(fields_of(grid) == Texts{"a", "b"});
  CHECK(points(grid) ==
        std::vector<Texts>{{"1", "x"}, {"1", "y"}, {"1", "z"}, {"2", "x"}, {"2", "y"}, {"2", "z"}});
}

TEST_CASE("zipped fields move together where the first of them stands") {
  const Grid grid = read_grid({"c=7,8", "a=1,2", "d=0", "b=x,y"}, {"b,a"});
  CHECK(fields_of(grid) == Texts{"c", "b", "a", "d"});
  CHECK(points(grid) ==
        std::vector<Texts>{
            {"7", "x", "1", "0"}, {"7", "y", "2", "0"}, {"8", "x", "1", "0"}, {"8", "y", "2", "0"}});
}

TEST_CASE("without fields there is one point") { CHECK(points(read_grid({}, {})) == std::vector<Texts>{{}}); }

TEST_CASE("a value may hold an equals sign") {
  CHECK(points(read_grid({"model=a=b.json"}, {})) == std::vector<Texts>{{"a=b.json"}});
}

TEST_CASE("mistakes are named all at once") {
  CHECK(problems({"sequence", "=1", "a=1", "a=2", "b=1:2:x1"}, {}) ==
        std::vector<Problem>{{"vary", "must be FIELD=VALUES, such as sequence=1024:65536:x2, not 'sequence'"},
                             {"vary", "must be FIELD=VALUES, such as sequence=1024:65536:x2, not '=1'"},
                             {"vary a", "is given twice"},
                             {"vary b", "the range must have a factor above one, not '1:2:x1'"}});
  CHECK(problems({"devices=1", "b=1,2"}, {"device,b"}) ==
        std::vector<Problem>{
            {"zip device,b", "must name fields that are varied, not 'device' (did you mean 'devices'?)"}});
  CHECK(problems({"a=1,2,3", "b=1,2"}, {"a,b"}) ==
        std::vector<Problem>{
            {"zip a,b", "must name fields with as many values as each other: a has 3, b has 2"}});
  CHECK(problems({"a=1", "b=1", "c=1"}, {"a,b", "b,c"}) ==
        std::vector<Problem>{{"zip b,c", "names b again"}});
  CHECK(problems({"a=1"}, {"a,a"}) == std::vector<Problem>{{"zip a,a", "names a again"}});
  CHECK(problems({"a=1"}, {""}).size() == 1);
}

TEST_CASE("too many points are refused") {
  const Grid most = read_grid({"a=1:1000000:1", "b=1:1000:1"}, {});
  CHECK(point_count(most) == most_points);
  CHECK(point_of(most, most_points - 1) == Texts{"1000000", "1000"});
  CHECK(problems({"a=1:1000000:1", "b=1:1000000:1"}, {}) ==
        std::vector<Problem>{{"vary", "must make at most 1000000000 points"}});
  CHECK(problems({"a=1:1000000:1", "b=1:1000000:1", "c=1:1000000:1", "d=1:1000000:1"}, {}).size() == 1);
}

TEST_CASE("a point is the digits of its number in the grid's mixed base") {
  rc::check("points", [] {
    const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 6));
    RC_PRE(sizes.size() <= 5);
    Texts varied;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      varied.push_back("f" + std::to_string(i) + "=0:" + std::to_string(sizes[i] - 1) + ":1");
    }
    const Grid grid = read_grid(varied, {});
    std::int64_t number = 0;
    for (const Texts& point : points(grid)) {
      std::int64_t read_back = 0;
      for (std::size_t i = 0; i < sizes.size(); ++i) read_back = read_back * sizes[i] + std::stoll(point[i]);
      RC_ASSERT(read_back == number++);
    }
    RC_ASSERT(number == point_count(grid));
  });
}

}  // namespace
}  // namespace headroom
