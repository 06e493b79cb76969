// Saved tensors at the peak, against the account that they are parts of.
#include "headroom/answer/peak_tensors.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "answer/plan_of.hpp"
#include "headroom/core/contains.hpp"

namespace headroom {
namespace {

Bytes sum_of(const std::vector<PeakTensor>& tensors) {
  Bytes sum;
  for (const PeakTensor& tensor : tensors) sum += total(tensor);
  return sum;
}

Bytes saved(const Plan& plan) {
  const Activations& held = plan.ranks[plan.peak_rank].activations.at_peak;
  return held.layers + held.embedding + held.head;
}

const Strategy deep{.tensor_parallel = 8, .pipeline_parallel = 8, .sequence_parallel = true};

}  // namespace

TEST_CASE("peak tensors: they add up to what the account says is saved") {
  for (const RecomputePolicy policy :
       {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full}) {
    Strategy strategy = deep;
    strategy.recompute.policy = policy;
    const Plan plan = plan_of("gpt3-175b", "megatron-2022", strategy, 64);
    const std::vector<PeakTensor> tensors = peak_tensors(plan);
    CHECK(sum_of(tensors) / saved(plan) == doctest::Approx(1));
    CHECK(std::is_sorted(tensors.begin(), tensors.end(), [](const PeakTensor& one, const PeakTensor& two) {
      return total(one) > total(two);
    }));
  }
  Strategy interleaved = deep;
  interleaved.virtual_pipeline = 3;
  interleaved.schedule = ScheduleKind::interleaved;
  const Plan plan = plan_of("gpt3-175b", "megatron-2022", interleaved, 64);
  CHECK(sum_of(peak_tensors(plan)) / saved(plan) == doctest::Approx(1));
}

TEST_CASE("peak tensors: each is gone under the recomputations that are said to free it") {
  const Plan plan = plan_of("llama-3-70b", "megatron-core-2025", deep, 64);
  const std::vector<PeakTensor> tensors = peak_tensors(plan);
  const auto named = [](const std::vector<PeakTensor>& all, const PeakTensor& one) {
    return std::any_of(all.begin(), all.end(), [&](const PeakTensor& other) {
      return other.name == one.name && other.op == one.op && other.layers == one.layers;
    });
  };
  std::size_t freed = 0;
  for (const char* const name : {"mlp", "layernorm", "full"}) {
    Strategy strategy = deep;
    if (name == std::string("full")) {
      strategy.recompute.policy = RecomputePolicy::full;
    } else {
      strategy.recompute = {.policy = RecomputePolicy::ops, .ops = {name}};
    }
    const std::vector<PeakTensor> left =
        peak_tensors(plan_of("llama-3-70b", "megatron-core-2025", strategy, 64));
    for (const PeakTensor& tensor : tensors) {
      if (!contains(tensor.freed_by, std::string(name))) continue;
      CAPTURE(tensor.name);
      CHECK_FALSE(named(left, tensor));
      ++freed;
    }
  }
  CHECK(freed > 10);
  // No module of a stack that only recomputes whole layers is named.
  for (const PeakTensor& tensor :
       peak_tensors(plan_of("llama-3-8b", "hf-trainer", {.data_parallel = 8}, 64))) {
    CHECK((tensor.freed_by.empty() || tensor.freed_by == std::vector<std::string>{"full"}));
  }
}

TEST_CASE("peak tensors: none where layers share a checkpoint") {
  Strategy shares = deep;
  shares.recompute = {.policy = RecomputePolicy::full, .method = RecomputeMethod::uniform, .layers = 2};
  CHECK(peak_tensors(plan_of("gpt3-175b", "megatron-2022", shares, 64)).empty());
}

}  // namespace headroom
