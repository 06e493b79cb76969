#include "headroom/parallel/optimizer_legality.hpp"

#include <string>

namespace headroom {

std::vector<Problem> optimizer_illegalities(const Transformer& model, const Strategy& strategy) {
  std::vector<Problem> problems;
  const auto require = [&](bool holds, const char* field, const auto& rule) {
    if (!holds) problems.push_back({field, rule()});
  };
  const Optimizer& optimizer = strategy.optimizer;
  // Autocast keeps fp32 weights: autograd gives them fp32 gradients, and no other copy is stepped.
  if (model.architecture.kernels.weight_copies) {
    const std::string because = " where `kernels.weight_copies` keeps fp32 weights";
    require(strategy.gradient_dtype == Dtype::fp32, "gradient_dtype",
            [&] { return "must be fp32" + because + ": their gradients have their dtype"; });
    require(optimizer.main_params == MainParams::fp32, "main_params_dtype",
            [&] { return "must be fp32" + because + ", which the optimizer steps"; });
  }
  const std::string name(name_of(optimizer.kind));
  require(has_first_moment(optimizer.kind) || optimizer.exp_avg == MomentDtype::fp32, "exp_avg_dtype",
          [&] { return "does not go with `optimizer` " + name + ", which has no first moment"; });
  require(
      has_second_moment(optimizer.kind) || optimizer.exp_avg_sq == MomentDtype::fp32, "exp_avg_sq_dtype",
      [&] { return "does not go with `optimizer` " + name + ", which has no second moment by parameter"; });
  const bool offloads = strategy.offload.optimizer.value > 0;
  require(!offloads || !steps_matrices(optimizer.kind), "optimizer_offload_fraction",
          [&] { return "must be 0 for `optimizer` " + name + ", which no CPU steps here"; });
  require(!offloads || optimizer.main_params != MainParams::none, "optimizer_offload_fraction",
          [] { return std::string("must be 0 where `main_params_dtype` is none"); });
  require(offloads || !strategy.offload.overlaps, "overlap_cpu_optimizer",
          [] { return std::string("needs `optimizer_offload_fraction`"); });
  const DataSharding sharding = strategy.data_sharding;
  require(optimizer.kind != OptimizerKind::adafactor || sharding == DataSharding::none ||
              sharding == DataSharding::zero3,
          "data_sharding", [] {
            return std::string(
                "must be none or zero3 for `optimizer` adafactor: flat shards have no rows and columns");
          });
  require(optimizer.kind != OptimizerKind::muon || sharding <= DataSharding::zero1, "data_sharding", [] {
    return std::string("must be none or zero1, which steps whole matrices, for `optimizer` muon");
  });
  return problems;
}

std::vector<Problem> offload_illegalities(const System& system, const Strategy& strategy) {
  if (strategy.offload.optimizer.value == 0 || system.host) return {};
  return {{"optimizer_offload_fraction",
           "needs the host of the system, which " + system.name +
               " does not say: its memory, memory_bandwidth, device_link and source"}};
}

}  // namespace headroom
