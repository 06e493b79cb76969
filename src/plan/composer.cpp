#include "headroom/plan/composer.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/model/layer_ops.hpp"
#include "plan/account.hpp"

namespace headroom {
namespace {

// What a layer keeps and costs does not depend on how many of a stage chunk replay.
bool replay_alike(const Recomputation& x, const Recomputation& y) {
  return x.policy == y.policy && x.shard_checkpoint == y.shard_checkpoint && x.ops == y.ops;
}

template <class Known>
auto* find_replay(Known& known, const Recomputation& recompute) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const auto& entry) { return replay_alike(entry.first, recompute); });
  return found == known.end() ? nullptr : &found->second;
}

}  // namespace

Composer::Composer(const Request& base)
    : base_(base), layer_(layer_ops(base.model.architecture)), spans_(most_pipelines_at_once) {}

Composer::Symbolic& Composer::symbolic_of(const Strategy& strategy) {
  const Sharding sharding = sharding_of(base_.model, strategy);
  for (Symbolic& symbolic : symbolic_) {
    if (symbolic.sharding == sharding && symbolic.deallocate_outputs == strategy.deallocate_outputs &&
        symbolic.gradients == strategy.gradients) {
      return symbolic;
    }
  }
  Symbolic& symbolic = symbolic_.emplace_back();
  symbolic.sharding = sharding;
  symbolic.deallocate_outputs = strategy.deallocate_outputs;
  symbolic.gradients = strategy.gradients;
  symbolic.parameters = model_parameter_exprs(base_.model, sharding);
  return symbolic;
}

Composer::Priced& Composer::priced_of(const Strategy& strategy) {
  const auto [entry, added] =
      priced_.try_emplace({strategy.tensor_parallel, strategy.micro_batch, strategy.sequence_parallel,
                           strategy.regather, strategy.deallocate_outputs, strategy.gradients});
  Priced& priced = entry->second;
  if (added) {
    priced.symbolic = &symbolic_of(strategy);
    priced.parameters =
        headroom::evaluate(priced.symbolic->parameters, bindings(base_.model, strategy, base_.workload));
  }
  return priced;
}

const ModelActivations& Composer::activations_of(const Recomputation& recompute) {
  if (const ModelActivations* known = find_replay(now_->activations, recompute)) return *known;
  ByReplay<ModelActivationExprs>& symbolic = now_->symbolic->activations;
  const ModelActivationExprs* exprs = find_replay(symbolic, recompute);
  if (exprs == nullptr) {
    Strategy strategy = layout_;
    strategy.recompute = recompute;
    exprs =
        &symbolic.emplace_back(recompute, model_activation_exprs(base_.model, strategy, base_.detail)).second;
  }
  const Bindings letters = bindings(base_.model, layout_, base_.workload);
  return now_->activations.emplace_back(recompute, headroom::evaluate(*exprs, letters)).second;
}

const ModelCost& Composer::cost_of(const Recomputation& recompute) {
  if (const ModelCost* known = find_replay(now_->costs, recompute)) return *known;
  Symbolic& symbolic = *now_->symbolic;
  if (!now_->model) {
    const Setting setting = setting_of(base_.model, layout_, base_.workload, base_.system.devices_per_node,
                                       *base_.system.performance, base_.software);
    if (!symbolic.work) symbolic.work = model_work(base_.model.architecture, setting);
    now_->model = priced(*symbolic.work, setting);
  }
  return now_->costs.emplace_back(recompute, model_cost(*now_->model, replay_of(layer_, recompute))).second;
}

void Composer::set_layout(const Strategy& layout, std::span<const Recomputation> recomputations) {
  layout_ = layout;
  reserved_ = reserved(base_.system, layout);
  now_ = &priced_of(layout);
  shape_ = schedule_shape(layout, microbatches(layout, base_.workload));
  stages_.clear();
  stage_of_.clear();
  for (const StagePlace& place : stage_places(base_.model, layout)) {
    const auto same = std::find_if(stages_.begin(), stages_.end(),
                                   [&](const Stage& stage) { return stage.place == place; });
    stage_of_.push_back(index(same - stages_.begin()));
    if (same == stages_.end()) stages_.push_back({.place = place, .activations = {}, .times = {}});
  }
  find_rank_kinds();
  layout_timed_ = false;
  ends_ = {};
  recomputations_ = recomputations;
  makespans_.assign(recomputations.size(), std::nullopt);
  recompute_.reset();
  ranks_asked_.reset();
}

void Composer::find_rank_kinds() {
  kinds_.clear();
  kind_of_.clear();
  const auto same = [&](std::int64_t x, std::int64_t y) {
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      if (&stage(x, chunk) != &stage(y, chunk)) return false;
    }
    return true;
  };
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    const auto known = std::find_if(kinds_.begin(), kinds_.end(),
                                    [&](const RankKind& kind) { return same(kind.rank, rank); });
    kind_of_.push_back(index(known - kinds_.begin()));
    if (known != kinds_.end()) continue;
    RankKind kind;
    kind.rank = rank;
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      kind.layers += stage(rank, chunk).place.layers;
    }
    kind.parameters = parameters_of_rank(now_->parameters, kind.layers, rank == 0, rank + 1 == shape_.ranks);
    Strategy strategy = layout_;
    for (const bool sharded : {false, true}) {
      strategy.distributed_optimizer = sharded;
      kind.state[index(sharded)] = total(model_state(base_.model, strategy, kind.parameters));
    }
    kinds_.push_back(std::move(kind));
  }
}

const Composer::Stage& Composer::stage(std::int64_t rank, std::int64_t chunk) const {
  return stages_[stage_of_[index(stage_of(shape_, rank, chunk))]];
}

StagePlace Composer::place(std::int64_t stage) const { return stages_[stage_of_[index(stage)]].place; }

Verdict Composer::verdict(Bytes peak) const {
  const Bytes headroom = base_.system.memory - peak;
  if (headroom < Bytes(0)) return Verdict::does_not_fit;
  return headroom < marginal_fraction * base_.system.memory ? Verdict::marginal : Verdict::fits;
}

double Composer::mfu(const Strategy& strategy, Seconds iteration) {
  if (!model_flops_) {
    model_flops_ = iteration_flops(base_.model, Strategy{}, base_.workload, 0).model;
  }
  return utilization(*model_flops_, iteration, devices(strategy), base_.system.performance->device.half_peak);
}

Evaluation Composer::evaluate(const Strategy& strategy) {
  if (std::vector<Problem> problems = illegalities(base_.model, strategy, base_.workload);
      !problems.empty()) {
    throw InputError(std::move(problems));
  }
  set_layout(strategy);
  Plan plan{.request = base_, .ranks = ranks_of(strategy)};
  plan.request.strategy = strategy;
  plan.peak_rank = fullest_rank(plan.ranks);
  bool reduction_within_fit = true;
  if (base_.system.performance) {
    plan.timing = timing_of(strategy);
    reduction_within_fit = end_of(strategy.distributed_optimizer).replicas.within_fit;
  }
  plan.assumptions = assumptions_of(base_.system, strategy);
  plan.warnings = warnings_of(plan, activations_of(strategy.recompute), reduction_within_fit);
  plan.verdict = verdict(headroom::peak(plan));
  if (plan.verdict != Verdict::does_not_fit) return plan;
  const Bytes needed = headroom::peak(plan);
  return Infeasible{.attempt = std::move(plan),
                    .limit = "device_memory",
                    .needed = needed,
                    .available = base_.system.memory};
}

}  // namespace headroom
