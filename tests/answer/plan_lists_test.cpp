// Plans of several systems and global batches, and of runs that fail: the library's answers are those that the program prints.
#include <doctest/doctest.h>

#include "answer/printed_by.hpp"
#include "headroom/answer/plan.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom {
namespace {

// Any strategy of gpt-22b, with a batch of 16 sequences.
Request searched_22b() {
  Request request{.workload = {.global_batch = 16, .sequence = 2048}};
  request.model = read_model("gpt-22b");
  request.system = read_system("dgx-a100-80g");
  request.software = read_software("megatron-2022");
  return request;
}

}  // namespace

TEST_CASE("answers: the best plan in the flags of its launcher, where it is asked for") {
  Request base = searched_22b();
  base.software = read_software("megatron-core-2025");
  Space space{.breadth = Breadth::wide, .devices = 8};
  space.layouts = layouts_of(base.software);
  const PlanReply asked = answer(PlanQuestion{.base = base, .space = space, .with_launch = true});
  REQUIRE(asked.accounts.size() > 1);
  const Request& best = account(asked.accounts[0].evaluation).request;
  CHECK(asked.accounts[0].launch == launch_of(best, LaunchTarget::megatron));
  CHECK(asked.accounts[0].launch.has_value());
  CHECK_FALSE(asked.accounts[1].launch.has_value());
  CHECK_FALSE(answer(PlanQuestion{.base = base, .space = space}).accounts[0].launch.has_value());
  const Json json = json_of(
      "plan gpt-22b --system dgx-a100-80g --software megatron-core-2025 --devices 8 --global-batch 16 "
      "--launch");
  CHECK(json["plans"][0]["launch"]["launcher"] == "megatron");
  CHECK(json["plans"][0]["launch"]["flags"] == asked.accounts[0].launch->flags);
  CHECK_FALSE(json["plans"][1].contains("launch"));
}

TEST_CASE("answers: plan of several systems at their prices and several global batches") {
  const Request base = searched_22b();
  const auto offer = [](const char* system, double price) {
    const System read = read_system(system);
    return Offer{.system = read,
                 .software = read_software(read.default_software),
                 .layouts = layouts_of(read_software(read.default_software)),
                 .price_per_device_hour = price};
  };
  const PlanReply reply =
      answer(PlanQuestion{.base = base,
                          .space = {.devices = 8},
                          .global_batches = {15, 16},
                          .offers = {offer("dgx-a100-80g", 1.5), offer("dgx-h100-80g", 9)},
                          .training = {.tokens = 1e9},
                          .accounts = 4});
  const Json json = json_of(
      "plan gpt-22b --system dgx-a100-80g,dgx-h100-80g --devices 8 --global-batch 15:16 --tokens 1e9 "
      "--price a100=1.50,h100=9");
  REQUIRE(json["plans"].size() == 4);
  REQUIRE(reply.accounts.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(json["plans"][i]["system"] == account(reply.accounts[i].evaluation).request.system.name);
    CHECK(json["plans"][i]["workload"]["global_batch"] ==
          variant_of(reply, reply.result.plans[i]).global_batch);
    CHECK(json["plans"][i]["budget"]["price"] == *reply.plan_outlooks[i].training->predicted.price);
    CHECK(json["plans"][i]["budget"]["device_watts_are_tdp"] == true);
  }
  CHECK(json["system"]["name"] == "dgx-h100-80g");
  REQUIRE(reply.cheapest);
  CHECK(json["cheapest"] == *reply.cheapest);
  CHECK(system_of(reply, reply.result.plans[*reply.cheapest]).name == "dgx-a100-80g");
  REQUIRE(reply.batch_rates.size() == 2);
  CHECK(reply.batch_rates[0].global_batch == 16);
  CHECK(*reply.batch_rates[0].tokens_per_second > *reply.batch_rates[1].tokens_per_second);
  CHECK(json["global_batches"]["rates"][1]["tokens_per_second"] == *reply.batch_rates[1].tokens_per_second);
}

TEST_CASE("answers: a deadline counts failures, and takes the best of several batches") {
  const Request base = searched_22b();
  PlanQuestion question{
      .base = base, .training = {.tokens = 20e9}, .deadline = Seconds(28 * 86400.0), .accounts = 1};
  const std::int64_t smooth = *answer(question).found->value;
  question.training.reliability = Reliability{
      .device_mtbf = Seconds(200 * 3600.0), .checkpoint_time = Seconds(300), .restart_time = Seconds(900)};
  const PlanReply failing = answer(question);
  REQUIRE(failing.found->value);
  CHECK(*failing.found->value > smooth);
  CHECK(failing.plan_outlooks.front().training->predicted.days <= 28);
  question.global_batches = {13, 16};
  CHECK(*answer(question).found->value == *failing.found->value);
  question.base.workload.global_batch = 13;
  question.global_batches = {13};
  const PlanReply prime = answer(question);
  CHECK((!prime.found->value || *prime.found->value >= *failing.found->value));
}

}  // namespace headroom
