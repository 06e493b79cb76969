#include "headroom/parallel/optimizer_legality.hpp"

#include <string>
#include <vector>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"

namespace headroom {

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
  const DataSharding sharding = strategy.data_sharding;
  // Of those that go with the optimizer, what the stack has too.
  const auto one_of = [&](DataSharding x, DataSharding y) {
    std::vector<DataSharding> had;
    for (const DataSharding mode : {x, y}) {
      if (contains(software.sharding.modes, mode)) had.push_back(mode);
    }
    return had.empty() ? joined(std::vector{x, y}, " or ") : joined(had, " or ");
  };
  require(optimizer.kind != OptimizerKind::adafactor || sharding == DataSharding::none ||
              sharding == DataSharding::zero3,
          "data_sharding", [&] {
            return "must be " + one_of(DataSharding::none, DataSharding::zero3) +
                   " for `optimizer` adafactor: flat shards have no rows and columns";
          });
  require(optimizer.kind != OptimizerKind::muon || sharding <= DataSharding::zero1, "data_sharding", [&] {
    return "must be " + one_of(DataSharding::none, DataSharding::zero1) +
           ", where whole matrices are stepped, for `optimizer` muon";
  });
  return problems;
}

}  // namespace headroom
