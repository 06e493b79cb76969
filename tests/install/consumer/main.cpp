#include <cstdio>
#include <string_view>

#include <headroom/answer/plan.hpp>
#include <headroom/core/error.hpp>
#include <headroom/core/units.hpp>
#include <headroom/io/catalog.hpp>
#include <headroom/io/model_file.hpp>
#include <headroom/io/software_file.hpp>
#include <headroom/io/system_file.hpp>
#include <headroom/model/transformer.hpp>

// Needs a header-only part, a compiled part and an embedded file, and asks what docs/library.md says to ask.
int main() {
  using namespace headroom::literals;
  static_assert(1_GiB / 2.0 == 512_MiB);
  if (headroom::nearest("selectiv", {"none", "selective", "full"}) != "selective") return 1;
  if (headroom::padded_vocabulary({.vocabulary = 1000, .vocabulary_multiple = 128}, 2) != 1024) return 2;
  headroom::Request request{.workload = {.global_batch = 4, .sequence = 2048}};
  request.model = headroom::read_model("gpt-22b");
  request.system = headroom::read_system("dgx-a100-80g");
  request.software = headroom::read_software("megatron-2022");
  request.strategy.tensor_parallel = 8;
  request.strategy.sequence_parallel = true;
  const headroom::EstimateReply reply = headroom::answer(headroom::EstimateQuestion{.request = request});
  if (!headroom::fits(reply) || !reply.interval) return 4;
  const headroom::PlanReply best =
      headroom::answer(headroom::PlanQuestion{.base = request, .space = {.devices = 8}});
  if (best.accounts.empty() || best.result.plans.front().iteration > reply.interval->high) return 5;
  for (const headroom::EmbeddedFile& file : headroom::embedded_files()) {
    if (file.path == "models/gpt3-175b.json") return 0;
  }
  std::puts("models/gpt3-175b.json is not embedded");
  return 3;
}
