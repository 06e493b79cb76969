// The op tables of the two ends of the model [K22 section 4.3]: the embedding before the first layer, and the
// head (final normalization, output layer, loss) after the last.
#pragma once

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/op_builder.hpp"
#include "headroom/model/vocabulary.hpp"

namespace headroom {

// Returns the table of the embedding. With `vocabulary` and several TP ranks that hold all rows, each rank
// embeds all tokens.
HEADROOM_VECTOR_CONSTEXPR OpTable embedding_ops(const Architecture& architecture,
                                                const VocabularyParallel& vocabulary = {}) {
  using namespace symbols;
  OpTable table;
  const bool whole = vocabulary.embedding == EmbeddingParallel::none;
  const ValueId words = table.value({.name = "word embeddings",
                                     .elements = s * b * h,
                                     .placement = whole ? Placement::whole : Placement::boundary});
  const ValueId local = table.value({.name = "local tokens",
                                     .elements = s * b,
                                     .dtype = Dtype::int64,
                                     .placement = Placement::whole,
                                     .detail = Detail::exact,
                                     .tensor_parallel_only = true});
  const ValueId elsewhere = table.value({.name = "tokens of other ranks",
                                         .elements = s * b,
                                         .dtype = Dtype::boolean,
                                         .placement = Placement::whole,
                                         .detail = Detail::exact,
                                         .tensor_parallel_only = true});
  Op lookup{.name = "word_embedding", .kind = OpKind::embedding, .outputs = {words}};
  if (whole) {
    lookup.parameters = {{v * h, Placement::whole}};
    lookup.exchanges = {{.axis = ParallelAxis::tensor, .name = Conjugate::scatter, .value = words}};
  } else {
    lookup.region = Placement::split;
    lookup.outputs = {words, local, elsewhere};
    lookup.saves = {{local, "the rows whose gradient is written"},
                    {elsewhere, "rows of other ranks get none"}};
    lookup.parameters = {{v * h, Placement::split}};
  }
  table.op(lookup);

  Op positions{.name = "embedding_dropout", .inputs = {words}};
  if (architecture.positions == Positions::learned) positions.parameters = {{x * h, Placement::whole}};
  if (architecture.hidden_dropout) {
    const ValueId mask = table.value({"dropout mask", s * b * h, architecture.kernels.dropout_mask});
    positions.outputs.push_back(mask);
    positions.saves = {{mask, why::mask}};
  }
  positions.outputs.push_back(table.value({"embedded", s * b * h, architecture.kernels.residual_dtype}));
  if (architecture.positions == Positions::learned) {
    // Added by a kernel of its own where dropout follows: reads two and writes one; its gradient is summed
    // over the sequences of the microbatch.
    const bool own_kernel = architecture.hidden_dropout;
    constexpr std::int64_t half = size_of(Dtype::half);
    positions.traffic = {{"position_add", s * b * h, Placement::boundary, own_kernel ? 3 * half : half,
                          own_kernel ? 2 * half : 0}};
  }
  table.op(positions);
  return table;
}

// Kernels of the loss over s b v logits, which most cast to fp32: bytes an element.
constexpr Traffic cross_entropy_traffic(CrossEntropy kind, Placement logits = Placement::split) {
  using namespace symbols;
  Traffic traffic{.name = "cross_entropy", .elements = s * b * v, .placement = logits};
  constexpr std::int64_t half = size_of(Dtype::half);
  constexpr std::int64_t fp32 = size_of(Dtype::fp32);
  constexpr std::int64_t cast = half + fp32;
  constexpr std::int64_t in_place = fp32 + fp32;
  switch (kind) {
    case CrossEntropy::vocabulary_parallel:  // [Megatron-LM, core/tensor_parallel/cross_entropy.py]
      // to fp32, maximum, subtract, exponential, sum, divide
      traffic.forward = cast + fp32 + in_place + in_place + fp32 + in_place;
      traffic.backward = in_place + cast;  // scale by the loss gradient, to half
      traffic.forward_kernels = 6;
      traffic.backward_kernels = 3;  // with the scattered subtraction of one
      break;
    case CrossEntropy::plain:
    case CrossEntropy::log_softmax_gather:
      traffic.forward = cast + 3 * fp32;  // to fp32; the log-softmax reads twice and writes once
      // zeros, in which the targets' gradients are set; from them and the log-softmax; to half
      traffic.backward = fp32 + 3 * fp32 + cast;
      traffic.forward_kernels = 3;
      traffic.backward_kernels = 4;
      break;
    case CrossEntropy::plain_half:
      traffic.forward = 3 * half;
      traffic.backward = half + 3 * half;
      traffic.forward_kernels = 2;
      traffic.backward_kernels = 3;
      break;
    case CrossEntropy::chunked:
      traffic.forward = cast + 3 * fp32;
      traffic.backward = in_place + cast;  // from the log-softmax, to half
      traffic.forward_kernels = 3;
      traffic.backward_kernels = 2;
      break;
    case CrossEntropy::fused:
      traffic.forward =
          half + 2 * half;          // reads for maximum and sum, then writes the gradient over the logits
      traffic.backward = 2 * half;  // scale by the loss gradient
      break;
    case CrossEntropy::fused_fp32:
      traffic.forward = half + half + fp32;
      traffic.backward = in_place + cast;
      traffic.backward_kernels = 2;
      break;
    case CrossEntropy::linear_fused: traffic.forward = half + 2 * half; break;
    case CrossEntropy::compiled:      // the maximum, and then the sum of exponentials
      traffic.forward = half + half;  // [PyTorch, torch/_decomp/decompositions.py, _log_softmax]
      traffic.backward = half + half;
      break;
    case CrossEntropy::compiled_fp32:  // compiled, with casts to fp32 before it and from fp32 after it
      traffic.forward = cast + fp32 + fp32;
      traffic.backward = fp32 + fp32 + cast;
      traffic.forward_kernels = 2;
      traffic.backward_kernels = 2;
      break;
  }
  return traffic;
}

// Returns the number of logits that exist at once: those of all tokens, of an eighth of the tokens, or of as
// many tokens as make the logits as large as the hidden states.
constexpr Monomial logits_at_once(CrossEntropy kind) {
  using namespace symbols;
  if (kind == CrossEntropy::linear_fused) return s * b * h;
  constexpr std::int64_t chunks = 8;  // torchtitan's default
  return kind == CrossEntropy::chunked ? s * b * v / Monomial(chunks) : s * b * v;
}

namespace detail {

// Adds the gather of all logits on every rank from the part of each. Backward, a rank copies its part out of
// the gradient of all logits. The received buffer exists beside the reordered one [PyTorch,
// torch/distributed/_functional_collectives.py, all_gather_tensor].
constexpr ValueId gathered_logits(OpTable& table, ValueId parts) {
  using namespace symbols;
  const Monomial at_once = table[parts].elements;
  constexpr std::int64_t half = size_of(Dtype::half);
  const ValueId all = table.value({"all logits", at_once, Dtype::half, Placement::whole});
  const ValueId received = table.value({"received logits", at_once, Dtype::half, Placement::whole});
  // In chunks, all of them in turn.
  const ValueId sent = at_once == s * b * v
                           ? all
                           : table.value({"logits of all chunks", s * b * v, Dtype::half, Placement::whole});
  table.op({.name = "gather_logits",
            .kind = OpKind::transfer,
            .inputs = {parts},
            .outputs = {all, received},
            .traffic = {{.name = "part_of_gradient",
                         .elements = s * b * v,
                         .placement = Placement::split,
                         .backward = 2 * half}},
            .exchanges = {{.axis = ParallelAxis::tensor, .name = Conjugate::gather, .value = sent}}});
  return all;
}

}  // namespace detail

HEADROOM_VECTOR_CONSTEXPR OpTable head_ops(const Architecture& architecture,
                                           const VocabularyParallel& vocabulary = {}) {
  using namespace symbols;
  const Kernels& kernels = architecture.kernels;
  const CrossEntropy cross_entropy = kernels.cross_entropy.value_or(CrossEntropy::vocabulary_parallel);
  OpBuilder head{.arch = architecture};
  OpTable& table = head.table;
  const ValueId input = table.value({"last layer's output", s * b * h, kernels.residual_dtype});
  const ValueId normalized = head.norm("final_norm", input);
  const Monomial at_once = logits_at_once(cross_entropy);
  const bool makes_all = vocabulary.loss == LossParallel::none;
  const Placement made = makes_all ? Placement::whole : Placement::split;
  ValueId logits = table.value({"logits", at_once, Dtype::half, made});
  head.linear("output_layer", normalized, {logits},
              {OpBuilder::of_tokens({h, Placement::whole}, {{v, made}})}, {});
  if (makes_all) {  // and the whole gradient of its input
    Op& output_layer = table.change(table.ops().size() - 1);
    output_layer.region = Placement::boundary;
    output_layer.overlaps = false;
  }
  if (vocabulary.loss == LossParallel::gathered) logits = detail::gathered_logits(table, logits);
  const bool has_parts = vocabulary.loss == LossParallel::vocabulary;
  const Placement placed = has_parts ? Placement::split : Placement::whole;
  const Placement region = has_parts ? Placement::split : Placement::boundary;

  if (architecture.final_softcap) {
    const ValueId capped = table.value({"capped logits", at_once, Dtype::half, placed});
    Op softcap{.name = "softcap", .region = region, .inputs = {logits}, .outputs = {capped}};
    if (!in_chunks(cross_entropy)) softcap.saves = {{capped, why::input_gradient}};
    table.op(softcap);
    logits = capped;
  }

  Op loss{.name = "loss", .kind = OpKind::loss, .region = region, .inputs = {logits}};
  // The gradient of the log-softmax is zero except at the targets, and as large as the log-softmax [PyTorch,
  // aten/src/ATen/native/LossNLL.cpp, nll_loss_backward; tools/autograd/derivatives.yaml, gather].
  const Dtype precision = cross_entropy == CrossEntropy::plain_half ? Dtype::half : kernels.logits;
  const Value spread{"gradient of the log-softmax", s * b * v, precision, placed};
  switch (cross_entropy) {
    case CrossEntropy::vocabulary_parallel:
      head.keep(loss, {"softmax", s * b * v, kernels.logits, placed}, why::input_gradient);
      head.keep(loss, {"target mask", s * b, Dtype::boolean, Placement::whole, Detail::exact},
                "targets of other ranks");
      head.keep(loss, {"masked target", s * b, Dtype::int64, Placement::whole, Detail::exact},
                "where to subtract one");
      break;
    case CrossEntropy::plain:
    case CrossEntropy::plain_half:
      head.keep(loss, {"log-softmax", s * b * v, precision, placed}, why::input_gradient);
      head.keep(loss, {"total weight", 1, precision, Placement::whole, Detail::exact},
                "the mean divides by it");
      loss.input_gradient = precision;
      loss.temporaries = {table.value(spread)};
      // The sum of the spread gradient and the softmax, which is scaled into another [PyTorch,
      // distributed/tensor/parallel/loss.py, _nll_loss_and_log_softmax_backward].
      if (vocabulary.distributed) {
        loss.temporaries = {table.value(spread),
                            table.value({"sum with the softmax", s * b * v, precision, placed})};
      }
      break;
    case CrossEntropy::log_softmax_gather:
      head.keep(loss, {"log-softmax", s * b * v, kernels.logits, placed}, why::input_gradient);
      loss.input_gradient = kernels.logits;
      loss.temporaries = {table.value(spread)};
      break;
    case CrossEntropy::fused:
      head.keep(loss, {"logit gradient", s * b * v, Dtype::half, placed},
                "computed in the forward pass, in place");
      loss.in_place = true;
      break;
    case CrossEntropy::fused_fp32:
      head.keep(loss, {"logit gradient", s * b * v, Dtype::fp32, placed}, "computed in the forward pass");
      break;
    case CrossEntropy::
        chunked:  // the input that the output layer keeps stands for the gradient that is kept in its place
      loss.temporaries = {table.value({"fp32 logits", at_once, Dtype::fp32, placed}),
                          table.value({"fp32 softmax", at_once, Dtype::fp32, placed})};
      break;
    case CrossEntropy::linear_fused:
      head.keep(loss, {"weight gradient", v * h, Dtype::half, made}, "computed in the forward pass");
      loss.in_place = true;
      break;
    case CrossEntropy::compiled_fp32:
      head.keep(loss, {"fp32 logits", s * b * v, kernels.logits, placed}, why::input_gradient);
      head.keep(loss, {"maxima and sums", 2 * s * b, kernels.logits, Placement::whole, Detail::exact},
                why::input_gradient);
      loss.input_gradient = kernels.logits;
      break;
    case CrossEntropy::compiled:
      loss.saves = {{logits, why::input_gradient}};
      head.keep(loss, {"maxima and sums", 2 * s * b, kernels.logits, Placement::whole, Detail::exact},
                why::input_gradient);
      break;
  }
  // Logits that are overwritten or saved anyway take no more memory. A chunked loss has no logits that
  // outlive it.
  const bool held = kernels.holds_logits && !loss.in_place && !in_chunks(cross_entropy);
  if (held && cross_entropy != CrossEntropy::compiled && cross_entropy != CrossEntropy::compiled_fp32)
    loss.saves.push_back({logits, "the training loop refers to them"});
  loss.traffic = {cross_entropy_traffic(cross_entropy, placed)};
  if (vocabulary.distributed && cross_entropy == CrossEntropy::plain) {
    constexpr std::int64_t half = size_of(Dtype::half);
    constexpr std::int64_t fp32 = size_of(Dtype::fp32);
    Traffic& traffic = loss.traffic[0];
    // to fp32, maximum, subtract, exponential, sum, subtract
    traffic.forward = half + fp32 + fp32 + 3 * (fp32 + fp32) + fp32;
    // zeros; exponential, added to them, scaled; to half
    traffic.backward = fp32 + (fp32 + fp32) + 3 * fp32 + (fp32 + fp32) + fp32 + half;
    traffic.forward_kernels = 6;
    traffic.backward_kernels = 6;
  }
  table.op(loss);
  return table;
}

}  // namespace headroom
