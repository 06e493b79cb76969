// Mixes of two sets in a virtual stage against every order of them, for sets that nobody chose: small whole numbers, so
// that sums are exact.
#include "headroom/search/stage_mixes.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/memory/step.hpp"

namespace headroom {
namespace {

std::int64_t between(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }
double number(std::int64_t low, std::int64_t high) { return static_cast<double>(between(low, high)); }

Seconds any_host() { return Seconds(number(0, 9)); }

std::vector<LayerChoice> any_choices() {
  std::vector<LayerChoice> choices{
      {.ops = 0, .bytes = {.kept = Bytes(number(5, 20)), .recomputed = {}}, .recompute = {}}};
  const std::int64_t count = between(1, 5);
  for (std::int64_t i = 1; i <= count; ++i) {
    choices.push_back({.ops = static_cast<std::uint64_t>(i),
                       .bytes = {.kept = Bytes(number(1, 20)), .recomputed = Bytes(number(0, 30))},
                       .recompute = {.memory_bound = Seconds(number(1, 20)), .host = any_host()}});
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& x, const auto& y) { return x.bytes.kept > y.bytes.kept; });
  return choices;
}

// Every chunk of so many layers of which each recomputes one of two sets.
void visit_orders(const std::vector<LayerChoice>& choices, std::int64_t layers, const auto& visit) {
  for (const LayerChoice& one : choices) {
    for (const LayerChoice& other : choices) {
      for (std::uint32_t bits = 0; bits < std::uint32_t{1} << layers; ++bits) {
        std::vector<LayerChoice> order;
        for (std::int64_t i = 0; i < layers; ++i) order.push_back((bits >> i & 1) != 0 ? one : other);
        visit(order);
      }
    }
  }
}

TEST_CASE("no order of two sets in a chunk is better than all mixes") {
  CHECK(rc::check([] {
    const std::vector<LayerChoice> choices = any_choices();
    const std::int64_t layers = between(1, 9);  // from 6 on, ranges of mixes are skipped
    const HostRates rates{.balance = {.value = 4}};
    const Software software{.blocking_launches = *rc::gen::arbitrary<bool>()};
    const RecomputeTime time({{.memory_bound = Seconds(number(1, 40)), .host = any_host()},
                              {.memory_bound = Seconds(number(1, 40)), .host = any_host()}},
                             rates, software);
    const std::vector<IndexedMix> mixes = stage_mixes(choices, layers, time);
    visit_orders(choices, layers, [&](const std::vector<LayerChoice>& order) {
      // The backward pass drops what it is done with, from the last layer on.
      Bytes kept;
      Bytes highest;
      Seconds device;
      Seconds host;
      for (const LayerChoice& layer : order) {
        kept += layer.bytes.kept;
        highest = std::max(highest, kept + layer.bytes.recomputed);
        device += device_time(layer.recompute);
        host += layer.recompute.host;
      }
      const Seconds takes = time.seconds(device, host);
      RC_ASSERT(time.at_least(device, host) <= takes + Seconds(1e-9));
      RC_ASSERT(std::any_of(mixes.begin(), mixes.end(), [&](const IndexedMix& mix) {
        return mix.time <= takes && mix.kept <= kept && mix.highest <= highest;
      }));
    });
  }));
}

TEST_CASE("a mix keeps and reaches what a pass through its virtual stage does") {
  CHECK(rc::check([] {
    const std::vector<LayerChoice> choices = any_choices();
    const std::int64_t layers = between(1, 4);
    const HostRates rates{.balance = {.value = 4}};
    const Software software;
    const RecomputeTime time({{.memory_bound = Seconds(1), .host = Seconds(1)}}, rates, software);
    for (const IndexedMix& mix : stage_mixes(choices, layers, time)) {
      const StagePlace place{.layers = layers, .of_kind = {layers}, .runs = {{0, layers}}};
      std::vector<KindChoices> of_the_kind;
      for (const LayerChoice& choice : choices) of_the_kind.push_back({choice});
      const LayerMix whole = mix_of(mix, of_the_kind);
      const PassActivations pass = pass_activations(stage_activations(whole, place, ModelActivations{}));
      std::int64_t in_runs = 0;
      for (const MixRun& run : runs_of(whole, place)) in_runs += run.layers;
      RC_ASSERT(in_runs == layers);
      RC_ASSERT(mix.kept == total(pass.left));
      RC_ASSERT(mix.highest == total(pass.left) + total(pass.excess));
      RC_ASSERT(mix.device ==
                device_time(stage_cost(whole, place, ModelCost{.kinds = {LayerCost{}}}).recompute));
    }
  }));
}

}  // namespace
}  // namespace headroom
