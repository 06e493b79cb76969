#include "headroom/parallel/strategy_layers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "headroom/core/contains.hpp"
#include "headroom/model/expert_groups.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/selective_ops.hpp"

namespace headroom {

double parts_per_token(const Bindings& letters, double parts) {
  return parts_met({.experts = letters[Symbol::experts],
                    .per_token = letters[Symbol::experts_per_token],
                    .groups = letters[Symbol::expert_groups],
                    .groups_per_token = letters[Symbol::expert_groups_per_token]},
                   parts);
}

namespace {

double expert_ranks_per_token(const Bindings& letters) {
  return parts_per_token(letters, letters[Symbol::expert_parallel]);
}

}  // namespace

double keys_met(std::int64_t window, double sequence) {
  const auto width = static_cast<double>(window);
  return window > 0 && width < sequence ? 2 * width - width * width / sequence : sequence;
}

double keys_in_chunk(std::int64_t chunk, double sequence) {
  const auto size = static_cast<double>(chunk);
  if (chunk == 0 || size >= sequence) return sequence;
  const double rest = std::fmod(sequence, size);
  return ((sequence - rest) * size + rest * rest) / sequence;
}

bool autocasts(const Transformer& model, const Strategy& strategy, const Software& software) {
  const auto not_modelled = [](const Architecture& layer) {
    return layer.experts || layer.latent_attention || has_mixer(layer.mixers);
  };
  return software.sharding.autocast && strategy.data_sharding == DataSharding::none &&
         strategy.optimizer.main_params == MainParams::fp32 && !is_narrow(strategy.precision) &&
         !trains_adapters(strategy.lora) && !any_layer(model, not_modelled);
}

Bindings bindings(const Transformer& model, const Strategy& strategy, const Workload& workload) {
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  Bindings letters;
  letters.bind(Symbol::global_batch, number(workload.global_batch))
      .bind(Symbol::heads, number(model.heads))
      .bind(Symbol::key_value_heads, number(model.key_value_heads))
      .bind(Symbol::sequence, number(workload.sequence))
      .bind(Symbol::micro_batch, number(strategy.micro_batch))
      .bind(Symbol::hidden, number(model.hidden))
      .bind(Symbol::head_size, number(model.head_size))
      .bind(Symbol::feedforward, number(model.feedforward))
      .bind(Symbol::vocabulary, number(padded_vocabulary(model, strategy.tensor_parallel)))
      .bind(Symbol::max_positions, number(std::max(model.max_positions, workload.sequence)))
      .bind(Symbol::layers, number(model.layers))
      .bind(Symbol::microbatches, number(microbatches(strategy, workload)))
      .bind(Symbol::data_parallel, number(strategy.data_parallel))
      .bind(Symbol::virtual_pipeline, number(strategy.virtual_pipeline))
      .bind(Symbol::pipeline_parallel, number(strategy.pipeline_parallel))
      .bind(Symbol::tensor_parallel, number(strategy.tensor_parallel));
  const AxisSizes sizes = axis_sizes(strategy);
  letters.bind(Symbol::context_parallel, number(sizes[ParallelAxis::context]))
      .bind(Symbol::context_inner, number(context_inner(model, strategy)))
      .bind(Symbol::expert_parallel, number(sizes[ParallelAxis::expert]))
      .bind(Symbol::expert_tensor_parallel, number(sizes[ParallelAxis::expert_tensor]));
  const Experts experts = model.architecture.experts.value_or(Experts{});
  letters.bind(Symbol::experts, number(experts.count))
      .bind(Symbol::experts_per_token, number(experts.per_token))
      .bind(Symbol::expert_groups, number(experts.groups))
      .bind(Symbol::expert_groups_per_token, number(groups_per_token(experts)))
      .bind(Symbol::expert_feedforward, number(experts.feedforward))
      .bind(Symbol::shared_feedforward, number(experts.shared_feedforward))
      .bind(Symbol::expert_latent, number(experts.latent))
      .bind(Symbol::imbalance, strategy.moe_pad_to_capacity
                                   ? capacity_factor(model)
                                   : fullest_rank(workload.moe_imbalance, model, strategy.expert_parallel));
  for_each_mixer_letter(
      [&](Symbol letter) { letters.bind(letter, number(mixer_size(model.architecture.mixers, letter))); });
  const LatentAttention latent = model.architecture.latent_attention.value_or(LatentAttention{});
  letters.bind(Symbol::query_rank, number(latent.q_rank))
      .bind(Symbol::key_value_rank, number(latent.kv_rank))
      .bind(Symbol::plain_head_size, number(latent.nope_head_size))
      .bind(Symbol::rotary_head_size, number(latent.rope_head_size))
      .bind(Symbol::value_head_size, number(latent.value_head_size))
      .bind(Symbol::keys_met, keys_met(model.architecture.window, number(workload.sequence)))
      .bind(Symbol::keys_in_chunk,
            keys_in_chunk(model.architecture.attention_chunk, number(workload.sequence)));
  return letters.bind(Symbol::expert_ranks_per_token, expert_ranks_per_token(letters));
}

namespace {

// Sizes that decide how many ranks hold the experts of a token.
constexpr std::array letters_of_choice{Symbol::experts, Symbol::experts_per_token, Symbol::expert_groups,
                                       Symbol::expert_groups_per_token};

}  // namespace

Bindings bindings_of(const KindSizes& sizes, Bindings of_model) {
  bool experts = false;
  for (const auto& [letter, size] : sizes) {
    const double sequence = of_model[Symbol::sequence];
    of_model.bind(letter, letter == Symbol::keys_met        ? keys_met(size, sequence)
                          : letter == Symbol::keys_in_chunk ? keys_in_chunk(size, sequence)
                                                            : static_cast<double>(size));
    experts = experts || contains(letters_of_choice, letter);
  }
  return experts ? of_model.bind(Symbol::expert_ranks_per_token, expert_ranks_per_token(of_model)) : of_model;
}

Sharding sharding_of(const KindSizes& sizes, Sharding of_model, std::int64_t tensor_parallel) {
  for (const auto& [letter, size] : sizes) {
    if (letter == Symbol::key_value_heads) of_model.kv_replicated = size < tensor_parallel;
  }
  return of_model;
}

Sharding sharding_of(const Transformer& model, const Strategy& strategy) {
  const bool tensor = strategy.tensor_parallel > 1;
  Sharding sharding{.tensor = tensor,
                    .sequence = tensor && strategy.sequence_parallel,
                    .hidden = tensor && strategy.sequence_parallel && strategy.split_hidden,
                    .kv_replicated = model.key_value_heads < strategy.tensor_parallel,
                    .save_gathered_input = strategy.save_gathered_input,
                    .cp_comm = strategy.cp_comm};
  if (strategy.context_parallel > 1) sharding.beside.push_back({ParallelAxis::context, symbols::c});
  if (strategy.expert_parallel > 1) sharding.beside.push_back({ParallelAxis::expert, symbols::y});
  if (strategy.expert_tensor_parallel > 1) {
    sharding.beside.push_back({ParallelAxis::expert_tensor, symbols::z});
  }
  return sharding;
}

namespace {

// Adds a module, or the op with this name, whose output is dropped too.
void add_named(RecomputedOps& recomputed, const OpTable& table, std::string_view name) {
  if (const RecomputeModule* const part = find_module(name)) {
    const OpSet ops = ops_of(*part, table);
    recomputed.ops |= ops;
    if (part->discards) recomputed.discarded |= ops;
    return;
  }
  const OpSet ops = ops_named(table, {name});
  recomputed.ops |= ops;
  recomputed.discarded |= ops;
}

}  // namespace

OpTable layer_table(const Transformer& model, const Strategy& strategy) {
  const ModelLayers layers = layers_of(model, strategy);
  const auto first = std::find_if(layers.kinds.begin(), layers.kinds.end(),
                                  [](const LayerKind& kind) { return kind.position == KindPosition::layer; });
  EXPECTS(first != layers.kinds.end());
  return first->ops;
}

RecomputedOps recomputed_ops_of(const OpTable& table, const Recomputation& recompute,
                                const Sharding& sharding) {
  switch (recompute.policy) {
    case RecomputePolicy::none: return {};
    case RecomputePolicy::selective: return {.ops = core_attention_ops(table)};
    case RecomputePolicy::full:
      return {.ops = every_op(table), .shard_checkpoint = recompute.distribute_saved_activations};
    case RecomputePolicy::selective_op: return selective_ops(table, sharding);
    case RecomputePolicy::ops: break;
  }
  RecomputedOps recomputed;
  for (const std::string& name : recompute.ops) add_named(recomputed, table, name);
  return recomputed;
}

RecomputedOps recomputed_ops_of(const LayerKind& kind, const Recomputation& recompute,
                                const Sharding& sharding) {
  if (!is_layer(kind)) return {};
  if (kind.predicts && recompute.policy == RecomputePolicy::ops) {
    Recomputation modules = recompute;
    std::erase_if(modules.ops, [](const std::string& name) { return find_module(name) == nullptr; });
    return recomputed_ops_of(kind.ops, modules, sharding);
  }
  RecomputedOps recomputed = recomputed_ops_of(kind.ops, recompute, sharding);
  if (recompute.policy == RecomputePolicy::selective_op && kind.compiled)
    return needed_of(recomputed, kind.ops);
  if (recompute.policy != RecomputePolicy::ops) return recomputed;
  for (const std::string& name : recompute.ops) {
    for (const std::string& of : {kind.name, kind.described_as}) {
      if (!of.empty() && name.starts_with(of + "."))
        add_named(recomputed, kind.ops, name.substr(of.size() + 1));
    }
  }
  return recomputed;
}

}  // namespace headroom
