// What a search finds beyond the usual values.
#include "headroom/search/widen.hpp"

#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "headroom/core/contains.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/changes.hpp"
#include "headroom/search/limits.hpp"
#include "search/brute_force.hpp"

namespace headroom {
namespace {

struct WideQuestion {
  Request base;
  Space space;
};

WideQuestion wide_question(const char* model, const char* stack, std::int64_t devices, std::int64_t batch) {
  WideQuestion question{.base = {.model = with_layers(read_model(model), 8),
                                 .system = read_system("dgx-h100-80g"),
                                 .software = read_software(stack)},
                        .space = {.breadth = Breadth::wide, .devices = devices}};
  Request& base = question.base;
  base.model = with_attention(std::move(base.model), base.software.attention_kernel);
  base.strategy = with_stack_defaults({}, base.software, base.model);
  base.workload = {.global_batch = batch, .sequence = base.model.sequence};
  question.space.schedules = searched_schedules(base.software);
  return question;
}

SearchResult usual(const WideQuestion& question) { return search(question.base, question.space); }

SearchResult widened(const WideQuestion& question, unsigned threads = 1) {
  SearchResult result = usual(question);
  widen(result, question.base, question.space, {.threads = threads});
  return result;
}

// Every division, with the usual choices in each.
SearchResult exhausted(const WideQuestion& question) {
  Space all = question.space;
  all.tensor_parallel = wide_tensor_parallel_of(question.base, all);
  all.context_parallel = wide_context_parallel_of(question.base, all);
  return search(question.base, all);
}

const std::array<WideQuestion, 4>& wide_questions() {
  static const std::array questions{wide_question("llama-3-8b", "megatron-core-2025", 64, 16),
                                    wide_question("llama-3-70b", "nemo-2025", 32, 8),
                                    wide_question("llama-3-8b", "torchtitan-2025", 32, 32),
                                    wide_question("mixtral-8x7b", "megatron-core-2025", 32, 32)};
  return questions;
}

TEST_CASE("widen: the best plan is as good as that of all divisions") {
  for (const WideQuestion& question : wide_questions()) {
    CAPTURE(question.base.model.name);
    const SearchResult wide = widened(question);
    REQUIRE_FALSE(wide.plans.empty());
    CHECK(wide.plans.front().iteration <= exhausted(question).plans.front().iteration);
    CHECK(wide.plans.front().iteration <= usual(question).plans.front().iteration);
    CHECK(std::is_sorted(wide.plans.begin(), wide.plans.end()));
  }
  // Sequences that DP cannot divide are divided by CP.
  const WideQuestion& few = wide_questions()[0];
  CHECK(widened(few).plans.front().strategy.context_parallel > 1);
  CHECK(widened(few).plans.front().iteration < usual(few).plans.front().iteration);
}

TEST_CASE("widen: no single change that fits makes the best plan faster by half a percent") {
  for (const WideQuestion& question : wide_questions()) {
    const Candidate best = widened(question).plans.front();
    Request request = question.base;
    request.strategy = best.strategy;
    std::int64_t tried = 0;
    for (const Edits& change : changes_on_same_devices(request)) {
      const Request other = changed(request, change);
      if (devices(other.strategy) != devices(request.strategy) || !launchable(request, other.strategy) ||
          !illegalities(other, other.strategy).empty()) {
        continue;
      }
      const Evaluation evaluation = evaluate(other);
      const auto* const plan = std::get_if<Plan>(&evaluation);
      if (plan == nullptr || plan->verdict != Verdict::fits) continue;
      ++tried;
      CHECK(plan->timing->iteration.total >= 0.995 * best.iteration);
    }
    CHECK(tried > 5);
  }
}

TEST_CASE("widen: where nothing fits, layers are placed by memory, unless only even layouts are searched") {
  WideQuestion question = wide_question("llama-3-8b", "megatron-core-2025", 8, 16);
  question.base.model = with_layers(question.base.model, 16);
  Space& space = question.space;
  space.tensor_parallel = space.context_parallel = space.micro_batch = {.only = {1}};
  space.pipeline_parallel = {.only = {4}};
  space.virtual_pipeline = {.only = {2}};
  space.recompute = {RecomputePolicy::none};
  space.recompute_modules.of_model = false;
  space.layouts = Layouts::any;
  question.base.system.memory = 1_GiB;
  question.base.system.memory = 0.98 * usual(question).nearest->peak;
  CHECK(usual(question).plans.empty());
  const SearchResult wide = widened(question);
  REQUIRE(wide.plans.size() == 1);
  CHECK(wide.plans.front().verdict != Verdict::does_not_fit);
  CHECK(wide.plans.front().strategy.stage_layers.size() == 8);
  CHECK_FALSE(wide.nearest);
  CHECK(wide.feasible == 1);
  space.layouts = Layouts::even;
  CHECK(widened(question).plans.empty());
}

TEST_CASE("widen: no plan is lost for another layout whose reserved memory does not fit") {
  WideQuestion question = wide_question("llama-3-70b", "megatron-core-2025", 64, 256);
  question.base.model = read_model("llama-3-70b");
  Space& space = question.space;
  space.tensor_parallel = {.only = {4}};
  space.context_parallel = space.micro_batch = {.only = {1}};
  space.pipeline_parallel = {.only = {8}};
  space.virtual_pipeline = {.only = {5}};
  space.recompute = {RecomputePolicy::none};
  space.precision = {Precision::fp8};
  space.layouts = Layouts::any;
  const auto settled = [&](const SearchResult& result) {
    Request request = question.base;
    request.strategy = result.plans.front().strategy;
    return settling(evaluate(request)).verdict;
  };
  CHECK(settled(usual(question)) == Verdict::marginal);
  CHECK(settled(widened(question)) == Verdict::marginal);
}

TEST_CASE("widen: no change of a marginal plan fits and is faster than the best plan") {
  WideQuestion question = wide_question("llama-3-8b", "megatron-core-2025", 8, 64);
  question.base.model = read_model("llama-3-8b");
  question.space.layouts = Layouts::any;
  const Candidate before = usual(question).plans.front();
  const SearchResult result = widened(question);
  const Candidate& best = result.plans.front();
  REQUIRE(before.verdict == Verdict::fits);
  REQUIRE(best.verdict == Verdict::fits);
  CHECK(best.iteration < before.iteration);
  std::int64_t marginal = 0;
  for (const Candidate& candidate : result.pareto) {
    if (candidate.verdict != Verdict::marginal || candidate.iteration >= best.iteration) continue;
    ++marginal;
    Request at = question.base;
    at.strategy = candidate.strategy;
    for (const Edits& change : changes_on_same_devices(at)) {
      Request changed_at = changed(at, change);
      if (!can_replace(at, changed_at.strategy)) continue;
      const Evaluation evaluation = evaluate(changed_at);
      if (settling(evaluation).verdict == Verdict::fits)
        CHECK(account(evaluation).timing->iteration.total >= best.iteration);
    }
  }
  CHECK(marginal > 0);
}

TEST_CASE("widen: a plan is as fast as its own division makes it") {
  WideQuestion question = wide_question("gpt-oss-20b", "torchtitan-2024", 1024, 1024);
  question.base.model = read_model("gpt-oss-20b");
  question.base.system = read_system("dgx-b200-180g");
  question.space.layouts = Layouts::any;
  const Candidate best = widened(question).plans.front();
  CHECK(best.iteration < usual(question).plans.front().iteration);
  WideQuestion alone = question;
  const Strategy& strategy = best.strategy;
  CHECK(strategy.pipeline_parallel == 4);
  alone.space.tensor_parallel = {.only = {strategy.tensor_parallel}};
  alone.space.context_parallel = {.only = {strategy.context_parallel}};
  alone.space.pipeline_parallel = {.only = {strategy.pipeline_parallel}};
  CHECK(widened(alone).plans.front().iteration == best.iteration);
}

TEST_CASE("widen: changes lay uneven stages anew") {
  WideQuestion question = wide_question("llama-3-8b", "megatron-core-2025", 64, 64);
  Request& request = question.base;
  request.strategy.pipeline_parallel = 2;
  request.strategy.data_parallel = 32;
  request.strategy.stage_layers = {5, 3};
  bool others = false;
  for (const Edits& change : changes_on_same_devices(request)) {
    const Strategy strategy = changed(request, change).strategy;
    const std::int64_t stages = strategy.pipeline_parallel * strategy.virtual_pipeline;
    others = others || (stages > 2 && can_replace(request, strategy));
    if (!strategy.stage_layers.empty() && stages <= request.model.layers)
      CHECK(std::ssize(strategy.stage_layers) == stages);
  }
  CHECK(others);
}

TEST_CASE("widen: threads do not matter, and lists of values are kept") {
  const WideQuestion& question = wide_questions()[0];
  CHECK(widened(question, 3) == widened(question));
  WideQuestion narrow = question;
  narrow.space.context_parallel = {.only = {1}};
  narrow.space.tensor_parallel = {.only = {1, 2}};
  for (const Candidate& plan : widened(narrow).plans) {
    CHECK(plan.strategy.context_parallel == 1);
    CHECK(plan.strategy.tensor_parallel <= 2);
  }
  WideQuestion fast = question;
  fast.space.breadth = Breadth::usual;
  CHECK(widened(fast) == usual(fast));
}

TEST_CASE("widen: where nothing usual is legal, all divisions are searched") {
  // Two sequences on 64 GPUs: without CP, 32 GPUs of a replica need stages of a quarter of a layer.
  WideQuestion question = wide_question("llama-3-8b", "megatron-core-2025", 64, 2);
  question.space.pipeline_parallel = {.only = {1}};
  CHECK(usual(question).plans.empty());
  const SearchResult wide = widened(question);
  REQUIRE_FALSE(wide.plans.empty());
  CHECK(wide.plans.size() == exhausted(question).plans.size());
  CHECK(wide.plans.front().iteration <= exhausted(question).plans.front().iteration);
}

TEST_CASE("widen: stacks without pipelines try shard groups and gathered weights with every layout") {
  WideQuestion question = wide_question("llama-2-70b", "pytorch-fsdp-2023", 64, 64);
  const SearchResult wide = usual(question);
  question.space.breadth = Breadth::usual;
  CHECK(wide.evaluated > 4 * usual(question).evaluated);
  CHECK(wide.plans.front().iteration < usual(question).plans.front().iteration);
}

TEST_CASE("widen: a space admits its own strategies, and no other sizes than it lists") {
  const WideQuestion& question = wide_questions()[3];
  Space narrow = question.space;
  narrow.tensor_parallel = {.only = {2}};
  narrow.data_sharding = {DataSharding::zero1};
  narrow.recompute = {RecomputePolicy::none, RecomputePolicy::selective};
  narrow.micro_batch = {.most = 2};
  std::int64_t admitted = 0;
  for (const Strategy& strategy : strategies(question.base, question.space)) {
    CHECK(admits(question.base, question.space, strategy));
    const bool modules = strategy.recompute.policy == RecomputePolicy::ops;
    const bool listed = strategy.tensor_parallel == 2 && strategy.micro_batch <= 2 &&
                        strategy.data_sharding == DataSharding::zero1 &&
                        (modules || contains(narrow.recompute, strategy.recompute.policy));
    REQUIRE(admits(question.base, narrow, strategy) == listed);
    admitted += listed ? 1 : 0;
  }
  CHECK(admitted > 0);
}

TEST_CASE("widen: divisions that another dispatcher makes the fastest are searched with it") {
  // With alltoall, the division with PP 1 is not among the first eight plans.
  WideQuestion question = wide_question("gpt-oss-120b", "megatron-core-2025", 16, 64);
  question.base.model = with_attention(read_model("gpt-oss-120b"), question.base.software.attention_kernel);
  question.base.system = read_system("dgx-b200-180g");
  question.base.workload.sequence = 32'768;
  Space& space = question.space;
  space.layouts = Layouts::any;
  space.virtual_pipeline = {.only = {1, 2, 3, 5}};
  space.micro_batch = {.only = {1, 2}};
  space.expert_tensor_parallel = {.only = {1}};
  space.recompute = {RecomputePolicy::selective};
  space.sequence_parallel = {true};
  const Candidate best = widened(question).plans.front();
  space.tensor_parallel = {.only = {4}};
  CHECK(best.iteration <= 1.005 * widened(question).plans.front().iteration);
}

TEST_CASE("limits: FP8 is named only where the stack's launcher has it") {
  for (const bool launches : {true, false}) {
    WideQuestion question =
        wide_question("llama-3-8b", launches ? "megatron-core-2025" : "deepspeed-2025", 8, 64);
    question.base.strategy.data_parallel = 8;
    question.base.strategy.data_sharding = DataSharding::zero1;
    CHECK(in_fp8(account(evaluate(question.base))).has_value() == launches);
  }
}

TEST_CASE("widen: what is left out is named with the time of the plan that has it") {
  std::int64_t named = 0;
  for (const char* stack : {"megatron-2022", "megatron-core-2025", "torchtitan-2025", "llm-foundry-2023"}) {
    const WideQuestion question = wide_question("llama-3-8b", stack, 64, 64);
    Request request = question.base;
    request.strategy = widened(question).plans.front().strategy;
    const Evaluation best = evaluate(request);
    REQUIRE(std::holds_alternative<Plan>(best));
    Seconds before;
    for (const LeftOut& choice : left_out(std::get<Plan>(best), question.space)) {
      CHECK(choice.iteration >= before);
      before = choice.iteration;
      CHECK(choice.iteration < 0.995 * std::get<Plan>(best).timing->iteration.total);
      const std::optional<Edits> change = edits_of_flags(choice.change);
      if (!change) {
        CHECK(choice.change == "--cuda-graphs layers");
        continue;
      }
      const Evaluation other = evaluate(changed(request, *change));
      CHECK(account(other).timing->iteration.total == choice.iteration);
      CHECK(account(other).verdict == Verdict::fits);
      ++named;
    }
  }
  CHECK(named > 0);
}

}  // namespace
}  // namespace headroom
