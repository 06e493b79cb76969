// The bytes of a parameter that `explain` writes in symbols are those that memory counts.
#include <string>

#include <doctest/doctest.h>

#include "headroom/answer/explain.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom {

TEST_CASE("explained state: each part times the parameters is what the first rank keeps") {
  const Optimizer bf16{MainParams::remainder, MomentDtype::bf16, MomentDtype::int8};
  const Optimizer steps_weights{MainParams::none, MomentDtype::bf16, MomentDtype::bf16};
  const Strategy strategies[] = {
      {},
      {.data_parallel = 8},
      {.data_parallel = 8, .data_sharding = DataSharding::zero1},
      {.data_parallel = 8,
       .data_sharding = DataSharding::zero1,
       .gradient_dtype = Dtype::half,
       .optimizer = bf16},
      {.data_parallel = 8, .data_sharding = DataSharding::zero2},
      {.data_parallel = 8, .data_sharding = DataSharding::zero3},
      {.data_parallel = 8, .data_sharding = DataSharding::zero3, .shard_size = 2},
      {.data_parallel = 8, .data_sharding = DataSharding::zero3, .optimizer = steps_weights},
      {.pipeline_parallel = 2, .data_parallel = 4, .data_sharding = DataSharding::zero3},
      {.data_parallel = 8, .data_sharding = DataSharding::zero1, .optimizer = {.kind = OptimizerKind::sgd}},
      {.data_parallel = 8, .data_sharding = DataSharding::zero1, .offload = {.optimizer = Fraction{0.3}}},
      {.data_parallel = 8,
       .data_sharding = DataSharding::zero3,
       .offload = {.optimizer = Fraction{1}, .parameters = true}}};
  const Transformer model = read_model("llama-3-8b");
  for (const char* const stack : {"megatron-core-2025", "nemo-2025", "torchtitan-2025", "deepspeed-2025"}) {
    const Software software = read_software(stack);
    for (const Strategy& strategy : strategies) {
      const ExplainReply reply = answer(ExplainQuestion{.model = model,
                                                        .strategy = strategy,
                                                        .workload = {.global_batch = 64, .sequence = 8192},
                                                        .software = software});
      const bool on_host = offloads(strategy.offload);
      REQUIRE(reply.state.size() == (on_host ? 4 : 3));
      const double parameters = total(reply.first_rank);
      const auto is_of = [&](std::size_t row, Bytes held) {
        CAPTURE(stack);
        CAPTURE(reply.state[row].part);
        CAPTURE(to_string(reply.state[row].bytes.expression));
        CHECK(held.count() == doctest::Approx(reply.state[row].bytes.value * parameters).epsilon(1e-9));
      };
      is_of(0, reply.first_rank_state.weights);
      is_of(1, reply.first_rank_state.gradients);
      is_of(2, reply.first_rank_state.optimizer);
      if (on_host) is_of(3, reply.first_rank_state.on_host);
    }
  }
}

TEST_CASE("explained state: copies of weights in FP8 are those of the device") {
  ExplainQuestion question{.model = read_model("llama-3-8b"),
                           .strategy = {.precision = Precision::fp8},
                           .workload = {.global_batch = 4, .sequence = 8192},
                           .software = read_software("megatron-core-2025")};
  const auto weights = [&](const char* system) {
    question.device = read_system(system).performance->device;
    return answer(question).first_rank_state.weights;
  };
  const Bytes two = weights("dgx-h100-80g");
  const Bytes one = weights("dgx-b200-180g");
  CHECK(one < two);
  question.device.reset();
  CHECK(answer(question).first_rank_state.weights == two);
}

}  // namespace headroom
