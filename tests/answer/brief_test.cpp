// A question in words has the numbers that `headroom estimate` prints for the same words.
#include "headroom/answer/brief.hpp"

#include <string>

#include <doctest/doctest.h>

#include "answer/printed_by.hpp"
#include "headroom/core/error.hpp"

namespace headroom {
namespace {

std::string refusal(const BriefQuestion& question) {
  try {
    answer(question);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("brief: the numbers of estimate, with its defaults") {
  for (const BriefQuestion& question :
       {BriefQuestion{.model = "gpt-22b", .flags = "-t 8 -p 2 --global-batch 16 --sp"},
        BriefQuestion{.model = "gpt3-175b", .flags = "-t 8"},
        BriefQuestion{
            .model = "llama-3-8b", .flags = "-d 8", .system = "dgx-h100-80g", .software = "torchtitan-2025"},
        BriefQuestion{.model = "llama-3-8b", .flags = "-t 4 -d 4 --optimizer sgd", .system = "dgx-h100-80g"},
        BriefQuestion{.model = "llama-3-8b", .flags = "-t 8 --global-batch 64 --sequence 4096"}}) {
    CAPTURE(question.model);
    CAPTURE(question.flags);
    std::string arguments = "estimate " + question.model + " --system " + question.system + " " +
                            question.flags + " --no-suggestions";
    if (!question.software.empty()) arguments += " --software " + question.software;
    const Json json = json_of(arguments);
    const BriefReply reply = answer(question);
    CHECK(json["memory"]["verdict"] == reply.verdict);
    CHECK(reply.fits == (reply.verdict != "does_not_fit"));
    CHECK(json["memory"]["peak_bytes"] == reply.peak.count());
    CHECK(json["memory"]["capacity_bytes"] == reply.capacity.count());
    CHECK(json["memory"]["peak_rank"] == reply.peak_rank);
    CHECK(json["time"]["iteration_seconds"] == reply.iteration->count());
    CHECK(json["time"]["interval"]["low_seconds"] == reply.iteration_low->count());
    CHECK(json["time"]["interval"]["high_seconds"] == reply.iteration_high->count());
    CHECK(json["throughput"]["tokens_per_second"] == *reply.tokens_per_second);
    CHECK(json["throughput"]["mfu"] == *reply.mfu);
  }
}

TEST_CASE("brief: what is wrong is named") {
  CHECK(refusal({.model = "gpt-22"}).find("gpt-22") != std::string::npos);
  CHECK(refusal({.model = "gpt-22b", .flags = "-t 8 --frob 3"}).find("'-t 8 --frob 3' are not") !=
        std::string::npos);
  CHECK(refusal({.model = "gpt-22b", .flags = "-t x"}).find("--tensor-parallel") != std::string::npos);
  CHECK(refusal({.model = "gpt-22b", .flags = "-t 7"}).find("tensor_parallel") != std::string::npos);
}

}  // namespace headroom
