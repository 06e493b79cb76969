// The rows of a router: scores of experts for each token, and the choice of the best.
#pragma once

#include "headroom/model/op_builder.hpp"
#include "headroom/model/routing_operators.hpp"

namespace headroom {

// Router output for each token and every expert.
struct Choice {
  ValueId probabilities;  // zero where an expert was not chosen
  ValueId map;            // marks the chosen experts
};

// Adds the scores of experts, and the choice of the q best.
constexpr Choice choice(OpBuilder& layer, ValueId input) {
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
  choose.operators = routing::choice;
  // Before the choice all scores are functions of all logits; after it, of those of the chosen.
  const bool chosen_only = experts.scores == RouterScores::softmax;
  layer.keep(choose, {"router scores", (chosen_only ? q : E) * s * b, Dtype::fp32}, why::input_gradient);
  layer.keep(choose, {"chosen experts", q * s * b, Dtype::int64}, "where gradients of the scores go");
  if (experts.scores == RouterScores::sigmoid) {
    layer.keep(choose, {"sum of the chosen scores", s * b, Dtype::fp32}, why::other_factor);
    layer.keep(choose, {"normalized scores", q * s * b, Dtype::fp32}, why::other_factor);
    choose.operators = choose.operators + routing::normalization;
  }
  if (experts.auxiliary_loss) {
    choose.operators = choose.operators + routing::auxiliary_loss;
    layer.keep(choose, {"scores of the auxiliary loss", E * s * b, Dtype::fp32}, why::other_factor);
  }
  const ValueId map = layer.table.value({"routing map", E * s * b, Dtype::boolean});
  const Choice made{.probabilities = layer.table.value({"probabilities", E * s * b, dtype}), .map = map};
  choose.outputs.push_back(made.map);
  choose.outputs.push_back(made.probabilities);
  if (layer.dispatcher != Dispatcher::allgather) {
    choose.saves.push_back({made.map, "which scores were chosen"});
    choose.saves.push_back({made.probabilities, "the dispatcher holds it until the tokens are back"});
  }
  layer.table.op(choose);
  return made;
}

}  // namespace headroom
