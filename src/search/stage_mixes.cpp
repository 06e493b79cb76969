#include "headroom/search/stage_mixes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace headroom {

namespace {

// visit(kind, layers, choice)
template <class Visit>
void visit_mix(const LayerMix& mix, const StagePlace& place, Visit visit) {
  std::int64_t left = mix.first_layers;
  for (const LayerRun& run : place.runs) {
    const std::int64_t first = std::min(run.count, left);
    if (first > 0) visit(run.kind, first, mix.first[run.kind]);
    if (run.count > first) visit(run.kind, run.count - first, mix.rest[run.kind]);
    left -= first;
  }
}

}  // namespace

std::vector<MixRun> runs_of(const LayerMix& mix, const StagePlace& place) {
  std::vector<MixRun> runs;
  visit_mix(mix, place, [&](std::size_t kind, std::int64_t layers, const LayerChoice& choice) {
    runs.push_back({kind, layers, choice});
  });
  return runs;
}

StageActivations stage_activations(const LayerMix& mix, const StagePlace& place,
                                   const ModelActivations& ends) {
  StageActivations stage = end_activations(ends, place);
  visit_mix(mix, place, [&](std::size_t, std::int64_t layers, const LayerChoice& choice) {
    stage.layers.push_back({.count = layers,
                            .kept = choice.bytes.kept,
                            .recomputed = choice.bytes.recomputed,
                            .peaks = choice.bytes.peaks});
  });
  return stage;
}

StageCost stage_cost(const LayerMix& mix, const StagePlace& place, const ModelCost& cost) {
  StageCost stage = stage_cost(cost, place, {});
  stage.recompute = {};
  visit_mix(mix, place, [&](std::size_t, std::int64_t layers, const LayerChoice& choice) {
    stage.recompute += layers * choice.recompute;
  });
  return stage;
}

namespace {

IndexedMix indexed(const std::vector<LayerChoice>& choices, std::size_t first, std::size_t rest,
                   std::int64_t first_layers, std::int64_t layers) {
  const LayerChoice& x = choices[first];
  const LayerChoice& y = choices[rest];
  const std::int64_t rest_layers = layers - first_layers;
  const auto of_first = static_cast<double>(first_layers);
  const auto of_rest = static_cast<double>(rest_layers);
  const Bytes rest_kept = of_rest * y.bytes.kept;
  const Bytes kept = of_first * x.bytes.kept + rest_kept;
  Bytes above = std::max(x.bytes.recomputed - rest_kept, Bytes(0));
  if (rest_layers > 0) above = std::max(above, y.bytes.recomputed);
  return {.first = first,
          .rest = rest,
          .first_layers = first_layers,
          .kept = kept,
          .highest = kept + above,
          .device = of_first * device_time(x.recompute) + of_rest * device_time(y.recompute),
          .host = of_first * x.recompute.host + of_rest * y.recompute.host};
}

template <class Visit>
void visit_mixes(const std::vector<LayerChoice>& choices, const std::vector<std::size_t>& among,
                 std::int64_t layers, Visit visit) {
  for (const std::size_t first : among) {
    visit(indexed(choices, first, first, layers, layers));
    for (const std::size_t rest : among) {
      const Bytes more = choices[first].bytes.recomputed;
      const Bytes less = choices[rest].bytes.recomputed;
      if (less > more || (less == more && rest <= first)) continue;
      for (std::int64_t n = 1; n < layers; ++n) visit(indexed(choices, first, rest, n, layers));
    }
  }
}

bool faster(const IndexedMix& x, const IndexedMix& y) {
  return std::tie(x.time, x.highest, x.kept, x.first, x.rest, x.first_layers) <
         std::tie(y.time, y.highest, y.kept, y.first, y.rest, y.first_layers);
}

// Returns, of mixes sorted by time, those that save less or peak lower than all faster ones.
std::vector<IndexedMix> front_of(std::vector<IndexedMix> mixes) {
  std::sort(mixes.begin(), mixes.end(), faster);
  std::map<Bytes, Bytes> lowest;  // by bytes kept: the least `highest`; both together rise and fall
  std::vector<IndexedMix> front;
  for (const IndexedMix& mix : mixes) {
    auto after = lowest.upper_bound(mix.kept);
    if (after != lowest.begin() && std::prev(after)->second <= mix.highest) continue;
    while (after != lowest.end() && after->second >= mix.highest) after = lowest.erase(after);
    lowest[mix.kept] = mix.highest;
    front.push_back(mix);
  }
  return front;
}

// Returns, of choices from the most to the fewest saved bytes, those that recompute faster than all with
// fewer saved bytes.
std::vector<std::size_t> quickest(const std::vector<LayerChoice>& choices) {
  std::vector<std::size_t> result;
  for (std::size_t i = choices.size(); i-- > 0;) {
    if (result.empty() || device_time(choices[i].recompute) < device_time(choices[result.back()].recompute)) {
      result.push_back(i);
    }
  }
  return result;
}

}  // namespace

RecomputeTime::RecomputeTime(std::vector<PassCost> backward, const HostRates& rates, const Software& software)
    : backward_(std::move(backward)), rates_(rates), software_(software) {
  for (const PassCost& pass : backward_) without_ += pass_time(pass, rates, software);
}

Seconds RecomputeTime::seconds(Seconds device, Seconds host) const {
  Seconds sum;
  for (const PassCost& pass : backward_) {
    sum += pass_time(pass + PassCost{.memory_bound = device, .host = host}, rates_, software_);
  }
  return sum - without_;
}

Seconds RecomputeTime::at_least(Seconds device, Seconds host) const {
  Seconds sum;
  for (const PassCost& pass : backward_) {
    sum += std::max(device_time(pass) + device, pass.host + host);
  }
  return sum - without_;
}

std::vector<IndexedMix> stage_mixes(const std::vector<LayerChoice>& choices, std::int64_t layers,
                                    const RecomputeTime& time) {
  // Mixes of the few fastest sets dominate nearly all others, so only mixes that pass them are priced. There
  // may be a hundred million mixes, of which few remain; dominated ones are dropped from time to time.
  constexpr std::size_t many = std::size_t{1} << 20;
  std::vector<IndexedMix> mixes;
  std::size_t most = many;
  const auto price = [&](IndexedMix mix) {
    mix.time = time.seconds(mix.device, mix.host);
    mixes.push_back(mix);
    if (mixes.size() < most) return;
    mixes = front_of(std::move(mixes));
    most = std::max(many, 2 * mixes.size());
  };
  visit_mixes(choices, quickest(choices), layers, price);
  std::vector<IndexedMix> bar = front_of(mixes);
  const auto above = [lowest = std::optional<Bytes>()](const IndexedMix& mix) mutable {
    if (lowest && mix.highest >= *lowest) return true;
    lowest = mix.highest;
    return false;
  };
  bar.erase(std::remove_if(bar.begin(), bar.end(), above), bar.end());  // by time, ever lower
  std::vector<std::size_t> all(choices.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  visit_mixes(choices, all, layers, [&](const IndexedMix& mix) {
    const auto after =
        std::upper_bound(bar.begin(), bar.end(), time.at_least(mix.device, mix.host),
                         [](Seconds least, const IndexedMix& one) { return least < one.time; });
    const bool beaten =
        after != bar.begin() && (after - 1)->kept <= mix.kept && (after - 1)->highest <= mix.highest;
    if (!beaten) price(mix);
  });
  return front_of(std::move(mixes));
}

LayerMix mix_of(const IndexedMix& mix, const std::vector<KindChoices>& choices) {
  return {.first = choices[mix.first], .rest = choices[mix.rest], .first_layers = mix.first_layers};
}

}  // namespace headroom
