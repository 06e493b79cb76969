#include "headroom/plan/layer_prices.hpp"

#include <algorithm>

namespace headroom {
namespace {

bool replay_alike(const Recomputation& x, const Recomputation& y) {
  return x.policy == y.policy && x.distribute_saved_activations == y.distribute_saved_activations &&
         x.ops == y.ops;
}

template <class Known>
auto* find_replay(Known& known, const Recomputation& recompute) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const auto& entry) { return replay_alike(entry.first, recompute); });
  return found == known.end() ? nullptr : &found->second;
}

}  // namespace

LayerPrices::LayerPrices(const Request& base) : base_(base), layers_(layers_of(base.model)) {}

LayerPrices::Symbolic& LayerPrices::symbolic_of(const Strategy& strategy) {
  const Sharding sharding = sharding_of(base_.model, strategy);
  for (Symbolic& symbolic : symbolic_) {
    if (symbolic.sharding == sharding && symbolic.keep_pipeline_outputs == strategy.keep_pipeline_outputs &&
        symbolic.gradient_dtype == strategy.gradient_dtype) {
      return symbolic;
    }
  }
  Symbolic& symbolic = symbolic_.emplace_back();
  symbolic.sharding = sharding;
  symbolic.keep_pipeline_outputs = strategy.keep_pipeline_outputs;
  symbolic.gradient_dtype = strategy.gradient_dtype;
  symbolic.parameters = model_parameter_exprs(layers_, sharding);
  return symbolic;
}

void LayerPrices::select(const Strategy& strategy) {
  strategy_ = strategy;
  const auto [entry, added] = priced_.try_emplace({strategy.tensor_parallel, strategy.micro_batch,
                                                   strategy.sequence_parallel, strategy.save_gathered_input,
                                                   strategy.keep_pipeline_outputs, strategy.gradient_dtype});
  now_ = &entry->second;
  if (!added) return;
  now_->symbolic = &symbolic_of(strategy);
  now_->parameters = evaluate(now_->symbolic->parameters, bindings(base_.model, strategy, base_.workload));
}

const ModelActivations& LayerPrices::activations(const Recomputation& recompute) {
  if (const ModelActivations* known = find_replay(now_->activations, recompute)) return *known;
  ByReplay<ModelActivationExprs>& symbolic = now_->symbolic->activations;
  const ModelActivationExprs* exprs = find_replay(symbolic, recompute);
  if (exprs == nullptr) {
    Strategy strategy = strategy_;
    strategy.recompute = recompute;
    exprs = &symbolic
                 .emplace_back(recompute, model_activation_exprs(layers_, now_->symbolic->sharding, strategy,
                                                                 base_.detail))
                 .second;
  }
  const Bindings letters = bindings(base_.model, strategy_, base_.workload);
  return now_->activations.emplace_back(recompute, evaluate(*exprs, letters)).second;
}

const ModelCost& LayerPrices::cost(const Recomputation& recompute) {
  if (const ModelCost* known = find_replay(now_->costs, recompute)) return *known;
  Symbolic& symbolic = *now_->symbolic;
  if (!now_->model) {
    const Setting setting = setting_of(base_.model, strategy_, base_.workload, base_.system.devices_per_node,
                                       *base_.system.performance, base_.software);
    if (!symbolic.work) symbolic.work = model_work(layers_, setting);
    now_->model = priced(*symbolic.work, setting);
  }
  return now_->costs.emplace_back(recompute, model_cost(*now_->model, layers_, recompute)).second;
}

}  // namespace headroom
