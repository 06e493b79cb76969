// Replays that skip what repeats, against replays of every pass.
#include "plan/allocator_replay.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "plan/replayed_requests.hpp"

namespace headroom {
namespace {

TEST_CASE("allocator replay: skipped periods and iterations change no answer") {
  int replays = 0;
  int skipping = 0;
  CHECK(rc::check([&] {
    const Request request = any_replayed_request();
    if (!illegalities(request, request.strategy).empty()) return;
    const Evaluation evaluation = evaluate(request);
    const Plan& plan = account(evaluation);
    const ReplayedRanks ranks = replayed_ranks(plan);
    const auto rank = *rc::gen::inRange<std::int64_t>(0, request.strategy.pipeline_parallel);
    const Bytes limit = *rc::gen::element(0.9, 1.0, 1.05) * peak(plan);
    for (const CachingAllocator& allocator :
         {CachingAllocator(false), CachingAllocator(true), CachingAllocator(limit)}) {
      const auto all = replay(ranks, rank, allocator, Repeats::replayed);
      const auto some = replay(ranks, rank, allocator, Repeats::skipped);
      RC_ASSERT(all.has_value() == some.has_value());
      if (!all) continue;
      ++replays;
      RC_ASSERT(some->allocator.out_of_memory() == all->allocator.out_of_memory());
      if (all->allocator.out_of_memory()) continue;
      RC_ASSERT(some->allocator.reserved() == all->allocator.reserved());
      RC_ASSERT(some->allocator.most_allocated() == all->allocator.most_allocated());
      RC_ASSERT(some->passes <= all->passes);
      skipping += some->passes < all->passes ? 1 : 0;
    }
  }));
  CHECK(replays > 50);
  CHECK(skipping > 20);
}

}  // namespace
}  // namespace headroom
