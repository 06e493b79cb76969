#include "plan/layout_memory.hpp"

#include <algorithm>
#include <limits>

#include "headroom/core/counts.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "plan/account.hpp"

namespace headroom {

LayoutMemory::LayoutMemory(ComposedParts& shared, const Strategy& layout, const PricedLayers& layers,
                           const PipelineOrder& order, const PlacedStages& placed)
    : shared_(shared),
      base_(shared.base),
      layout_(layout),
      layers_(layers),
      order_(order),
      shape_(order.shape()),
      placed_(placed),
      reserved_(reserved(base_.system, base_.software, layout)),
      workspaces_(base_.software.memory.workspaces.value_or(Bytes(0))),
      kept_logits_(logits_kept()),
      activations_(placed.stages.distinct.size()) {
  if (any_experts(base_.model)) workspaces_ += base_.software.memory.expert_workspaces.value_or(Bytes(0));
  if (has_unit_bytes(layout, base_.workload, base_.software))
    units_ = model_units(layers.layers(), layers.parameters(), layout, base_.workload, base_.software);
  find_holdings();
}

const LayoutMemory::Holding& LayoutMemory::with_most_parameters() const {
  return *std::max_element(holdings_.begin(), holdings_.end(), [](const Holding& x, const Holding& y) {
    return total(x.parameters) < total(y.parameters);
  });
}

const LayoutMemory::Holding& LayoutMemory::holding_of(std::int64_t rank) const {
  return holdings_[placed_.kind_of[index(rank)]];
}

void LayoutMemory::find_holdings() {
  Strategy strategy = layout_;
  holdings_.reserve(placed_.kinds.size());
  for (const RankKind& kind : placed_.kinds) {
    const bool both_ends = holds_both_ends(shape_, kind.rank);
    Holding& holding = holdings_.emplace_back();
    holding.kind = &kind;
    holding.parameters = parameters_of_rank(layers_.parameters(), kind.held, both_ends);
    holding.matrices = matrices_of_rank(layers_.parameters(), kind.held, both_ends);
    holding.dummy_gradients = layers_.dummy_gradients(kind.held);
    for (const auto& [sharding, name] : spellings<DataSharding>) {
      const ShardingChoice other{sharding, layout_.shard_size, layout_.no_reshard_after_forward,
                                 layout_.sync_each_batch};
      if (!same_passes(other, sharding_choice(layout_), layout_, base_.software)) continue;
      strategy.data_sharding = sharding;
      const ModelState state = model_state(base_.model, strategy, base_.workload, holding.parameters,
                                           weight_copies(), base_.software, holding.matrices);
      holding.state[index(sharding)] = total(state);
      holding.on_host[index(sharding)] = state.on_host;
    }
  }
}

void LayoutMemory::complete(StageActivations& stage, const StagePlace& place,
                            const Recomputation& apart) const {
  if (units_) set_units(stage, *units_, place, apart);
  if (has_weight_passes(shape_)) stage = with_weight_passes(stage, layers_.deferred(), place, apart);
}

Bytes LayoutMemory::logits_kept() const {
  if (!base_.software.memory.keeps_logits || layout_.pipeline_parallel == 1) return Bytes(0);
  // The loss may save the logits of microbatches in flight. The last stage runs the backward pass of a
  // microbatch right after its forward pass, unless all forward passes come first.
  const bool all_first =
      layout_.schedule == ScheduleKind::gpipe || layout_.schedule == ScheduleKind::looped_bfs;
  const std::int64_t in_flight = !saves_logits(layers_.layers()) ? 0 : all_first ? shape_.microbatches : 1;
  return real(shape_.microbatches - in_flight) * layers_.logits();
}

int LayoutMemory::weight_copies() const {
  if (!base_.system.performance) return 2;
  return copies_of_factor(base_.system.performance->device, compute_dtype(layout_.precision));
}

bool LayoutMemory::keeps_inputs(const Strategy& strategy) const {
  return !units_ && !has_weight_passes(shape_) && !offloads_activations(strategy.offload) &&
         !trains_adapters(strategy.lora) && !strategy.recompute.distribute_saved_activations &&
         strategy.recompute.method != RecomputeMethod::uniform;
}

std::int64_t LayoutMemory::least_in_flight(std::int64_t rank) const {
  const std::int64_t alive = std::min(shape_.microbatches * shape_.chunks, warm_up_passes(shape_, rank) + 1);
  return shape_.in_pairs ? alive - 1 : alive;
}

void LayoutMemory::fill_activations(const Recomputation& recompute) {
  if (filled_ == recompute) return;
  filled_ = recompute;
  const Recomputation apart = set_apart(recompute, layout_.offload);
  const ModelActivations& activations = layers_.activations(recompute);
  for (std::size_t i = 0; i < activations_.size(); ++i) {
    set_stage_activations(scratch_, activations, placed_.stages.distinct[i], apart);
    complete(scratch_, placed_.stages.distinct[i], apart);
    activations_[i] = pass_activations(scratch_, shape_.in_pairs);
  }
  for (Holding& holding : holdings_) {
    holding.activations = total(activations_of(holding, holding.kind->rank).at_peak);
    holding.activations_on_host = activations_on_host(holding, holding.kind->rank);
  }
}

Bytes LayoutMemory::activations_on_host(const Holding& holding, std::int64_t rank) const {
  if (!offloads_activations(layout_.offload)) return Bytes(0);
  return headroom::activations_on_host(of_chunks(holding), order_, rank);
}

std::vector<PassActivations> LayoutMemory::of_chunks(const Holding& holding) const {
  std::vector<PassActivations> passes;
  passes.reserve(holding.kind->groups.size());
  for (const std::size_t group : holding.kind->groups)
    passes.push_back(activations_[holding.kind->stages[group]]);
  return passes;
}

RankActivations LayoutMemory::activations_of(Holding& holding, std::int64_t rank) {
  if (has_weight_passes(shape_)) return rank_activations(of_chunks(holding), order_, rank);
  if (holding.kind->stages.size() == 1) {
    return rank_activations(std::span(&activations_[holding.kind->stages.front()], 1), order_, rank);
  }
  const auto at_peak = [&](const std::vector<LiveMoment>& moments) {
    groups_.clear();
    for (const std::size_t stage : holding.kind->stages) groups_.push_back(activations_[stage]);
    return rank_activations(groups_, moments, rank);
  };
  const bool of_kind = rank == holding.kind->rank;
  if (!of_kind || holding.moments == nullptr) {
    const std::vector<LiveMoment>& moments = shared_.moments(holding.kind->groups, shape_, rank);
    if (!of_kind) return at_peak(moments);
    holding.moments = &moments;
  }
  return at_peak(*holding.moments);
}

std::vector<StageActivations> LayoutMemory::stage_activations_of(const Recomputation& recompute) const {
  const ModelActivations& activations = layers_.activations(recompute);
  std::vector<StageActivations> stages;
  for (const std::size_t stage : placed_.stages.of) {
    stages.push_back(stage_activations(activations, placed_.stages.distinct[stage], recompute));
  }
  return stages;
}

const std::vector<RankMemory>& LayoutMemory::ranks(const Strategy& strategy) {
  if (ranks_asked_ == strategy) return ranks_;
  fill_activations(strategy.recompute);
  std::vector<StageActivations> checkpointed;
  std::vector<StageActivations> full;
  if (strategy.recompute.window) {
    checkpointed = stage_activations_of(strategy.recompute);
    full = stage_activations_of({});
  }
  ranks_.clear();
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    Holding& holding = holdings_[placed_.kind_of[index(rank)]];
    RankMemory memory{.state = model_state(base_.model, strategy, base_.workload, holding.parameters,
                                           weight_copies(), base_.software, holding.matrices),
                      .dummy_gradients = holding.dummy_gradients,
                      .workspaces = workspaces_,
                      .reserved = reserved_};
    if (strategy.recompute.window) {
      const Bytes available = (1 - base_.margin) * base_.system.memory - total(memory) -
                              (holding.kind->has_head ? kept_logits_ : Bytes(0));
      memory.window = largest_window(checkpointed, full, shape_, rank, available);
    }
    memory.activations = memory.window == 0
                             ? activations_of(holding, rank)
                             : rank_activations(checkpointed, full, memory.window, shape_, rank);
    memory.activations.layers = holding.kind->layers;
    if (holding.kind->has_head) {
      memory.activations.kept_logits = kept_logits_;
      memory.activations.at_peak.outputs += kept_logits_;
    }
    memory.activations_on_host = activations_on_host(holding, rank);
    ranks_.push_back(memory);
  }
  ranks_asked_ = strategy;
  return ranks_;
}

Bytes LayoutMemory::kept_by_stack(Bytes dummy_gradients, bool has_head) const {
  return dummy_gradients + workspaces_ + reserved_ + (has_head ? kept_logits_ : Bytes(0));
}

Bytes LayoutMemory::kept_by_stack(const Holding& holding) const {
  return kept_by_stack(holding.dummy_gradients, holding.kind->has_head);
}

RankPeak LayoutMemory::limited_by_host(std::size_t rank, Bytes bytes, Bytes on_host) const {
  if (on_host == Bytes(0) || !base_.system.host) return {.rank = rank, .bytes = bytes};
  const HostMemory host = host_memory(base_.system, devices(layout_), on_host);
  if (!lacks(host)) return {.rank = rank, .bytes = bytes};
  return {.rank = rank,
          .bytes = std::max(bytes, base_.system.memory + (host.needed - host.available)),
          .of_host = true};
}

RankPeak LayoutMemory::peak(const Strategy& strategy) {
  if (strategy.recompute.window) {
    const std::vector<RankMemory>& all = ranks(strategy);
    const std::size_t rank = peak_rank(all);
    Bytes most_on_host;
    for (const RankMemory& one : all) most_on_host = std::max(most_on_host, on_host(one));
    return limited_by_host(rank, total(all[rank]), most_on_host);
  }
  fill_activations(strategy.recompute);
  RankPeak highest;
  for (const Holding& holding : holdings_) {
    const std::size_t sharding = index(strategy.data_sharding);
    const Bytes held = holding.state[sharding] + holding.activations + kept_by_stack(holding);
    const RankPeak peak = limited_by_host(index(holding.kind->rank), held,
                                          holding.on_host[sharding] + holding.activations_on_host);
    const bool of_host = highest.of_host || peak.of_host;
    if (peak.bytes > highest.bytes) highest = peak;
    highest.of_host = of_host;
  }
  return highest;
}

Bytes LayoutMemory::checkpoints(const StagePlace& place) {
  set_stage_activations(scratch_, layers_.checkpoints(), place, {.policy = RecomputePolicy::full});
  return kept(scratch_);
}

Bytes LayoutMemory::checkpoints(Holding& holding) {
  if (holding.checkpoints) return *holding.checkpoints;
  Bytes of_pass = Bytes(std::numeric_limits<double>::infinity());
  for (const std::size_t stage : holding.kind->stages)
    of_pass = std::min(of_pass, checkpoints(placed_.stages.distinct[stage]));
  return holding.checkpoints.emplace(real(least_in_flight(holding.kind->rank)) * of_pass);
}

Bytes LayoutMemory::least_peak(const Strategy& strategy) {
  EXPECTS(!strategy.recompute.window);
  const bool saves_inputs = keeps_inputs(strategy);
  Bytes most;
  for (Holding& holding : holdings_) {
    const Bytes held = holding.state[index(strategy.data_sharding)] + kept_by_stack(holding);
    most = std::max(most, saves_inputs ? held + checkpoints(holding) : held);
  }
  return most;
}

Bytes LayoutMemory::rank_total(std::int64_t rank, std::span<const PassActivations> passes) const {
  const Holding& holding = holding_of(rank);
  const Bytes state = holding.state[index(layout_.data_sharding)];
  const Bytes held = state + total(rank_activations(passes, order_, rank).at_peak) + kept_by_stack(holding);
  return limited_by_host(index(rank), held, holding.on_host[index(layout_.data_sharding)]).bytes;
}

const StagePlace& LayoutMemory::place_of(std::int64_t rank, std::int64_t layers) {
  EXPECTS(shape_.chunks == 1 && !has_weight_passes(shape_));
  StagePlace& place = asked_place_;
  place = placed_.stages.distinct[placed_.stages.of[index(stage_of(shape_, rank, 0))]];
  EXPECTS(place.runs.size() == 1 && layers >= 1);
  place.layers = layers;
  place.runs.front().count = layers;
  place.of_kind[place.runs.front().kind] = layers;
  return place;
}

Bytes LayoutMemory::rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers) {
  return rank_total(strategy, rank, std::span(&place_of(rank, layers), 1));
}

Bytes LayoutMemory::least_rank_total(const Strategy& strategy, std::int64_t rank, std::int64_t layers) {
  const StagePlace& place = place_of(rank, layers);
  const Bytes held = total(state_of(strategy, rank, place.of_kind)) +
                     kept_by_stack(layers_.dummy_gradients(place.of_kind), place.last);
  return keeps_inputs(strategy) ? held + real(least_in_flight(rank)) * checkpoints(place) : held;
}

ModelState LayoutMemory::state_of(const Strategy& strategy, std::int64_t rank, const KindCounts& held) const {
  const bool both_ends = holds_both_ends(shape_, rank);
  return model_state(base_.model, strategy, base_.workload,
                     parameters_of_rank(layers_.parameters(), held, both_ends), weight_copies(),
                     base_.software, matrices_of_rank(layers_.parameters(), held, both_ends));
}

Bytes LayoutMemory::rank_total(const Strategy& strategy, std::int64_t rank,
                               std::span<const StagePlace> chunks) {
  EXPECTS(std::ssize(chunks) == shape_.chunks && !strategy.recompute.window);
  const ModelActivations& activations = layers_.activations(strategy.recompute);
  const Recomputation apart = set_apart(strategy.recompute, strategy.offload);
  std::vector<PassActivations> passes;
  KindCounts held;
  bool has_head = false;
  for (const StagePlace& place : chunks) {
    has_head = has_head || place.last;
    held = held.empty() ? place.of_kind : held + place.of_kind;
    set_stage_activations(scratch_, activations, place, apart);
    complete(scratch_, place, apart);
    passes.push_back(pass_activations(scratch_, shape_.in_pairs));
  }
  const ModelState state = state_of(strategy, rank, held);
  const Bytes bytes = total(state) + total(rank_activations(passes, order_, rank).at_peak) +
                      kept_by_stack(layers_.dummy_gradients(held), has_head);
  const Bytes away = state.on_host + headroom::activations_on_host(passes, order_, rank);
  return limited_by_host(index(rank), bytes, away).bytes;
}

}  // namespace headroom
