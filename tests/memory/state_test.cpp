#include "headroom/memory/state.hpp"

#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace headroom {
namespace {

// Sizes of published models, whose parameters were published too.
Transformer gpt2() {
  return {.hidden = 768,
          .feedforward = 3072,
          .heads = 12,
          .key_value_heads = 12,
          .head_size = 64,
          .layers = 12,
          .vocabulary = 50257,
          .vocabulary_multiple = 128,
          .sequence = 1024,
          .max_positions = 1024};
}

Transformer llama(std::int64_t h, std::int64_t f, std::int64_t a, std::int64_t k, std::int64_t layers,
                  std::int64_t v) {
  return {.hidden = h,
          .feedforward = f,
          .heads = a,
          .key_value_heads = k,
          .head_size = h / a,
          .layers = layers,
          .vocabulary = v,
          .vocabulary_multiple = 1,
          .sequence = 4096,
          .architecture = {.activation = Activation::swiglu,
                           .normalization = Normalization::rms_norm,
                           .positions = Positions::rotary,
                           .linear_bias = false,
                           .qkv_bias = false,
                           .hidden_dropout = false,
                           .attention_dropout = false,
                           .tied_embeddings = false}};
}

const Workload state_batch{.global_batch = 64, .sequence = 1024};

double parameters_of_rank(const Transformer& model, const Strategy& strategy, const Workload& workload,
                          std::size_t rank) {
  return total(parameters_by_rank(model, strategy, workload)[rank]);
}

double of_all_ranks(const Transformer& model, const Strategy& strategy) {
  double sum = 0;
  for (const Parameters& rank : parameters_by_rank(model, strategy, state_batch)) sum += total(rank);
  return sum;
}

}  // namespace

TEST_CASE("parameters: published models") {
  CHECK(parameter_count(gpt2()) == 124'439'808);
  CHECK(parameter_count(llama(4096, 11008, 32, 32, 32, 32000)) == 6'738'415'616);
  CHECK(parameter_count(llama(8192, 28672, 64, 8, 80, 32000)) == 68'976'648'192);
  CHECK(parameter_count(llama(4096, 14336, 32, 8, 32, 128256)) == 8'030'261'248);
}

TEST_CASE("parameters: the count of a model does not depend on vocabulary padding") {
  Transformer unpadded = gpt2();
  unpadded.vocabulary_multiple = 1;
  CHECK(parameter_count(gpt2()) == parameter_count(unpadded));
}

TEST_CASE("parameters: a rank holds the padded vocabulary") {
  CHECK(parameters_of_rank(gpt2(), {}, state_batch, 0) - parameter_count(gpt2()) == (50304 - 50257) * 768);
}

TEST_CASE("parameters: pipeline ranks hold the model between them, untied embeddings once") {
  const Transformer model = llama(4096, 11008, 32, 32, 32, 32000);
  CHECK(of_all_ranks(model, {.pipeline_parallel = 4}) == parameter_count(model));
  CHECK(of_all_ranks(
            model, {.pipeline_parallel = 4, .virtual_pipeline = 2, .schedule = ScheduleKind::interleaved}) ==
        parameter_count(model));
}

TEST_CASE("parameters: tied embeddings stand on the first and the last rank") {
  const double once = parameters_of_rank(gpt2(), {}, state_batch, 0);
  CHECK(of_all_ranks(gpt2(), {.pipeline_parallel = 4}) == once + 50304 * 768);
}

TEST_CASE("parameters: uneven stages") {
  const Strategy uneven{.pipeline_parallel = 2, .stage_layers = {4, 8}};
  const Strategy even{.pipeline_parallel = 2};
  const double two_layers = 2 * (12.0 * 768 * 768 + 13 * 768);
  CHECK(parameters_of_rank(gpt2(), even, state_batch, 0) -
            parameters_of_rank(gpt2(), uneven, state_batch, 0) ==
        two_layers);
}

TEST_CASE("parameters: tensor parallelism splits matrices and not norms, row biases and positions") {
  const double whole = 12 * (2 * 2 * 768 + 2 * 768) + 2 * 768 + 1024 * 768;
  Transformer model = gpt2();
  model.vocabulary = 51200;
  const double one = parameters_of_rank(model, {}, state_batch, 0);
  CHECK(parameters_of_rank(model, {.tensor_parallel = 4}, state_batch, 0) == (one - whole) / 4 + whole);
}

TEST_CASE("parameters: with fewer key/value heads than ranks each rank holds one") {
  const Transformer model = llama(1024, 4096, 16, 2, 1, 32000);
  const double qkv = 1024.0 * 64 * (2 + 2 * 1);
  const double rest = (2.0 * 32000 * 1024 + 1024 * 1024 + 3 * 1024 * 4096) / 8 + 3 * 1024;
  CHECK(parameters_of_rank(model, {.tensor_parallel = 8}, state_batch, 0) == qkv + rest);
}

TEST_CASE("state: 18 bytes a parameter with fp32 gradients, 16 with half-precision ones") {
  CHECK(model_state(gpt2(), {}, Workload{}, 1000) == ModelState{2000_B, 4000_B, 12000_B});
  CHECK(model_state(gpt2(), {.gradient_dtype = Dtype::half}, Workload{}, 1000) ==
        ModelState{2000_B, 2000_B, 12000_B});
}

TEST_CASE("state: ZeRO 2 under an interleaved pipeline keeps shards and gradients of two virtual stages") {
  const auto gradients = [](std::int64_t virtual_pipeline, DataSharding sharding) {
    const Strategy strategy{.pipeline_parallel = 4,
                            .virtual_pipeline = virtual_pipeline,
                            .data_parallel = 10,
                            .data_sharding = sharding};
    return model_state(gpt2(), strategy, Workload{}, 1000).gradients;
  };
  CHECK(gradients(8, DataSharding::zero1) == 4000_B);
  CHECK(gradients(8, DataSharding::zero2) == 1000_B + 400_B);
  CHECK(gradients(4, DataSharding::zero2) == 2000_B + 400_B);
}

TEST_CASE("state: 16-bit gradients that outlive their pass, and those that the host steps") {
  const Strategy sharded{.data_parallel = 8, .data_sharding = DataSharding::zero2};
  const auto gradients = [&](const Strategy& strategy, const StackMemory& memory) {
    Software stack;
    stack.memory = memory;
    return model_state(gpt2(), strategy, Workload{}, 1000, 0, stack).gradients;
  };
  CHECK(gradients({}, {.keeps_half_gradients = true}) == 6000_B);
  Strategy half;
  half.gradient_dtype = Dtype::half;
  CHECK(gradients(half, {.keeps_half_gradients = true}) == 2000_B);
  Strategy offloaded = sharded;
  offloaded.offload.optimizer.value = 1;
  const Bytes on_gpu = gradients(offloaded, {});
  CHECK(on_gpu > 0_B);
  CHECK(gradients(offloaded, {.flat_gradients = FlatGradients::at_step}) == 0_B);
  offloaded.offload.optimizer.value = 0.5;
  CHECK(gradients(offloaded, {.flat_gradients = FlatGradients::at_step}) == 0.5 * on_gpu);
}

TEST_CASE("state: a distributed optimizer keeps a shard, rounded up to whole bytes") {
  const Strategy sharded{.data_parallel = 8, .data_sharding = DataSharding::zero1};
  CHECK(model_state(gpt2(), sharded, Workload{}, 1000) == ModelState{2000_B, 4000_B, 1500_B});
  CHECK(model_state(gpt2(), sharded, Workload{}, 1001) == ModelState{2002_B, 4004_B, 1502_B});
  CHECK(model_state(gpt2(), {.data_parallel = 8}, Workload{}, 1000).optimizer == 12000_B);
}

TEST_CASE("state: autocast trains fp32 weights, which are their own masters") {
  Transformer model = gpt2();
  model.architecture.kernels.weight_copies = true;
  CHECK(model_state(model, {}, Workload{}, 1000) == ModelState{4000_B, 4000_B, 8000_B});
  CHECK(model_state(model, {.gradient_dtype = Dtype::half}, Workload{}, 1000).gradients == 4000_B);
}

TEST_CASE("state: master weights and moments in the dtypes that they are kept in") {
  const auto optimizer = [](const Optimizer& dtypes) {
    return model_state(gpt2(), {.optimizer = dtypes}, Workload{}, 25600).optimizer.count() / 25600;
  };
  CHECK(optimizer({}) == 12);
  // Megatron-LM's precision-aware optimizer: 16 bits of the master beside BF16 weights, and BF16 moments.
  CHECK(optimizer({MainParams::remainder, MomentDtype::bf16, MomentDtype::bf16}) == 6);
  CHECK(optimizer({MainParams::fp16, MomentDtype::fp8, MomentDtype::fp16}) == 5);
  CHECK(optimizer({MainParams::none, MomentDtype::bf16, MomentDtype::bf16}) == 4);
  CHECK(optimizer({MainParams::none, MomentDtype::int8, MomentDtype::int8}) == 2 + 2 * 4.0 / 256);
  // Autocast steps its fp32 weights.
  Transformer autocast = gpt2();
  autocast.architecture.kernels.weight_copies = true;
  const Optimizer bf16_moments{MainParams::fp32, MomentDtype::bf16, MomentDtype::bf16};
  CHECK(model_state(autocast, {.optimizer = bf16_moments}, Workload{}, 1000) ==
        ModelState{4000_B, 4000_B, 4000_B});
}

}  // namespace headroom
