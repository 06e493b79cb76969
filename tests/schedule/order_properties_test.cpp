// What every schedule must do, on shapes nobody drew.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/schedule/order.hpp"

namespace headroom {
namespace {

ScheduleShape any_order_shape() {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                      ScheduleKind::interleaved);
  const std::int64_t p = *rc::gen::inRange(1, 7);
  if (kind != ScheduleKind::interleaved) return {kind, p, 1, *rc::gen::inRange(1, 60)};
  return {kind, p, *rc::gen::inRange(1, 5), p * *rc::gen::inRange(1, 12)};
}

// What is alive on a rank around each step, chunk by chunk, without the microbatches' names.
using Moment = std::tuple<Pass, std::int64_t, std::vector<std::int64_t>>;

std::set<Moment> moments(const ScheduleShape& shape, std::int64_t rank) {
  std::vector<std::int64_t> alive(static_cast<std::size_t>(shape.chunks), 0);
  std::set<Moment> seen;
  for (const Step& step : steps_of_rank(shape, rank)) {
    auto& count = alive[static_cast<std::size_t>(step.chunk)];
    if (step.pass == Pass::forward) ++count;
    seen.insert({step.pass, step.chunk, alive});
    if (step.pass == Pass::backward) --count;
  }
  return seen;
}

}  // namespace

TEST_CASE("schedule: every rank runs every pass once, the backward after the forward") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_order_shape();
    const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, shape.ranks);
    std::set<std::pair<std::int64_t, std::int64_t>> forwards;
    std::set<std::pair<std::int64_t, std::int64_t>> backwards;
    for (const auto& [pass, microbatch, chunk] : steps_of_rank(shape, rank)) {
      RC_ASSERT(microbatch >= 0 && microbatch < shape.microbatches);
      RC_ASSERT(chunk >= 0 && chunk < shape.chunks);
      if (pass == Pass::forward) {
        RC_ASSERT(forwards.insert({microbatch, chunk}).second);
      } else {
        RC_ASSERT(forwards.contains({microbatch, chunk}));
        RC_ASSERT(backwards.insert({microbatch, chunk}).second);
      }
    }
    const auto passes = static_cast<std::size_t>(shape.microbatches * shape.chunks);
    RC_ASSERT(forwards.size() == passes);
    RC_ASSERT(backwards.size() == passes);
  }));
}

TEST_CASE("schedule: no rank waits for a pass that never comes") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_order_shape();
    const std::int64_t last = shape.ranks * shape.chunks - 1;
    std::vector<std::vector<Step>> orders;
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) orders.push_back(steps_of_rank(shape, rank));
    std::vector<std::size_t> next(orders.size(), 0);
    std::set<std::tuple<Pass, std::int64_t, std::int64_t>> done;  // pass, microbatch, stage

    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < orders.size(); ++rank) {
        while (next[rank] < orders[rank].size()) {
          const auto& [pass, microbatch, chunk] = orders[rank][next[rank]];
          const std::int64_t stage = stage_of(shape, static_cast<std::int64_t>(rank), chunk);
          const bool ready = pass == Pass::forward
                                 ? stage == 0 || done.contains({pass, microbatch, stage - 1})
                                 : stage == last || done.contains({pass, microbatch, stage + 1});
          if (!ready) break;
          done.insert({pass, microbatch, stage});
          ++next[rank];
          progress = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < orders.size(); ++rank) RC_ASSERT(next[rank] == orders[rank].size());
  }));
}

TEST_CASE("schedule: cut down, it shows every rank the same live chunks at the same steps") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_order_shape();
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      RC_ASSERT(moments(shape, rank) == moments(same_liveness(shape), rank));
    }
  }));
}

TEST_CASE("schedule: chunks in flight") {
  CHECK(rc::check([] {
    const ScheduleShape shape = any_order_shape();
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      const std::int64_t after = shape.ranks - 1 - rank;
      const std::int64_t passes = shape.microbatches * shape.chunks;
      const std::map<ScheduleKind, std::int64_t> most{
          {ScheduleKind::gpipe, passes},
          {ScheduleKind::one_forward_one_backward, std::min(passes, after + 1)},
          {ScheduleKind::interleaved, std::min(passes, 2 * after + (shape.chunks - 1) * shape.ranks + 1)}};
      RC_ASSERT(chunks_in_flight(shape, rank) == most.at(shape.kind));
    }
  }));
}

}  // namespace headroom
