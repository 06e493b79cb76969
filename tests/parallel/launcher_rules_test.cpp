// What a stack's launcher has no flag for: warned of by an estimate, left out of searches and suggestions, said by a launch.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/interop/launch_flags.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/search/search.hpp"

namespace headroom {
namespace {

Request request_on(std::string_view stack) {
  Request request{.model = read_model("gpt2-small"),
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software(std::string(stack)),
                  .workload = {.global_batch = 24, .sequence = 512}};
  request.strategy = with_stack_defaults({}, request.software, request.model);
  return request;
}

struct LaunchedRule {
  std::string_view field;
  std::string_view stack;
  Strategy strategy;
  std::string_view text;
};

// For each rule a strategy that breaks it alone, and says so.
std::vector<LaunchedRule> launched_rules() {
  return {
      {"recompute",
       "hf-trainer",
       {.recompute = {.policy = RecomputePolicy::selective}},
       "selective recomputation: the stack hf-trainer supports only `recompute` none or full"},
      {"recompute_layers",
       "hf-trainer",
       {.recompute = {.policy = RecomputePolicy::full, .layers = 2}},
       "recomputation of 2 layers of each stage: the stack hf-trainer recomputes all layers"},
      {"stage_layers",
       "megatron-2022",
       {.pipeline_parallel = 2, .stage_layers = {5, 7}},
       "uneven stages: the stack megatron-2022 gives each stage the same number of layers"},
      {"microbatch_group_size",
       "megatron-2022",
       {.pipeline_parallel = 4,
        .virtual_pipeline = 3,
        .schedule = ScheduleKind::interleaved,
        .microbatch_group_size = 8},
       "groups of 8 microbatches: the stack megatron-2022 supports only one microbatch per pipeline rank in "
       "a group (4)"},
  };
}

bool warns(const Plan& plan) {
  return std::any_of(plan.warnings.begin(), plan.warnings.end(),
                     [](const Warning& warning) { return warning.code == no_launcher_flag; });
}

TEST_CASE(
    "launcher rules: each has a strategy that breaks it alone, which is legal, warned of and launched "
    "without") {
  for (const LaunchedRule& rule : launched_rules()) {
    const std::string_view field = rule.field;
    const std::string_view text = rule.text;
    CAPTURE(field);
    Request request = request_on(rule.stack);
    request.strategy = with_stack_defaults(rule.strategy, request.software, request.model);
    CHECK(illegalities(request, request.strategy).empty());
    const std::vector<BrokenRule> broken =
        broken_rules(asked(request, request.strategy), rules_of(Whose::launcher));
    REQUIRE(broken.size() == 1);
    CHECK(broken.front().problem == Problem{std::string(field), std::string(text)});
    CHECK(warns(account(evaluate(request))));
    const auto launch = launch_flags(request.model, request.strategy, request.workload, request.software);
    REQUIRE(launch);
    CHECK(std::any_of(launch->lacks.begin(), launch->lacks.end(), [&](const std::string& lack) {
      return lack.substr(0, lack.find(':')) == text.substr(0, text.find(':'));
    }));
    for (const std::string_view flag : {"layout", "recompute", "checkpointing ", "group"}) {
      CHECK(std::none_of(launch->flags.begin(), launch->flags.end(),
                         [&](const std::string& it) { return it.find(flag) != std::string::npos; }));
    }
    Request usual = request;
    broken.front().rule->put_usual(usual.strategy);
    CHECK(launcher_gaps(usual.software, usual.model, usual.strategy, usual.workload).empty());
  }
}

TEST_CASE("launcher rules: no search and no suggestion breaks one on any stack") {
  for (const std::string_view stack : embedded_names("software")) {
    CAPTURE(stack);
    Request request = request_on(stack);
    const Space space{.devices = 8,
                      .layouts = layouts_of(request.software),
                      .schedules = searched_schedules(request.software)};
    const SearchResult result = search(request, space);
    REQUIRE(!result.plans.empty());
    for (const Candidate& candidate : result.plans) {
      request.strategy = candidate.strategy;
      CHECK(launcher_gaps(request.software, request.model, candidate.strategy, request.workload).empty());
      const Evaluation evaluation = evaluate(request);
      CHECK(!warns(account(evaluation)));
      const auto* const plan = std::get_if<Plan>(&evaluation);
      if (plan == nullptr || &candidate != &result.plans.back()) continue;
      for (const Alternative& better : improvements(*plan, 5)) {
        CHECK(launcher_gaps(request.software, request.model, better.plan.request.strategy, request.workload)
                  .empty());
      }
    }
  }
}

}  // namespace
}  // namespace headroom
