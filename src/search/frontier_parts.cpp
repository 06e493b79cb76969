#include "search/frontier_parts.hpp"

#include <algorithm>

#include "headroom/memory/backward.hpp"
#include "headroom/parallel/data_shards.hpp"

namespace headroom {

const StagePlace& longest(const FrontierRank& rank) {
  return *std::find_if(rank.chunks.begin(), rank.chunks.end(),
                       [&](const StagePlace& place) { return place.layers == rank.layers; });
}

namespace {

Request checked(Request asked) {
  asked.strategy.recompute = {};
  std::vector<Problem> problems = illegalities(asked, asked.strategy);
  if (!asked.system.performance) {
    problems.push_back({"system", "'" + asked.system.name + "' has no performance figures"});
  }
  if (has_weight_passes(asked.strategy.schedule) || asked.strategy.schedule == ScheduleKind::looped_bfs) {
    problems.push_back({"schedule", "must be gpipe, 1f1b or interleaved on a frontier, not " +
                                        std::string(name_of(asked.strategy.schedule))});
  }
  if (asked.strategy.overlap_expert_all_to_all) {
    problems.push_back(
        {"overlap_expert_all_to_all", "does not go with a frontier, which has full recomputation too"});
  }
  if (offloads_activations(asked.strategy.offload)) {
    problems.push_back({asked.strategy.offload.layers > 0 ? "offload_layers" : "offload_modules",
                        "does not go with a frontier, which chooses what is saved on the device"});
  }
  if (has_units(asked.strategy, asked.software)) {
    problems.push_back(
        {"data_sharding", "must be none or zero1 on a frontier, where weights and gradients are whole"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return asked;
}

// The kind of which all layers are, in chunks that are as long; nothing where they differ.
std::optional<std::size_t> only_kind(const FrontierRank& rank) {
  std::optional<std::size_t> kind;
  for (const StagePlace& place : rank.chunks) {
    if (place.layers != rank.layers || place.runs.size() != 1) return std::nullopt;
    if (kind && *kind != place.runs.front().kind) return std::nullopt;
    kind = place.runs.front().kind;
  }
  return kind;
}

}  // namespace

Frontier::Parts::Parts(Request asked) : request(checked(std::move(asked))), composer(request) {
  composer.set_layout(request.strategy);
  const ScheduleShape& shape = composer.shape();
  pipeline_ranks = shape.ranks;
  LayerPrices& layers = composer.layers();
  places = stage_places(layers.layers(), request.strategy);
  kept = &layers.activations({});
  cost = &layers.cost({});
  for (std::size_t kind = 0; kind < layer_kind_count(layers.layers()); ++kind) {
    fronts.push_back(layer_front(LayerSets(layers.layers().kinds[kind].ops, layers.prices().kinds[kind],
                                           layers.sharding(kind), layers.letters(kind), request.detail)));
    set_backward_peaks(fronts.back(), kind);
  }
  choices = combined(fronts);
  for (std::size_t kind = 0; kind < fronts.size(); ++kind) of_a_kind.push_back(alone(fronts, kind));

  std::vector<std::vector<IndexedMix>> mixes;
  for (std::int64_t number = 0; number < shape.ranks; ++number) {
    FrontierRank rank;
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      rank.chunks.push_back(places[static_cast<std::size_t>(stage_of(shape, number, chunk))]);
      rank.layers = std::max(rank.layers, rank.chunks.back().layers);
    }
    rank.kind = only_kind(rank);
    // Ranks with alike chunks have the same mixes; they differ in how many microbatches they hold.
    const auto alike = std::find_if(ranks.begin(), ranks.end(),
                                    [&](const FrontierRank& other) { return other.chunks == rank.chunks; });
    mixes.push_back(alike == ranks.end() ? mixes_of(rank)
                                         : mixes[static_cast<std::size_t>(alike - ranks.begin())]);
    ranks.push_back(std::move(rank));
    ranks.back().options = options_of(number, mixes.back());
  }
}

// Of its sets, where the training stack counts such moments.
void Frontier::Parts::set_backward_peaks(LayerFront& front, std::size_t kind) {
  if (!request.software.memory.backward_buffers) return;
  const LayerPrices& layers = composer.layers();
  const Bindings letters = layers.letters(kind);
  for (LayerChoice& choice : front.choices) {
    const RecomputedOps recomputed{.ops = choice.ops, .discarded = choice.ops};
    choice.bytes.backward = backward_peak(layers.layers().kinds[kind], layers.sharding(kind), recomputed,
                                          choice.bytes.recomputed, request.detail, request.software, letters);
    choice.bytes.backward.during.kind = static_cast<int>(kind);
  }
}

std::vector<IndexedMix> Frontier::Parts::mixes_of(const FrontierRank& rank) const {
  if (!rank.kind) return mixes_of_uneven(rank);
  std::vector<PassCost> backwards;
  for (const StagePlace& place : rank.chunks) backwards.push_back(stage_cost(*cost, place, {}).backward);
  return stage_mixes(
      fronts[*rank.kind].choices, rank.layers,
      RecomputeTime(std::move(backwards), request.system.performance->rates.host, request.software));
}

std::vector<IndexedMix> Frontier::Parts::mixes_of_uneven(const FrontierRank& rank) const {
  std::vector<IndexedMix> mixes;
  for (std::size_t set = 0; set < choices.size(); ++set) {
    for (std::int64_t layers = 1; layers <= rank.layers; ++layers) {
      IndexedMix mix{.first = set, .rest = 0, .first_layers = layers};
      const LayerMix whole = mix_of(mix, choices);
      for (const StagePlace& place : rank.chunks) {
        mix.time += composer.times_of(stage_cost(whole, place, *cost)).recompute;
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
    const LayerMix whole = mix_of(mix, choices_of(rank));
    std::vector<StageActivations> chunks;
    for (const StagePlace& place : rank.chunks) {
      chunks.push_back(stage_activations(whole, place, *kept));
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
