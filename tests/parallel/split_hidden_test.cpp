// Norms and dropouts divided along the hidden dimension, held against sequence parallelism.
#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/search.hpp"

namespace headroom {
namespace {

constexpr Sharding by_sequence{.tensor = true, .sequence = true};
constexpr Sharding by_hidden{.tensor = true, .sequence = true, .hidden = true};

constexpr Expr kept_of_layer(const Architecture& architecture, const Sharding& sharding, Detail detail) {
  return kept_bytes(stored_tensors(layer_ops(architecture), sharding, {}, detail));
}

// What passes a rank in both passes of a layer.
constexpr Expr moved_by_layer(const Architecture& architecture, const Sharding& sharding) {
  Expr sum;
  for (const Collective& collective : collectives(layer_ops(architecture), sharding)) {
    sum += wire_bytes(forward_kind(collective.name), collective.bytes);
    sum += wire_bytes(backward_kind(collective.name), collective.backward_bytes);
  }
  return sum;
}

constexpr Architecture with_rms_norms{.normalization = Normalization::rms_norm};

Request split_request(bool along_hidden) {
  Request request{.model = read_model("gpt3-175b"), .system = read_system("dgx-a100-80g")};
  request.software = read_software("megatron-2022");
  request.strategy = {.tensor_parallel = 8, .pipeline_parallel = 8, .sequence_parallel = true};
  request.strategy.split_hidden = along_hidden;
  request.strategy.recompute.policy = RecomputePolicy::selective;
  request.workload = {.global_batch = 16, .sequence = request.model.sequence};
  return request;
}

}  // namespace

TEST_CASE(
    "split hidden: a layer saves as much as under sequence parallelism, but whole statistics of its norms") {
  using namespace symbols;
  static_assert(kept_of_layer({}, by_hidden, Detail::paper) == kept_of_layer({}, by_sequence, Detail::paper));
  // Two norms, of each token a mean and a deviation in fp32, of which a sequence shard has 1/t.
  static_assert(kept_of_layer({}, by_hidden, Detail::exact) - kept_of_layer({}, by_sequence, Detail::exact) ==
                16 * s * b - 16 * s * b / t);
  static_assert(kept_of_layer(with_rms_norms, by_hidden, Detail::exact) -
                    kept_of_layer(with_rms_norms, by_sequence, Detail::exact) ==
                8 * s * b - 8 * s * b / t);
}

TEST_CASE("split hidden: norms add up their statistics over ranks in both passes") {
  using namespace symbols;
  // Two norms of two fp32 sums a token, all-reduced forward and backward.
  static_assert(moved_by_layer({}, by_hidden) - moved_by_layer({}, by_sequence) ==
                Expr(2 * 2 * 2) * 8 * s * b * (1 - 1 / t));
  static_assert(moved_by_layer(with_rms_norms, by_hidden) - moved_by_layer(with_rms_norms, by_sequence) ==
                Expr(2 * 2 * 2) * 4 * s * b * (1 - 1 / t));
}

TEST_CASE("split hidden: a plan takes as much memory and longer than under sequence parallelism") {
  const Plan along_sequence = account(evaluate(split_request(false)));
  const Plan along_hidden = account(evaluate(split_request(true)));
  CHECK(peak(along_hidden) == peak(along_sequence));
  const Breakdown& shorter = along_sequence.timing->iteration.breakdown;
  const Breakdown& longer = along_hidden.timing->iteration.breakdown;
  CHECK(longer.tensor_communication > shorter.tensor_communication);
  CHECK(longer.memory_bound > shorter.memory_bound);  // what is gathered along it is put in order
  CHECK(longer.gemm == shorter.gemm);
}

TEST_CASE("split hidden: what it needs is said") {
  const auto rule = [](const Request& request) {
    const std::vector<Problem> problems =
        illegalities(request.model, request.strategy, request.workload, request.software);
    return problems.empty() ? std::string() : problems.front().where + " " + problems.front().rule;
  };
  Request request = split_request(true);
  CHECK(rule(request).empty());
  request.strategy.sequence_parallel = false;
  CHECK(rule(request) == "split_hidden needs `sequence_parallel` and `tensor_parallel` above 1");
  request = split_request(true);
  request.model = read_model("mixtral-8x7b");
  request.workload.sequence = request.model.sequence;
  CHECK(rule(request) ==
        "split_hidden needs a model with one kind of layer, no experts and no latent attention");
  const Strategy strategy = split_request(true).strategy;
  CHECK(stack_illegalities(read_software("megatron-2022"), strategy).empty());
  CHECK(stack_illegalities(read_software("megatron-core-2025"), strategy).front().where == "split_hidden");
}

TEST_CASE("split hidden: a search finds plans that have it") {
  const Request request = split_request(true);
  const SearchResult found = search(request, {.devices = 64});
  REQUIRE_FALSE(found.plans.empty());
  for (const Candidate& plan : found.plans) {
    CHECK(plan.strategy.split_hidden);
    CHECK(plan.strategy.sequence_parallel);
  }
}

}  // namespace headroom
