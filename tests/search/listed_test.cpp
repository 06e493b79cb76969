// Dimensions of a space that are open only where a list is given: dispatchers of tokens to experts, and precisions.
#include <set>
#include <utility>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/legality.hpp"
#include "search/brute_force.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

Request four_layers_of(const std::string& model, const std::string& system) {
  Request request{.model = with_layers(read_model(model), 4), .system = read_system(system)};
  request.workload = {.global_batch = 16, .sequence = request.model.sequence};
  return request;
}

}  // namespace

TEST_CASE(
    "search: dispatchers that are listed are tried where ranks share experts, and that of the request "
    "elsewhere") {
  const Request base = four_layers_of("mixtral-8x7b", "dgx-a100-80g");
  const auto found = [&](const std::vector<Dispatcher>& listed) {
    const Space space{.devices = 8, .expert_parallel = {.only = {1, 8}}, .moe_dispatcher = listed};
    std::set<std::pair<std::int64_t, Dispatcher>> tried;
    visit_layouts(
        base, space,
        [&](const Strategy& layout) {
          tried.insert({layout.expert_parallel, layout.moe_dispatcher});
          return true;
        },
        [](const Problem&) {});
    return tried;
  };
  using Tried = std::set<std::pair<std::int64_t, Dispatcher>>;
  CHECK(found({}) == Tried{{1, Dispatcher::alltoall}, {8, Dispatcher::alltoall}});
  CHECK(found({Dispatcher::allgather, Dispatcher::deepep}) ==
        Tried{{1, Dispatcher::alltoall}, {8, Dispatcher::allgather}, {8, Dispatcher::deepep}});
  check_against_brute_force(
      base, {.devices = 8,
             .expert_parallel = {.only = {1, 2, 4}},
             .moe_dispatcher = {Dispatcher::allgather, Dispatcher::alltoall, Dispatcher::deepep},
             .micro_batch = {.most = 1}});
}

TEST_CASE(
    "search: exchanges of experts are tried beside other passes where the stack can and passes pair up") {
  Request base = four_layers_of("mixtral-8x7b", "dgx-a100-80g");
  const auto tried = [&](const std::vector<bool>& open) {
    const Space space{.devices = 8,
                      .expert_parallel = {.only = {1, 4}},
                      .recompute = {RecomputePolicy::none, RecomputePolicy::full},
                      .overlap_expert_all_to_all = open};
    std::set<bool> overlaps;
    for (const Strategy& strategy : strategies(base, space)) {
      overlaps.insert(strategy.overlap_expert_all_to_all);
      CHECK(illegalities(base.model, strategy, base.workload, base.software).empty());
    }
    return overlaps;
  };
  CHECK(tried({}) == std::set{false});
  CHECK(tried({false, true}) == std::set{false, true});
  CHECK(tried({true}) == std::set{true});
  base.software = read_software("megatron-core-2025");
  CHECK(tried({}) == std::set{false, true});
  CHECK(tried({false}) == std::set{false});
  base.software = read_software("torchtitan-2025");
  CHECK(tried({false, true}) == std::set{false});
  CHECK(tried({true}).empty());
  base.software = read_software("megatron-core-2025");
  check_against_brute_force(base, {.devices = 8,
                                   .expert_parallel = {.only = {2, 4}},
                                   .micro_batch = {.most = 1},
                                   .overlap_expert_all_to_all = {false, true}});
}

TEST_CASE(
    "search: precisions that are listed are tried, and those that the devices have not are no reason to "
    "stop") {
  Request base = four_layers_of("llama-3-8b", "dgx-h100-80g");
  const Space both{.devices = 4, .micro_batch = {.most = 2}, .precision = {Precision::fp8, Precision::bf16}};
  check_against_brute_force(base, both);
  // Each as a search of its own, the request's precision of no account.
  const auto fastest = [&](const std::vector<Precision>& precisions) {
    Space space = both;
    space.precision = precisions;
    return search(base, space).plans.front().iteration;
  };
  CHECK(search(base, both).plans.front().iteration ==
        std::min(fastest({Precision::bf16}), fastest({Precision::fp8})));
  base.strategy.precision = Precision::fp8;
  Space own = both;
  own.precision = {};
  CHECK(search(base, own).plans.front().iteration == fastest({Precision::fp8}));
  Space blackwell = both;
  blackwell.precision = {Precision::bf16, Precision::mxfp8};
  CHECK(search(base, blackwell).plans.front().strategy.precision == Precision::bf16);
  CHECK(search(base, blackwell).rejected.at("precision") == 1);
  blackwell.precision = {Precision::mxfp8};
  CHECK_THROWS_AS(search(base, blackwell), InputError);
}

}  // namespace headroom
