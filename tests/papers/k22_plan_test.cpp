// Practice: the configurations that K22 ran (table 3, sequence parallelism and selective recomputation) among all those
// that the planner considers. Its authors did not run poor ones: they must fit and rank among the best.
#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/search.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

struct Rank {
  std::int64_t faster = 0;  // strategies that fit and take less time
  std::int64_t feasible = 0;
};

// Where a time stands among the strategies of a space that fit.
Rank rank_of(const Request& request, const Space& space, Seconds time) {
  Rank rank;
  Composer composer(request);
  visit_layouts(
      request, space,
      [&](const Strategy& layout) {
        const Layout placed = composer.layout(layout);
        Strategy strategy = layout;
        for (const Recomputation& recompute : recomputations(request, space, layout)) {
          strategy.recompute = recompute;
          for (const ShardingChoice& sharding : sharding_choices(request, space, layout)) {
            strategy.data_sharding = sharding.data_sharding;
            if (placed.peak(strategy).bytes > request.system.memory) continue;
            ++rank.feasible;
            const bool faster = placed.least_iteration(strategy) < time && placed.iteration(strategy) < time;
            rank.faster += faster ? 1 : 0;
          }
        }
        return true;
      },
      [](const Problem&) {});
  return rank;
}

void check_rank(const char* name, const k22::Run& run, Dtype gradients) {
  CAPTURE(std::string(name));
  Request request{.model = read_model(name),
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software("megatron-2022"),
                  .strategy = k22::with_both_techniques(run).strategy,
                  .workload = run.workload};
  request.strategy.gradient_dtype = gradients;
  const Evaluation evaluation = evaluate(request);
  CHECK(std::holds_alternative<Plan>(evaluation));
  const Seconds paper = account(evaluation).timing->iteration.total;

  const Space space{.devices = devices(request.strategy)};
  const Candidate best = search(request, space).plans.front();
  const Rank rank = rank_of(request, space, paper);
  const double part = static_cast<double>(rank.faster) / static_cast<double>(rank.feasible);
  MESSAGE(std::string(name) << ", " << std::string(name_of(gradients)) << " gradients: " << paper.count()
                            << " s against " << best.iteration.count() << " s; " << rank.faster << " of "
                            << rank.feasible << " that fit are faster, " << 100 * part << "%");
  CHECK(part <= 0.05);
  CHECK(paper <= 1.1 * best.iteration);
}

// The paper does not say which gradients it kept.
TEST_CASE("K22 table 3: what the paper ran fits and is among the best few percent of what does") {
  const auto [small, gpt3, mt_nlg, largest] = k22::table_3();
  for (const Dtype gradients : {Dtype::fp32, Dtype::half}) {
    check_rank("gpt-22b", small, gradients);
    check_rank("gpt3-175b", gpt3, gradients);
    check_rank("mt-nlg-530b", mt_nlg, gradients);
    check_rank("gpt-1t", largest, gradients);
  }
}

}  // namespace
}  // namespace headroom
