#include "headroom/plan/layer_prices.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/memory/backward.hpp"
#include "headroom/memory/offloaded.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/data_shards.hpp"

namespace headroom {
namespace {

bool named_by_policy(const Recomputation& recompute) {
  return recompute.policy != RecomputePolicy::ops && !recompute.distribute_saved_activations;
}

template <class Known>
auto* find_recomputation(Known& known, const Recomputation& recompute) {
  if (named_by_policy(recompute)) {
    auto& named = known.named[index(recompute.policy)];
    return named ? &*named : nullptr;
  }
  const auto found = std::find_if(known.others.begin(), known.others.end(), [&](const auto& entry) {
    const Recomputation& other = entry.first;
    return other.policy == recompute.policy &&
           other.distribute_saved_activations == recompute.distribute_saved_activations &&
           other.ops == recompute.ops;
  });
  return found == known.others.end() ? nullptr : &found->second;
}

template <class Known, class T>
T& add_recomputation(Known& known, const Recomputation& recompute, const T& value) {
  if (named_by_policy(recompute)) return known.named[index(recompute.policy)].emplace(value);
  return known.others.emplace_back(recompute, value).second;
}

}  // namespace

LayerPrices::LayerPrices(const Request& base) : base_(base), known_(base.model, base.software) {}

LayerPrices::Symbolic& LayerPrices::symbolic_of(const Strategy& strategy) {
  const std::shared_ptr<const ModelLayers>& layers = known_.of(strategy);
  const Sharding sharding = sharding_of(base_.model, strategy);
  std::vector<Sharding> of_kinds;
  for (const LayerKind& kind : layers->kinds) {
    of_kinds.push_back(sharding_of(kind.sizes, sharding, strategy.tensor_parallel));
  }
  for (Symbolic& symbolic : symbolic_) {
    if (symbolic.layers == layers && symbolic.sharding == sharding && symbolic.of_kinds == of_kinds &&
        symbolic.keep_pipeline_outputs == strategy.keep_pipeline_outputs &&
        symbolic.gradient_dtype == kept_gradient_dtype(strategy, base_.workload, base_.software) &&
        symbolic.sums_gradients == !reduces_in_passes(strategy, base_.workload, base_.software) &&
        symbolic.matrices == steps_matrices(strategy.optimizer.kind)) {
      return symbolic;
    }
  }
  Symbolic& symbolic = symbolic_.emplace_back();
  symbolic.layers = layers;
  symbolic.sharding = sharding;
  symbolic.of_kinds = std::move(of_kinds);
  symbolic.keep_pipeline_outputs = strategy.keep_pipeline_outputs;
  symbolic.gradient_dtype = kept_gradient_dtype(strategy, base_.workload, base_.software);
  symbolic.sums_gradients = !reduces_in_passes(strategy, base_.workload, base_.software);
  symbolic.matrices = steps_matrices(strategy.optimizer.kind);
  symbolic.parameters =
      model_parameter_exprs(*layers, sharding, strategy.tensor_parallel, strategy.optimizer.kind);
  return symbolic;
}

LayerPrices::Nodes LayerPrices::nodes_of(const Strategy& strategy) const {
  const std::int64_t connected = connected_devices(base_.system, devices(strategy));
  return {.used = std::min(devices(strategy), connected), .connected = connected};
}

void LayerPrices::select(const Strategy& strategy) {
  strategy_ = strategy;
  const auto [entry, added] =
      priced_.try_emplace({strategy.tensor_parallel,
                           strategy.context_parallel,
                           strategy.cp_comm,
                           context_inner(base_.model, strategy),
                           strategy.expert_parallel,
                           strategy.expert_tensor_parallel,
                           strategy.moe_dispatcher,
                           strategy.moe_router_padding,
                           strategy.moe_pad_to_capacity,
                           strategy.micro_batch,
                           nodes_of(strategy),
                           strategy.sequence_parallel,
                           strategy.split_hidden,
                           strategy.save_gathered_input,
                           strategy.keep_pipeline_outputs,
                           kept_gradient_dtype(strategy, base_.workload, base_.software),
                           strategy.precision,
                           strategy.precision_scope,
                           scale_group(strategy, nodes_of(strategy).connected),
                           reduces_in_passes(strategy, base_.workload, base_.software),
                           grows_gradients(strategy, base_.workload, base_.software),
                           autocasts(base_.model, strategy, base_.software),
                           autocasts_adapters(strategy, base_.software),
                           steps_matrices(strategy.optimizer.kind),
                           strategy.lora});
  now_ = &entry->second;
  const Offload& offload = strategy.offload;
  offloaded_ =
      offloads_activations(offload) ? &now_->offloaded[{offload.modules, offload.layers > 0}] : nullptr;
  if (!added) return;
  now_->symbolic = &symbolic_of(strategy);
  now_->parameters = evaluate(now_->symbolic->parameters, bindings(base_.model, strategy, base_.workload));
}

const ModelActivations& LayerPrices::activations(const Recomputation& recompute) {
  if (offloaded_ == nullptr) return before_offloading(recompute);
  if (const ModelActivations* known = find_recomputation(*offloaded_, recompute)) return *known;
  ModelActivations parts = before_offloading(recompute);
  set_offloaded(parts, layers(), now_->symbolic->sharding, strategy_.offload, recompute, base_.detail,
                bindings(base_.model, strategy_, base_.workload));
  return add_recomputation(*offloaded_, recompute, parts);
}

const ModelActivations& LayerPrices::before_offloading(const Recomputation& recompute) {
  if (const ModelActivations* known = find_recomputation(now_->activations, recompute)) return *known;
  ByRecomputation<ModelActivationExprs>& symbolic = now_->symbolic->activations;
  const ModelActivationExprs* exprs = find_recomputation(symbolic, recompute);
  if (exprs == nullptr) {
    Strategy strategy = strategy_;
    strategy.recompute = recompute;
    exprs = &add_recomputation(
        symbolic, recompute,
        model_activation_exprs(layers(), now_->symbolic->sharding, strategy, base_.detail));
  }
  const Bindings letters = bindings(base_.model, strategy_, base_.workload);
  ModelActivations parts = evaluate(*exprs, letters);
  set_backward_peaks(parts, layers(), now_->symbolic->sharding, recompute, base_.detail, base_.software,
                     letters, unit_gradient_dtype(strategy_, base_.workload, base_.software), now_->peaks);
  return add_recomputation(now_->activations, recompute, parts);
}

Bytes LayerPrices::dummy_gradients(const KindCounts& counts) {
  if (base_.software.memory.dummy_gradients != DummyGradients::kept_by_shape) return Bytes(0);
  KindCounts present = counts;  // a shape is kept once, however many layers have it
  for (auto& count : present) count = std::min<std::int64_t>(count, 1);
  for (const auto& [kinds, bytes] : now_->dummy_gradients) {
    if (kinds == present) return bytes;
  }
  const Bytes bytes = headroom::dummy_gradients(layers(), present, now_->symbolic->sharding, base_.software,
                                                bindings(base_.model, strategy_, base_.workload));
  now_->dummy_gradients.emplace_back(present, bytes);
  return bytes;
}

Bytes LayerPrices::logits() const {
  return Bytes(logits_of_stage(layers(), now_->symbolic->sharding)
                   .evaluate(bindings(base_.model, strategy_, base_.workload)));
}

Bindings LayerPrices::letters(std::size_t kind) const {
  return bindings_of(layers().kinds[kind].sizes, bindings(base_.model, strategy_, base_.workload));
}

const PricedModel& LayerPrices::prices() {
  if (now_->model) return *now_->model;
  Symbolic& symbolic = *now_->symbolic;
  const Setting setting = setting_of(base_.model, strategy_, base_.workload, nodes_of(strategy_).connected,
                                     *base_.system.performance, base_.software);
  if (!symbolic.work) symbolic.work = model_work(layers(), setting);
  return now_->model.emplace(priced(*symbolic.work, setting));
}

const DeferredActivations& LayerPrices::deferred() {
  if (now_->deferred) return *now_->deferred;
  return now_->deferred.emplace(deferred_activations(
      layers(), now_->symbolic->sharding, bindings(base_.model, strategy_, base_.workload), base_.detail));
}

const ModelCost& LayerPrices::cost(const Recomputation& recompute) {
  if (const ModelCost* known = find_recomputation(now_->costs, recompute)) return *known;
  return add_recomputation(now_->costs, recompute, model_cost(prices(), layers(), recompute));
}

}  // namespace headroom
