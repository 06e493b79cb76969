#include "headroom/parallel/data_shards.hpp"

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"

namespace headroom {
namespace {

std::vector<std::string> fields_of(const std::vector<Problem>& problems) {
  std::vector<std::string> fields;
  for (const Problem& problem : problems) fields.push_back(problem.where);
  return fields;
}

using Fields = std::vector<std::string>;

}  // namespace

TEST_CASE("data shards: all ranks that hold the same weights divide them, or as many as a shard has") {
  Strategy strategy{.tensor_parallel = 2, .context_parallel = 2, .data_parallel = 8, .expert_parallel = 4};
  CHECK(shards(strategy, WeightClass::dense) == 1);
  strategy.data_sharding = DataSharding::zero3;
  CHECK(shards(strategy, WeightClass::dense) == 16);
  CHECK(shards(strategy, WeightClass::expert) == 8);  // 2 x 2 x 8 / 4
  strategy.shard_size = 4;
  CHECK(shard_copies(strategy) == 4);
  CHECK(shards(strategy, WeightClass::dense) == 4);
  CHECK(shards(strategy, WeightClass::expert) == 2);
}

TEST_CASE(
    "data shards: a shard is of ranks that follow each other, and its copies are of ranks across shards") {
  const Strategy strategy{.data_parallel = 16, .data_sharding = DataSharding::zero3, .shard_size = 8};
  const Group inner = shard_group(strategy, WeightClass::dense, 8);
  CHECK(inner == Group{.ranks = 8, .ranks_in_node = 8, .rings_per_node = 1});
  const Group outer = copies_group(strategy, WeightClass::dense, 8);
  CHECK(outer == Group{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 8, .nodes_spanned = 2});
  // All ranks together are those that reduce without shards.
  Strategy whole = strategy;
  whole.shard_size = 0;
  CHECK(shard_group(whole, WeightClass::dense, 8) == replica_group(axis_sizes(whole), WeightClass::dense, 8));
  CHECK(copies_group(whole, WeightClass::dense, 8).ranks == 1);
}

TEST_CASE("data shards: gradients are summed in one dtype, and kept and stepped in others") {
  using enum DataSharding;
  struct Dtypes {
    Dtype kept, stepped, reduced;
    bool operator==(const Dtypes&) const = default;
  };
  constexpr Workload two_each{.global_batch = 16, .sequence = 4096};
  const auto dtypes = [&](const char* stack, DataSharding sharding, const Workload& workload) {
    const Software software = read_software(stack);
    Strategy strategy{.data_parallel = 8, .data_sharding = sharding};
    strategy = with_stack_defaults(strategy, software, read_model("llama-3-8b"));
    return Dtypes{kept_gradient_dtype(strategy, workload, software),
                  stepped_gradient_dtype(strategy, software), reduced_gradient_dtype(strategy, software)};
  };
  CHECK(dtypes("megatron-core-2025", zero1, two_each) == Dtypes{Dtype::fp32, Dtype::fp32, Dtype::fp32});
  CHECK(dtypes("deepspeed-2025", zero2, two_each) == Dtypes{Dtype::bf16, Dtype::bf16, Dtype::bf16});
  CHECK(dtypes("fms-fsdp-2024", zero3, two_each) == Dtypes{Dtype::fp32, Dtype::fp32, Dtype::bf16});
  // Gradients that wait for the last microbatch have the dtype of their sum, and DDP sums them as they are.
  CHECK(dtypes("hf-trainer", zero3, two_each) == Dtypes{Dtype::bf16, Dtype::fp32, Dtype::bf16});
  constexpr Workload one_each{.global_batch = 8, .sequence = 4096};
  CHECK(dtypes("hf-trainer", zero3, one_each) == Dtypes{Dtype::fp32, Dtype::fp32, Dtype::bf16});
  CHECK(dtypes("hf-trainer", none, two_each) == Dtypes{Dtype::fp32, Dtype::fp32, Dtype::fp32});
  CHECK(dtypes("kempnerforge-2026", zero3, two_each) == Dtypes{Dtype::fp32, Dtype::half, Dtype::fp32});
}

TEST_CASE(
    "data shards: KempnerForge has units of one rank where it divides tensors, and none on a single device") {
  const Software software = read_software("kempnerforge-2026");
  CHECK(sharding_of_one(software, {}) == DataSharding::none);
  CHECK(sharding_of_one(software, {.tensor_parallel = 2}) == DataSharding::zero3);
  // torchtitan applies FSDP to several ranks alone [torchtitan/distributed/parallel_dims.py, fsdp_enabled].
  CHECK(sharding_of_one(read_software("torchtitan-2025"), {}) == DataSharding::none);
  CHECK(sharding_of_one(read_software("torchtitan-2025"), {.tensor_parallel = 2}) == DataSharding::zero3);
  CHECK(sharding_of_one(read_software("megatron-core-2025"), {.tensor_parallel = 2}) == DataSharding::none);
}

TEST_CASE(
    "data shards: Megatron-Core keeps moments of 16 bits in its distributed optimizer, also on one rank") {
  const Software software = read_software("megatron-core-2025");
  Strategy strategy;
  strategy.optimizer.exp_avg = MomentDtype::bf16;
  for (strategy.data_parallel = 1; strategy.data_parallel <= 2; ++strategy.data_parallel)
    CHECK(default_sharding(software, strategy) == DataSharding::zero1);
  CHECK(default_sharding(read_software("torchtitan-2025"), strategy) == DataSharding::zero3);
  strategy.optimizer.exp_avg = MomentDtype::fp32;
  CHECK(default_sharding(software, strategy) == DataSharding::none);
}

TEST_CASE("stack defaults: a model of fp32 weights has fp32 gradients on every stack") {
  Transformer model = read_model("llama-3-8b");
  const Software software = read_software("kempnerforge-2026");
  CHECK(with_stack_defaults({}, software, model).optimizer ==
        Optimizer{MainParams::none, MomentDtype::bf16, MomentDtype::bf16});
  CHECK(with_stack_defaults({}, read_software("deepspeed-2025"), model).gradient_dtype == Dtype::bf16);
  model.architecture.kernels.weight_copies = true;
  CHECK(with_stack_defaults({}, software, model).optimizer.main_params == MainParams::fp32);
  CHECK(with_stack_defaults({}, read_software("deepspeed-2025"), model).gradient_dtype == Dtype::fp32);
}

TEST_CASE("stack defaults: moments in fewer bits leave Megatron-Core 16 bits of main parameters") {
  const Transformer model = read_model("llama-3-8b");
  const Software megatron = read_software("megatron-core-2025");
  Strategy strategy = with_stack_defaults({}, megatron, model);
  CHECK(default_main_params(strategy, megatron, model) == MainParams::fp32);
  strategy.optimizer.exp_avg_sq = MomentDtype::bf16;
  CHECK(default_main_params(strategy, megatron, model) == MainParams::remainder);
  CHECK(default_main_params(strategy, read_software("torchtitan-2025"), model) == MainParams::fp32);
  Strategy other = strategy;
  other.fp8_param_gather = true;
  CHECK(default_main_params(other, megatron, model) == MainParams::fp32);
  // What a command leaves out is what it is read as.
  const auto names = [&] {
    const Edits edits = edits_of(strategy, megatron, model);
    return std::any_of(edits.begin(), edits.end(),
                       [](const Edit& edit) { return edit.field == "main_params_dtype"; });
  };
  CHECK(names());
  strategy.optimizer.main_params = MainParams::remainder;
  CHECK(!names());
}

TEST_CASE("data sharding: what goes with what") {
  const Transformer model = read_model("llama-3-8b");
  const Workload batch{.global_batch = 16, .sequence = 8192};
  const auto broken = [&](const Strategy& strategy) {
    return fields_of(illegalities(model, strategy, batch, {}));
  };
  using enum DataSharding;
  CHECK(
      broken({.data_parallel = 8, .data_sharding = zero3, .shard_size = 4, .no_reshard_after_forward = true})
          .empty());
  CHECK(broken({.data_parallel = 8, .data_sharding = zero1, .no_reshard_after_forward = true}) ==
        Fields{"no_reshard_after_forward"});
  CHECK(broken({.data_parallel = 8, .data_sharding = zero3, .shard_size = 3}) == Fields{"shard_size"});
  CHECK(broken({.data_parallel = 8, .shard_size = 4}) == Fields{"shard_size"});
  CHECK(broken({.pipeline_parallel = 2, .data_parallel = 4, .data_sharding = zero2}) == Fields{"schedule"});
  CHECK(broken({.pipeline_parallel = 2,
                .virtual_pipeline = 2,
                .data_parallel = 4,
                .schedule = ScheduleKind::interleaved,
                .data_sharding = zero2})
            .empty());
  CHECK(broken({.pipeline_parallel = 2, .data_parallel = 4, .data_sharding = zero3}).empty());
}

TEST_CASE("training stacks: what they have no way to run") {
  const auto broken = [](const char* stack, const Strategy& strategy) {
    return fields_of(stack_illegalities(read_software(stack), strategy));
  };
  using enum DataSharding;
  const Strategy sharded{.data_parallel = 8, .data_sharding = zero3};
  CHECK(broken("megatron-core-2025", sharded) == Fields{"data_sharding"});
  CHECK(broken("nemo-2025", sharded).empty());
  const Strategy piped{.pipeline_parallel = 2, .virtual_pipeline = 2, .data_sharding = zero2};
  CHECK(broken("nemo-2025", piped) == Fields{"data_sharding"});
  CHECK(broken("meta-2024", piped).empty());
  CHECK(broken("torchtitan-2025", {.data_parallel = 8}) == Fields{"data_sharding"});
  CHECK(broken("hf-trainer", {.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2}) ==
        Fields{"tensor_parallel", "pipeline_parallel"});
  Strategy pipeline = sharded;
  pipeline.pipeline_parallel = 2;
  CHECK(broken("torchtitan-2025", pipeline).empty());
  CHECK(broken("deepspeed-2025", pipeline) == Fields{"data_sharding"});
  CHECK(least_sharding(read_software("torchtitan-2025")) == zero3);
  CHECK(least_sharding(read_software("nemo-2025")) == none);
}

TEST_CASE(
    "data shards: a stack that sums gradients of microbatches reduces one microbatch, or each where asked, "
    "at once") {
  const Software trainer = read_software("hf-trainer");
  const auto reduces = [&](std::int64_t batch, bool each) {
    const Strategy strategy{
        .data_parallel = 8, .data_sharding = DataSharding::zero3, .sync_each_batch = each};
    return reduces_in_passes(strategy, {.global_batch = batch, .sequence = 4096}, trainer);
  };
  CHECK(reduces(8, false));
  CHECK_FALSE(reduces(16, false));
  CHECK(reduces(16, true));
  // A switch that a stack lacks, or does not need, is refused.
  for (const char* stack : {"kempnerforge-2026", "torchtitan-2025"}) {
    const Strategy strategy{
        .data_parallel = 8, .data_sharding = DataSharding::zero3, .sync_each_batch = true};
    const std::vector<Problem> problems = stack_illegalities(read_software(stack), strategy);
    REQUIRE(problems.size() == 1);
    CHECK(problems.front().where == "sync_each_batch");
  }
}

}  // namespace headroom
