// The choice among strategies that predictions cannot tell apart.
#include "headroom/search/choice.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "headroom/io/spreads_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/search/drawbacks.hpp"
#include "search/stack_search.hpp"

namespace headroom {
namespace {

const SharedErrors& shipped_errors() { return embedded_spreads().shared; }

TimeBelief belief_among(const std::vector<Candidate>& candidates) {
  return believed(candidates, {.logarithm = 0.1, .source = {}}, shipped_errors());
}

std::vector<std::string_view> drawback_names(const std::vector<const Drawback*>& drawbacks) {
  std::vector<std::string_view> names;
  for (const Drawback* const it : drawbacks) names.push_back(it->name);
  return names;
}

// An uneven layout, and an even one that takes longer by this part.
std::vector<Candidate> uneven_and_even(double longer) {
  Candidate uneven{.strategy = {.pipeline_parallel = 4, .virtual_pipeline = 1}, .iteration = Seconds(10)};
  uneven.strategy.stage_layers = {19, 21, 21, 19};
  Candidate even{.strategy = {.pipeline_parallel = 4, .virtual_pipeline = 2},
                 .iteration = Seconds(10 * (1 + longer))};
  even.strategy.schedule = ScheduleKind::interleaved;
  return {uneven, even};
}

}  // namespace

TEST_CASE("choice: an even layout unless an uneven one gains what it costs") {
  const auto base = searched("llama-3-70b", "dgx-h100-80g", "megatron-core-2025", 64, 64).base;
  for (const auto& [longer, first] : {std::pair(0.002, 1U), std::pair(0.02, 1U), std::pair(0.03, 0U)}) {
    const std::vector<Candidate> candidates = uneven_and_even(longer);
    const Ranking chosen = ranked(base, candidates, belief_among(candidates));
    CHECK(chosen.fastest == 0);
    CHECK(chosen.order.front() == first);
    CHECK(chosen.equal[0]);
  }
  const std::vector<Candidate> candidates = uneven_and_even(0.002);
  CHECK(ranked(base, candidates, belief_among(candidates), RankedBy::time).order.front() == 0);
  // What lies beyond the noise is not preferred, whatever it does without.
  std::vector<Candidate> far = uneven_and_even(0.2);
  CHECK(ranked(base, far, belief_among(far)).equal == std::vector<bool>{true, false});
  CHECK(ranked(base, far, belief_among(far)).order.front() == 0);
}

TEST_CASE("drawbacks: named, and each has its price") {
  auto request = searched("mixtral-8x7b", "dgx-h100-80g", "megatron-core-2025", 64, 64).base;
  const auto named = [&](const Strategy& strategy, Bytes peak = Bytes(1)) {
    return drawback_names(drawbacks_of(request, {.strategy = strategy, .peak = peak}));
  };
  CHECK(named({}).empty());
  CHECK(named({}, 0.95 * request.system.memory) == std::vector<std::string_view>{"full_memory"});
  CHECK(named({.tensor_parallel = 16}) ==
        std::vector<std::string_view>{"tensor_parallel", "tensor_between_nodes"});
  CHECK(named({.tensor_parallel = 4, .context_parallel = 4}) ==
        std::vector<std::string_view>{"tensor_parallel", "context_parallel", "context_between_nodes"});
  CHECK(named({.expert_parallel = 16, .expert_tensor_parallel = 2}) ==
        std::vector<std::string_view>{"expert_parallel", "expert_tensor_parallel", "expert_between_nodes"});
  CHECK(named({.recompute = {.policy = RecomputePolicy::full, .layers = 2}}) ==
        std::vector<std::string_view>{"recompute", "recompute_parts"});
  CHECK(named({.shard_size = 8}) == std::vector<std::string_view>{"shard_size"});
  const Candidate both{.strategy = {.tensor_parallel = 2, .pipeline_parallel = 2}, .peak = Bytes(1)};
  CHECK(price_of(drawbacks_of(request, both)) == doctest::Approx(0.01));
}

TEST_CASE(
    "simplified: legal, fits as well, equal within noise, and cheaper once drawbacks have their price") {
  int simpler = 0;
  for (const auto& it : {searched("gpt-22b", "dgx-a100-80g", "megatron-core-2025", 8, 16),
                         searched("llama-2-13b", "dgx-h100-80g", "megatron-core-2025", 16, 32),
                         searched("mixtral-8x7b", "dgx-h100-80g", "megatron-core-2025", 16, 32)}) {
    Space space = it.space;
    space.breadth = Breadth::wide;
    const SearchResult result = search(it.base, space);
    REQUIRE_FALSE(result.plans.empty());
    for (std::size_t i = 0; i < std::min<std::size_t>(3, result.plans.size()); ++i) {
      const Candidate& from = result.plans[i];
      const Candidate to = simplified(it.base, space, from, shipped_errors());
      if (to.strategy == from.strategy) continue;
      ++simpler;
      Request request = it.base;
      request.strategy = to.strategy;
      const Evaluation evaluation = evaluate(request);  // throws if it is not legal
      CHECK(settled_verdict(evaluation) <= from.verdict);
      CHECK(account(evaluation).timing->iteration.total == to.iteration);
      CHECK(std::log(to.iteration / from.iteration) <=
            normal_quantile(interval_level) *
                deviation_between(from.strategy, to.strategy, shipped_errors()));
      const auto priced = [&](const Candidate& one) {
        return (1 + price_of(drawbacks_of(it.base, one))) * one.iteration.count();
      };
      CHECK(priced(to) < priced(from));
    }
  }
  CHECK(simpler > 0);
}

}  // namespace headroom
