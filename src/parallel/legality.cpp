#include "headroom/parallel/legality.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/offload_legality.hpp"
#include "headroom/parallel/optimizer_legality.hpp"
#include "headroom/parallel/precision_legality.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "parallel/adapter_rules.hpp"
#include "parallel/expert_rules.hpp"
#include "parallel/pipeline_rules.hpp"

namespace headroom {
namespace {

// b d, or 0 when it leaves 64 bits.
std::int64_t sequences_per_round(const Strategy& strategy) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(strategy.micro_batch, strategy.data_parallel, &product) ? 0 : product;
}

void check_tensor_parallel(Rules& rules, const Transformer& model, const Strategy& strategy,
                           const Workload& workload) {
  const std::int64_t t = strategy.tensor_parallel;
  const auto check = [&](const auto& layer, std::string_view kind) {
    const bool attends = has_attention(layer.architecture);
    if (attends) rules.require_divides(t, layer.heads, "tensor_parallel", "the attention heads", kind);
    if (has_dense_mlp(layer.architecture)) {
      rules.require_divides(t, layer.feedforward, "tensor_parallel", "the feed-forward width", kind);
    }
    with_mixer(layer.architecture.mixers, [&](const auto& row, const auto& mixer) {
      for (const auto& size : row.sizes) {
        if (size.divided.empty()) continue;
        const std::string what = "the " + std::string(size.divided);
        rules.require_divides(t, mixer.*size.member, "tensor_parallel", what.c_str(), kind);
      }
    });
    if (!attends) return;
    const std::int64_t k = layer.key_value_heads;
    rules.require(t < 1 || k % t == 0 || t % k == 0, "tensor_parallel", [&] {
      return "must divide the key/value heads" + of_layers(kind) + " or be a multiple of them (" +
             std::to_string(k) + " heads, " + std::to_string(t) + " ranks)";
    });
  };
  if (model.layer_kinds.empty()) check(model, "");
  for (const LayerDescription& kind : model.layer_kinds) check(kind, kind.name);
  if (strategy.sequence_parallel && !strategy.split_hidden && strategy.context_parallel >= 1) {
    const bool context = strategy.context_parallel > 1;
    rules.require_divides(t, workload.sequence / strategy.context_parallel, "tensor_parallel",
                          context ? "the tokens of a `context_parallel` rank under `sequence_parallel`"
                                  : "the sequence length under `sequence_parallel`");
  }
}

// Only what lies between blocks whose products are of 16 bits is described along the hidden dimension.
void check_hidden(Rules& rules, const Transformer& model, const Strategy& strategy) {
  if (!strategy.split_hidden) return;
  const char* const field = "split_hidden";
  rules.require(strategy.sequence_parallel && strategy.tensor_parallel > 1, field,
                "needs `sequence_parallel`, and `tensor_parallel` above 1");
  rules.require_divides(strategy.tensor_parallel, model.hidden, "tensor_parallel", "the hidden size", "");
  rules.require(model.layer_kinds.empty() && !any_experts(model) && !model.architecture.latent_attention,
                field, "needs a model whose layers are all alike, without experts and latent attention");
  rules.require(strategy.precision == Precision::bf16, field, "needs `precision` bf16");
  rules.require(strategy.lora.rank == 0, field, "does not go with `lora_rank`");
}

void check_devices(Rules& rules, const Strategy& strategy) {
  std::int64_t replica = 0;
  std::int64_t all = 0;
  const bool countable =
      !__builtin_mul_overflow(strategy.tensor_parallel, strategy.pipeline_parallel, &replica) &&
      !__builtin_mul_overflow(replica, strategy.context_parallel, &replica) &&
      !__builtin_mul_overflow(replica, strategy.data_parallel, &all) && all <= most_count;
  rules.require(countable, "data_parallel",
                [&] { return "must leave at most " + std::to_string(most_count) + " devices"; });
}

void check_batch(Rules& rules, const Strategy& strategy, const Workload& workload) {
  if (strategy.micro_batch < 1 || strategy.data_parallel < 1 || workload.global_batch < 1) return;
  const std::int64_t round = sequences_per_round(strategy);
  const bool divides = round > 0 && workload.global_batch % round == 0;
  rules.require(divides, "global_batch", [&] {
    return "must be a multiple of `micro_batch` times `data_parallel` (" +
           std::to_string(workload.global_batch) + " is not a multiple of " +
           std::to_string(strategy.micro_batch) + " x " + std::to_string(strategy.data_parallel) + ")";
  });
  if (!divides) return;
  const std::int64_t n = workload.global_batch / round;
  rules.require(n <= most_microbatches, "global_batch", [&] {
    return "must give each pipeline at most " + std::to_string(most_microbatches) + " microbatches, not " +
           std::to_string(n);
  });
  check_microbatches(rules, strategy, n);
}

void check_recompute(Rules& rules, const Transformer& model, const Strategy& strategy,
                     const Software& software) {
  const Recomputation& recompute = strategy.recompute;
  rules.require(recompute.layers >= 0 && recompute.layers <= model.layers, "recompute_layers", [&] {
    return "must be between 1 and the " + std::to_string(model.layers) + " layers, not " +
           std::to_string(recompute.layers);
  });
  const bool full = recompute.policy == RecomputePolicy::full;
  const bool some_layers = full || (recompute.policy == RecomputePolicy::ops && !recompute.ops.empty());
  rules.require(some_layers || recompute.layers == 0, "recompute_layers",
                "needs `recompute` full or `recompute_ops`");
  rules.require(
      !recompute.window || recompute.policy != RecomputePolicy::none, "recompute_window",
      "needs `recompute` selective or full: without recomputation there is nothing to exempt from it");
  rules.require(!recompute.window || admits_window(strategy.schedule), "recompute_window", [&] {
    return "needs a `schedule` whose backward passes are whole and come in the order of the forward passes, "
           "not " +
           std::string(name_of(strategy.schedule));
  });
  rules.require(full || !recompute.distribute_saved_activations, "distribute_saved_activations",
                "needs `recompute` full");
  rules.require(
      !recompute.distribute_saved_activations ||
          (strategy.tensor_parallel > 1 && !strategy.sequence_parallel),
      "distribute_saved_activations",
      "needs `tensor_parallel` above 1 without `sequence_parallel`, which shards checkpoints already");
  rules.require(recompute.method == RecomputeMethod::block || (full && recompute.layers > 0),
                "recompute_method",
                "uniform needs `recompute` full and `recompute_layers`, the layers that share a checkpoint");
  // [Megatron-LM, core/transformer/multi_token_prediction.py, _checkpointed_forward; with block it recomputes them not at all]
  rules.require(
      recompute.method != RecomputeMethod::uniform || recompute.layers <= 1 || model.mtp_layers == 0,
      "recompute_layers", "must be 1 with `recompute_method` uniform and `mtp_layers` of the model");
  if (recompute.ops.empty()) return;
  const ModelLayers layers = layers_of(model, strategy, software);
  std::vector<std::string_view> known;
  std::vector<std::string> of_one_kind;
  for (const LayerKind& kind : layers.kinds) {
    if (kind.position != KindPosition::layer) continue;
    const auto add = [&](std::string_view name) {
      if (!contains(known, name)) known.push_back(name);
      if (layer_kind_count(layers) > 1) of_one_kind.push_back(qualified_name(kind, name));
    };
    for (const Op& op : kind.ops.ops()) add(op.name);
    for (const RecomputeModule& part : recompute_modules) {
      if (ops_of(part, kind.ops) != 0) add(part.name);
    }
  }
  for (auto it = recompute.ops.begin(); it != recompute.ops.end(); ++it) {
    const std::string& name = *it;
    rules.require(std::find(recompute.ops.begin(), it, name) == it, "recompute_ops",
                  [&] { return "names '" + name + "' twice"; });
    const bool found = contains(known, name) || contains(of_one_kind, name);
    rules.require(found, "recompute_ops", [&] {
      const bool by_kind = !of_one_kind.empty();
      return "'" + name + "' is neither an op nor a module of " + (by_kind ? "these layers" : "this layer") +
             did_you_mean(name, known) + "; they are " + joined(known) +
             (by_kind ? ", or of one kind, such as " + of_one_kind.front() : "");
    });
  }
}

// Where every rank makes all logits, it makes them of all tokens.
void check_vocabulary(Rules& rules, const Transformer& model, const Strategy& strategy,
                      const Software& software) {
  if (strategy.tensor_parallel < 1) return;
  const bool makes_all = vocabulary_parallel(model, strategy, software).loss == LossParallel::none;
  rules.require(!makes_all || !strategy.sequence_parallel, "sequence_parallel", [&] {
    const bool of_stack = software.vocabulary.loss == LossParallel::none;
    return "must be off on the stack " + software.name + ", whose output layer " +
           (of_stack ? "is" : "with tied embeddings is") + " whole on every tensor-parallel rank";
  });
}

// What data-parallel ranks divide. Which of it a training stack has, stack_legality.hpp says.
void check_data_sharding(Rules& rules, const Transformer& model, const Strategy& strategy) {
  const bool gradients = strategy.data_sharding >= DataSharding::zero2;
  const bool weights = strategy.data_sharding == DataSharding::zero3;
  rules.require(weights || !strategy.no_reshard_after_forward, "no_reshard_after_forward",
                "needs `data_sharding` zero3");
  rules.require(!strategy.sync_each_batch || (gradients && strategy.pipeline_parallel <= 1),
                "sync_each_batch", "needs `data_sharding` zero2 or zero3 without `pipeline_parallel`");
  rules.require(strategy.data_sharding != DataSharding::none || strategy.shard_size == 0, "shard_size",
                "needs `data_sharding`");
  rules.require(
      !gradients || weights || strategy.pipeline_parallel <= 1, "data_sharding",
      "must be none, zero1 or zero3 with `pipeline_parallel`: its microbatches sum gradients whole");
  const bool one_rank = strategy.pipeline_parallel <= 1;
  rules.require(!gradients || !one_rank || !has_weight_passes(strategy.schedule), "data_sharding", [&] {
    return "must be none or zero1 for `schedule` " + std::string(name_of(strategy.schedule)) +
           " on one pipeline rank";
  });
  rules.require(!gradients || !strategy.recompute.window, "recompute_window",
                "needs `data_sharding` none or zero1");
  rules.require(!gradients || !model.architecture.kernels.weight_copies, "data_sharding",
                "must be none or zero1 where `kernels.weight_copies` keeps fp32 weights");
  std::int64_t alike = 0;
  if (strategy.shard_size == 0 || strategy.context_parallel < 1 || strategy.data_parallel < 1 ||
      __builtin_mul_overflow(strategy.context_parallel, strategy.data_parallel, &alike)) {
    return;
  }
  rules.require(strategy.shard_size > 0 && alike % strategy.shard_size == 0, "shard_size", [&] {
    return "must divide the " + std::to_string(alike) + " ranks that hold the same weights, not be " +
           std::to_string(strategy.shard_size);
  });
  if (!any_experts(model) || strategy.shard_size < 1 || alike % strategy.shard_size != 0) return;
  const std::int64_t copies = alike / strategy.shard_size;
  std::int64_t stage = 0;
  std::int64_t of_expert = 0;
  if (__builtin_mul_overflow(strategy.tensor_parallel, alike, &stage) ||
      __builtin_mul_overflow(strategy.expert_parallel, strategy.expert_tensor_parallel, &of_expert) ||
      of_expert < 1 || stage % of_expert != 0) {
    return;
  }
  rules.require(stage / of_expert % copies == 0, "shard_size", [&] {
    return "must leave each of " + std::to_string(copies) + " copies as many of the " +
           std::to_string(stage / of_expert) + " ranks that hold the same experts";
  });
}

}  // namespace

std::vector<Problem> illegalities(const Transformer& model, const Strategy& strategy,
                                  const Workload& workload, const Software& software) {
  Rules rules;
  rules.require_at_least_one(strategy.tensor_parallel, "tensor_parallel");
  rules.require_at_least_one(strategy.pipeline_parallel, "pipeline_parallel");
  rules.require_at_least_one(strategy.virtual_pipeline, "virtual_pipeline");
  rules.require_at_least_one(strategy.context_parallel, "context_parallel");
  rules.require_at_least_one(strategy.data_parallel, "data_parallel");
  rules.require_at_least_one(strategy.expert_parallel, "expert_parallel");
  rules.require_at_least_one(strategy.expert_tensor_parallel, "expert_tensor_parallel");
  rules.require_at_least_one(strategy.micro_batch, "micro_batch");
  rules.require_at_least_one(workload.global_batch, "global_batch");
  rules.require_at_least_one(workload.sequence, "sequence");
  check_tensor_parallel(rules, model, strategy, workload);
  for (Problem& problem : context_illegalities(model, strategy, workload)) {
    rules.problems.push_back(std::move(problem));
  }
  check_experts(rules, model, strategy);
  check_pipeline(rules, model, strategy, software);
  check_devices(rules, strategy);
  check_hidden(rules, model, strategy);
  check_batch(rules, strategy, workload);
  check_recompute(rules, model, strategy, software);
  check_vocabulary(rules, model, strategy, software);
  check_data_sharding(rules, model, strategy);
  check_adapters(rules, model, strategy);
  for (Problem& problem : optimizer_illegalities(model, strategy, software))
    rules.problems.push_back(std::move(problem));
  for (Problem& problem : offload_illegalities(model, strategy)) rules.problems.push_back(std::move(problem));
  for (Problem& problem : precision_illegalities(model, strategy, workload)) {
    rules.problems.push_back(std::move(problem));
  }
  return std::move(rules.problems);
}

}  // namespace headroom
