#include "headroom/time/expert_block.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

constexpr std::int64_t multiprocessors = 108;

const GroupedProductRates& grouped() { return *tests::performance().rates.grouped_products; }

Seconds grouped_time(const Gemm& gemm) {
  return grouped_gemm_time(gemm, tests::performance().device, grouped(), /*clock=*/1);
}

// One layer of experts of a model on eight ranks that share them.
LayerCost expert_layer(const char* model_name, const Software& software) {
  const Transformer model = read_model(model_name);
  const Strategy strategy{.tensor_parallel = 1, .data_parallel = 8, .expert_parallel = 8};
  const Workload workload{.global_batch = 8, .sequence = 4096};
  const Setting setting = setting_of(model, strategy, workload, 8, tests::performance(), software);
  const ModelCost cost = model_cost(model, strategy, setting);
  const ModelLayers layers = layers_of(model, strategy);
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    for (const Op& op : layers.kinds[i].ops.ops()) {
      if (op.weights == WeightClass::expert) return cost.kinds[i];
    }
  }
  FAIL("a model without experts");
  return {};
}

}  // namespace

TEST_CASE("grouped products: one turn of tiles over all multiprocessors, by hand") {
  // 108 experts of one tile of 128 x 256 each.
  const Gemm gemm{.batch = multiprocessors, .rows = 128, .columns = 256, .inner = 8192};
  const Seconds math = Flops(2.0 * 128 * 256 * 8192) / (grouped().tile_peak.value / multiprocessors);
  const Seconds stores = Bytes(128 * 256 * 2.0) / (grouped().result_bandwidth.value / multiprocessors);
  const Seconds experts = 108.0 * grouped().expert.value;
  const Seconds memory =
      Bytes(108 * 2.0 * (128 * 8192 + 256 * 8192 + 128 * 256)) / grouped().memory_bandwidth.value;
  CHECK(grouped_time(gemm).count() == tests::about((std::max(math + stores, memory) + experts).count()));
}

TEST_CASE("grouped products: an expert's rows are rounded up to whole tiles") {
  Gemm gemm{.batch = 64, .rows = 512, .columns = 4096, .inner = 4096};
  const Seconds full = grouped_time(gemm);
  gemm.rows = 513;
  CHECK(grouped_time(gemm) > 1.05 * full);
}

TEST_CASE("grouped products: weights of experts with few rows are what is read") {
  const Gemm few{.batch = 64, .rows = 1, .columns = 4096, .inner = 4096};
  const Bytes weights(64 * 2.0 * 4096 * 4096);
  CHECK(grouped_time(few) > weights / grouped().memory_bandwidth.value);
  CHECK(grouped_time(few) < 1.1 * (weights / grouped().memory_bandwidth.value));
}

TEST_CASE("grouped products: more rows, experts or columns never take less") {
  CHECK(rc::check([] {
    Gemm gemm{.batch = *rc::gen::inRange<std::int64_t>(1, 300),
              .rows = *rc::gen::inRange<std::int64_t>(1, 3000),
              .columns = *rc::gen::inRange<std::int64_t>(1, 9000),
              .inner = *rc::gen::inRange<std::int64_t>(1, 9000)};
    const Seconds before = grouped_time(gemm);
    const int grown = *rc::gen::inRange(0, 4);
    std::int64_t& extent = grown == 0   ? gemm.batch
                           : grown == 1 ? gemm.rows
                           : grown == 2 ? gemm.columns
                                        : gemm.inner;
    extent += *rc::gen::inRange<std::int64_t>(1, 500);
    RC_ASSERT(grouped_time(gemm) >= before);
  }));
}

TEST_CASE("expert block: its parts, by hand") {
  const ExpertBlock block{
      .tokens = 4096, .hidden = 2048, .feedforward = 768, .top_k = 8, .experts = 128, .expert_parallel = 16};
  const double rows = 4096.0 * 8 / 16;
  const Bytes moved(2 * (2 * 4096.0 * 2048 + rows * (2 * 2048 + 3 * 768)));
  const Seconds up = grouped_time({.batch = 8, .rows = 256, .columns = 2 * 768, .inner = 2048});
  const Seconds down = grouped_time({.batch = 8, .rows = 256, .columns = 2048, .inner = 768});
  CHECK(expert_block_time(block, tests::performance().device, grouped()).count() ==
        tests::about((grouped().launch.value + moved / grouped().row_bandwidth.value + up + down).count()));
  CHECK(expert_block_flops(block) == Flops(6 * rows * 2048 * 768));
  CHECK(within_fit(block, grouped()));
}

TEST_CASE("expert products: a stack runs them one after another, or in one kernel") {
  Software one_each = tests::megatron();
  Software one_kernel = one_each;
  one_kernel.expert_products.value = ExpertProducts::grouped;
  const LayerCost apart = expert_layer("qwen3-30b-a3b", one_each);
  const LayerCost together = expert_layer("qwen3-30b-a3b", one_kernel);
  CHECK(together.forward.gemm != apart.forward.gemm);
  CHECK(together.forward.memory_bound == apart.forward.memory_bound);
  CHECK(together.forward.operations == apart.forward.operations);
  CHECK(together.beyond.grouped_products);
  CHECK_FALSE(apart.beyond.grouped_products);
}

TEST_CASE("expert products: gradients of weights in one kernel take no longer than one after another") {
  Software one_each = tests::megatron();
  Software one_kernel = one_each;
  one_kernel.expert_products.value = ExpertProducts::grouped;
  for (const char* model : {"qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v3"}) {
    CAPTURE(model);
    CHECK(expert_layer(model, one_kernel).backward_weight.gemm <=
          expert_layer(model, one_each).backward_weight.gemm);
  }
}

}  // namespace headroom
