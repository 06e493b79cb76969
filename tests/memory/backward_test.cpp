// What is alive during the ops of a backward pass, against the tensors that one would list by hand.
#include "headroom/memory/backward.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/memory/rank.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/composer.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

Software stack(DummyGradients dummies, GradientAccumulation accumulation = GradientAccumulation::fused) {
  Software software;
  software.gradient_accumulation = accumulation;
  software.memory.backward_buffers = true;
  software.memory.dummy_gradients = dummies;
  return software;
}

// A layer of a Llama: h = 8, f = 24, 4 heads of 2, 2 key/value heads; s b = 10 tokens.
constexpr double tokens = 10;
Transformer small_llama() {
  Transformer model = read_model("llama-3-8b");
  model.hidden = 8;
  model.feedforward = 24;
  model.heads = 4;
  model.key_value_heads = 2;
  model.head_size = 2;
  model.layers = 2;
  model.vocabulary = 16;
  return model;
}
constexpr Workload two_sequences{.global_batch = 2, .sequence = 5};
Strategy with_two_sequences() { return {.micro_batch = 2}; }

std::string_view op_name(const Transformer& model, const OpPlace& place) {
  const ModelLayers layers = layers_of(model);
  return layers.kinds[static_cast<std::size_t>(place.kind)]
      .ops.ops()[static_cast<std::size_t>(place.op)]
      .name;
}

ModelActivations peaks(const Transformer& model, const Strategy& strategy, const Software& software) {
  ModelActivations parts = model_activations(model, strategy, two_sequences, Detail::paper);
  KnownPeaks known;
  set_backward_peaks(parts, layers_of(model), sharding_of(model, strategy), strategy.recompute, Detail::paper,
                     software, bindings(model, strategy, two_sequences), /*weight_gradients=*/{}, known);
  return parts;
}

TEST_CASE("backward peak: a stack that counts none of it has what it had") {
  const Transformer model = small_llama();
  const ModelActivations plain = model_activations(model, with_two_sequences(), two_sequences, Detail::paper);
  CHECK(peaks(model, with_two_sequences(), {}) == plain);
  CHECK(stage_activations(model, with_two_sequences(), two_sequences, Detail::paper) ==
        stage_activations(model, with_two_sequences(), two_sequences, Detail::paper, Software{}));
}

TEST_CASE("backward peak: of a gated layer it is during the activation") {
  const Transformer model = small_llama();
  const BackwardPeak peak =
      peaks(model, with_two_sequences(), stack(DummyGradients::none)).kinds[0].plain.peaks.backward;
  CHECK(op_name(model, peak.during) == "activation");
  // Of the stream (2 h), of what was activated (2 f), of gate and up (4 f); the input of mlp_down (2 f) is freed.
  CHECK(peak.gradients == Bytes(tokens * (2 * 8 + 2 * 24 + 4 * 24)));
  CHECK(peak.freed == Bytes(tokens * 2 * 24));
  CHECK(peak.recompute == 0_B);
  CHECK(peak.gathered == 0_B);
  CHECK(peak.weight_gradients == 0_B);
}

TEST_CASE(
    "backward peak: half-precision logits' gradient beside the fp32 softmax, or the output layer's weight "
    "gradient") {
  Transformer model = small_llama();
  const BackwardPeak loss =
      peaks(model, with_two_sequences(), stack(DummyGradients::none)).kinds[2].plain.peaks.backward;
  CHECK(op_name(model, loss.during) == "loss");
  CHECK(loss.logits == Bytes(tokens * 2 * 16));
  CHECK(total(loss) == loss.logits);
  // A dummy for h v weights is more than the softmax of ten tokens, which is freed by then.
  model.hidden = 64;
  model.head_size = 16;
  const BackwardPeak linear =
      peaks(model, with_two_sequences(), stack(DummyGradients::kept_by_shape)).kinds[2].plain.peaks.backward;
  CHECK(op_name(model, linear.during) == "output_layer");
  CHECK(linear.weight_gradients == Bytes(2 * 64 * 16));
  CHECK(linear.logits == Bytes(tokens * 2 * 16));
  CHECK(linear.gradients == Bytes(tokens * 2 * 64));
  CHECK(linear.freed == Bytes(tokens * 4 * 16));
}

TEST_CASE(
    "backward peak: a loss that overwrites its logits makes no gradient beside them, a plain one two in "
    "fp32") {
  Transformer model = small_llama();
  model.architecture.kernels.cross_entropy = CrossEntropy::fused;
  const BackwardPeak fused =
      peaks(model, with_two_sequences(), stack(DummyGradients::none)).kinds[2].plain.peaks.backward;
  CHECK(op_name(model, fused.during) != "loss");
  model.architecture.kernels.cross_entropy = CrossEntropy::plain;
  const BackwardPeak plain =
      peaks(model, with_two_sequences(), stack(DummyGradients::none)).kinds[2].plain.peaks.backward;
  CHECK(op_name(model, plain.during) == "loss");
  CHECK(plain.logits == Bytes(tokens * (4 + 4) * 16));
}

TEST_CASE(
    "backward peak: a compiled loss holds half-precision logits and their gradient, and nothing in fp32") {
  Transformer model = small_llama();
  model.vocabulary = model.vocabulary_multiple = 4096;
  model.architecture.kernels.cross_entropy = CrossEntropy::compiled;
  const ModelActivations held = peaks(model, with_two_sequences(), stack(DummyGradients::none));
  const BackwardPeak compiled = held.kinds[2].plain.peaks.backward;
  CHECK(op_name(model, compiled.during) == "loss");
  CHECK(compiled.logits == Bytes(tokens * 2 * 4096));
}

TEST_CASE("backward peak: a loss in chunks holds an eighth of the logits, in three tensors") {
  Transformer model = small_llama();
  model.vocabulary = model.vocabulary_multiple = 4096;
  const auto peak = [&](CrossEntropy kind) {
    model.architecture.kernels.cross_entropy = kind;
    return peaks(model, with_two_sequences(), stack(DummyGradients::none)).kinds[2].plain.peaks.backward;
  };
  const BackwardPeak chunked = peak(CrossEntropy::chunked);
  CHECK(op_name(model, chunked.during) == "loss");
  CHECK(chunked.logits == Bytes(tokens * (2 + 4 + 4) * 4096 / 8));
  CHECK(total(chunked) < total(peak(CrossEntropy::plain)));
  CHECK(peak(CrossEntropy::fused_fp32).logits == Bytes(tokens * 2 * 4096));
}

TEST_CASE(
    "backward peak: under sequence parallelism the output layer has its input gathered, and its gradient "
    "whole") {
  Transformer model = small_llama();
  model.hidden = 64;
  model.head_size = 16;
  Strategy strategy = with_two_sequences();
  strategy.tensor_parallel = 2;
  strategy.sequence_parallel = true;
  const BackwardPeak peak =
      peaks(model, strategy, stack(DummyGradients::kept_by_shape)).kinds[2].plain.peaks.backward;
  CHECK(op_name(model, peak.during) == "output_layer");
  CHECK(peak.gathered == Bytes(tokens * 2 * 64));
  CHECK(peak.gradients == Bytes(tokens * 2 * 64 * 1.5));  // whole, and the shard that is left of it
  CHECK(peak.weight_gradients == Bytes(2 * 64 * 16 / 2));
  // One that saves gathered inputs gathers none.
  strategy.save_gathered_input = true;
  CHECK(peaks(model, strategy, stack(DummyGradients::kept_by_shape)).kinds[2].plain.peaks.backward.gathered ==
        0_B);
}

TEST_CASE("backward peak: separate accumulation makes every weight gradient beside their sum") {
  Transformer model = small_llama();
  model.hidden = 512;  // weights of far more elements than ten tokens have
  model.head_size = 128;
  for (const auto& [accumulation, dummies] :
       {std::pair{GradientAccumulation::separate, DummyGradients::none},
        std::pair{GradientAccumulation::fused, DummyGradients::transient}}) {
    const BackwardPeak peak =
        peaks(model, with_two_sequences(), stack(dummies, accumulation)).kinds[0].plain.peaks.backward;
    CHECK(op_name(model, peak.during) == "qkv");
    CHECK(peak.weight_gradients == Bytes(2.0 * 512 * (512 + 2 * 256)));
  }
}

TEST_CASE(
    "backward peak: a recomputation of the whole layer is alive from its last op, and goes as its ops do") {
  const Transformer model = small_llama();
  Strategy strategy = with_two_sequences();
  strategy.recompute.policy = RecomputePolicy::full;
  const ModelActivations parts = peaks(model, strategy, stack(DummyGradients::none));
  const LayerActivations& full = parts.kinds[0].recomputed;
  const BackwardPeak& plain = parts.kinds[0].plain.peaks.backward;
  CHECK(full.peaks.backward.during == plain.during);
  CHECK(full.peaks.backward.gradients == plain.gradients);
  CHECK(full.peaks.backward.freed == 0_B);  // the checkpoint is needed until the first op
  CHECK(full.peaks.backward.recompute == full.recomputed - plain.freed);
}

TEST_CASE("dummy gradients: one for each distinct shape of the layers' weights") {
  Transformer model = small_llama();
  const Strategy strategy = with_two_sequences();
  const auto kept = [&] {
    return dummy_gradients(layers_of(model), {2, 1, 1}, sharding_of(model, strategy),
                           stack(DummyGradients::kept_by_shape), bindings(model, strategy, two_sequences));
  };
  // 8 x 16 of qkv, 8 x 8 of the projection, 8 x 48 and 24 x 8 of the MLP.
  CHECK(kept() == Bytes(2 * (8 * 16 + 8 * 8 + 8 * 48 + 24 * 8)));
  // Four linears of attention with the same shape share one.
  model.key_value_heads = 4;
  model.architecture.kernels.qkv = QkvLinear::separate;
  CHECK(kept() == Bytes(2 * (8 * 8 + 8 * 48 + 24 * 8)));
}

TEST_CASE("backward peak: a plan with it needs no less, and its terms come to its total") {
  CHECK(rc::check([] {
    Request request = gpt3_on_a100();
    request.model.layers = 8;
    request.strategy = {.tensor_parallel = *rc::gen::element<std::int64_t>(1, 2, 8),
                        .pipeline_parallel = *rc::gen::element<std::int64_t>(1, 2, 4),
                        .micro_batch = *rc::gen::element<std::int64_t>(1, 2)};
    request.strategy.sequence_parallel = *rc::gen::arbitrary<bool>();
    request.strategy.recompute.policy =
        *rc::gen::element(RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full);
    const Plan before = account(evaluate(request));
    request.software = stack(
        *rc::gen::element(DummyGradients::none, DummyGradients::transient, DummyGradients::kept_by_shape));
    const Plan after = account(evaluate(request));
    for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
      const RankMemory& memory = after.ranks[rank];
      // Without it, core attention is made again while all that its layer saved is there still.
      if (request.strategy.recompute.policy != RecomputePolicy::selective)
        RC_ASSERT(total(memory) >= total(before.ranks[rank]));
      const Activations& parts = memory.activations.at_peak;
      RC_ASSERT(total(parts) == parts.layers + parts.embedding + parts.head + parts.outputs +
                                    parts.recompute + parts.gradients + parts.logits + parts.gathered +
                                    parts.weight_gradients + parts.forward_values);
      RC_ASSERT(parts.layers >= 0_B);
      RC_ASSERT(parts.head >= 0_B);
      RC_ASSERT(parts.recompute >= 0_B);
    }
  }));
}

}  // namespace
}  // namespace headroom
