// Megatron-LM's measured layers of a mixture of experts on 8 H100s [tests/functional_tests/test_cases/common/moe_perf]:
// the peak of a forward and a backward pass, against the walk through our op table. No figure is fitted to them.
#include <cmath>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "headroom/memory/backward.hpp"
#include "headroom/model/expert_ops.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/strategy.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

struct MeasuredMixture {
  const char* shape;
  std::int64_t hidden;
  std::int64_t width;
  std::int64_t experts;
  std::int64_t per_token;
};

// The mixture alone, as the test builds it: no gate, no shared expert, and probabilities that multiply the activation in
// kernels of their own [__main__.py, _build_transformer_config].
OpTable mixture_table(const Experts& experts, Dispatcher dispatcher) {
  using namespace symbols;
  OpBuilder layer{.arch = {.activation = Activation::gelu, .linear_bias = false, .experts = experts},
                  .dispatcher = dispatcher};
  mixture(layer, layer.table.value({"layer input", s * b * h}));
  return layer.table;
}

// Its loop frees nothing: gradients of weights stay, and the caller holds the output and its gradient. PyTorch's cuBLAS has a
// workspace of 32 MiB on Hopper, and Transformer Engine's grouped products four [cpp_extensions/gemm.py].
double peak_of(const MeasuredMixture& shape, Dispatcher dispatcher) {
  const std::int64_t tokens = 4096;
  const Experts experts{.count = shape.experts,
                        .per_token = shape.per_token,
                        .feedforward = shape.width,
                        .weighting = Fusion::unfused};
  const LayerKind kind{.name = "mixture", .ops = mixture_table(experts, dispatcher)};
  const Sharding sharding{.beside = {{ParallelAxis::expert, symbols::y}}};
  Transformer model{.hidden = shape.hidden, .heads = 32, .key_value_heads = 32, .head_size = 128};
  model.layers = model.vocabulary = 1;
  model.architecture.experts = experts;
  const Bindings letters =
      bindings(model, {.data_parallel = 8, .expert_parallel = 8}, {.global_batch = 8, .sequence = tokens});
  const Software software{.gradient_accumulation = GradientAccumulation::separate};
  const BackwardPeak peak = backward_peak(kind, sharding, {}, Bytes(0), Detail::exact, software, letters);

  const double saved = kept_bytes(stored_tensors(kind.ops, sharding, {}, Detail::exact)).evaluate(letters);
  double weights = 0;
  double gradients = 0;
  for (std::size_t op = 0; op < kind.ops.ops().size(); ++op) {
    const double bytes = 2 * parameters(kind.ops.ops()[op], sharding).evaluate(letters);
    weights += bytes;
    if (static_cast<int>(op) > peak.during.op) gradients += bytes;
  }
  const double held = 2 * 2.0 * static_cast<double>(tokens * shape.hidden);
  constexpr double workspaces = 5 * 32.0 * 1024 * 1024;
  return weights + gradients + saved + total(peak).count() + held + workspaces;
}

}  // namespace

SHARED_TEST_CASE("measured layers of experts: five of six peaks in bf16 within 4%") {
  const auto file = tests::shared_file("data/measured/moe_layers_h100.json");
  if (!file) return;
  const auto measured = nlohmann::json::parse(std::ifstream(*file));
  const auto error = [&](const MeasuredMixture& shape, const std::string& name, Dispatcher dispatcher) {
    const std::string row = std::string(shape.shape) + "_" + name + "_tp1ep8_bf16";
    return peak_of(shape, dispatcher) / measured.at(row).at("max_allocated_bytes").get<double>() - 1;
  };
  const MeasuredMixture mixtral{"mixtral", 4096, 14336, 8, 2};
  const MeasuredMixture deepseek{"deepseek", 7168, 2048, 32, 8};
  for (const MeasuredMixture& shape : {mixtral, deepseek}) {
    CAPTURE(shape.shape);
    CHECK(std::abs(error(shape, "deepep", Dispatcher::flex)) < 0.04);
    CHECK(std::abs(error(shape, "hybridep", Dispatcher::flex)) < 0.04);
  }
  CHECK(std::abs(error(mixtral, "a2a", Dispatcher::alltoall)) < 0.04);
  // Where a token's rows to all its experts are longer than an expert is wide, buffers of the all-to-all make the peak. Of
  // those the walk has two, the gradients on both sides; about two and a half more of them are not explained.
  const double unexplained = error(deepseek, "a2a", Dispatcher::alltoall);
  CHECK(unexplained < -0.2);
  CHECK(unexplained > -0.35);
}

}  // namespace headroom
