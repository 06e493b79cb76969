#include "headroom/search/stage_mixes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
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

// Returns lower bounds of the bytes and times of all mixes between `from` and `to`.
IndexedMix corner_of(const IndexedMix& from, const IndexedMix& to) {
  constexpr double below_rounding = 1 - 1e-12;
  const Bytes kept = below_rounding * std::min(from.kept, to.kept);
  // What is above the kept bytes grows with the layers of the first, as fewer are freed before them.
  const Bytes above = from.highest - from.kept;
  return {.first = from.first,
          .rest = from.rest,
          .first_layers = from.first_layers,
          .kept = kept,
          .highest = below_rounding * (kept + above),
          .device = below_rounding * std::min(from.device, to.device),
          .host = below_rounding * std::min(from.host, to.host)};
}

// Visits the mixes of some choices. Skips a range of layers if beats() holds for its corner.
template <class Beats, class Visit>
void visit_mixes(const std::vector<LayerChoice>& choices, const std::vector<std::size_t>& among,
                 std::int64_t layers, const Beats& beats, const Visit& visit) {
  constexpr std::int64_t few = 3;  // a corner costs as much as a mix
  for (const std::size_t first : among) {
    visit(indexed(choices, first, first, layers, layers));
    for (const std::size_t rest : among) {
      const Bytes more = choices[first].bytes.recomputed;
      const Bytes less = choices[rest].bytes.recomputed;
      if (less > more || (less == more && rest <= first)) continue;
      const auto mix = [&](std::int64_t n) { return indexed(choices, first, rest, n, layers); };
      const auto visit_range = [&](const auto& self, const IndexedMix& from, const IndexedMix& to) -> void {
        const std::int64_t between = to.first_layers - from.first_layers - 1;
        if (between < 1 || (between > few && beats(corner_of(from, to)))) return;
        if (between <= few) {
          for (std::int64_t n = from.first_layers + 1; n < to.first_layers; ++n) visit(mix(n));
          return;
        }
        const IndexedMix middle = mix(from.first_layers + between / 2 + 1);
        self(self, from, middle);
        visit(middle);
        self(self, middle, to);
      };
      if (layers < 2) continue;
      const IndexedMix from = mix(1);
      const IndexedMix to = mix(layers - 1);
      visit(from);
      visit_range(visit_range, from, to);
      if (layers > 2) visit(to);
    }
  }
}

bool faster(const IndexedMix& x, const IndexedMix& y) {
  return std::tie(x.time, x.highest, x.kept, x.first, x.rest, x.first_layers) <
         std::tie(y.time, y.highest, y.kept, y.first, y.rest, y.first_layers);
}

// Keeps, of mixes, those that save less or peak lower than all faster ones, by time.
void keep_front(std::vector<IndexedMix>& mixes) {
  std::sort(mixes.begin(), mixes.end(), faster);
  std::map<Bytes, Bytes> lowest;  // by bytes kept: the least `highest`; both together rise and fall
  std::size_t kept = 0;
  for (const IndexedMix& mix : mixes) {
    auto after = lowest.upper_bound(mix.kept);
    if (after != lowest.begin() && std::prev(after)->second <= mix.highest) continue;
    while (after != lowest.end() && after->second >= mix.highest) after = lowest.erase(after);
    lowest[mix.kept] = mix.highest;
    mixes[kept++] = mix;
  }
  mixes.resize(kept);
}

// Rejects mixes that a mix of the front dominates. Each level holds the front's mixes with at most its kept bytes, by
// time, with ever lower peaks. Levels are quantiles of the kept bytes; a mix is compared at the one below its own.
class Bar {
 public:
  void raise(const std::vector<IndexedMix>& front) {
    std::vector<Bytes> kept;
    kept.reserve(front.size());
    for (const IndexedMix& mix : front) kept.push_back(mix.kept);
    std::sort(kept.begin(), kept.end());
    levels_.clear();
    for (std::size_t i = 0; i < most_levels && !kept.empty(); ++i) {
      Level level{.kept = kept[i * (kept.size() - 1) / (most_levels - 1)], .mixes = {}};
      if (!levels_.empty() && level.kept == levels_.back().kept) continue;
      for (const IndexedMix& mix : front) {
        if (mix.kept > level.kept) continue;
        if (level.mixes.empty() || mix.highest < level.mixes.back().highest) level.mixes.push_back(mix);
      }
      levels_.push_back(std::move(level));
    }
  }

  [[nodiscard]] bool beats(const IndexedMix& mix, Seconds least) const {
    const auto level = std::upper_bound(levels_.begin(), levels_.end(), mix.kept,
                                        [](Bytes kept, const Level& one) { return kept < one.kept; });
    if (level == levels_.begin()) return false;
    const std::vector<IndexedMix>& mixes = std::prev(level)->mixes;
    const auto after = std::upper_bound(mixes.begin(), mixes.end(), least,
                                        [](Seconds time, const IndexedMix& one) { return time < one.time; });
    if (after == mixes.begin()) return false;
    const IndexedMix& best = *std::prev(after);
    const bool is_better = best.highest < mix.highest || best.kept < mix.kept || best.time < least;
    return best.highest <= mix.highest && is_better;
  }

 private:
  static constexpr std::size_t most_levels = 64;
  struct Level {
    Bytes kept;
    std::vector<IndexedMix> mixes;  // by time
  };
  std::vector<Level> levels_;  // by bytes kept
};

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
  for (const PassCost& pass : backward_) {
    const Seconds takes = pass_time(pass, rates, software);
    without_ += takes;
    if (takes == Seconds(0)) continue;
    const double q = software.blocking_launches ? 1 : rates.balance.value;
    of_device_ += std::pow(device_time(pass) / takes, q - 1);
    of_host_ += std::pow(pass.host / takes, q - 1);
  }
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
  constexpr double rounding = 1e-12;
  return std::max(sum, without_ + of_device_ * device + of_host_ * host - rounding * sum) - without_;
}

std::vector<IndexedMix> stage_mixes(const std::vector<LayerChoice>& choices, std::int64_t layers,
                                    const RecomputeTime& time) {
  // Mixes of the few fastest sets dominate nearly all others, so only mixes that pass them are priced. There
  // may be a hundred million mixes, of which few remain; dominated ones are dropped from time to time.
  constexpr std::size_t many = std::size_t{1} << 18;  // 16 MiB
  std::vector<IndexedMix> mixes;
  Bar bar;
  std::size_t most = many;
  const auto price = [&](IndexedMix mix) {
    mix.time = time.seconds(mix.device, mix.host);
    if (bar.beats(mix, mix.time)) return;
    mixes.push_back(mix);
    if (mixes.size() < most) return;
    keep_front(mixes);
    bar.raise(mixes);
    most = std::max(many, 2 * mixes.size());
  };
  visit_mixes(
      choices, quickest(choices), layers, [](const IndexedMix&) { return false; }, price);
  keep_front(mixes);
  bar.raise(mixes);
  std::vector<std::size_t> all(choices.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto is_beaten = [&](const IndexedMix& mix) {
    return bar.beats(mix, time.at_least(mix.device, mix.host));
  };
  visit_mixes(choices, all, layers, is_beaten, [&](const IndexedMix& mix) {
    if (!is_beaten(mix)) price(mix);
  });
  keep_front(mixes);
  return mixes;
}

LayerMix mix_of(const IndexedMix& mix, const std::vector<KindChoices>& choices) {
  return {.first = choices[mix.first], .rest = choices[mix.rest], .first_layers = mix.first_layers};
}

}  // namespace headroom
