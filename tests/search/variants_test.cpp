#include "headroom/search/variants.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/plan/composer.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

// Every strategy that fits, priced one by one.
std::vector<Candidate> all_that_fit(const Request& request, const Space& space) {
  std::vector<Candidate> candidates;
  Composer composer(request);
  for (const Strategy& strategy : strategies(request, space)) {
    const Layout layout = composer.layout(strategy);
    const RankPeak peak = layout.peak(strategy);
    if (peak.bytes > request.system.memory) continue;
    candidates.push_back({.strategy = strategy,
                          .verdict = verdict_of(request, peak.bytes),
                          .peak = peak.bytes,
                          .iteration = layout.iteration(strategy)});
  }
  return candidates;
}

using Point = std::tuple<Seconds, Bytes, std::int64_t>;
Point point_of(const Candidate& candidate) {
  return {candidate.iteration, candidate.peak, devices(candidate.strategy)};
}

Compared counts_of(const Request& request, const Space& space, std::vector<std::int64_t> counts) {
  return {.offers = {{.system = request.system, .software = request.software, .layouts = space.layouts}},
          .device_counts = std::move(counts),
          .global_batches = {request.workload.global_batch}};
}

bool dominates(const Candidate& x, const Candidate& y) {
  return x.iteration <= y.iteration && x.peak <= y.peak && devices(x.strategy) <= devices(y.strategy);
}

TEST_CASE("variants: the best of each global batch, by the time of a sequence") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    Compared compared = counts_of(request, space, {space.devices});
    compared.global_batches = {4, 6, 7, 8, 12};
    const std::vector<Variant> variants = variants_of(compared);
    const SearchResult found = search_variants(request, space, compared, {.threads = 2});
    std::size_t with_plan = 0;
    std::int64_t feasible = 0;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      Request one = request;
      one.workload.global_batch = compared.global_batches[i];
      const SearchResult alone = search(one, space);
      feasible += alone.feasible;
      if (alone.plans.empty()) continue;
      ++with_plan;
      const auto plan = std::find_if(found.plans.begin(), found.plans.end(),
                                     [&](const Candidate& candidate) { return candidate.variant == i; });
      RC_ASSERT(plan != found.plans.end());
      RC_ASSERT(plan->strategy == alone.plans.front().strategy);
      RC_ASSERT(plan->iteration == alone.plans.front().iteration);
    }
    RC_ASSERT(found.plans.size() == with_plan);
    RC_ASSERT(found.feasible == feasible);
    for (std::size_t i = 1; i < found.plans.size(); ++i) {
      const Candidate& x = found.plans[i - 1];
      const Candidate& y = found.plans[i];
      RC_ASSERT(x.verdict <= y.verdict);
      if (x.verdict == y.verdict) {
        RC_ASSERT(seconds_per_sequence(x, variants[x.variant]) <=
                  seconds_per_sequence(y, variants[y.variant]));
      }
    }
  }));
}

TEST_CASE(
    "variants: a cheaper system stays on the front though it is slower, a dearer one that is slower does "
    "not") {
  Request request{.model = read_model("gpt2-xl"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 16, .sequence = 1024};
  const auto on_front = [&](double a100_price) {
    const Offer h100{.system = read_system("dgx-h100-80g"), .price_per_device_hour = 4};
    const Offer a100{.system = request.system, .price_per_device_hour = a100_price};
    const SearchResult found =
        search_variants(request, {}, {.offers = {h100, a100}, .device_counts = {8}, .global_batches = {16}});
    CHECK(found.plans.size() == 2);
    CHECK(found.plans[0].variant == 0);
    return std::any_of(found.pareto.begin(), found.pareto.end(),
                       [](const Candidate& candidate) { return candidate.variant == 1; });
  };
  CHECK(on_front(0.5));
  CHECK(!on_front(8));
}

TEST_CASE(
    "variants: of device counts, the front is that of trying everything, and the plans are the best of each "
    "count") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    const std::vector<std::int64_t> counts{2, 4, 8, 12};
    const SearchResult found = search_variants(request, space, counts_of(request, space, counts));
    std::vector<Candidate> all;
    using Merit = std::pair<Verdict, Point>;
    const auto merit_of = [](const Candidate& candidate) {
      return Merit{candidate.verdict, point_of(candidate)};
    };
    std::vector<Merit> best;
    for (const std::int64_t count : counts) {
      Space part = space;
      part.devices = count;
      const std::vector<Candidate> those = all_that_fit(request, part);
      all.insert(all.end(), those.begin(), those.end());
      if (those.empty()) continue;
      std::vector<Merit> merits;
      for (const Candidate& candidate : those) merits.push_back(merit_of(candidate));
      best.push_back(*std::min_element(merits.begin(), merits.end()));
    }
    RC_ASSERT(found.feasible == std::ssize(all));
    std::sort(best.begin(), best.end());
    RC_ASSERT(found.plans.size() == best.size());
    for (std::size_t i = 0; i < best.size(); ++i) RC_ASSERT(merit_of(found.plans[i]) == best[i]);

    std::vector<Point> front;
    for (const Candidate& candidate : all) {
      const bool beaten = std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
        return dominates(other, candidate) && point_of(other) != point_of(candidate);
      });
      if (!beaten) front.push_back(point_of(candidate));
    }
    std::sort(front.begin(), front.end());
    front.erase(std::unique(front.begin(), front.end()), front.end());
    RC_ASSERT(found.pareto.size() == front.size());
    for (std::size_t i = 0; i < front.size(); ++i) RC_ASSERT(point_of(found.pareto[i]) == front[i]);
  }));
}

TEST_CASE("variants: one count is searched as such") {
  Request request{.model = read_model("gpt2-xl"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 16, .sequence = 1024};
  const Space open;
  const SearchResult found = search_variants(request, {}, counts_of(request, open, {8}));
  const SearchResult alone = search(request, {.devices = 8});
  CHECK(found.plans.front() == alone.plans.front());
  CHECK(found.pareto == alone.pareto);
  CHECK(found.evaluated == alone.evaluated);
}

}  // namespace
TEST_CASE("variants: each stack brings its attention kernel where the model states none") {
  const Request request{.model = read_model("gpt3-175b"), .system = read_system("dgx-h100-80g")};
  Offer old{.system = request.system};
  Offer recent = old;
  recent.software.attention_kernel = AttentionKernel::flash;
  const Compared both{.offers = {old, recent}, .device_counts = {64}, .global_batches = {64}};
  const auto attention = [&](const Request& base, std::size_t offer) {
    return request_of(base, both, {offer, 64, 64}).model.architecture.kernels.attention;
  };
  CHECK(attention(request, 0) == AttentionKernel::unfused);
  CHECK(attention(request, 1) == AttentionKernel::flash);
  CHECK(attention(request_of(request, both, {1, 64, 64}), 0) == AttentionKernel::unfused);
}

}  // namespace headroom
