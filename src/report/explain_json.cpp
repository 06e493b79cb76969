#include "report/explain_json.hpp"

#include <algorithm>

#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

OrderedJson collective_json(const Collective& collective) {
  return {{"name", name_of(collective.name)},
          {"forward", name_of(forward_kind(collective.name))},
          {"backward", name_of(backward_kind(collective.name))},
          {"bytes", to_string(Expr(collective.bytes))},
          {"backward_bytes", to_string(Expr(collective.backward_bytes))},
          {"recomputed", collective.recomputed},
          {"regathers", collective.regathers}};
}

OrderedJson ops_json(const ExplainedTable& table) {
  OrderedJson ops = OrderedJson::array();
  for (const ExplainedOp& op : table.ops) {
    OrderedJson tensors = OrderedJson::array();
    for (const ExplainedTensor& tensor : op.tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"why", tensor.why},
                         {"dtype", name_of(tensor.dtype)},
                         {"placement", name_of(tensor.placement)},
                         {"saved", tensor.kept},
                         {"size", to_string(tensor.bytes.expression)},
                         {"size_bytes", number(tensor.bytes.value)}});
    }
    OrderedJson collectives = OrderedJson::array();
    for (const auto* list : {&op.before, &op.after}) {
      for (const Collective& collective : *list) collectives.push_back(collective_json(collective));
    }
    ops.push_back({{"name", op.name},
                   {"kind", name_of(op.kind)},
                   {"placement", name_of(op.region)},
                   {"recomputed", op.recomputed},
                   {"stored", to_string(op.kept.expression)},
                   {"stored_bytes", number(op.kept.value)},
                   {"forward_flops", number(op.forward_flops.value)},
                   {"forward_flops_expression", to_string(op.forward_flops.expression)},
                   {"tensors", std::move(tensors)},
                   {"collectives", std::move(collectives)}});
  }
  return ops;
}

OrderedJson sums_json(const ExplainedTable& table) {
  return {{"stored", to_string(table.kept.expression)},
          {"stored_bytes", number(table.kept.value)},
          {"recomputed", to_string(table.dropped.expression)},
          {"recomputed_bytes", number(table.dropped.value)}};
}

OrderedJson kind_json(const ExplainedTable& table) {
  OrderedJson json = sums_json(table);
  json["ops"] = ops_json(table);
  return json;
}

OrderedJson layer_kind_json(const ExplainedTable& table) {
  OrderedJson sizes = OrderedJson::object();
  for (const auto& [letter, value] : table.sizes) sizes[std::string(1, letter_of(letter))] = number(value);
  OrderedJson json{{"name", table.name},
                   {"count", table.count},
                   {"sizes", std::move(sizes)},
                   {"equalities", table.equalities}};
  json.update(kind_json(table));
  return json;
}

// Returns the printed expression, or null if the stages are too uneven for one.
OrderedJson in_symbols(const Derived& derived) {
  if (derived.expression.size() == 0) return nullptr;
  return to_string(derived.expression);
}

// Letters of axes are spoken of where a run uses them, and letters of experts where the model has any.
bool is_idle(Symbol symbol, const Transformer& model, const Bindings& letters) {
  bool of_mixer = false;
  for_each_mixer_letter([&](Symbol letter) { of_mixer = of_mixer || letter == symbol; });
  if (of_mixer) return letters[symbol] == 0;
  switch (symbol) {
    case Symbol::max_positions: return true;
    case Symbol::context_parallel:
    case Symbol::expert_parallel:
    case Symbol::expert_tensor_parallel: return letters[symbol] == 1;
    case Symbol::expert_groups:
    case Symbol::expert_groups_per_token: return letters[Symbol::expert_groups] == 1;
    case Symbol::keys_met: return model.architecture.window == 0;
    case Symbol::keys_in_chunk: return model.architecture.attention_chunk == 0;
    case Symbol::query_rank:
    case Symbol::key_value_rank:
    case Symbol::plain_head_size:
    case Symbol::rotary_head_size:
    case Symbol::value_head_size:
    case Symbol::expert_latent: return letters[symbol] == 0;
    case Symbol::experts:
    case Symbol::experts_per_token:
    case Symbol::expert_ranks_per_token:
    case Symbol::imbalance:
    case Symbol::expert_feedforward:
    case Symbol::shared_feedforward: return !model.architecture.experts;
    default: return symbol == Symbol::context_inner && letters[symbol] == 1;
  }
}

OrderedJson letters_json(const ExplainReply& explanation) {
  OrderedJson json = OrderedJson::array();
  for (const auto& [notation, value] : letters_of(explanation)) {
    json.push_back({{"letter", std::string(1, notation.letter)}, {"meaning", notation.meaning}});
    if (value) json.back()["value"] = number(*value);
  }
  return json;
}

}  // namespace

std::vector<ExplainedLetter> letters_of(const ExplainReply& explanation) {
  const Bindings values = bindings(explanation.model, explanation.strategy, explanation.workload);
  const auto has_own = [&](Symbol symbol) {
    return std::any_of(explanation.kinds.begin(), explanation.kinds.end(), [&](const ExplainedTable& kind) {
      return std::any_of(kind.sizes.begin(), kind.sizes.end(),
                         [&](const auto& size) { return size.letter == symbol; });
    });
  };
  std::vector<ExplainedLetter> letters;
  for (const Notation& entry : notation) {
    const bool of_experts = entry.symbol == Symbol::imbalance && has_own(Symbol::experts);
    if (of_experts || !is_idle(entry.symbol, explanation.model, values)) {
      letters.push_back({entry, values[entry.symbol]});
    } else if (has_own(entry.symbol)) {
      letters.push_back({entry, std::nullopt});
    }
  }
  return letters;
}

bool has_several_kinds(const ExplainReply& explanation) {
  return explanation.kinds[1].position == KindPosition::layer;
}

OrderedJson explain_json(const ExplainReply& explanation) {
  const ExplainedStage& stage = explanation.first_stage;
  const Activations& parts = stage.rank.at_peak;
  const ExplainedTable& layer = explanation.kinds.front();
  const bool several = has_several_kinds(explanation);
  OrderedJson json = {{"format", 2},
                      {"model", to_json(explanation.model, explanation.workload)},
                      {"parameters", to_json(parameter_counts(explanation.model))},
                      {"strategy", to_json(explanation.strategy)},
                      {"workload", to_json(explanation.workload, explanation.strategy)},
                      {"detail", name_of(explanation.detail)},
                      {"letters", letters_json(explanation)},
                      {"equalities", explanation.equalities},
                      {"ops", ops_json(layer)},
                      {"layer", sums_json(layer)}};
  for (const ExplainedTable& kind : explanation.kinds) {
    if (kind.position != KindPosition::layer) {
      json[kind.name] = kind_json(kind);
    } else if (several) {
      json["layer_kinds"].push_back(layer_kind_json(kind));
    }
  }
  json["first_stage"] = OrderedJson{
      {"layers_in_flight", in_symbols(stage.layers_in_flight)},
      {"layers_in_flight_count",
       in_symbols(stage.layers_in_flight).is_null() ? OrderedJson() : number(stage.layers_in_flight.value)},
      {"layers", in_symbols(stage.layer_bytes)},
      {"layers_bytes", number(parts.layers)},
      {"embedding_bytes", number(parts.embedding)},
      {"head_bytes", number(parts.head)},
      {"outputs_bytes", number(parts.outputs)},
      {"recompute_bytes", number(parts.recompute)},
      {"activation_bytes", number(total(parts))}};
  OrderedJson rows = OrderedJson::array();
  for (const ExplainedState& row : explanation.state) {
    rows.push_back({{"of", row.of},
                    {"part", row.part},
                    {"size", to_string(row.bytes.expression)},
                    {"size_bytes", number(row.bytes.value)},
                    {"what", row.what}});
  }
  json["state_of_a_parameter"] = std::move(rows);
  const ModelState& state = explanation.first_rank_state;
  json["first_rank"] = OrderedJson{{"parameters", number(total(explanation.first_rank))},
                                   {"weights_bytes", number(state.weights)},
                                   {"gradients_bytes", number(state.gradients)},
                                   {"optimizer_bytes", number(state.optimizer)}};
  return json;
}

}  // namespace headroom
