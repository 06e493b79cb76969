// How many ranks or nodes a token's experts are on, where they are in few groups.
#include "headroom/model/expert_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/expr/expr.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/model/exchange.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

// The parts of a token's experts where it scores the experts in this order, the best first: of the groups that have the best
// experts, the best experts.
std::size_t parts_of(const std::vector<std::size_t>& order, const ExpertChoice& choice, std::size_t parts) {
  const auto group = static_cast<std::size_t>(choice.experts / choice.groups);
  std::vector<std::size_t> groups;
  for (const std::size_t expert : order) {
    const bool known = std::find(groups.begin(), groups.end(), expert / group) != groups.end();
    if (!known && groups.size() < static_cast<std::size_t>(choice.groups_per_token)) {
      groups.push_back(expert / group);
    }
  }
  std::vector<bool> met(parts, false);
  double chosen = 0;
  for (const std::size_t expert : order) {
    if (chosen == choice.per_token) break;
    if (std::find(groups.begin(), groups.end(), expert / group) == groups.end()) continue;
    met[expert * parts / order.size()] = true;
    ++chosen;
  }
  return static_cast<std::size_t>(std::count(met.begin(), met.end(), true));
}

// Over all orders of the experts, each as likely as the others.
double mean_of_orders(const ExpertChoice& choice, std::size_t parts) {
  std::vector<std::size_t> order(static_cast<std::size_t>(choice.experts));
  std::iota(order.begin(), order.end(), std::size_t{0});
  double sum = 0;
  double orders = 0;
  do {
    sum += static_cast<double>(parts_of(order, choice, parts));
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum / orders;
}

}  // namespace

TEST_CASE("expert groups: the parts that a token meets are the mean over all orders of scores") {
  for (const double per_token : {1.0, 2.0, 3.0, 4.0}) {
    for (const double most : {1.0, 2.0, 3.0}) {
      const ExpertChoice six{.experts = 6, .per_token = per_token, .groups = 3, .groups_per_token = most};
      if (per_token > 2 * most) continue;
      CAPTURE(per_token);
      CAPTURE(most);
      // Finer than groups, groups, parts that cut groups, and all in one.
      for (const std::size_t parts : {6U, 3U, 2U, 1U}) {
        CAPTURE(parts);
        CHECK(parts_met(six, static_cast<double>(parts)) ==
              doctest::Approx(mean_of_orders(six, parts)).epsilon(1e-12));
      }
    }
  }
  // Parts of two groups each, and parts that lie within a group or across an edge.
  const ExpertChoice fours{.experts = 8, .per_token = 3, .groups = 4, .groups_per_token = 2};
  CHECK(parts_met(fours, 2) == doctest::Approx(mean_of_orders(fours, 2)).epsilon(1e-12));
  const ExpertChoice halves{.experts = 8, .per_token = 3, .groups = 2, .groups_per_token = 1};
  CHECK(parts_met(halves, 4) == doctest::Approx(mean_of_orders(halves, 4)).epsilon(1e-12));
}

TEST_CASE("expert groups: all groups are as none, and fewer meet fewer parts") {
  const auto met = [](double groups, double most, double parts) {
    return parts_met({.experts = 256, .per_token = 8, .groups = groups, .groups_per_token = most}, parts);
  };
  for (const double parts : {1.0, 2.0, 8.0, 32.0, 256.0}) {
    CHECK(met(8, 8, parts) == doctest::Approx(met(1, 1, parts)).epsilon(1e-12));
    double before = 0;
    for (double most = 1; most <= 8; ++most) {
      CHECK(met(8, most, parts) >= before * (1 - 1e-12));
      before = met(8, most, parts);
    }
  }
  CHECK(met(8, 4, 8) == doctest::Approx(3.98).epsilon(0.001));
  CHECK(met(1, 1, 8) == doctest::Approx(5.29).epsilon(0.001));
}

TEST_CASE("expert groups: a token of DeepSeek-V3 goes to four nodes at most") {
  const Transformer model = read_model("deepseek-v3");
  const Bindings of_model =
      bindings(model, {.data_parallel = 64, .expert_parallel = 64}, {.global_batch = 64, .sequence = 4096});
  const ModelLayers layers = layers_of(model, LayerChoices{});
  REQUIRE(layers.kinds[1].name == "moe");
  const Bindings letters = bindings_of(layers.kinds[1].sizes, of_model);
  CHECK(letters[Symbol::expert_groups] == 8);
  CHECK(parts_per_token(letters, 8) <= 4);
  CHECK(letters[Symbol::expert_ranks_per_token] == doctest::Approx(7.47).epsilon(0.001));
}

}  // namespace headroom
