#include "search/frontier_parts.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/memory/backward.hpp"
#include "headroom/memory/step.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/plan/iteration.hpp"
#include "headroom/plan/layer_prices.hpp"
#include "headroom/time/unit_exchanges.hpp"

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
  if (asked.strategy.overlap_expert_all_to_all) {
    problems.push_back(
        {"overlap_expert_all_to_all", "does not go with a frontier, which has full recomputation too"});
  }
  if (offloads_activations(asked.strategy.offload)) {
    problems.push_back({activations_field(asked.strategy.offload),
                        "does not go with a frontier, which chooses what is saved on the device"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return asked;
}

// Returns the kind of all layers of a rank whose chunks are equally long, or nothing if layers or lengths
// differ.
std::optional<std::size_t> only_kind(const FrontierRank& rank) {
  std::optional<std::size_t> kind;
  for (const StagePlace& place : rank.chunks) {
    if (place.layers != rank.layers || place.runs.size() != 1) return std::nullopt;
    if (kind && *kind != place.runs.front().kind) return std::nullopt;
    kind = place.runs.front().kind;
  }
  return kind;
}

void sort_by_time(std::vector<IndexedMix>& mixes) {
  std::stable_sort(mixes.begin(), mixes.end(),
                   [](const IndexedMix& x, const IndexedMix& y) { return x.time < y.time; });
}

}  // namespace

Frontier::Parts::Parts(Request asked)
    : request(checked(std::move(asked))), composer(request), layout(composer.layout(request.strategy)) {
  const ScheduleShape& shape = layout.shape();
  pipeline_ranks = shape.ranks;
  const PricedLayers& layers = layout.layers();
  places = stage_places(layers.layers(), request.strategy);
  kept = &layers.activations({});
  cost = &layers.cost({});
  for (std::size_t kind = 0; kind < layer_kind_count(layers.layers()); ++kind) {
    const OpTable& table = layers.layers().kinds[kind].ops;
    const LayerSets sets(table, layers.prices().kinds[kind], layers.sharding(kind), layers.letters(kind),
                         request.detail);
    fronts.push_back(layer_front(sets));
    if (!request.software.memory.backward_buffers) continue;
    // Sets are compared without the transient memory of a backward pass, which may be least if everything is
    // recomputed.
    std::vector<LayerChoice>& kept_sets = fronts.back().choices;
    if (kept_sets.back().ops != every_op(table)) {
      kept_sets.push_back(sets.choice(every_op(table)));
      ++fronts.back().unbeaten;
    }
    set_backward_peaks(fronts.back(), kind);
  }
  choices = combined(fronts);
  for (std::size_t kind = 0; kind < fronts.size(); ++kind) of_a_kind.push_back(alone(fronts, kind));

  for (std::int64_t number = 0; number < shape.ranks; ++number) {
    FrontierRank rank;
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      rank.chunks.push_back(places[static_cast<std::size_t>(stage_of(shape, number, chunk))]);
      rank.layers = std::max(rank.layers, rank.chunks.back().layers);
    }
    if (!has_unit_bytes(request.strategy, request.workload, request.software)) rank.kind = only_kind(rank);
    ranks.push_back(std::move(rank));
  }
}

const std::vector<FrontierRank>& Frontier::Parts::ranks_with_options() {
  if (!ranks.front().options.empty()) return ranks;
  std::vector<std::vector<IndexedMix>> mixes;  // of ranks with different chunks
  std::vector<std::size_t> mixes_of_rank;
  for (auto rank = ranks.begin(); rank != ranks.end(); ++rank) {
    // Ranks with equal chunks have equal mixes; they differ in the microbatches that they hold.
    const auto alike = std::find_if(ranks.begin(), rank,
                                    [&](const FrontierRank& other) { return other.chunks == rank->chunks; });
    if (alike == rank) {
      mixes_of_rank.push_back(mixes.size());
      mixes.push_back(mixes_of(*rank));
    } else {
      mixes_of_rank.push_back(mixes_of_rank[static_cast<std::size_t>(alike - ranks.begin())]);
    }
  }
  for (std::size_t number = 0; number < ranks.size(); ++number)
    ranks[number].options = options_of(std::int64_t(number), mixes[mixes_of_rank[number]]);
  return ranks;
}

void Frontier::Parts::set_backward_peaks(LayerFront& front, std::size_t kind) {
  const PricedLayers& layers = layout.layers();
  const Bindings letters = layers.letters(kind);
  for (LayerChoice& choice : front.choices) {
    const RecomputedOps recomputed{.ops = choice.ops, .discarded = choice.ops};
    choice.bytes.peaks = pass_peaks(layers.layers().kinds[kind], layers.sharding(kind), recomputed,
                                    choice.bytes.recomputed, request.detail, request.software, letters,
                                    pass_gradients(request.strategy, request.workload, request.software));
    choice.bytes.peaks.backward.during.kind = choice.bytes.peaks.forward.during.kind = static_cast<int>(kind);
  }
}

StageActivations Frontier::Parts::activations_of(const LayerMix& mix, const StagePlace& place) const {
  StageActivations stage = stage_activations(mix, place, *kept);
  layout.complete(stage, place, {.layers = mix.first_layers});
  return stage;
}

StageCost Frontier::Parts::cost_of(const LayerMix& mix, const StagePlace& place) const {
  const StageCost stage = stage_cost(mix, place, *cost);
  const ModelExchanges* const exchanges = layout.exchanges();
  if (exchanges == nullptr) return stage;
  EXPECTS(recomputes_nothing(mix.rest));
  ModelCost recomputing = *cost;
  for (std::size_t kind = 0; kind < mix.first.size(); ++kind)
    recomputing.kinds[kind].recompute = mix.first[kind].recompute;
  const ExchangeTimes times = exchange_times(*exchanges, recomputing, place, {.layers = mix.first_layers},
                                             *request.system.performance, request.software);
  return with_exchanges(stage, *exchanges, times, place);
}

Seconds Frontier::Parts::longer(const LayerMix& mix, const StagePlace& place) const {
  const PassTimes times = layout.times_of(cost_of(mix, place));
  if (layout.exchanges() == nullptr) return times.recompute;
  const LayerMix nothing{.first = choices.front(), .rest = choices.front(), .first_layers = place.layers};
  return times.recompute + times.backward - layout.times_of(cost_of(nothing, place)).backward;
}

std::vector<IndexedMix> Frontier::Parts::mixes_of(const FrontierRank& rank) const {
  if (!rank.kind) return uniform_mixes_of(rank);
  std::vector<PassCost> backwards;
  for (const StagePlace& place : rank.chunks)
    backwards.push_back(backward_after_recompute(stage_cost(*cost, place, {}), layout.shape().kind));
  std::vector<IndexedMix> mixes = stage_mixes(
      fronts[*rank.kind].choices, rank.layers,
      RecomputeTime(std::move(backwards), request.system.performance->rates.host, request.software));
  if (!request.software.memory.backward_buffers) return mixes;
  // Mixes are compared like sets: every rank has the choices that all ranks can share.
  const std::vector<IndexedMix> uniform = uniform_mixes_of(rank);
  mixes.insert(mixes.end(), uniform.begin(), uniform.end());
  sort_by_time(mixes);
  return mixes;
}

std::vector<IndexedMix> Frontier::Parts::uniform_mixes_of(const FrontierRank& rank) const {
  std::vector<IndexedMix> mixes;
  const std::vector<KindChoices>& sets = choices_of(rank);
  for (std::size_t set = 0; set < sets.size(); ++set) {
    const bool nothing = recomputes_nothing(sets[set]);
    for (std::int64_t layers = nothing ? rank.layers : 1; layers <= rank.layers; ++layers) {
      IndexedMix mix{.first = set, .rest = 0, .first_layers = layers};
      const LayerMix whole = mix_of(mix, sets);
      for (const StagePlace& place : rank.chunks) mix.time += longer(whole, place);
      mixes.push_back(mix);
    }
  }
  sort_by_time(mixes);
  return mixes;
}

std::vector<RankOption> Frontier::Parts::options_of(std::int64_t number,
                                                    const std::vector<IndexedMix>& mixes) const {
  const FrontierRank& rank = ranks[static_cast<std::size_t>(number)];
  std::vector<RankOption> options;
  for (const IndexedMix& mix : mixes) {
    const LayerMix whole = mix_of(mix, choices_of(rank));
    const auto total_on = [&](std::int64_t holder) {
      std::vector<StageActivations> chunks;
      for (const StagePlace& place : ranks[index(holder)].chunks)
        chunks.push_back(activations_of(whole, place));
      return total_of(holder, chunks);
    };
    Bytes total = total_on(number);
    // The rank at the other end holds the same virtual stages and recomputes alike.
    if (model_copies(layout.shape().kind) > 1) total = std::max(total, total_on(pipeline_ranks - 1 - number));
    if (options.empty() || total < options.back().total) options.push_back({mix, total});
  }
  return options;
}

Bytes Frontier::Parts::total_of(std::int64_t rank, const std::vector<StageActivations>& chunks) const {
  std::vector<PassActivations> passes;
  passes.reserve(chunks.size());
  for (const StageActivations& chunk : chunks)
    passes.push_back(pass_activations(chunk, layout.shape().in_pairs));
  return layout.rank_total(rank, passes);
}

}  // namespace headroom
