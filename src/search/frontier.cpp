#include "headroom/search/frontier.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

Recomputation recomputation_of(const OpTable& table, OpSet ops, std::int64_t layers) {
  if (ops == 0) return {};
  if (ops == every_op(table)) return {.policy = RecomputePolicy::full, .layers = layers};
  Recomputation recompute{.policy = RecomputePolicy::ops, .layers = layers};
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if ((ops & op_bit(i)) != 0) recompute.ops.emplace_back(table.ops()[i].name);
  }
  return recompute;
}

// The mix in a chunk that may have fewer layers than the longest of its rank.
LayerMix cut_to(const LayerMix& mix, std::int64_t layers) {
  LayerMix result = mix;
  result.first_layers = std::min(mix.first_layers, layers);
  result.rest_layers = layers - result.first_layers;
  return result;
}

// A mix of a rank, in the order of time.
struct RankOption {
  IndexedMix mix;
  Bytes total;
};

struct Rank {
  std::vector<StagePlace> chunks;
  std::int64_t layers = 0;  // of the longest chunk
  ModelState state;
  std::vector<RankOption> options;  // from the quickest on, ever less memory
};

}  // namespace

struct Frontier::Parts {
  explicit Parts(Request asked);

  [[nodiscard]] Bytes total_of(std::int64_t rank, const std::vector<StageActivations>& chunks) const;
  [[nodiscard]] IterationTime iteration(const std::vector<StageCost>& stages) const;
  [[nodiscard]] double mfu(Seconds iteration) const;
  void find_options(std::int64_t rank, const std::vector<IndexedMix>& mixes);
  [[nodiscard]] std::vector<IndexedMix> mixes_of(const Rank& rank) const;

  Request request;
  OpTable table;
  ScheduleShape shape;
  std::vector<StagePlace> places;
  ModelActivations kept;  // without recomputation
  ModelCost cost;
  Flops model_flops;
  Bytes reserved;
  std::vector<LayerChoice> choices;
  std::vector<Rank> ranks;
};

Frontier::Parts::Parts(Request asked)
    : request(std::move(asked)), table(layer_ops(request.model.architecture)) {
  request.strategy.recompute = {};
  const auto& [model, system, software, strategy, workload, detail] = request;
  std::vector<Problem> problems = illegalities(model, strategy, workload);
  if (!system.performance)
    problems.push_back({"--system", "'" + system.name + "' has no performance figures"});
  if (!problems.empty()) throw InputError(std::move(problems));

  shape = schedule_shape(strategy, microbatches(strategy, workload));
  places = stage_places(model, strategy);
  kept = model_activations(model, strategy, workload, detail);
  const Setting setting =
      setting_of(model, strategy, workload, system.devices_per_node, *system.performance, software);
  cost = model_cost(model, strategy, setting);
  model_flops = iteration_flops(model, strategy, workload, 0).model;
  reserved = headroom::reserved(system, strategy);
  choices = layer_front(all_layer_choices(model, strategy, workload, detail, setting));

  const std::vector<double> parameters = parameters_by_rank(model, strategy, workload);
  std::vector<std::vector<IndexedMix>> mixes;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    Rank& one = ranks.emplace_back();
    one.state = model_state(model, strategy, parameters[index(rank)]);
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      one.chunks.push_back(places[index(stage_of(shape, rank, chunk))]);
      one.layers = std::max(one.layers, one.chunks.back().layers);
    }
    // Ranks with alike chunks have the same mixes; they differ in how many microbatches they hold.
    const auto alike = std::find_if(ranks.begin(), ranks.end() - 1,
                                    [&](const Rank& other) { return other.chunks == one.chunks; });
    mixes.push_back(alike == ranks.end() - 1 ? mixes_of(one) : mixes[index(alike - ranks.begin())]);
    find_options(rank, mixes.back());
  }
}

std::vector<IndexedMix> Frontier::Parts::mixes_of(const Rank& rank) const {
  const HostRates& host = request.system.performance->rates.host;
  const auto shorter = [&](const StagePlace& place) { return place.layers != rank.layers; };
  if (std::none_of(rank.chunks.begin(), rank.chunks.end(), shorter)) {
    std::vector<PassCost> backwards;
    for (const StagePlace& place : rank.chunks) {
      backwards.push_back(stage_cost(cost, place, {}).backward);
    }
    return stage_mixes(choices, rank.layers, ReplayTime(std::move(backwards), host, request.software));
  }
  std::vector<IndexedMix> mixes;
  for (std::size_t set = 0; set < choices.size(); ++set) {
    for (std::int64_t layers = 1; layers <= rank.layers; ++layers) {
      IndexedMix mix{.first = set, .rest = 0, .first_layers = layers};
      const LayerMix whole = mix_of(mix, choices, rank.layers);
      for (const StagePlace& place : rank.chunks) {
        mix.time +=
            pass_times(stage_cost(cut_to(whole, place.layers), place, cost), host, request.software).replay;
      }
      mixes.push_back(mix);
    }
  }
  std::stable_sort(mixes.begin(), mixes.end(),
                   [](const IndexedMix& x, const IndexedMix& y) { return x.time < y.time; });
  return mixes;
}

void Frontier::Parts::find_options(std::int64_t number, const std::vector<IndexedMix>& mixes) {
  Rank& rank = ranks[index(number)];
  for (const IndexedMix& mix : mixes) {
    const LayerMix whole = mix_of(mix, choices, rank.layers);
    std::vector<StageActivations> chunks;
    for (const StagePlace& place : rank.chunks) {
      chunks.push_back(stage_activations(cut_to(whole, place.layers), place, kept));
    }
    const Bytes total = total_of(number, chunks);
    if (rank.options.empty() || total < rank.options.back().total) rank.options.push_back({mix, total});
  }
}

Bytes Frontier::Parts::total_of(std::int64_t rank, const std::vector<StageActivations>& chunks) const {
  std::vector<PassActivations> passes;
  for (const StageActivations& chunk : chunks) passes.push_back(pass_activations(chunk));
  return total(RankMemory{.state = ranks[index(rank)].state,
                          .activations = rank_activations(passes, shape, rank),
                          .reserved = reserved});
}

IterationTime Frontier::Parts::iteration(const std::vector<StageCost>& stages) const {
  const auto& [model, system, software, strategy, workload, detail] = request;
  return iteration_time(model, strategy, workload, system.devices_per_node, *system.performance, software, {},
                        cost, stages);
}

double Frontier::Parts::mfu(Seconds iteration) const {
  return utilization(model_flops, iteration, devices(request.strategy),
                     request.system.performance->device.half_peak);
}

Frontier::Frontier(Request request) : parts_(std::make_unique<Parts>(std::move(request))) {}
Frontier::~Frontier() = default;
Frontier::Frontier(Frontier&&) noexcept = default;
Frontier& Frontier::operator=(Frontier&&) noexcept = default;

const Request& Frontier::request() const { return parts_->request; }
std::size_t Frontier::ops() const { return parts_->table.ops().size(); }
const std::vector<LayerChoice>& Frontier::layer_choices() const { return parts_->choices; }

FrontierPoint Frontier::point(const Recomputation& recompute) const {
  Request asked = parts_->request;
  asked.strategy.recompute = recompute;
  const auto& [model, system, software, strategy, workload, detail] = asked;
  const Plan plan = account(evaluate(asked));
  const Setting setting =
      setting_of(model, strategy, workload, system.devices_per_node, *system.performance, software);
  return {.recompute = recompute,
          .layer = layer_choice(model, strategy, workload, detail, setting),
          .peak = peak(plan),
          .peak_rank = plan.peak_rank,
          .iteration = plan.timing->iteration.total,
          .mfu = plan.timing->throughput.mfu};
}

std::vector<FrontierPoint> Frontier::uniform() const {
  const Parts& parts = *parts_;
  std::int64_t most_layers = 0;
  std::vector<StagePlace> kinds;
  for (const StagePlace& place : parts.places) {
    most_layers = std::max(most_layers, place.layers);
    if (std::find(kinds.begin(), kinds.end(), place) == kinds.end()) kinds.push_back(place);
  }
  // What decides the time: how long each kind of stage chunk replays.
  struct Candidate {
    const LayerChoice* choice = nullptr;
    std::int64_t layers = 0;
    Bytes peak;
    std::size_t peak_rank = 0;
    std::vector<Seconds> replays;
  };
  std::vector<Candidate> candidates;
  for (const LayerChoice& choice : parts.choices) {
    for (std::int64_t layers = choice.ops == 0 ? most_layers : 1; layers <= most_layers; ++layers) {
      Candidate one{.choice = &choice, .layers = layers};
      const auto mix_in = [&](const StagePlace& place) {
        const std::int64_t first = std::min(layers, place.layers);
        return LayerMix{choice, parts.choices.front(), first, place.layers - first};
      };
      for (const StagePlace& place : kinds) {
        const StageCost stage = stage_cost(mix_in(place), place, parts.cost);
        one.replays.push_back(
            pass_times(stage, parts.request.system.performance->rates.host, parts.request.software).replay);
      }
      for (std::int64_t rank = 0; rank < parts.shape.ranks; ++rank) {
        std::vector<StageActivations> chunks;
        for (const StagePlace& place : parts.ranks[index(rank)].chunks) {
          chunks.push_back(stage_activations(mix_in(place), place, parts.kept));
        }
        const Bytes total = parts.total_of(rank, chunks);
        if (total > one.peak) {
          one.peak = total;
          one.peak_rank = index(rank);
        }
      }
      candidates.push_back(std::move(one));
    }
  }
  const auto order = [](const Candidate& one) {
    return std::tuple(one.peak, std::popcount(one.choice->ops), one.layers, one.choice->ops);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& x, const Candidate& y) { return order(x) < order(y); });
  std::vector<const Candidate*> unbeaten;
  std::vector<FrontierPoint> front;
  for (const Candidate& one : candidates) {
    const bool beaten = std::any_of(unbeaten.begin(), unbeaten.end(), [&](const Candidate* other) {
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (other->replays[i] > one.replays[i]) return false;
      }
      return true;
    });
    if (beaten) continue;
    unbeaten.push_back(&one);
    std::vector<StageCost> stages;
    for (const StagePlace& place : parts.places) {
      const std::int64_t first = std::min(one.layers, place.layers);
      stages.push_back(stage_cost(LayerMix{*one.choice, parts.choices.front(), first, place.layers - first},
                                  place, parts.cost));
    }
    const Seconds iteration = parts.iteration(stages).total;
    if (!front.empty() && iteration >= front.back().iteration) continue;
    if (!front.empty() && one.peak == front.back().peak) front.pop_back();
    const std::int64_t layers = one.layers == most_layers ? 0 : one.layers;
    front.push_back({.recompute = recomputation_of(parts.table, one.choice->ops, layers),
                     .layer = *one.choice,
                     .peak = one.peak,
                     .peak_rank = one.peak_rank,
                     .iteration = iteration,
                     .mfu = parts.mfu(iteration)});
  }
  std::reverse(front.begin(), front.end());
  return front;
}

std::optional<FrontierPoint> Frontier::windowed(Bytes memory) const {
  std::optional<FrontierPoint> best;
  Request asked = parts_->request;
  asked.system.memory = memory;
  for (const LayerChoice& choice : parts_->choices) {
    asked.strategy.recompute = recomputation_of(parts_->table, choice.ops, 0);
    asked.strategy.recompute.window = choice.ops != 0;
    const Evaluation evaluation = evaluate(asked);
    const auto* plan = std::get_if<Plan>(&evaluation);
    if (plan == nullptr || (best && plan->timing->iteration.total >= best->iteration)) continue;
    best = {.recompute = asked.strategy.recompute,
            .layer = choice,
            .peak = peak(*plan),
            .peak_rank = plan->peak_rank,
            .iteration = plan->timing->iteration.total,
            .mfu = plan->timing->throughput.mfu};
  }
  return best;
}

std::optional<StagedPoint> Frontier::staged(Bytes budget) const {
  const Parts& parts = *parts_;
  StagedPoint point{.budget = budget, .ranks = {}, .peak = {}};
  std::vector<StageCost> stages(parts.places.size());
  for (std::int64_t number = 0; number < parts.shape.ranks; ++number) {
    const Rank& rank = parts.ranks[index(number)];
    const auto fits = std::partition_point(rank.options.begin(), rank.options.end(),
                                           [&](const RankOption& option) { return option.total > budget; });
    if (fits == rank.options.end()) return std::nullopt;
    const LayerMix mix = mix_of(fits->mix, parts.choices, rank.layers);
    point.ranks.push_back({.mix = mix, .total = fits->total, .replay = fits->mix.time});
    if (fits->total > point.peak) {
      point.peak = fits->total;
      point.peak_rank = index(number);
    }
    for (std::int64_t chunk = 0; chunk < parts.shape.chunks; ++chunk) {
      const StagePlace& place = rank.chunks[index(chunk)];
      stages[index(stage_of(parts.shape, number, chunk))] =
          stage_cost(cut_to(mix, place.layers), place, parts.cost);
    }
  }
  point.iteration = parts.iteration(stages).total;
  point.mfu = parts.mfu(point.iteration);
  return point;
}

const FrontierPoint* within(const std::vector<FrontierPoint>& front, Bytes budget) {
  const auto fits = std::partition_point(front.begin(), front.end(),
                                         [&](const FrontierPoint& point) { return point.peak > budget; });
  return fits == front.end() ? nullptr : &*fits;
}

}  // namespace headroom
