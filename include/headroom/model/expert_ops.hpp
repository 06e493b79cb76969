// The rows of a mixture of experts between its normalization and its residual add, as Megatron-Core runs them with grouped
// products and fused permutation [Megatron-LM, core/transformer/moe: router, token_dispatcher, experts, shared_experts].
//
//   router  route  permute  dispatch  sort  expert_up  expert_activation  [weigh]  expert_down  unsort  combine  unpermute
//   [shared_up  shared_activation  shared_down  [shared_gate]]  add_shared
//
// Every token goes to q of E experts, so that a rank sends q s b rows, or r s b where a row goes once to each rank that has
// any of its experts, and its experts compute on I q s b of them: I = 1 where the load is even. The rows do not depend on how many
// ranks share the experts.
#pragma once

#include "headroom/model/mlp_ops.hpp"

namespace headroom {

// Copies of a token that dispatch sends.
constexpr Monomial copies(const Experts& experts) {
  return experts.dispatcher == Dispatcher::once_per_rank ? symbols::r : symbols::q;
}

struct Routed {
  ValueId tokens;         // that dispatch sends
  ValueId probabilities;  // of the chosen experts
  ValueId map;            // from rows back to tokens
};

// Scores, the q best of them, and the tokens in the order of their experts.
constexpr Routed route(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  const Experts& experts = *layer.arch.experts;
  const Dtype dtype = experts.router_dtype;
  const ValueId logits = layer.table.value({"router logits", E * s * b, dtype});
  Op router{.name = "router", .kind = OpKind::linear, .inputs = {input}, .outputs = {logits}};
  router.always_half = true;
  router.saves = {{input, why::weight_gradient}};
  router.products = {{.rows = {s * b, Placement::boundary},
                      .inner = {h, Placement::whole},
                      .outer = {{E, Placement::whole}}}};
  if (experts.router_bias) router.parameters = {{E, Placement::whole}};
  layer.table.op(router);

  Op choose{.name = "route", .inputs = {logits}};
  // Before the choice all scores are functions of all logits; after it, of those of the chosen.
  const bool chosen_only = experts.scores == RouterScores::softmax;
  layer.keep(choose, {"router scores", (chosen_only ? q : E) * s * b, Dtype::fp32}, why::input_gradient);
  layer.keep(choose, {"chosen experts", q * s * b, Dtype::int64}, "where gradients of the scores go");
  if (experts.scores == RouterScores::sigmoid) {
    layer.keep(choose, {"sum of the chosen scores", s * b, Dtype::fp32}, why::other_factor);
    layer.keep(choose, {"normalized scores", q * s * b, Dtype::fp32}, why::other_factor);
  }
  if (experts.auxiliary_loss) {
    layer.keep(choose, {"scores of the auxiliary loss", E * s * b, Dtype::fp32}, why::other_factor);
  }
  layer.keep(choose, {"routing map", E * s * b, Dtype::boolean}, "which scores were chosen");
  const ValueId sparse = layer.table.value({"probabilities", E * s * b, dtype});
  choose.outputs.push_back(sparse);
  choose.saves.push_back({sparse, "the dispatcher holds it until the tokens are back"});
  layer.table.op(choose);

  Op permute{.name = "permute", .kind = OpKind::copy, .inputs = {input, sparse}};
  const Routed routed{layer.table.value({"permuted tokens", copies(experts) * s * b * h}),
                      layer.table.value({"permuted probabilities", q * s * b, dtype}),
                      layer.table.value({"row map", 2 * E * s * b, Dtype::int32})};
  permute.outputs = {routed.tokens, routed.probabilities, routed.map};
  permute.saves = {{routed.map, "which row each token came from"}};
  layer.table.op(permute);
  return routed;
}

// The experts of a rank, on the rows that reach it; returns what goes back.
constexpr ValueId grouped_experts(OpBuilder& layer, const Routed& routed) {
  using namespace symbols;
  const Dtype dtype = layer.arch.experts->router_dtype;
  const int projections = is_gated(layer.arch.activation) ? 2 : 1;
  const Monomial rows = q * I * s * b;
  const Monomial copied = copies(*layer.arch.experts) * s * b * h;
  const auto across = [](ParallelAxis axis, Conjugate name, ValueId value) {
    return Exchange{.axis = axis, .name = name, .value = value};
  };
  const auto value = [&](std::string_view name, const Monomial& elements, Placement placement,
                         Dtype of = Dtype::half) {
    return layer.table.value({name, elements, of, placement});
  };

  // The rank whose experts are wanted most receives I times the mean.
  const ValueId received = value("received tokens", I * copied, Placement::boundary);
  const ValueId weights = value("received probabilities", rows, Placement::boundary, dtype);
  layer.table.op({.name = "dispatch",
                  .kind = OpKind::transfer,
                  .inputs = {routed.tokens, routed.probabilities},
                  .outputs = {received, weights},
                  .exchanges = {across(ParallelAxis::expert, Conjugate::dispatch, received),
                                across(ParallelAxis::expert, Conjugate::dispatch, weights)}});

  const ValueId input = value("expert input", rows * h, Placement::routed);
  const ValueId factors = value("expert probabilities", rows, Placement::routed, dtype);
  const ValueId order = value("order of the rows", 2 * rows, Placement::routed, Dtype::int32);
  layer.table.op({.name = "sort",
                  .kind = OpKind::copy,
                  .inputs = {received, weights},
                  .outputs = {input, factors, order},
                  .saves = {{order, "which row each came from"}},
                  .exchanges = {across(ParallelAxis::expert_tensor, Conjugate::g, input)}});

  // A product for each expert of the rank, all in one kernel.
  const bool biases = layer.arch.linear_bias;
  const auto linear = [&](std::string_view name, ValueId in, ValueId out, const Amount& inner,
                          const Amount& outer) {
    Op op{.name = name, .kind = OpKind::linear, .region = Placement::split, .inputs = {in}, .outputs = {out}};
    op.saves = {{in, why::weight_gradient}};
    op.products = {{.batch = {E, Placement::experts},
                    .rows = {rows / E, Placement::expert_rows},
                    .inner = inner,
                    .outer = {outer}}};
    if (biases) op.parameters = {{E * outer.count, Placement::experts}};
    op.weights = WeightClass::expert;
    layer.table.op(op);
  };
  const bool gated = projections == 2;
  const ValueId up = value(gated ? "gate and up" : "up", projections * rows * g, Placement::split);
  const bool scale_inputs = layer.arch.experts->scale_inputs;
  ValueId scaled = input;
  if (scale_inputs) {
    scaled = value("scaled input", rows * h, Placement::routed);
    layer.table.op({.name = "scale_inputs",
                    .inputs = {input, factors},
                    .outputs = {scaled},
                    .saves = {{input, why::other_factor}, {factors, why::other_factor}}});
  }
  linear("expert_up", scaled, up, {h, Placement::whole}, {projections * g, Placement::expert_split});
  const bool unfused = layer.arch.experts->weighting == Fusion::unfused && !scale_inputs;
  ValueId active =
      activation(layer, up, "expert_activation", rows * g, unfused || scale_inputs ? nowhere : factors);
  if (unfused) {  // a product of half and fp32 is in fp32, and so are its gradients
    const ValueId weighted = value("weighted", rows * g, Placement::split);
    layer.table.op({.name = "weigh",
                    .region = Placement::split,
                    .inputs = {active, factors},
                    .outputs = {weighted},
                    .saves = {{active, why::other_factor}, {factors, why::other_factor}},
                    .temporaries = {value("fp32 gradient", rows * g, Placement::split, Dtype::fp32),
                                    value("fp32 products", rows * g, Placement::split, Dtype::fp32)},
                    .input_gradient = Dtype::fp32});
    active = weighted;
  }
  const ValueId output = value("expert output", rows * h, Placement::routed);
  linear("expert_down", active, output, {g, Placement::expert_split}, {h, Placement::whole});

  const ValueId sent = value("output of the experts", I * copied, Placement::boundary);
  layer.table.op({.name = "unsort",
                  .kind = OpKind::copy,
                  .inputs = {output},
                  .outputs = {sent},
                  .saves = {{order, "which row each came from"}},
                  .exchanges = {across(ParallelAxis::expert_tensor, Conjugate::g_bar, output)}});
  const ValueId returned = value("returned tokens", copied, Placement::boundary);
  layer.table.op({.name = "combine",
                  .kind = OpKind::transfer,
                  .inputs = {sent},
                  .outputs = {returned},
                  .exchanges = {across(ParallelAxis::expert, Conjugate::combine, sent)}});
  return returned;
}

constexpr ValueId mixture(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  const Routed routed = route(layer, input);
  const ValueId returned = grouped_experts(layer, routed);
  const ValueId summed = layer.table.value({"sum over experts", s * b * h});
  layer.table.op({.name = "unpermute",
                  .kind = OpKind::copy,
                  .inputs = {returned},
                  .outputs = {summed},
                  .saves = {{routed.map, "which row each token came from"}}});
  const Experts& experts = *layer.arch.experts;
  if (experts.shared_feedforward == 0) return summed;

  ValueId shared = mlp(layer, input, {"shared_up", "shared_activation", "shared_down", u});
  if (experts.shared_gate) {
    const ValueId score = layer.table.value({"gate score", s * b});
    Op gate{.name = "shared_gate", .kind = OpKind::linear, .inputs = {input}, .outputs = {score}};
    gate.always_half = true;
    gate.saves = {{input, why::weight_gradient}};
    gate.products = {{.rows = {s * b, Placement::boundary},
                      .inner = {h, Placement::whole},
                      .outer = {{1, Placement::whole}}}};
    layer.table.op(gate);
    const ValueId gated = layer.table.value({"gated output", s * b * h});
    layer.table.op({.name = "apply_shared_gate",
                    .inputs = {shared, score},
                    .outputs = {gated},
                    .saves = {{shared, why::other_factor}, {score, why::other_factor}}});
    shared = gated;
  }
  const ValueId output = layer.table.value({"mixture output", s * b * h});
  layer.table.op({.name = "add_shared", .inputs = {summed, shared}, .outputs = {output}, .adds = true});
  return output;
}

}  // namespace headroom
