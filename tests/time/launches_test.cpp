#include "headroom/time/launches.hpp"

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

const HostRates& host() { return tests::performance().rates.host; }
Seconds operations(double count) { return count * host().operation.value; }

Software graphs_of(CudaGraphs graphs, std::vector<GraphModule> modules = {}) {
  Software software = tests::megatron();
  software.cuda_graphs = graphs;
  software.cuda_graph_modules = std::move(modules);
  return software;
}

LayerCost layer_by(const Transformer& model, const Software& software, std::int64_t expert_parallel = 1,
                   Precision precision = Precision::bf16, const System& system = tests::a100()) {
  const Strategy strategy{.tensor_parallel = 1,
                          .data_parallel = expert_parallel,
                          .expert_parallel = expert_parallel,
                          .precision = precision};
  const Workload workload{.global_batch = expert_parallel, .sequence = model.sequence};
  const ModelCost cost =
      model_cost(model, strategy, setting_of(model, strategy, workload, 8, *system.performance, software));
  return cost.kinds.front();
}
LayerCost dense_by(const Software& software) { return layer_by(read_model("gpt-22b"), software); }
LayerCost experts_by(const Software& software, std::int64_t ranks = 8) {
  return layer_by(read_model("qwen3-30b-a3b"), software, ranks);
}

void check_near(Seconds x, Seconds y) { CHECK(x.count() == tests::about(y.count())); }

}  // namespace

TEST_CASE("launches: an eager layer takes an operation for each op") {
  const LayerCost cost = dense_by(tests::megatron());
  check_near(cost.forward.host, operations(15));
  CHECK(cost.forward.operations == 15);
  CHECK(cost.forward.drained == Seconds(0));
}

TEST_CASE("launches: compiled code takes a kernel's launch for each, blocking launches wait on top") {
  Software compiled = tests::megatron();
  compiled.launches = Launches::compiled;
  check_near(dense_by(compiled).forward.host, 15.0 * host().launch.value);
  Software blocking = tests::megatron();
  blocking.blocking_launches = true;
  check_near(dense_by(blocking).forward.host, operations(15) + 15.0 * host().blocking_operation.value);
}

TEST_CASE("launches: a graph of a module is one operation, a graph of the iteration none") {
  const LayerCost both = dense_by(graphs_of(CudaGraphs::layers));
  CHECK(both.forward.operations == 2);  // attention and MLP
  check_near(both.forward.host, operations(2));
  check_near(backward(both).host, operations(2));
  const LayerCost attention = dense_by(graphs_of(CudaGraphs::layers, {GraphModule::attn}));
  CHECK(attention.forward.host > both.forward.host);
  CHECK(attention.forward.host < dense_by(tests::megatron()).forward.host);
  const LayerCost none = dense_by(graphs_of(CudaGraphs::full_iteration));
  CHECK(none.forward.host == Seconds(0));
  CHECK(backward(none).host == Seconds(0));
  CHECK(device_time(none.forward) == device_time(both.forward));
}

TEST_CASE("launches: modules of a mixture of experts in the order of what they leave to the host") {
  const auto forward_host = [](std::vector<GraphModule> modules) {
    return experts_by(graphs_of(CudaGraphs::layers, std::move(modules))).forward.host;
  };
  const Seconds eager = experts_by(tests::megatron()).forward.host;
  const Seconds router = forward_host({GraphModule::moe_router});
  const Seconds prepared = forward_host({GraphModule::moe_router, GraphModule::moe_preprocess});
  const Seconds attended =
      forward_host({GraphModule::attn, GraphModule::moe_router, GraphModule::moe_preprocess});
  CHECK(router < eager);
  CHECK(prepared < router);
  CHECK(attended < prepared);
  CHECK(forward_host({}) == attended);
  check_near(forward_host(
                 {GraphModule::attn, GraphModule::moe_router, GraphModule::moe_preprocess, GraphModule::moe}),
             operations(4));
}

TEST_CASE("launches: experts one after another are as many launches") {
  Software grouped = tests::megatron();
  grouped.expert_products.value = ExpertProducts::grouped;
  const Seconds apart = experts_by(tests::megatron()).forward.host;
  // 16 experts on each of 8 ranks, in two products.
  check_near(apart - experts_by(grouped).forward.host, 30.0 * host().launch.value);
  check_near(experts_by(tests::megatron(), 16).forward.host, apart - 16.0 * host().launch.value);
}

TEST_CASE("launches: rows of each expert are cast to FP8 apart") {
  const System h100 = read_system("dgx-h100-80g");
  Software grouped = tests::megatron();
  grouped.expert_products.value = ExpertProducts::grouped;
  const auto forward = [&](const Software& software) {
    return layer_by(read_model("qwen3-30b-a3b"), software, 8, Precision::fp8, h100).forward;
  };
  // Two products, and before each the largest element is looked for and the rows are cast.
  const Rates& rates = h100.performance->rates;
  check_near(forward(tests::megatron()).host - forward(grouped).host,
             (30.0 + 60.0) * rates.host.launch.value);
  // 16 casts before each product start one after the other.
  const Seconds start = narrow_rates(rates, Dtype::fp8)->quantization.launch.value;
  check_near(forward(tests::megatron()).memory_bound - forward(grouped).memory_bound, 30.0 * start);
}

TEST_CASE("launches: the GPU stands still after the host waited for the rows of each expert") {
  CHECK(experts_by(tests::megatron()).forward.drained == host().operation.value);
  CHECK(experts_by(graphs_of(CudaGraphs::layers)).forward.drained == host().operation.value);
  CHECK(experts_by(graphs_of(CudaGraphs::full_iteration)).forward.drained == Seconds(0));
  CHECK(backward(experts_by(tests::megatron())).drained == Seconds(0));
}

TEST_CASE("launches: the host waits once more where what a clamped activation adds comes from it") {
  const Transformer model = read_model("gpt-oss-120b");
  Software software = tests::megatron();
  software.clamp_kernel = Fusion::unfused;
  CHECK(layer_by(model, tests::megatron(), 8).forward.drained == host().operation.value);
  CHECK(layer_by(model, software, 8).forward.drained == 2.0 * host().operation.value);
  software.launches = Launches::compiled;
  CHECK(layer_by(model, software, 8).forward.drained == host().launch.value);
}

TEST_CASE("launches: biases of experts in one kernel are as few launches as there are ops") {
  const Transformer model = read_model("gpt-oss-120b");
  Software software = tests::megatron();
  const LayerCost apart = layer_by(model, software, 8);
  software.expert_bias_kernel = Fusion::fused;
  const LayerCost fused = layer_by(model, software, 8);
  // 16 experts on each of 8 ranks, two operators forward and five back of each; one is a kernel of the op.
  check_near(apart.forward.host - fused.forward.host, 32.0 * host().launch.value - operations(1));
  check_near(backward(apart).host - backward(fused).host, 80.0 * host().launch.value - operations(1));
  CHECK(fused.forward.memory_bound < apart.forward.memory_bound);
}

TEST_CASE("launches: biases of experts are added in the precision of the probabilities") {
  const Transformer with = read_model("gpt-oss-120b", {"linear_bias=true"});
  const Transformer without = read_model("gpt-oss-120b", {"linear_bias=false"});
  const auto memory_bound = [](const Transformer& model) {
    return layer_by(model, tests::megatron(), 8).forward.memory_bound;
  };
  // 28 bytes an element with probabilities in fp32, and the kernel of attention's bias.
  const double rows = 4.0 * static_cast<double>(with.sequence);
  const Seconds bias = Bytes(28 * rows * static_cast<double>(with.hidden)) /
                       (tests::performance().device.memory_bandwidth *
                        tests::performance().rates.streaming.bandwidth_share.value);
  CHECK(memory_bound(with) > memory_bound(without) + bias);
  CHECK(memory_bound(with) < memory_bound(without) + 1.3 * bias);
}

}  // namespace headroom
