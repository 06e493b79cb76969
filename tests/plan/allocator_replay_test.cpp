// Replays that skip what repeats, against replays of every pass.
#include "plan/allocator_replay.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom {
namespace {

Strategy any_replayed_strategy(const Request& request) {
  const auto size = [] { return *rc::gen::element<std::int64_t>(1, 2, 4); };
  Strategy strategy{.tensor_parallel = size(),
                    .pipeline_parallel = size(),
                    .virtual_pipeline = *rc::gen::element<std::int64_t>(1, 1, 2, 3),
                    .data_parallel = *rc::gen::element<std::int64_t>(1, 2, 4)};
  strategy.sequence_parallel = strategy.tensor_parallel > 1;
  if (any_experts(request.model)) {
    strategy.expert_parallel = *rc::gen::element<std::int64_t>(1, 2, 4);
    strategy.overlap_expert_all_to_all = strategy.expert_parallel > 1 && *rc::gen::arbitrary<bool>();
  }
  strategy.data_sharding = *rc::gen::elementOf(request.software.sharding.modes);
  strategy.recompute.policy = *rc::gen::elementOf(request.software.recompute);
  if (strategy.virtual_pipeline > 1) {
    strategy.schedule = ScheduleKind::interleaved;
    strategy.microbatch_group_size = *rc::gen::element<std::int64_t>(0, 0, 3, 5);
  }
  return strategy;
}

Request any_replayed_request() {
  const char* const model = *rc::gen::element("gpt-22b", "llama-3-8b", "mixtral-8x7b", "deepseek-v2-lite");
  const char* const software = *rc::gen::element("megatron-core-2025", "torchtitan-2025", "megatron-2022");
  const Transformer of = with_layers(read_model(model), *rc::gen::inRange<std::int64_t>(4, 13));
  Request request{.model = of,
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software(software),
                  .strategy = {},
                  .workload = {.global_batch = *rc::gen::element<std::int64_t>(8, 24, 40, 60, 256),
                               .sequence = *rc::gen::element<std::int64_t>(1024, 4096)}};
  request.strategy = any_replayed_strategy(request);
  return request;
}

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
