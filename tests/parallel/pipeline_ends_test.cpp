// The embedding and the output layer on virtual stages of their own, as Llama 3 405B was trained: 126 layers on 16 ranks of 8 stages.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/interop/launch_flags.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/space.hpp"

namespace headroom {
namespace {

TEST_CASE(
    "pipeline ends: they are virtual stages of their own where there are as many stages as that takes") {
  const Transformer model = read_model("llama-3-405b");
  const Workload workload{.global_batch = 16, .sequence = 8192};
  const Software core = read_software("megatron-core-2025");
  Strategy strategy{.tensor_parallel = 8,
                    .pipeline_parallel = 16,
                    .virtual_pipeline = 8,
                    .sequence_parallel = true,
                    .schedule = ScheduleKind::interleaved};
  CHECK(illegalities(model, strategy, workload, core).empty());
  const std::vector<std::int64_t> stages = layers_by_stage(model, strategy);
  CHECK(stages.front() == 0);
  CHECK(stages.back() == 0);
  CHECK(std::count(stages.begin(), stages.end(), 1) == 126);
  // As if they were named.
  Request request{.model = model,
                  .system = read_system("dgx-h100-80g"),
                  .software = core,
                  .strategy = with_stack_defaults(strategy, core, model),
                  .workload = workload};
  Request named = request;
  named.strategy.stage_layers = stages;
  const Plan laid = account(evaluate(request));
  CHECK(laid.ranks == account(evaluate(named)).ranks);
  CHECK(laid.timing->iteration.total == account(evaluate(named)).timing->iteration.total);
  // The launcher is told.
  const auto launch = launch_flags(model, request.strategy, workload, core);
  CHECK(std::find(launch->flags.begin(), launch->flags.end(),
                  "--pipeline-model-parallel-layout 'E|(t|)*126,L'") != launch->flags.end());
  // The search has it.
  const Space space{.devices = 128,
                    .tensor_parallel = {.only = {8}},
                    .pipeline_parallel = {.only = {16}},
                    .virtual_pipeline = {.only = {8}},
                    .layouts = Layouts::any};
  bool laid_by_search = false;
  visit_layouts(
      request, space,
      [&](const Strategy& layout) {
        laid_by_search = laid_by_search || layers_by_stage(model, layout) == stages;
        return true;
      },
      [](const Problem&) {});
  CHECK(laid_by_search);
}

TEST_CASE(
    "pipeline ends: a stack that lays layers on every stage refuses them, and more stages than that all do") {
  const Transformer model = read_model("llama-3-405b");
  const auto rule = [&](const char* stack, std::int64_t virtual_pipeline) {
    const Strategy strategy{
        .pipeline_parallel = 16, .virtual_pipeline = virtual_pipeline, .schedule = ScheduleKind::interleaved};
    const std::vector<Problem> problems =
        illegalities(model, strategy, {.global_batch = 16, .sequence = 8192}, read_software(stack));
    return problems.empty() ? std::string() : problems.front().rule;
  };
  CHECK(rule("megatron-2022", 7).empty());
  CHECK(rule("megatron-2022", 8) ==
        "times `virtual_pipeline` must not exceed the 126 layers (16 x 8): the stack megatron-2022 gives "
        "neither the "
        "embedding nor the output layer a stage of its own");
  CHECK(rule("megatron-core-2025", 9) ==
        "times `virtual_pipeline` must not exceed the 126 layers plus 2 stages that hold only the embedding "
        "or the output layer (16 x 9)");
}

}  // namespace
}  // namespace headroom
