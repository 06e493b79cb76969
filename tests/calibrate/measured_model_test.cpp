// What a run says of its model beside sizes: experts, windows, latent attention, and how its ranks divide sequences.
#include <doctest/doctest.h>

#include "headroom/calibrate/measured_run.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom {
namespace {

MeasuredRun flash_run() {
  return {.name = "mine",
          .layers = 24,
          .hidden = 2048,
          .heads = 16,
          .vocabulary = 50257,
          .sequence = 2048,
          .gated = true,
          .tensor_parallel = 2,
          .sequence_parallel = true,
          .pipeline_parallel = 2,
          .data_parallel = 2,
          .global_batch = 32,
          .micro_batch = 2,
          .recompute = "none",
          .flash_attention = true,
          .iteration = Seconds(1)};
}

RunCase case_for(const MeasuredRun& run) {
  return case_of(run, nullptr, read_system("dgx-a100-80g"), read_software("megatron-2022"));
}
Request request_for(const MeasuredRun& run) { return std::get<MeasuredCase>(case_for(run)).request; }

}  // namespace

TEST_CASE("a run with context parallelism says how its ranks exchange keys and values") {
  MeasuredRun run = flash_run();
  run.context_parallel = 2;
  CHECK(request_for(run).strategy.context_parallel == 2);
  CHECK(request_for(run).strategy.cp_comm == CpComm::p2p);
  run.cp_comm = "a2a";
  CHECK(request_for(run).strategy.cp_comm == CpComm::a2a);
  run.key_value_heads = 2;  // one on a rank: it cannot be divided
  REQUIRE(std::holds_alternative<std::vector<std::string>>(case_for(run)));
  CHECK(std::get<std::vector<std::string>>(case_for(run)).size() == 1);
}

TEST_CASE("a run with experts: their layers among dense ones, and modules that it recomputes") {
  MeasuredRun run = flash_run();
  run.dense = false;
  run.layers = 8;
  run.experts = Experts{.count = 8, .per_token = 2, .feedforward = 1024};
  run.dense_layers = 2;
  run.expert_layer_every = 3;
  run.recompute = "modules: layernorm, moe_act";
  run.expert_parallel = 2;
  const Request request = request_for(run);
  CHECK(request.model.layer_runs == std::vector<LayerRun>{{0, 4}, {1, 1}, {0, 2}, {1, 1}});
  CHECK(request.model.layer_kinds[1].architecture.experts == run.experts);
  CHECK(request.strategy.expert_parallel == 2);
  CHECK(request.strategy.expert_tensor_parallel == run.tensor_parallel);
  CHECK(request.strategy.recompute.ops == std::vector<std::string>{"layernorm", "moe_act"});
}

TEST_CASE("a run with windows: the last of each so many layers sees all tokens") {
  MeasuredRun run = flash_run();
  run.layers = 7;
  run.pipeline_parallel = 1;
  run.data_parallel = 4;
  run.window = 128;
  run.attention_sinks = run.qk_norm = true;
  run.clamped_activation = run.scaled_rotary = true;
  const Architecture all = request_for(run).model.architecture;
  CHECK(request_for(run).model.layer_kinds.empty());
  CHECK(all.window == 128);
  CHECK(all.attention_sinks);
  CHECK(all.clamped_activation == is_gated(all.activation));
  CHECK(all.scaled_rotary == (all.positions == Positions::rotary));
  CHECK(all.qk_norm == QkNorm::per_head);
  run.full_attention_every = 3;
  const Transformer some = request_for(run).model;
  CHECK(some.layer_runs == std::vector<LayerRun>{{0, 2}, {1, 1}, {0, 2}, {1, 1}, {0, 1}});
  CHECK(some.layer_kinds[0].architecture.window == 128);
  CHECK(some.layer_kinds[1].architecture.window == 0);
  CHECK(some.layer_kinds[1].architecture.attention_sinks);
  run.experts = Experts{.count = 8, .per_token = 2, .feedforward = 1024};
  run.dense_layers = 1;
  const Transformer mixed = request_for(run).model;
  REQUIRE(mixed.layer_kinds.size() == 3);
  CHECK(mixed.layer_kinds[0].name == "dense_window");
  CHECK(mixed.layer_kinds[1].name == "moe_window");
  CHECK(mixed.layer_kinds[2].name == "moe");
}

TEST_CASE("a run with latent attention has k and v of every head, in their own sizes") {
  MeasuredRun run = flash_run();
  run.key_value_heads = 4;
  run.head_size = 192;
  run.latent_attention = LatentAttention{
      .q_rank = 512, .kv_rank = 128, .nope_head_size = 64, .rope_head_size = 32, .value_head_size = 64};
  const Transformer model = request_for(run).model;
  CHECK(model.architecture.latent_attention == run.latent_attention);
  CHECK(model.key_value_heads == 16);
  CHECK(model.head_size == 96);
}

}  // namespace headroom
