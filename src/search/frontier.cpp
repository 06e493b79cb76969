#include "headroom/search/frontier.hpp"

#include <algorithm>
#include <tuple>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/fixed_vector.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/layer_prices.hpp"
#include "search/frontier_parts.hpp"

namespace headroom {
namespace {

// Returns whether every kind of layer that has an op recomputes it.
bool in_all_kinds(std::string_view op, const KindChoices& choices, const ModelLayers& model) {
  for (std::size_t kind = 0; kind < choices.size(); ++kind) {
    const auto& ops = model.kinds[kind].ops.ops();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].name == op && !choices[kind].ops.contains(i)) return false;
    }
  }
  return true;
}

Recomputation recomputation_of(const ModelLayers& model, const KindChoices& choices, std::int64_t layers) {
  if (recomputes_nothing(choices)) return {};
  bool full = true;
  Recomputation recompute{.policy = RecomputePolicy::ops, .layers = layers};
  for (std::size_t kind = 0; kind < choices.size(); ++kind) {
    const LayerKind& of = model.kinds[kind];
    full = full && choices[kind].ops == every_op(of.ops);
    for (std::size_t i = 0; i < of.ops.ops().size(); ++i) {
      if (!choices[kind].ops.contains(i)) continue;
      std::string name(of.ops.ops()[i].name);
      if (!in_all_kinds(name, choices, model)) name = of.name + "." + name;
      if (!contains(recompute.ops, name)) recompute.ops.push_back(std::move(name));
    }
  }
  if (full) return {.policy = RecomputePolicy::full, .layers = layers};
  return recompute;
}

// Sets of ops recomputed in the first layers of every virtual stage.
struct SetOfOps {
  const KindChoices* choice = nullptr;
  std::int64_t layers = 0;
  Bytes peak;
  std::size_t peak_rank = 0;
  std::vector<Seconds>
      recomputes;  // of each kind of virtual stage, what they add to it: what decides the time
};

bool no_slower(const SetOfOps& x, const SetOfOps& y) {
  for (std::size_t i = 0; i < x.recomputes.size(); ++i) {
    if (x.recomputes[i] > y.recomputes[i]) return false;
  }
  return true;
}

}  // namespace

// All points of the uniform family.
class Frontier::Uniform {
 public:
  // The layers after the first ones recompute `nothing`. Keeps references.
  Uniform(const Parts& parts, const KindChoices& nothing) : parts_(parts), nothing_(nothing) {
    for (const StagePlace& place : parts.places) {
      most_layers_ = std::max(most_layers_, place.layers);
      if (std::find(kinds_.begin(), kinds_.end(), place) == kinds_.end()) kinds_.push_back(place);
    }
  }

  [[nodiscard]] std::vector<SetOfOps> candidates(const std::vector<KindChoices>& choices,
                                                 const Watch& watch) const {
    std::vector<SetOfOps> all;
    for (const KindChoices& choice : choices) {
      if (!all.empty() && stops(watch)) break;
      tell(watch, "sets of ops to recompute", &choice - choices.data(), std::ssize(choices));
      for (std::int64_t layers = recomputes_nothing(choice) ? most_layers_ : 1; layers <= most_layers_;
           ++layers) {
        all.push_back(candidate(choice, layers));
      }
    }
    return all;
  }

  // Returns the costs of all virtual stages, in model order.
  [[nodiscard]] std::vector<StageCost> costs(const SetOfOps& one) const {
    std::vector<StageCost> stages;
    for (const StagePlace& place : parts_.places) {
      stages.push_back(parts_.cost_of(mix(*one.choice, one.layers), place));
    }
    return stages;
  }

  // Returns the value for Recomputation::layers: 0 for all.
  [[nodiscard]] std::int64_t flag(std::int64_t layers) const { return layers == most_layers_ ? 0 : layers; }

 private:
  [[nodiscard]] LayerMix mix(const KindChoices& choice, std::int64_t layers) const {
    return {.first = choice, .rest = nothing_, .first_layers = layers};
  }

  [[nodiscard]] SetOfOps candidate(const KindChoices& choice, std::int64_t layers) const {
    SetOfOps one{.choice = &choice, .layers = layers};
    for (const StagePlace& place : kinds_) {
      one.recomputes.push_back(parts_.longer(mix(choice, layers), place));
    }
    for (std::int64_t rank = 0; rank < parts_.pipeline_ranks; ++rank) {
      std::vector<StageActivations> chunks;
      for (const StagePlace& place : parts_.ranks[index(rank)].chunks) {
        chunks.push_back(parts_.activations_of(mix(choice, layers), place));
      }
      const Bytes total = parts_.total_of(rank, chunks);
      if (total > one.peak) {
        one.peak = total;
        one.peak_rank = index(rank);
      }
    }
    return one;
  }

  const Parts& parts_;
  const KindChoices& nothing_;
  std::int64_t most_layers_ = 0;
  std::vector<StagePlace> kinds_;
};

Frontier::Frontier(Request request) : parts_(std::make_unique<Parts>(std::move(request))) {}
Frontier::~Frontier() = default;
Frontier::Frontier(Frontier&&) noexcept = default;
Frontier& Frontier::operator=(Frontier&&) noexcept = default;

const Request& Frontier::request() const { return parts_->request; }
const ModelLayers& Frontier::layers() const { return parts_->layout.layers().layers(); }
const std::vector<LayerFront>& Frontier::layer_fronts() const { return parts_->fronts; }
const std::vector<KindChoices>& Frontier::choices() const { return parts_->choices; }

FrontierPoint Frontier::point(const Recomputation& recompute) const {
  Request asked = parts_->request;
  asked.strategy.recompute = recompute;
  const Plan plan = account(evaluate(asked));
  const PricedLayers& prices = parts_->layout.layers();
  KindChoices recomputes;
  for (std::size_t kind = 0; kind < parts_->fronts.size(); ++kind) {
    recomputes.push_back(
        {.ops =
             recomputed_ops_of(layers().kinds[kind], recompute, sharding_of(asked.model, asked.strategy)).ops,
         .bytes = prices.activations(recompute).kinds[kind].recomputed,
         .recompute = prices.cost(recompute).kinds[kind].recompute});
  }
  return {.recompute = recompute,
          .layers = std::move(recomputes),
          .peak = peak(plan),
          .peak_rank = plan.peak_rank,
          .iteration = plan.timing->iteration.total,
          .mfu = plan.timing->throughput.mfu};
}

std::vector<FrontierPoint> Frontier::uniform(const Watch& watch) const {
  const Uniform family(*parts_, parts_->choices.front());
  std::vector<SetOfOps> candidates = family.candidates(parts_->choices, watch);
  // By memory, then the simplest recomputation first.
  const auto order = [](const SetOfOps& one) {
    return std::tuple(one.peak, recomputed_op_count(*one.choice), one.layers);
  };
  const auto before = [](const LayerChoice& x, const LayerChoice& y) { return x.ops < y.ops; };
  std::sort(candidates.begin(), candidates.end(), [&](const SetOfOps& x, const SetOfOps& y) {
    if (order(x) != order(y)) return order(x) < order(y);
    return std::lexicographical_compare(x.choice->begin(), x.choice->end(), y.choice->begin(),
                                        y.choice->end(), before);
  });
  std::vector<const SetOfOps*> unbeaten;
  std::vector<FrontierPoint> front;
  for (const SetOfOps& one : candidates) {
    tell(watch, "points of the front", &one - candidates.data(), std::ssize(candidates));
    const bool beaten = std::any_of(unbeaten.begin(), unbeaten.end(),
                                    [&](const SetOfOps* other) { return no_slower(*other, one); });
    if (beaten) continue;
    unbeaten.push_back(&one);
    const Seconds iteration = parts_->layout.iteration(family.costs(one));
    if (!front.empty() && iteration >= front.back().iteration) continue;
    if (!front.empty() && one.peak == front.back().peak) front.pop_back();
    front.push_back({.recompute = recomputation_of(layers(), *one.choice, family.flag(one.layers)),
                     .layers = *one.choice,
                     .peak = one.peak,
                     .peak_rank = one.peak_rank,
                     .iteration = iteration,
                     .mfu = parts_->layout.mfu(iteration)});
  }
  std::reverse(front.begin(), front.end());
  return front;
}

std::optional<FrontierPoint> Frontier::windowed(Bytes memory, const Watch& watch) const {
  std::optional<FrontierPoint> best;
  Request asked = parts_->request;
  asked.system.memory = memory;
  Composer composer(asked);
  for (const KindChoices& choice : parts_->choices) {
    if (stops(watch)) break;
    tell(watch, "windows", &choice - parts_->choices.data(), std::ssize(parts_->choices));
    Strategy strategy = asked.strategy;
    strategy.recompute = recomputation_of(layers(), choice, 0);
    strategy.recompute.window = !recomputes_nothing(choice);
    const Evaluation evaluation = composer.evaluate(strategy);
    const auto* plan = std::get_if<Plan>(&evaluation);
    if (plan == nullptr || (best && plan->timing->iteration.total >= best->iteration)) continue;
    best = {.recompute = strategy.recompute,
            .layers = choice,
            .peak = peak(*plan),
            .peak_rank = plan->peak_rank,
            .iteration = plan->timing->iteration.total,
            .mfu = plan->timing->throughput.mfu};
  }
  return best;
}

std::optional<StagedPoint> Frontier::staged(Bytes budget) const {
  Parts& parts = *parts_;
  const std::vector<FrontierRank>& ranks = parts.ranks_with_options();
  StagedPoint point{.budget = budget, .ranks = {}, .peak = {}};
  std::vector<StageCost> stages(parts.places.size());
  for (std::int64_t number = 0; number < parts.pipeline_ranks; ++number) {
    const FrontierRank& rank = ranks[index(number)];
    const auto fits = std::partition_point(rank.options.begin(), rank.options.end(),
                                           [&](const RankOption& option) { return option.total > budget; });
    if (fits == rank.options.end()) return std::nullopt;
    const LayerMix mix = mix_of(fits->mix, parts.choices_of(rank));
    point.ranks.push_back(
        {.longest_chunk = runs_of(mix, longest(rank)), .total = fits->total, .recompute = fits->mix.time});
    if (fits->total > point.peak) {
      point.peak = fits->total;
      point.peak_rank = index(number);
    }
    for (std::int64_t chunk = 0; chunk < std::ssize(rank.chunks); ++chunk) {
      const StagePlace& place = rank.chunks[index(chunk)];
      stages[index(stage_of(parts.layout.shape(), number, chunk))] = parts.cost_of(mix, place);
    }
  }
  point.iteration = parts.layout.iteration(stages);
  point.mfu = parts.layout.mfu(point.iteration);
  return point;
}

const FrontierPoint* within(const std::vector<FrontierPoint>& front, Bytes budget) {
  const auto fits = std::partition_point(front.begin(), front.end(),
                                         [&](const FrontierPoint& point) { return point.peak > budget; });
  return fits == front.end() ? nullptr : &*fits;
}

}  // namespace headroom
