#include "headroom/parallel/optimizer_legality.hpp"

#include <string>
#include <vector>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"

namespace headroom {
namespace {

// Of the modes that go with the optimizer those that the stack has too, or all where it has none.
std::string shardings_text(OptimizerKind optimizer, const Software& software) {
  std::vector<DataSharding> all;
  std::vector<DataSharding> had;
  for (const DataSharding mode :
       {DataSharding::none, DataSharding::zero1, DataSharding::zero2, DataSharding::zero3}) {
    if (!steps_with(optimizer, mode)) continue;
    all.push_back(mode);
    if (contains(software.sharding.modes, mode)) had.push_back(mode);
  }
  return joined(had.empty() ? all : had, " or ");
}

}  // namespace

std::vector<Problem> optimizer_illegalities(const Transformer& model, const Strategy& strategy,
                                            const Software& software) {
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
  require(steps_with(optimizer.kind, strategy.data_sharding), "data_sharding", [&] {
    const bool adafactor = optimizer.kind == OptimizerKind::adafactor;
    return "must be " + shardings_text(optimizer.kind, software) + " for `optimizer` " + name +
           (adafactor ? ": flat shards have no rows and columns" : ", which steps whole matrices");
  });
  return problems;
}

bool steps_with(OptimizerKind optimizer, DataSharding sharding) {
  switch (optimizer) {
    case OptimizerKind::adafactor: return sharding == DataSharding::none || sharding == DataSharding::zero3;
    case OptimizerKind::muon: return sharding <= DataSharding::zero1;
    default: return true;
  }
}

}  // namespace headroom
