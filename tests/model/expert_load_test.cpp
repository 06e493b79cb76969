// How much the fullest rank gets of experts that are wanted unevenly.
#include "headroom/model/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/core/counts.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

TEST_CASE("expert load: the most wanted of 64 experts gets 1.72 times the mean") {
  CHECK(fullest_rank(ExpertLoad::worst, 64, 64) == doctest::Approx(1.72).epsilon(0.001));
}

TEST_CASE("expert load: balanced is least, worst is most, and one rank has it all") {
  for (const std::int64_t experts : {8, 64, 256, 384}) {
    double worst_before = 1;
    for (std::int64_t ranks = 1; ranks <= experts; ranks *= 2) {
      CAPTURE(experts);
      CAPTURE(ranks);
      const double typical = fullest_rank(ExpertLoad::typical, experts, ranks);
      const double worst = fullest_rank(ExpertLoad::worst, experts, ranks);
      CHECK(fullest_rank(ExpertLoad::balanced, experts, ranks) == 1);
      CHECK(typical >= 1);
      CHECK(worst >= typical * (1 - 1e-12));
      CHECK(worst >= worst_before);  // fewer experts on a rank even out less
      if (ranks == 1) CHECK(worst == 1);
      worst_before = worst;
      if (experts % (2 * ranks) != 0) break;
    }
  }
}

// Every way in which 6 experts can lie on 3 ranks.
TEST_CASE("expert load: typical is near the median of all placements") {
  std::vector<double> loads;
  for (int i = 1; i <= 6; ++i) loads.push_back(std::pow(i, -expert_power_law));
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / 3;
  std::vector<int> order{0, 1, 2, 3, 4, 5};
  std::vector<double> fullest;
  do {
    double most = 0;
    for (std::size_t rank = 0; rank < 3; ++rank)
      most = std::max(most, loads[index(std::int64_t{order[2 * rank]})] +
                                loads[index(std::int64_t{order[2 * rank + 1]})]);
    fullest.push_back(most / mean);
  } while (std::next_permutation(order.begin(), order.end()));
  std::sort(fullest.begin(), fullest.end());
  const double typical = fullest_rank(ExpertLoad::typical, 6, 3);
  CHECK(typical >= fullest[fullest.size() / 4]);
  CHECK(typical <= fullest[3 * fullest.size() / 4]);
  CHECK(fullest_rank(ExpertLoad::worst, 6, 3) == doctest::Approx(fullest.back()));
}

TEST_CASE("expert load: capacity cuts it, a number is as stated, and experts may be in some layers only") {
  Transformer model = read_model("deepseek-v3");
  const MoeImbalance worst{.load = ExpertLoad::worst};
  const double uncut = fullest_rank(worst, model, 64);
  CHECK(uncut > 1.5);
  for (LayerDescription& kind : model.layer_kinds) {
    if (kind.architecture.experts) kind.architecture.experts->capacity_factor = 1.25;
  }
  CHECK(fullest_rank(worst, model, 64) == 1.25);
  CHECK(fullest_rank(MoeImbalance{.factor = 1.1}, model, 64) == 1.1);
  CHECK(fullest_rank(MoeImbalance{.factor = 3}, model, 64) == 1.25);
  // A rank that holds all experts has the mean, and one that holds one is sent each token once at most.
  const Transformer mixtral = read_model("mixtral-8x7b");
  CHECK(fullest_rank(MoeImbalance{.factor = 4}, mixtral, 1) == 1);
  CHECK(fullest_rank(MoeImbalance{.factor = 3}, mixtral, 8) == 3);
  CHECK(fullest_rank(MoeImbalance{.factor = 1e9}, mixtral, 8) == 4);
  CHECK(fullest_rank(MoeImbalance{.factor = 1e9}, mixtral, 4) == 4);
  CHECK(fullest_rank(worst, model, 3) == 1);  // no such ranks can share them
  const Workload workload{.global_batch = 64, .sequence = 4096, .moe_imbalance = worst};
  const Strategy strategy{.data_parallel = 64, .expert_parallel = 64};
  CHECK(bindings(model, strategy, workload)[Symbol::imbalance] == 1.25);
  CHECK(fullest_rank(worst, read_model("llama-3-8b"), 1) == 1);
}

}  // namespace headroom
