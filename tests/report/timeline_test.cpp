// The timeline as a user sees it.
#include "headroom/report/timeline.hpp"

#include <algorithm>

#include <doctest/doctest.h>

namespace headroom {
namespace {

std::string drawn(const ScheduleShape& shape, const ScheduleTimes& times, const TimelineSize& size) {
  std::vector<ReplayedStep> steps;
  const auto replay = replay_schedule(shape, times, [&](const ReplayedStep& step) { steps.push_back(step); });
  return timeline(steps, shape.ranks, replay.makespan, size);
}

}  // namespace

TEST_CASE("timeline: 1F1B on three ranks with recomputation and transfers") {
  // A column a second.
  const std::vector<PassTimes> stages(3, {Seconds(2), Seconds(1), Seconds(4)});
  CHECK("\n" + drawn({.ranks = 3, .microbatches = 4},
                     {.stages = stages, .links = {Seconds(1), Seconds(1), {}}}, {.columns = 58}) ==
        R"(
rank 0 00>11>22>...........~aaaa33>.~bbbb....~cccc...~dddd
rank 1 ...00>11>.....~aaaa>22>~bbbb>33>~cccc>..~dddd>.....
rank 2 ......00~aaaa>11~bbbb>.22~cccc>.33~dddd>...........
0-9 forward and a-j backward of microbatch 0-9, 10-19 and so on; ~ recompute, > transfer, . idle; the pipeline takes 51.00 s
)");
}

TEST_CASE("timeline: of many ranks the first, the last and some between, in a hundred columns") {
  const std::vector<PassTimes> stages(64, {Seconds(0.001), Seconds(0), Seconds(0.002)});
  const std::string text = drawn({.ranks = 64, .microbatches = 20}, {.stages = stages}, {});
  CHECK(std::count(text.begin(), text.end(), '\n') == 17);
  CHECK(text.starts_with("rank 0  "));
  CHECK(text.find("\nrank 63 ") != std::string::npos);
  CHECK(text.find('\n') == 100);
}

TEST_CASE("timeline: with more passes than columns, how busy each rank is") {
  // The others wait half of the time for the second rank.
  std::vector<PassTimes> stages(3, {Seconds(4), Seconds(2), Seconds(4)});
  stages[1] = {Seconds(8), Seconds(4), Seconds(8)};
  CHECK("\n" + drawn({.ranks = 3, .microbatches = 40}, {.stages = stages}, {.columns = 50}) == R"(
rank 0 *-+++++++++++++++++++++++++++++++++++++++-*
rank 1 *#########################################*
rank 2 -*++++++++++++++++++++++++++++++++++++++++.
time a rank computes, by quarters of a column: # all, * + - less, . none; the pipeline takes 812.00 s
)");
}

}  // namespace headroom
