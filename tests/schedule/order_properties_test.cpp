// What every schedule must do, on shapes nobody drew.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/hardware/software.hpp"
#include "headroom/parallel/legality.hpp"
#include "schedule/any_schedule.hpp"

namespace headroom {
namespace {

ScheduleShape any_order_shape() {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                      ScheduleKind::interleaved);
  const std::int64_t p = *rc::gen::inRange(1, 7);
  if (kind != ScheduleKind::interleaved) return {kind, p, 1, *rc::gen::inRange(1, 60)};
  if (*rc::gen::arbitrary<bool>()) return tests::any_in_groups(p, 14 * p);
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
    for (const Step& step : steps_of_rank(shape, rank)) {
      const std::int64_t microbatch = step.microbatch;
      const std::int64_t chunk = step.chunk;
      RC_ASSERT(microbatch >= 0 && microbatch < shape.microbatches);
      RC_ASSERT(chunk >= 0 && chunk < shape.chunks);
      if (step.pass == Pass::forward) {
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
          const Step& step = orders[rank][next[rank]];
          const Pass pass = step.pass;
          const std::int64_t microbatch = step.microbatch;
          const std::int64_t stage = stage_of(shape, static_cast<std::int64_t>(rank), step.chunk);
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
          {ScheduleKind::interleaved,
           std::min(passes, 2 * after + (shape.chunks - 1) * group_size(shape) + 1)}};
      RC_ASSERT(chunks_in_flight(shape, rank) == most.at(shape.kind));
    }
  }));
}

TEST_CASE("schedule: groups of microbatches are at least as many as the ranks, and so is the last of them") {
  const Transformer model{.hidden = 1024,
                          .feedforward = 4096,
                          .heads = 16,
                          .key_value_heads = 16,
                          .head_size = 64,
                          .layers = 24,
                          .vocabulary = 51200,
                          .sequence = 2048,
                          .max_positions = 2048};
  const auto broken = [&](std::int64_t size, std::int64_t sequences) {
    Strategy strategy{.pipeline_parallel = 4,
                      .virtual_pipeline = 2,
                      .schedule = ScheduleKind::interleaved,
                      .microbatch_group_size = size};
    return illegalities(model, strategy, {.global_batch = sequences, .sequence = 2048}, {});
  };
  CHECK(broken(4, 8).empty());
  CHECK(broken(5, 9).empty());   // 5 and 4
  CHECK(broken(9, 9).empty());   // all together
  CHECK(broken(6, 16).empty());  // 6, 6 and 4
  CHECK(broken(6, 9) ==
        std::vector<Problem>{{"microbatch_group_size",
                              "must be between `pipeline_parallel` and the 9 microbatches, and leave 0 or at "
                              "least 4 microbatches for the last group, not 3 (6 per group)"}});
  CHECK(broken(3, 9).size() == 1);
  CHECK(broken(10, 9).size() == 1);
  const Strategy alone{.pipeline_parallel = 4, .microbatch_group_size = 4};
  CHECK(illegalities(model, alone, {.global_batch = 8, .sequence = 2048}, {}) ==
        std::vector<Problem>{{"microbatch_group_size", "needs `schedule` interleaved"}});
}

TEST_CASE("schedule: the smallest group of microbatches is the first that is legal") {
  for (std::int64_t p = 1; p <= 12; ++p) {
    for (std::int64_t n = 1; n <= 60; ++n) {
      const std::int64_t least = least_group_size(p, n);
      CHECK((least == 0) == (n < p));
      CHECK((least == p) == (n % p == 0));
      CHECK((least == 0 || is_group_size(least, p, n)));
      for (std::int64_t size = 1; size < least; ++size) CHECK_FALSE(is_group_size(size, p, n));
    }
  }
}

}  // namespace headroom
