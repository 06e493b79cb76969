#include "headroom/memory/state.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/counts.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/schedule/order.hpp"

namespace headroom {
namespace {

double whole_count(const Transformer& model) {
  Transformer unpadded = model;
  unpadded.vocabulary_multiple = 1;
  return total(parameters_by_rank(unpadded, Strategy{}, {.global_batch = 1, .sequence = 1}).front());
}

// Return the frozen parameters of a class, and those of them in fewer than 16 bits.
Expr frozen_parameters(const OpTable& table, const Sharding& sharding, WeightClass weights) {
  return sum_over(table, [&](const Op& op) {
    return op.weights == weights && op.frozen ? parameters(op, sharding) : Expr();
  });
}
Expr quantized_weights(const OpTable& table, const Sharding& sharding, WeightClass weights) {
  return sum_over(table, [&](const Op& op) {
    return op.weights == weights && is_quantized(op) ? product_weights(op, sharding) : Expr();
  });
}

// Returns the word embedding on one rank, which tied embeddings share with the output layer.
Expr word_embedding(const ModelLayers& layers, const Sharding& sharding) {
  const auto embedding = std::find_if(layers.kinds.begin(), layers.kinds.end(), [](const LayerKind& kind) {
    return kind.position == KindPosition::first;
  });
  EXPECTS(embedding != layers.kinds.end());
  return on_rank(embedding->ops.ops()[0].parameters[0], sharding);
}

// Returns the optimizer state of one class of weights and of its matrices.
Bytes divided_state(const Optimizer& optimizer, double parameters, double main_params, std::int64_t shards,
                    const MatrixList& matrices) {
  const double moments = moments_size(optimizer);
  const auto divided = [&](double bytes) { return Bytes(std::ceil(bytes / real(shards))); };
  if (!steps_matrices(optimizer.kind)) return divided(parameters * (main_params + moments));
  constexpr double statistic = size_of(Dtype::fp32);
  if (optimizer.kind == OptimizerKind::muon) {
    const MatrixList hidden = hidden_matrices(matrices);
    const double stepped = parameters_in(fullest_share(hidden, shards));
    return Bytes(std::ceil(stepped * (main_params + matrix_moment_size(optimizer)))) +
           divided((parameters - parameters_in(hidden)) * (main_params + moments));
  }
  double factors = 0;
  for (const WeightMatrices& alike : matrices) factors += alike.count * (alike.rows + alike.columns);
  return Bytes(factors * statistic) +
         divided(parameters * main_params + (parameters - parameters_in(matrices)) * statistic);
}

Bytes optimizer_state(const Strategy& strategy, const Parameters& parameters, double main_params,
                      const MatrixList& matrices) {
  const auto divided = [&](WeightClass weights, double held) {
    return divided_state(strategy.optimizer, held, main_params, shards(strategy, weights),
                         of_class(matrices, weights));
  };
  return divided(WeightClass::dense, parameters.dense) + divided(WeightClass::expert, parameters.expert);
}

// Returns the bytes that FP32 moments of the embeddings take beyond 8-bit ones. They are of modules that hold
// whole weights: a shard is another tensor than the one that was named.
Bytes moments_of_embedding(const Transformer& model, const Strategy& strategy, const Software& software) {
  if (!software.memory.fp32_embedding_moments || strategy.data_sharding != DataSharding::none ||
      trains_adapters(strategy.lora))
    return Bytes(0);
  double beyond = 0;
  for (const MomentDtype moment : {strategy.optimizer.exp_avg, strategy.optimizer.exp_avg_sq})
    if (moment == MomentDtype::int8) beyond += size_of(MomentDtype::fp32) - size_of(MomentDtype::int8);
  const bool learned = model.architecture.positions == Positions::learned;
  const double rows =
      real(padded_vocabulary(model, strategy.tensor_parallel)) / real(strategy.tensor_parallel) +
      (learned ? real(model.max_positions) : 0);
  return Bytes(std::ceil(beyond * rows * real(model.hidden)));
}

}  // namespace

double parameter_count(const Transformer& model) {
  Transformer main = model;
  main.mtp_layers = 0;
  return whole_count(main);
}

ParameterCounts parameter_counts(const Transformer& model) {
  Transformer unpadded = model;
  unpadded.vocabulary_multiple = 1;
  unpadded.mtp_layers = 0;
  const ModelLayers layers = layers_of(unpadded);
  const Strategy alone;
  const Workload least{.global_batch = 1, .sequence = 1};
  const Bindings letters = bindings(unpadded, alone, least);
  const ModelParameters parts = model_parameters(unpadded, alone, least);
  const KindCounts counts = counts_of(layers);
  double idle = 0;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    const double experts = parts.kinds[i].expert;
    if (experts == 0) continue;
    const Bindings of_kind = bindings_of(layers.kinds[i].sizes, letters);
    const double count = of_kind[Symbol::experts];
    idle += real(counts[i]) * (experts / count) * (count - of_kind[Symbol::experts_per_token]);
  }
  const double all = parameter_count(model);
  const double embedding = layers.tied_embeddings ? 0 : real(model.vocabulary) * real(model.hidden);
  return {.all = all,
          .active = all - idle,
          .active_without_embedding = all - idle - embedding,
          .predictors = model.mtp_layers > 0 ? whole_count(model) - all : 0};
}

ModelParameterExprs model_parameter_exprs(const ModelLayers& layers, const Sharding& sharding,
                                          std::int64_t tensor_parallel, OptimizerKind optimizer) {
  ModelParameterExprs exprs{
      .kinds = {},
      .matrices = {},
      .shared = layers.tied_embeddings ? word_embedding(layers, sharding) : Expr(),
      .copied = layers.predicts && !layers.tied_embeddings ? word_embedding(layers, sharding) : Expr()};
  for (const LayerKind& kind : layers.kinds) {
    const Sharding of_kind = sharding_of(kind.sizes, sharding, tensor_parallel);
    exprs.kinds.push_back({.sizes = kind.sizes,
                           .dense = parameters(kind.ops, of_kind, WeightClass::dense),
                           .expert = parameters(kind.ops, of_kind, WeightClass::expert),
                           .narrow_dense = narrow_weights(kind.ops, of_kind, WeightClass::dense),
                           .narrow_expert = narrow_weights(kind.ops, of_kind, WeightClass::expert),
                           .narrow_output = narrow_output_weights(kind.ops, of_kind),
                           .frozen_dense = frozen_parameters(kind.ops, of_kind, WeightClass::dense),
                           .frozen_expert = frozen_parameters(kind.ops, of_kind, WeightClass::expert),
                           .quantized_dense = quantized_weights(kind.ops, of_kind, WeightClass::dense),
                           .quantized_expert = quantized_weights(kind.ops, of_kind, WeightClass::expert)});
    if (steps_matrices(optimizer)) exprs.matrices.push_back(matrix_exprs(kind.ops, of_kind));
  }
  return exprs;
}

ModelParameters evaluate(const ModelParameterExprs& exprs, const Bindings& letters) {
  ModelParameters parts{.kinds = {},
                        .shared = exprs.shared.evaluate(letters),
                        .copied = exprs.copied.evaluate(letters),
                        .matrices = {}};
  for (std::size_t i = 0; i < exprs.matrices.size(); ++i) {
    parts.matrices.push_back(evaluate(exprs.matrices[i], bindings_of(exprs.kinds[i].sizes, letters)));
  }
  for (const KindParameterExprs& kind : exprs.kinds) {
    const Bindings of_kind = bindings_of(kind.sizes, letters);
    parts.kinds.emplace_back(kind.dense.evaluate(of_kind), kind.expert.evaluate(of_kind),
                             kind.narrow_dense.evaluate(of_kind), kind.narrow_expert.evaluate(of_kind));
    Parameters& held = parts.kinds.back();
    held.narrow_output = kind.narrow_output.evaluate(of_kind);
    held.frozen_dense = kind.frozen_dense.evaluate(of_kind);
    held.frozen_expert = kind.frozen_expert.evaluate(of_kind);
    held.quantized_dense = kind.quantized_dense.evaluate(of_kind);
    held.quantized_expert = kind.quantized_expert.evaluate(of_kind);
    if (total(trained(held)) > 0) {
      held.beside_dense = held.frozen_dense;
      held.beside_expert = held.frozen_expert;
    }
  }
  return parts;
}

ModelParameters model_parameters(const Transformer& model, const Strategy& strategy, const Workload& workload,
                                 const Software& software) {
  return evaluate(model_parameter_exprs(layers_of(model, strategy, software), sharding_of(model, strategy),
                                        strategy.tensor_parallel, strategy.optimizer.kind),
                  bindings(model, strategy, workload));
}

MatrixList matrices_of_rank(const ModelParameters& parts, const KindCounts& counts, bool both_ends) {
  if (parts.matrices.empty()) return {};
  MatrixList matrices = matrices_of_rank(parts.matrices, counts, parts.shared > 0, both_ends);
  if (has_copy(parts, counts, both_ends)) {
    const auto& head = parts.matrices.back();  // as large as the embedding
    const auto copy =
        std::find_if(head.begin(), head.end(), [](const auto& one) { return one.of_vocabulary; });
    if (copy != head.end()) matrices.push_back(*copy);
  }
  return matrices;
}

std::vector<Parameters> parameters_by_rank(const Transformer& model, const Strategy& strategy,
                                           const Workload& workload) {
  const ModelParameters parts = model_parameters(model, strategy, workload);
  const std::vector<StagePlace> places = stage_places(model, strategy);
  const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, workload));
  std::vector<Parameters> parameters;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    parameters.push_back(
        parameters_of_rank(parts, kinds_of_rank(places, shape, rank), holds_both_ends(shape, rank)));
  }
  return parameters;
}

double copies_size(const Strategy& strategy, int copies) {
  return real(copies) * weight_size(compute_dtype(strategy.precision));
}

double narrow_weight_size(const Strategy& strategy, int copies) {
  const double copied = copies_size(strategy, copies);
  return strategy.fp8_param_gather ? copied : real(size_of(Dtype::half)) + copied;
}

double gathered_narrow_weight_size(const Strategy& strategy) {
  const bool in_type = strategy.fp8_param_gather && strategy.precision != Precision::mxfp8;
  return in_type ? weight_size(compute_dtype(strategy.precision)) : real(size_of(Dtype::half));
}

double stepped_by_rank(const Parameters& held, const Strategy& strategy) {
  const Parameters steps = trained(held);
  return steps.dense / real(shards(strategy, WeightClass::dense)) +
         steps.expert / real(shards(strategy, WeightClass::expert));
}

Parameters with_gradients(const Parameters& held, const Strategy& strategy, const Software& software) {
  Parameters with = trained(held);
  if (!software.sharding.flat_parameters || !shards_weights(strategy)) return with;
  with.dense += held.beside_dense;
  with.expert += held.beside_expert;
  return with;
}

double frozen_bytes(const Parameters& held, BaseDtype base) {
  const Rational each = weight_bytes(base);
  const double quantized_size = real(each.numerator()) / real(each.denominator());
  const double quantized = held.quantized_dense + held.quantized_expert;
  return (held.frozen_dense + held.frozen_expert - quantized) * real(size_of(Dtype::half)) +
         quantized * quantized_size;
}

ModelState model_state(const Transformer& model, const Strategy& strategy, const Workload& workload,
                       const Parameters& parameters, int copies, const Software& software,
                       const MatrixList& matrices) {
  const bool shards_fp32 = shards_main_params(software, strategy.optimizer);
  const bool weight_copies = keeps_fp32_weights(model, strategy, software);
  const bool fp32_weights = weight_copies || shards_fp32;
  const double main_params = fp32_weights ? 0 : size_of(strategy.optimizer.main_params);
  const double dense_shards = real(shards(strategy, WeightClass::dense));
  const double expert_shards = real(shards(strategy, WeightClass::expert));
  const auto sharded = [&](double dense, double expert) {
    return Bytes(std::ceil(dense / dense_shards)) + Bytes(std::ceil(expert / expert_shards));
  };
  const Parameters stepped = trained(parameters);
  const Parameters graded = with_gradients(parameters, strategy, software);
  const auto gradient =
      real(size_of(weight_copies ? Dtype::fp32 : kept_gradient_dtype(strategy, workload, software)));
  const double weight = real(size_of(fp32_weights ? Dtype::fp32 : Dtype::half));
  const auto weights = [&](const Parameters& held) {
    const double frozen = frozen_bytes(held, strategy.lora.base);
    const double all = total(trained(held));
    const double narrow = held.narrow_dense + held.narrow_expert;
    if (shards_fp32) return all * weight + frozen;
    return (all - narrow) * weight + narrow * narrow_weight_size(strategy, copies) +
           held.narrow_output * copies_size(strategy, copies) + frozen;
  };
  ModelState state{.weights = Bytes(std::ceil(weights(parameters))),
                   .gradients = Bytes(total(graded) * gradient),
                   .optimizer = optimizer_state(strategy, stepped, main_params, matrices)};
  if (strategy.pipeline_parallel == 1) state.optimizer += moments_of_embedding(model, strategy, software);
  if (shards_weights(strategy)) {
    state.weights = sharded(weights(of_class(parameters, WeightClass::dense)),
                            weights(of_class(parameters, WeightClass::expert)));
  }
  if (const double fraction = strategy.offload.optimizer.value; fraction > 0) {
    // The host also holds pinned FP32 gradients of the parameters that it steps, unless it frees each at once.
    const double gradient_on_host = strategy.step_in_backward ? 0 : size_of(Dtype::fp32);
    state.on_host = Bytes(std::ceil(fraction * state.optimizer.count())) +
                    fraction * sharded(stepped.dense * gradient_on_host, stepped.expert * gradient_on_host);
    state.optimizer -= Bytes(std::ceil(fraction * state.optimizer.count()));
  }
  // Weights that passes compute with.
  const bool gathered = shards_weights(strategy) && !gathers_in_passes(strategy);
  const bool cast = shards_fp32 && !gathers_in_passes(strategy) && !weight_copies &&
                    !autocasts_adapters(strategy, software);
  if (gathered || cast) state.weights += gathered_bytes(gathered ? parameters : stepped, strategy);
  if (reduces_in_passes(strategy, workload, software)) {
    state.gradients = sharded(graded.dense * gradient, graded.expert * gradient);
  }
  if (reduces_by_group(strategy)) {
    const double whole = std::min(1.0, 2 / real(strategy.virtual_pipeline));
    state.gradients = whole * state.gradients + sharded(stepped.dense * gradient, stepped.expert * gradient);
  }
  for (const WeightClass of : {WeightClass::dense, WeightClass::expert}) {
    if (copies_gradients(strategy, software, of))
      state.gradients += Bytes(total(of_class(stepped, of)) * gradient);
  }
  const StackMemory& memory = software.memory;
  if (memory.keeps_half_gradients && gradient > real(size_of(Dtype::half)) && !weight_copies)
    state.gradients += Bytes(total(stepped) * real(size_of(Dtype::half)));
  // The flat buffer of gradients is where they are stepped [DeepSpeed, runtime/zero/stage3.py, self.device].
  if (memory.flat_gradients != FlatGradients::none && reduces_in_passes(strategy, workload, software))
    state.gradients = (1 - strategy.offload.optimizer.value) * state.gradients;
  if (workload.reference_model && !trains_adapters(strategy.lora)) {
    // A frozen copy in 16 bits. With adapters, the model without them is the reference.
    const double half = size_of(Dtype::half);
    state.weights += shards_weights(strategy)
                         ? sharded(total(of_class(parameters, WeightClass::dense)) * half,
                                   total(of_class(parameters, WeightClass::expert)) * half)
                         : Bytes(std::ceil(total(parameters) * half));
  }
  if (strategy.offload.parameters) {
    // The gradients that the host steps are counted with the optimizer state.
    state.on_host += state.weights;
    state.weights = Bytes(0);
    if (reduces_in_passes(strategy, workload, software)) state.gradients = Bytes(0);
  }
  if (strategy.step_in_backward) state.gradients = Bytes(0);
  return state;
}

Bytes gathered_bytes(const Parameters& parameters, const Strategy& strategy) {
  const double narrow = parameters.narrow_dense + parameters.narrow_expert;
  return Bytes((total(trained(parameters)) - narrow) * real(size_of(Dtype::half)) +
               narrow * gathered_narrow_weight_size(strategy) + frozen_bytes(parameters, strategy.lora.base));
}

}  // namespace headroom
