// The global batch of a plan whose question names none, and the GPUs that it leaves idle.
#include <doctest/doctest.h>

#include "headroom/answer/plan.hpp"
#include "search/stack_search.hpp"

namespace headroom {
namespace {

PlanQuestion llama_on(std::int64_t devices) {
  const Searched it = searched("llama-3-8b", "dgx-h100-80g", "megatron-core-2025", devices, 1);
  PlanQuestion question{.base = it.base, .space = it.space};
  question.base.workload.global_batch = usual_global_batch(it.base, devices);
  question.default_batch = true;
  return question;
}

// Sequences a second of the best plan.
double rate(const PlanQuestion& question) {
  const PlanReply reply = answer(question);
  REQUIRE_FALSE(reply.result.plans.empty());
  return real(reply.base.workload.global_batch) / reply.result.plans.front().iteration.count();
}

}  // namespace

TEST_CASE("default batch: about 4M tokens that the replicas of any number of GPUs share evenly") {
  Request base = llama_on(1).base;
  for (std::int64_t devices = 1; devices <= 16384; ++devices) {
    const std::int64_t batch = usual_global_batch(base, devices);
    CHECK(3 * batch >= 2 * 512);
    CHECK(3 * batch <= 4 * 512);
    std::int64_t replicas = devices;
    for (std::int64_t of_replica = 2; replicas > 512; of_replica *= 2) replicas = devices / of_replica;
    CHECK(batch % replicas == 0);
  }
  base.workload.sequence = usual_batch_tokens * 2;
  CHECK(usual_global_batch(base, 1) == 1);
}

TEST_CASE("default batch: another batch of as many tokens trains no faster by more than 0.5%") {
  for (const std::int64_t devices : {24, 60, 96}) {
    const PlanQuestion question = llama_on(devices);
    const double by_default = rate(question);
    for (const std::int64_t batch : {question.base.workload.global_batch - devices / 2, std::int64_t{512}}) {
      PlanQuestion other = question;
      other.base.workload.global_batch = batch;
      other.use_all_devices = true;
      CHECK(by_default >= 0.995 * rate(other));
    }
  }
}

TEST_CASE("idle devices: fewer of them train no faster by more than 0.5%") {
  for (const std::int64_t devices : {61, 250}) {
    const double with_some_idle = rate(llama_on(devices));
    for (const std::int64_t fewer : {devices - 1, devices / 8 * 8})
      CHECK(with_some_idle >= 0.995 * rate(llama_on(fewer)));
  }
  PlanQuestion all = llama_on(61);
  const PlanReply idles = answer(all);
  REQUIRE(idles.idle);
  CHECK(idles.idle->asked == 61);
  all.use_all_devices = true;
  const PlanReply whole = answer(all);
  CHECK_FALSE(whole.idle);
  CHECK(idles.idle->with_all == whole.result.plans.front().iteration);  // what the flag shows
  CHECK(idles.idle->with_all_batch == whole.base.workload.global_batch);
}

}  // namespace headroom
