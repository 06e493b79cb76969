#include "headroom/plan/layer_prices.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/memory/backward.hpp"
#include "headroom/memory/offloaded.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_layers.hpp"

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

PricedLayers LayerPrices::of(const Strategy& strategy) {
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
                           strategy.step_in_backward,
                           autocasts(base_.model, strategy, base_.software),
                           autocasts_adapters(strategy, base_.software),
                           steps_matrices(strategy.optimizer.kind),
                           strategy.lora});
  Priced& priced = entry->second;
  if (added) {
    priced.symbolic = &symbolic_of(strategy);
    priced.parameters =
        evaluate(priced.symbolic->parameters, bindings(base_.model, strategy, base_.workload));
  }
  const Offload& offload = strategy.offload;
  return {base_, strategy, priced,
          offloads_activations(offload) ? &priced.offloaded[{offload.modules, offload.layers > 0}] : nullptr};
}

Bindings PricedLayers::letters() const { return bindings(base_->model, *strategy_, base_->workload); }

const ModelActivations& PricedLayers::activations(const Recomputation& recompute) const {
  if (offloaded_ == nullptr) return before_offloading(recompute);
  if (const ModelActivations* known = find_recomputation(*offloaded_, recompute)) return *known;
  ModelActivations parts = before_offloading(recompute);
  set_offloaded(parts, layers(), symbolic().sharding, strategy_->offload, recompute, base_->detail,
                letters());
  return add_recomputation(*offloaded_, recompute, parts);
}

const ModelActivationExprs& PricedLayers::expressions(const Recomputation& recompute) const {
  if (const ModelActivationExprs* known = find_recomputation(symbolic().activations, recompute))
    return *known;
  Strategy strategy = *strategy_;
  strategy.recompute = recompute;
  return add_recomputation(symbolic().activations, recompute,
                           model_activation_exprs(layers(), symbolic().sharding, strategy, base_->detail));
}

const ModelActivations& PricedLayers::checkpoints() const {
  if (!priced_->checkpoints)
    priced_->checkpoints = evaluate(expressions({.policy = RecomputePolicy::full}), letters());
  return *priced_->checkpoints;
}

const ModelActivations& PricedLayers::before_offloading(const Recomputation& recompute) const {
  if (const ModelActivations* known = find_recomputation(priced_->activations, recompute)) return *known;
  const Bindings values = letters();
  ModelActivations parts = evaluate(expressions(recompute), values);
  set_backward_peaks(parts, layers(), symbolic().sharding, recompute, base_->detail, base_->software, values,
                     pass_gradients(*strategy_, base_->workload, base_->software), priced_->peaks);
  return add_recomputation(priced_->activations, recompute, parts);
}

Bytes PricedLayers::dummy_gradients(const KindCounts& counts) const {
  if (base_->software.memory.dummy_gradients != DummyGradients::kept_by_shape) return Bytes(0);
  KindCounts present = counts;  // a shape is kept once, however many layers have it
  for (auto& count : present) count = std::min<std::int64_t>(count, 1);
  for (const auto& [kinds, bytes] : priced_->dummy_gradients) {
    if (kinds == present) return bytes;
  }
  const Bytes bytes =
      headroom::dummy_gradients(layers(), present, symbolic().sharding, base_->software, letters());
  priced_->dummy_gradients.emplace_back(present, bytes);
  return bytes;
}

Bytes PricedLayers::logits() const {
  return Bytes(logits_of_stage(layers(), symbolic().sharding).evaluate(letters()));
}

Bindings PricedLayers::letters(std::size_t kind) const {
  return bindings_of(layers().kinds[kind].sizes, letters());
}

const PricedModel& PricedLayers::prices() const {
  if (priced_->model) return *priced_->model;
  const Setting setting = setting_of(base_->model, *strategy_, base_->workload,
                                     connected_devices(base_->system, devices(*strategy_)),
                                     *base_->system.performance, base_->software);
  std::optional<ModelWork>& work = symbolic().work;
  if (!work) work = model_work(layers(), setting);
  return priced_->model.emplace(priced(*work, setting));
}

const DeferredActivations& PricedLayers::deferred() const {
  if (priced_->deferred) return *priced_->deferred;
  return priced_->deferred.emplace(
      deferred_activations(layers(), symbolic().sharding, letters(), base_->detail));
}

const ModelCost& PricedLayers::cost(const Recomputation& recompute) const {
  if (const ModelCost* known = find_recomputation(priced_->costs, recompute)) return *known;
  return add_recomputation(priced_->costs, recompute, model_cost(prices(), layers(), recompute));
}

}  // namespace headroom
