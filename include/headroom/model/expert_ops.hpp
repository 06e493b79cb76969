// The rows of a mixture of experts between its normalization and its residual add, as Megatron-Core runs them
// with grouped products and fused permutation [Megatron-LM, core/transformer/moe: router, token_dispatcher,
// experts, shared_experts].
//
//   sent             router  route  permute  dispatch  sort  EXPERTS  unsort  combine  unpermute
//   masked           router  route  masks  permute  dispatch  EXPERTS  combine  unpermute
//   gathered         router  route  dispatch  permute  EXPERTS  unpermute  [cast_sums]  combine  [cast_back]
//
//   If experts read latent tokens, latent_down follows route, and latent_up follows the last row.
//
//   EXPERTS          [pad_rows]  expert_up  [expert_clamp]  expert_activation  [weigh]  expert_down
//                    [unpad_rows]
//   and behind all   [shared_up  shared_activation  shared_down  [shared_gate]]  add_shared
//
// Every token goes to q of E experts. A rank sends q s b copies of tokens, or r s b if a token goes once to
// each rank with any of its experts. Its experts compute on I q s b copies; I = 1 with balanced load. With
// padding to the experts' capacity, ranks send and compute on I q s b, and I is the capacity factor, however
// many tokens there are. With gathering, each rank selects the tokens of its experts from all tokens, and
// sums over ranks return each rank's tokens. The experts' rows depend neither on the dispatcher nor on the
// number of ranks that share the experts.
#pragma once

#include "headroom/model/mlp_ops.hpp"
#include "headroom/model/router_ops.hpp"
#include "headroom/model/routing_operators.hpp"

namespace headroom {

// Values that a rank's experts read, and the map that returns their output.
struct ExpertRows {
  ValueId input;
  ValueId factors;  // probabilities; nowhere: a mask holds them
  ValueId order;    // which row each came from
  ValueId
      tokens;  // likewise, where those are sorted before they leave their rank; or the mask that returns them
  ValueId sent =
      nowhere;  // from its rank, which the forward pass's code refers to until the tokens are back,
  ValueId received =
      nowhere;  // and there, likewise [Megatron-LM, core/transformer/moe/moe_layer.py, custom_forward]
};

namespace detail {

constexpr std::string_view row_origin = "which row each token came from";

constexpr Exchange across(ParallelAxis axis, Conjugate name, ValueId value) {
  return {.axis = axis, .name = name, .value = value};
}

// Returns the width of a token that experts read and write.
constexpr Monomial width_read(const OpBuilder& layer) {
  return layer.arch.experts->latent > 0 ? symbols::D : symbols::h;
}

// Returns the number of copies of a token that leave its rank.
constexpr Monomial copies(Dispatcher dispatcher) {
  return sends_once_to_each_rank(dispatcher) ? symbols::r : symbols::q;
}

// Returns the ratio of what a rank sends, tokens and padding, to the tokens among it.
constexpr Monomial padding(const OpBuilder& layer) {
  return layer.pads_to_capacity ? symbols::I : Monomial(1);
}

constexpr bool masks_tokens(const OpBuilder& layer) {
  return layer.pads_to_capacity && layer.arch.kernels.expert_routing == ExpertRouting::masked;
}

// Adds the rows that send each token to the ranks of its experts.
constexpr ExpertRows sent_rows(OpBuilder& layer, ValueId input, const Choice& choice) {
  using namespace symbols;
  const Dtype dtype = layer.arch.experts->router_dtype;
  const Monomial width = width_read(layer);
  const Monomial copied = copies(layer.dispatcher) * s * b * width;
  Op permute{.name = "permute", .kind = OpKind::copy, .inputs = {input, choice.probabilities}};
  const ValueId tokens = layer.table.value({"permuted tokens", padding(layer) * copied});
  const ValueId probabilities =
      layer.table.value({"permuted probabilities", padding(layer) * q * s * b, dtype});
  const ValueId map = layer.table.value({"row map", 2 * E * s * b, Dtype::int32});
  permute.outputs = {tokens, probabilities, map};
  permute.saves = {{map, row_origin}};
  permute.operators = sends_once_to_each_rank(layer.dispatcher) ? routing::layout : routing::splits;
  layer.table.op(permute);

  // The busiest rank receives I times the mean.
  const Monomial rows = q * I * s * b;
  const ValueId received = layer.table.value({"received tokens", I * copied});
  const ValueId weights = layer.table.value({"received probabilities", rows, dtype});
  layer.table.op({.name = "dispatch",
                  .kind = OpKind::transfer,
                  .inputs = {tokens, probabilities},
                  .outputs = {received, weights},
                  .exchanges = {across(ParallelAxis::expert, Conjugate::dispatch, received),
                                across(ParallelAxis::expert, Conjugate::dispatch, weights)}});

  const ValueId sorted = layer.table.value({"expert input", rows * width, Dtype::half, Placement::routed});
  const ValueId factors = layer.table.value({"expert probabilities", rows, dtype, Placement::routed});
  const ValueId order = layer.table.value({"order of the rows", 2 * rows, Dtype::int32, Placement::routed});
  layer.table.op({.name = "sort",
                  .kind = OpKind::copy,
                  .inputs = {received, weights},
                  .outputs = {sorted, factors, order},
                  .saves = {{order, "which row each came from"}},
                  .exchanges = {across(ParallelAxis::expert_tensor, Conjugate::g, sorted),
                                across(ParallelAxis::expert_tensor, Conjugate::g, factors)},
                  .operators = routing::chunk_map});
  // DeepEP sends tokens without a copy. HybridEP pads tokens itself and delivers them sorted.
  const bool copies_tokens = layer.dispatcher == Dispatcher::alltoall;
  return {.input = sorted,
          .factors = factors,
          .order = order,
          .tokens = map,
          .sent = copies_tokens ? tokens : nowhere,
          .received = copies_tokens || layer.pads_rows ? received : nowhere};
}

// Adds the rows that gather all tokens of the ranks that share the experts, with all their probabilities, on
// each of these ranks. They are gathered first from the ranks that share an expert, then from the others. A
// rank selects its own experts' tokens among them [token_dispatcher.py, MoEAllGatherTokenDispatcher; PyTorch,
// masked_select, which saves what it selects from].
constexpr ExpertRows gathered_rows(OpBuilder& layer, ValueId input, const Choice& choice) {
  using namespace symbols;
  const Dtype dtype = layer.arch.experts->router_dtype;
  Op dispatch{
      .name = "dispatch", .kind = OpKind::transfer, .inputs = {input, choice.probabilities, choice.map}};
  const auto gather = [&](std::string_view name, const Monomial& elements, Dtype of, Conjugate how) {
    const ValueId partly = layer.table.value({name, elements, of, Placement::routed});
    const ValueId all = layer.table.value({name, elements, of, Placement::expert_rows});
    dispatch.outputs.push_back(partly);
    dispatch.outputs.push_back(all);
    dispatch.exchanges.push_back(across(ParallelAxis::expert_tensor, how, partly));
    dispatch.exchanges.push_back(across(ParallelAxis::expert, how, all));
    return all;
  };
  const ValueId tokens = gather("gathered tokens", s * b * width_read(layer), Dtype::half, Conjugate::g);
  const ValueId probabilities = gather("gathered probabilities", E * s * b, dtype, Conjugate::g);
  gather("gathered map", E * s * b, Dtype::boolean, Conjugate::gather);  // which has no gradient
  layer.table.op(dispatch);

  const Monomial rows = q * I * s * b;
  Op permute{.name = "permute", .kind = OpKind::copy, .inputs = {tokens, probabilities}};
  const ValueId selected =
      layer.table.value({"expert input", rows * width_read(layer), Dtype::half, Placement::routed});
  const ValueId factors = layer.table.value({"expert probabilities", rows, dtype, Placement::routed});
  permute.outputs = {selected, factors};
  layer.keep(permute, {"row map", 2 * E * s * b, Dtype::int32, Placement::routed}, row_origin);
  const ValueId map = permute.outputs[2];
  layer.keep(permute, {"own probabilities", E * s * b, dtype, Placement::routed}, "selects from it");
  layer.keep(permute, {"own map", E * s * b, Dtype::boolean, Placement::routed}, "which scores were chosen");
  permute.operators = routing::layout;
  layer.table.op(permute);
  return {selected, factors, map, nowhere};
}

// Adds the rows that return the experts' output to each token's rank. Returns the sums over experts.
constexpr ValueId returned_sums(OpBuilder& layer, const ExpertRows& rows, ValueId output) {
  using namespace symbols;
  const Monomial width = width_read(layer);
  const Monomial copied = copies(layer.dispatcher) * s * b * width;
  const ValueId sent = layer.table.value({"output of the experts", I * copied});
  Exchange scatter = across(ParallelAxis::expert_tensor, Conjugate::g_bar, output);
  // Megatron-LM sums over ranks in the precision of the probabilities.
  if (layer.dispatcher == Dispatcher::alltoall) scatter.dtype = layer.arch.experts->router_dtype;
  layer.table.op({.name = "unsort",
                  .kind = OpKind::copy,
                  .inputs = {output},
                  .outputs = {sent},
                  .saves = {{rows.order, "which row each came from"}},
                  .exchanges = {scatter},
                  .operators = routing::chunk_map});
  layer.table.hold(rows.input);  // routed_experts_compute: dispatched_input
  const ValueId returned = layer.table.value({"returned tokens", padding(layer) * copied});
  layer.table.op({.name = "combine",
                  .kind = OpKind::transfer,
                  .inputs = {sent},
                  .outputs = {returned},
                  .exchanges = {across(ParallelAxis::expert, Conjugate::combine, sent)}});
  const ValueId summed = layer.table.value({"sum over experts", s * b * width});
  layer.table.op({.name = "unpermute",
                  .kind = OpKind::copy,
                  .inputs = {returned},
                  .outputs = {summed},
                  .saves = {{rows.tokens, row_origin}}});
  layer.table.hold(rows.sent);
  layer.table.hold(rows.received);
  if (rows.received != nowhere) layer.table.hold(sent);  // combine: output
  return summed;
}

// Adds the sum over ranks of each rank's sums for all tokens, in the precision of the probabilities. Returns
// the sums over experts.
constexpr ValueId scattered_sums(OpBuilder& layer, const ExpertRows& rows, ValueId output) {
  using namespace symbols;
  const Dtype dtype = layer.arch.experts->router_dtype;
  const auto sums = [&](std::string_view name, Dtype of, Placement placement) {
    return layer.table.value({name, s * b * width_read(layer), of, placement});
  };
  ValueId own = sums("sums over own experts", Dtype::half, Placement::expert_rows);
  layer.table.op({.name = "unpermute",
                  .kind = OpKind::copy,
                  .inputs = {output},
                  .outputs = {own},
                  .saves = {{rows.order, row_origin}}});
  if (dtype != Dtype::half) {
    const ValueId half = own;
    own = sums("sums over own experts", dtype, Placement::expert_rows);
    layer.table.op({.name = "cast_sums", .kind = OpKind::copy, .inputs = {half}, .outputs = {own}});
  }
  const ValueId partly = sums("scattered sums", dtype, Placement::routed);
  const ValueId scattered = sums("sum over experts", dtype, Placement::boundary);
  layer.table.op({.name = "combine",
                  .kind = OpKind::transfer,
                  .inputs = {own},
                  .outputs = {partly, scattered},
                  .exchanges = {across(ParallelAxis::expert, Conjugate::g_bar, own),
                                across(ParallelAxis::expert_tensor, Conjugate::g_bar, partly)}});
  if (dtype == Dtype::half) return scattered;
  const ValueId summed = sums("sum over experts", Dtype::half, Placement::boundary);
  layer.table.op({.name = "cast_back", .kind = OpKind::copy, .inputs = {scattered}, .outputs = {summed}});
  return summed;
}

// Adds the rows that make the masks of each sequence, and send tokens to the places of their experts by a
// product with the first. The second brings them back, and holds the probabilities.
constexpr ExpertRows masked_rows(OpBuilder& layer, ValueId input, const Choice& choice) {
  using namespace symbols;
  const Monomial width = width_read(layer);
  const Monomial places = q * I * s;  // of a sequence's tokens among all experts
  const auto mask = [&](std::string_view name) { return layer.table.value({name, s * places * b}); };
  const ValueId where = mask("dispatch mask");
  const ValueId weighing = mask("combine mask");
  layer.table.op(
      {.name = "masks", .inputs = {choice.probabilities, choice.map}, .outputs = {where, weighing}});
  const ValueId placed = layer.table.value({"permuted tokens", places * b * width});
  layer.table.op({.name = "permute",
                  .kind = OpKind::mask_product,
                  .inputs = {input, where},
                  .outputs = {placed},
                  .saves = {{where, why::other_factor}},
                  .products = {{.batch = {b, Placement::whole},
                                .rows = {width, Placement::whole},
                                .inner = {s, Placement::boundary},
                                .outer = {{places, Placement::whole}},
                                .sums_tokens = true}},
                  .frozen = true});
  const ValueId received = layer.table.value({"received tokens", places * b * width});
  const ValueId gathered =
      layer.table.value({"expert input", places * b * width, Dtype::half, Placement::routed});
  layer.table.op({.name = "dispatch",
                  .kind = OpKind::transfer,
                  .inputs = {placed},
                  .outputs = {received, gathered},
                  .exchanges = {across(ParallelAxis::expert, Conjugate::dispatch, received),
                                across(ParallelAxis::expert_tensor, Conjugate::g, gathered)}});
  return {.input = gathered, .factors = nowhere, .order = nowhere, .tokens = weighing};
}

// Adds the rows that bring the experts' output back by a mask. Returns the sums over experts.
constexpr ValueId masked_sums(OpBuilder& layer, const ExpertRows& rows, ValueId output) {
  using namespace symbols;
  const Monomial width = width_read(layer);
  const Monomial places = q * I * s;
  const ValueId sent = layer.table.value({"output of the experts", places * b * width});
  const ValueId returned = layer.table.value({"returned tokens", places * b * width});
  layer.table.op({.name = "combine",
                  .kind = OpKind::transfer,
                  .inputs = {output},
                  .outputs = {sent, returned},
                  .exchanges = {across(ParallelAxis::expert_tensor, Conjugate::g_bar, output),
                                across(ParallelAxis::expert, Conjugate::combine, sent)}});
  const ValueId summed = layer.table.value({"sum over experts", s * b * width});
  layer.table.op({.name = "unpermute",
                  .kind = OpKind::mask_product,
                  .inputs = {rows.tokens, returned},
                  .outputs = {summed},
                  .saves = {{returned, why::other_factor}, {rows.tokens, why::other_factor}},
                  .products = {{.batch = {b, Placement::whole},
                                .rows = {s, Placement::boundary},
                                .inner = {places, Placement::whole},
                                .outer = {{width, Placement::whole}}}}});
  return summed;
}

}  // namespace detail

namespace detail {

// Adds the product of experts' outputs with their probabilities, by operators of the framework.
constexpr ValueId weighted_output(OpBuilder& layer, ValueId output, ValueId factors) {
  const Monomial elements = layer.table[output].elements;
  const auto value = [&](std::string_view name, Dtype dtype) {
    return layer.table.value({name, elements, dtype, Placement::routed});
  };
  constexpr std::int64_t half = size_of(Dtype::half);
  constexpr std::int64_t fp32 = size_of(Dtype::fp32);
  const ValueId weighted = value("weighted output", Dtype::half);
  Op op{.name = "weigh_output",
        .inputs = {output, factors},
        .outputs = {weighted},
        .saves = {{factors, why::other_factor}}};
  op.unfused = true;
  Traffic traffic{.name = op.name, .elements = elements, .placement = Placement::routed};
  if (layer.arch.kernels.expert_weighting == ExpertWeighting::output_fp32) {
    layer.keep(op, {"fp32 output", elements, Dtype::fp32, Placement::routed}, why::other_factor);
    // Gradients of the output and, before they are summed, of the probabilities.
    op.temporaries = {value("fp32 gradient", Dtype::fp32), value("fp32 products", Dtype::fp32)};
    traffic.forward = (half + fp32) + (fp32 + fp32) + (fp32 + half);  // cast, multiplied, cast
    traffic.backward = (half + fp32) + (fp32 + fp32) + (3 * fp32) + fp32 + (fp32 + half);
    traffic.forward_kernels = 3;
    traffic.backward_kernels = 5;
  } else {
    op.saves.push_back({output, why::other_factor});
    op.temporaries = {value("products", Dtype::half)};
    traffic.forward = half + half;
    traffic.backward = (half + half) + (3 * half) + half;
    traffic.forward_kernels = 1;
    traffic.backward_kernels = 3;
  }
  op.traffic = {traffic};
  layer.table.op(op);
  return weighted;
}

}  // namespace detail

// Adds the experts of a rank, on the tokens that reach it. Returns their output.
constexpr ValueId grouped_experts(OpBuilder& layer, const ExpertRows& given) {
  using namespace symbols;
  const int projections = is_gated(layer.arch.activation) ? 2 : 1;
  const Monomial rows = q * I * s * b;
  const Monomial width = detail::width_read(layer);
  const ValueId factors = given.factors;
  const auto value = [&](std::string_view name, const Monomial& elements, Placement placement,
                         Dtype of = Dtype::half) {
    return layer.table.value({name, elements, of, placement});
  };

  // GEMMs in fewer than 16 bits need numbers of tokens that are multiples. The experts' tokens are copied to
  // padded buffers and back [Megatron-LM, core/transformer/moe/experts.py, quantization_padding; Transformer
  // Engine, module/fp8_padding.py].
  const auto copied = [&](std::string_view name, ValueId of, std::string_view made) {
    if (!layer.pads_rows) return of;
    const ValueId copy = value(made, rows * width, Placement::routed);
    layer.table.op({.name = name, .kind = OpKind::copy, .inputs = {of}, .outputs = {copy}});
    return copy;
  };
  const ValueId input = copied("pad_rows", given.input, "padded input");

  // One GEMM for each expert of the rank, all in one kernel.
  const bool biases = layer.arch.linear_bias;
  const auto linear = [&](std::string_view name, ValueId in, ValueId out, const Amount& inner,
                          const Amount& outer, bool first) {
    Op op{.name = name, .kind = OpKind::linear, .region = Placement::split, .inputs = {in}, .outputs = {out}};
    op.saves = {{in, why::weight_gradient}};
    op.products = {{.batch = {E, Placement::experts},
                    .rows = {rows / E, Placement::expert_rows},
                    .inner = inner,
                    .outer = {outer}}};
    if (biases) op.parameters = {{E * outer.count, Placement::experts}};
    op.weights = WeightClass::expert;
    op.host_waits = first && !layer.pads_to_capacity;  // token counts of the experts size the GEMMs
    if (biases && !first)
      op.traffic.push_back(routing::weighted_bias(rows * width, layer.arch.experts->router_dtype,
                                                  layer.arch.kernels.expert_bias.value_or(Fusion::unfused)));
    layer.table.op(op);
  };
  const bool gated = projections == 2;
  const ValueId up = value(gated ? "gate and up" : "up", projections * rows * g, Placement::split);
  const bool weighs = factors != nowhere;
  const bool scale_inputs = layer.arch.experts->scale_inputs && weighs;
  ValueId scaled = input;
  if (scale_inputs) {
    scaled = value("scaled input", rows * width, Placement::routed);
    layer.table.op({.name = "scale_inputs",
                    .inputs = {input, factors},
                    .outputs = {scaled},
                    .saves = {{input, why::other_factor}, {factors, why::other_factor}}});
  }
  linear("expert_up", scaled, up, {width, Placement::whole}, {projections * g, Placement::expert_split},
         true);
  const bool of_outputs =
      weighs && layer.arch.kernels.expert_weighting != ExpertWeighting::activation && !scale_inputs;
  const bool unfused =
      weighs && layer.arch.experts->weighting == Fusion::unfused && !scale_inputs && !of_outputs;
  constexpr Feedforward names{
      .activation = "expert_activation", .clamp = "expert_clamp", .quantize = "expert_quantize"};
  ValueId active =
      activation(layer, up, names, rows * g, unfused || scale_inputs || of_outputs ? nowhere : factors);
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
  const ValueId output = value("expert output", rows * width, Placement::routed);
  linear("expert_down", active, output, {g, Placement::expert_split}, {width, Placement::whole}, false);
  ValueId unpadded = copied("unpad_rows", output, "unpadded output");
  if (of_outputs) unpadded = detail::weighted_output(layer, unpadded, factors);
  layer.table.hold(input);  // experts.py, permuted_local_hidden_states
  return unpadded;
}

constexpr ValueId mixture(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  const bool gathers = layer.dispatcher == Dispatcher::allgather;
  const Experts& experts = *layer.arch.experts;
  const Choice chosen = choice(layer, input);
  // Every rank holds both projections whole and applies them to its own tokens [Megatron-LM,
  // core/transformer/moe/moe_layer.py].
  ValueId tokens = input;
  if (experts.latent > 0) {
    tokens = layer.table.value({"latent tokens", s * b * D});
    layer.repeated_linear("latent_down", input, {tokens}, {{D, Placement::whole}});
  }
  ValueId summed = nowhere;
  if (detail::masks_tokens(layer)) {
    const ExpertRows rows = detail::masked_rows(layer, tokens, chosen);
    summed = detail::masked_sums(layer, rows, grouped_experts(layer, rows));
  } else if (gathers) {
    const ExpertRows rows = detail::gathered_rows(layer, tokens, chosen);
    summed = detail::scattered_sums(layer, rows, grouped_experts(layer, rows));
  } else {
    const ExpertRows rows = detail::sent_rows(layer, tokens, chosen);
    summed = detail::returned_sums(layer, rows, grouped_experts(layer, rows));
  }
  if (experts.latent > 0) {
    const ValueId latent = summed;
    summed = layer.table.value({"projected sum", s * b * h});
    layer.repeated_linear("latent_up", latent, {summed}, {{h, Placement::whole}}, D);
  }
  if (experts.shared_feedforward == 0) return summed;

  ValueId shared = mlp(layer, input,
                       {.up = "shared_up",
                        .activation = "shared_activation",
                        .clamp = "shared_clamp",
                        .quantize = "shared_quantize",
                        .down = "shared_down",
                        .width = u});
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
