#include "search/frontier_parts.hpp"

#include <algorithm>

#include "headroom/memory/backward.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {

LayerMix cut_to(const LayerMix& mix, std::int64_t layers) {
  LayerMix result = mix;
  result.first_layers = std::min(mix.first_layers, layers);
  result.rest_layers = layers - result.first_layers;
  return result;
}

namespace {

Request checked(Request asked) {
  asked.strategy.recompute = {};
  std::vector<Problem> problems = illegalities(asked.model, asked.strategy, asked.workload);
  if (!asked.system.performance) {
    problems.push_back({"system", "'" + asked.system.name + "' has no performance figures"});
  }
  if (has_weight_passes(asked.strategy.schedule)) {
    problems.push_back({"schedule", "must have whole backward passes on a frontier, not zero-bubble-h1"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return asked;
}

}  // namespace

Frontier::Parts::Parts(Request asked)
    : request(checked(std::move(asked))),
      composer(request),
      table(layer_ops(request.model, request.strategy.micro_batch)) {
  const auto& [model, system, software, strategy, workload, detail, margin] = request;
  composer.set_layout(strategy);
  const ScheduleShape& shape = composer.shape();
  pipeline_ranks = shape.ranks;
  places = stage_places(model, strategy);
  kept = &composer.layers().activations({});
  cost = &composer.layers().cost({});
  LayerPrices& layers = composer.layers();
  LayerFront front = layer_front(
      LayerSets(table, layers.prices().kinds.front(), layers.sharding(), layers.letters(), detail));
  choices = std::move(front.choices);
  tolerance = front.tolerance;
  if (software.memory.backward_buffers) {
    for (LayerChoice& choice : choices) {
      const Replay replay{.ops = choice.ops, .discard_outputs = true};
      choice.bytes.backward = backward_peak(layers.layers().kinds.front(), layers.sharding(), replay,
                                            choice.bytes.replayed, detail, software, layers.letters());
      choice.bytes.backward.during.kind = 0;
    }
  }

  std::vector<std::vector<IndexedMix>> mixes;
  for (std::int64_t number = 0; number < shape.ranks; ++number) {
    FrontierRank rank;
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      rank.chunks.push_back(places[static_cast<std::size_t>(stage_of(shape, number, chunk))]);
      rank.layers = std::max(rank.layers, rank.chunks.back().layers);
    }
    // Ranks with alike chunks have the same mixes; they differ in how many microbatches they hold.
    const auto alike = std::find_if(ranks.begin(), ranks.end(),
                                    [&](const FrontierRank& other) { return other.chunks == rank.chunks; });
    mixes.push_back(alike == ranks.end() ? mixes_of(rank)
                                         : mixes[static_cast<std::size_t>(alike - ranks.begin())]);
    ranks.push_back(std::move(rank));
    ranks.back().options = options_of(number, mixes.back());
  }
}

std::vector<IndexedMix> Frontier::Parts::mixes_of(const FrontierRank& rank) const {
  std::vector<PassCost> backwards;
  for (const StagePlace& place : rank.chunks) {
    if (place.layers != rank.layers) return mixes_of_uneven(rank);
    backwards.push_back(stage_cost(*cost, place, {}).backward);
  }
  return stage_mixes(
      choices, rank.layers,
      ReplayTime(std::move(backwards), request.system.performance->rates.host, request.software));
}

std::vector<IndexedMix> Frontier::Parts::mixes_of_uneven(const FrontierRank& rank) const {
  std::vector<IndexedMix> mixes;
  for (std::size_t set = 0; set < choices.size(); ++set) {
    for (std::int64_t layers = 1; layers <= rank.layers; ++layers) {
      IndexedMix mix{.first = set, .rest = 0, .first_layers = layers};
      const LayerMix whole = mix_of(mix, choices, rank.layers);
      for (const StagePlace& place : rank.chunks) {
        mix.time += composer.times_of(stage_cost(cut_to(whole, place.layers), place, *cost)).replay;
      }
      mixes.push_back(mix);
    }
  }
  std::stable_sort(mixes.begin(), mixes.end(),
                   [](const IndexedMix& x, const IndexedMix& y) { return x.time < y.time; });
  return mixes;
}

std::vector<RankOption> Frontier::Parts::options_of(std::int64_t number,
                                                    const std::vector<IndexedMix>& mixes) const {
  const FrontierRank& rank = ranks[static_cast<std::size_t>(number)];
  std::vector<RankOption> options;
  for (const IndexedMix& mix : mixes) {
    const LayerMix whole = mix_of(mix, choices, rank.layers);
    std::vector<StageActivations> chunks;
    for (const StagePlace& place : rank.chunks) {
      chunks.push_back(stage_activations(cut_to(whole, place.layers), place, *kept));
    }
    const Bytes total = total_of(number, chunks);
    if (options.empty() || total < options.back().total) options.push_back({mix, total});
  }
  return options;
}

Bytes Frontier::Parts::total_of(std::int64_t rank, const std::vector<StageActivations>& chunks) const {
  std::vector<PassActivations> passes;
  passes.reserve(chunks.size());
  for (const StageActivations& chunk : chunks) passes.push_back(pass_activations(chunk));
  return composer.rank_total(rank, passes);
}

}  // namespace headroom
