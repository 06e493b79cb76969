// The search against brute force: every strategy of a small space evaluated in full.
#include "headroom/search/search.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/module_choices.hpp"
#include "headroom/plan/composer.hpp"
#include "search/brute_force.hpp"

namespace headroom {
namespace {

Request request_for(const std::string& model, std::int64_t batch) {
  Request request{.model = read_model(model), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  return request;
}

TEST_CASE("search: a small space is answered as by evaluating all of it") {
  check_against_brute_force(request_for("gpt2-xl", 16), {.devices = 8, .recompute_window = true});
  check_against_brute_force(request_for("gpt3-13b", 24), {.devices = 12});
  check_against_brute_force(request_for("llama-2-7b", 8), {.devices = 16, .micro_batch = {.most = 2}});
}

TEST_CASE("search: ZeRO 2 under a pipeline is tried with virtual stages, even if nothing else is asked for") {
  Request request = request_for("llama-3-8b", 16);
  request.model = with_layers(request.model, 8);
  request.software = read_software("own");
  Space space{.devices = 8,
              .micro_batch = {.only = {1}},
              .schedules = {ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved}};
  check_against_brute_force(request, space);
  const auto reduced = [&](const Space& of) {
    const std::vector<Strategy> all = strategies(request, of);
    return std::count_if(all.begin(), all.end(), [](const Strategy& it) {
      return it.data_sharding == DataSharding::zero2 && it.pipeline_parallel > 1;
    });
  };
  const auto by_default = reduced(space);
  CHECK(by_default > 0);
  space.data_sharding = {DataSharding::zero2};
  CHECK(reduced(space) == by_default);
  check_against_brute_force(request, space);
}

TEST_CASE("search: every training stack has strategies over pipelines, where it has such an axis") {
  for (const Software& software : list_software()) {
    CAPTURE(software.name);
    Request request = request_for("llama-3-8b", 64);
    request.software = software;
    Space space{.devices = 16, .micro_batch = {.only = {1}}, .schedules = searched_schedules(software)};
    CHECK_FALSE(strategies(request, space).empty());
    const bool divides = software.axes.empty() || contains(software.axes, ParallelAxis::pipeline);
    space.pipeline_parallel.only = {4};
    CHECK(strategies(request, space).empty() == !divides);
  }
}

TEST_CASE("search: modules of experts and of latent attention are tried where selective recomputation is") {
  Request request = request_for("deepseek-v2-lite", 8);
  request.model = with_layers(request.model, 4);
  request.system.memory = 30_GiB;
  const Space space{.devices = 4, .micro_batch = {.most = 2}};
  check_against_brute_force(request, space);
  const auto count = [&](const Space& of) {
    const std::vector<Recomputation> list = recomputations(request, of, Strategy{});
    return std::count_if(list.begin(), list.end(), [](const Recomputation& recompute) {
      return recompute.policy == RecomputePolicy::ops;
    });
  };
  CHECK(count(space) == std::ssize(module_choices(request.model, Precision::bf16)));
  CHECK(count({.recompute = {RecomputePolicy::none, RecomputePolicy::full}}) == 0);
  CHECK(count({.recompute_modules = {.of_model = false}}) == 0);
  Space named{.devices = 4, .recompute_modules = {.only = {"moe_act", "layernorm"}}};
  const std::vector<Recomputation> alone = recomputations(request, named, Strategy{});
  REQUIRE(alone.size() == 1);
  CHECK(alone.front().ops == named.recompute_modules.only);
  named.recompute = {RecomputePolicy::none, RecomputePolicy::selective};
  CHECK(recomputations(request, named, Strategy{}).size() == 2);
  check_against_brute_force(request, named);
}

TEST_CASE("search: ranks share experts where no more of them can have their own") {
  Request request = request_for("mixtral-8x7b", 16);
  request.model = with_layers(request.model, 2);
  const Space space{.devices = 16, .pipeline_parallel = {.only = {1}}, .micro_batch = {.only = {1}}};
  check_against_brute_force(request, space);
  std::int64_t shared = 0;
  for (const Strategy& strategy : strategies(request, space)) {
    if (strategy.expert_tensor_parallel == 1) continue;
    CHECK(strategy.expert_parallel == 8);
    CHECK(strategy.tensor_parallel % strategy.expert_tensor_parallel == 0);
    ++shared;
  }
  CHECK(shared > 0);
}

TEST_CASE("search: context parallelism by several exchanges where they are asked for") {
  Request request = request_for("llama-3-8b", 4);
  request.workload.sequence = 32'768;
  request.model = with_layers(request.model, 4);
  const Space space{.devices = 4, .cp_comm = {CpComm::p2p, CpComm::a2a}, .virtual_pipeline = {.only = {1}}};
  check_against_brute_force(request, space);
  std::int64_t divided = 0;
  std::int64_t exchanged = 0;
  for (const Strategy& strategy : strategies(request, space)) {
    if (strategy.context_parallel > 1) ++divided;
    if (strategy.cp_comm != CpComm::p2p) {
      CHECK(strategy.context_parallel > 1);
      ++exchanged;
    }
  }
  CHECK(exchanged > 0);
  CHECK(divided == 2 * exchanged);
}

TEST_CASE("search: sequences of windows and of sinks are divided by what they admit") {
  const auto tried = [](const char* model) {
    Request request = request_for(model, 4);
    request.workload.sequence = 32'768;
    std::set<CpComm> ways;
    for (const Strategy& strategy : strategies(request, {.devices = 4})) {
      if (strategy.context_parallel > 1) ways.insert(strategy.cp_comm);
    }
    return ways;
  };
  CHECK(tried("llama-3-8b") == std::set{CpComm::p2p});
  CHECK(tried("gemma-3-27b") == std::set{CpComm::all_gather, CpComm::a2a});
  CHECK(tried("gpt-oss-20b") == std::set{CpComm::a2a});
}

TEST_CASE("search: layers that do not divide, outputs kept, exact detail, overlapped reduction") {
  Request request = request_for("gpt3-13b", 30);
  request.strategy.keep_pipeline_outputs = true;
  request.strategy.save_gathered_input = true;
  request.strategy.gradient_dtype = Dtype::half;
  request.detail = Detail::exact;
  request.software.overlap_grad_reduce = true;
  check_against_brute_force(
      request, {.devices = 30, .virtual_pipeline = {.only = {1, 2, 3}}, .layouts = Layouts::any});
}

// Spaces small enough for brute force, with ties: one microbatch on one rank takes the same under GPipe and 1F1B.
Space any_space() {
  Space space{.devices = *rc::gen::element<std::int64_t>(1, 4, 6, 8)};
  space.recompute_layers = *rc::gen::arbitrary<bool>();
  space.recompute_window = *rc::gen::arbitrary<bool>();
  space.micro_batch.most = *rc::gen::element<std::int64_t>(0, 1);
  if (*rc::gen::arbitrary<bool>()) space.schedules.push_back(ScheduleKind::gpipe);
  if (*rc::gen::arbitrary<bool>()) space.virtual_pipeline.only = {1, 2, 5};
  space.layouts = *rc::gen::element(Layouts::even, Layouts::any);
  return space;
}

Request any_request() {
  Request request = request_for("gpt2-xl", *rc::gen::element<std::int64_t>(1, 4, 6, 8, 10));
  // Few layers, so that there are few numbers of them to recompute.
  request.model.layers = *rc::gen::element<std::int64_t>(6, 8, 12);
  // From nothing fits to everything fits.
  request.system.memory = *rc::gen::inRange(4, 24) * Bytes(gibi);
  request.software.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  request.software.overlap_param_gather = *rc::gen::arbitrary<bool>();
  request.software.overlap_p2p = *rc::gen::arbitrary<bool>();
  request.software.microbatch_groups = *rc::gen::arbitrary<bool>();
  return request;
}

TEST_CASE("search: threads and shards change nothing, and the answer is brute force's") {
  CHECK(rc::check([] {
    const Request request = any_request();
    const Space space = any_space();
    const BruteForce all = brute_force(request, space);
    const SearchResult alone = search(request, space);
    RC_CLASSIFY(alone.feasible == 0, "nothing fits");
    RC_CLASSIFY(alone.feasible == alone.evaluated, "everything fits");
    RC_ASSERT(alone.evaluated == all.evaluated);
    RC_ASSERT(alone.feasible == std::ssize(all.feasible));
    RC_ASSERT(alone.plans == best_by_division(all.feasible));
    RC_ASSERT(alone.pareto == pareto_of(all.feasible));
    RC_ASSERT(alone.nearest == (all.feasible.empty() ? all.nearest : std::nullopt));
    const unsigned threads = *rc::gen::inRange(2U, 6U);
    RC_ASSERT(search(request, space, {.threads = threads}) == alone);
    const std::int64_t count = *rc::gen::inRange<std::int64_t>(1, 12);
    std::vector<SearchResult> parts;
    for (std::int64_t index = count; index >= 1; --index) {
      parts.push_back(search(request, space, {.shard = {index, count}, .threads = threads}));
    }
    RC_ASSERT(merged(parts) == alone);
    // Parts of parts.
    const auto middle = static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, count + 1));
    const std::span<const SearchResult> every(parts);
    const std::vector<SearchResult> halves{merged(every.first(middle)), merged(every.subspan(middle))};
    RC_ASSERT(merged(halves) == alone);
  }));
}

TEST_CASE(
    "composer: memory and time of every strategy are evaluate's to the last bit, whether it fits or not") {
  CHECK(rc::check([] {
    const Request request = any_request();
    Space space = any_space();
    space.recompute_window = false;
    Composer composer(request);
    visit_layouts(
        request, space,
        [&](const Strategy& layout) {
          const std::vector<Recomputation> list = recomputations(request, space, layout);
          Request asked = request;
          std::optional<ShardingChoice> set;
          std::optional<Layout> placed;
          const bool listed = *rc::gen::arbitrary<bool>();
          const std::vector<ShardingChoice> choices = sharding_choices(request, space, layout);
          visit_strategies(request, layout, choices, list, [&](const Strategy& strategy) {
            const ShardingChoice choice = sharding_choice(strategy);
            const Strategy first = with_sharding(layout, choice);
            const bool anew = !set || !same_passes(*set, choice, layout, request.software);
            if (anew && listed) placed = composer.layout(first, list);  // timed together
            if (anew && !listed) placed = composer.layout(first);
            set = choice;
            asked.strategy = strategy;
            const Plan plan = account(evaluate(asked));
            RC_ASSERT(placed->peak(strategy) == (RankPeak{plan.peak_rank, peak(plan)}));
            const Seconds iteration = placed->iteration(strategy);
            RC_ASSERT(iteration == plan.timing->iteration.total);
            RC_ASSERT(placed->least_iteration(strategy) <= iteration);
            RC_ASSERT(placed->mfu(iteration) == plan.timing->throughput.mfu);
          });
          return true;
        },
        [](const Problem&) {});
  }));
}

TEST_CASE("search: of plans that are equal in time and memory the first of the space is named") {
  const Request request = request_for("gpt2-xl", 1);
  const Space space{.devices = 1, .schedules = {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward}};
  const std::vector<Candidate> feasible = brute_force(request, space).feasible;
  REQUIRE(feasible.size() > 1);
  CHECK(feasible[0].iteration == feasible[1].iteration);
  CHECK(feasible[0].peak == feasible[1].peak);
  for (std::int64_t index = 1; index <= 2; ++index) {
    const SearchResult first = search(request, space, {.shard = {index, 2}});
    const std::vector<SearchResult> parts{search(request, space, {.shard = {3 - index, 2}}), first};
    CHECK(merged(parts).plans.front() == feasible.front());
  }
}

TEST_CASE(
    "search: where the stack has groups of microbatches, ranks need not divide them to be interleaved") {
  Request request = request_for("gpt2-xl", 10);
  Space space{.devices = 4,
              .pipeline_parallel = {.only = {4}},
              .micro_batch = {.only = {1}},
              .schedules = {ScheduleKind::interleaved}};
  for (const Layouts layouts : {Layouts::even, Layouts::any}) {
    for (const bool groups : {false, true}) {
      space.layouts = layouts;
      request.software.microbatch_groups = groups;
      const SearchResult found = search(request, space);
      CHECK((found.evaluated > 0) == (groups && layouts == Layouts::any));
      for (const Candidate& plan : found.plans) CHECK(plan.strategy.microbatch_group_size == 5);
    }
  }
}

TEST_CASE("search: of the first K layers of a stage are recomputed as many as its longest stage holds") {
  const Request request = request_for("gpt2-xl", 8);
  const Space space{.devices = 4, .layouts = Layouts::any};
  // The head takes as much as two layers, so that another stage holds 14 of the 48, where the mean is 12.
  const Strategy layout{.pipeline_parallel = 4, .stage_layers = {12, 12, 14, 10}};
  std::int64_t most = 0;
  for (const Recomputation& recompute : recomputations(request, space, layout)) {
    most = std::max(most, recompute.layers);
  }
  CHECK(most == 13);
}

TEST_CASE("search: no parts are an empty result") { CHECK(merged({}) == SearchResult{}); }

TEST_CASE("search: every score is the evaluation's, to the last bit") {
  const Request request = request_for("gpt3-13b", 16);
  const Space space{
      .devices = 16,
      .schedules = {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved}};
  for (const Candidate& candidate : search(request, space).plans) {
    Request asked = request;
    asked.strategy = candidate.strategy;
    const Plan plan = account(evaluate(asked));
    CHECK(peak(plan) == candidate.peak);
    CHECK(plan.timing->iteration.total == candidate.iteration);
  }
}

TEST_CASE("search: nothing fits") {
  const SearchResult found = search(request_for("gpt-1t", 8), {.devices = 8});
  CHECK(found.feasible == 0);
  CHECK(found.plans.empty());
  REQUIRE(found.nearest.has_value());
  CHECK(found.rejected.at("device_memory") == found.evaluated);
}

TEST_CASE("search: needs a system whose performance is known") {
  Request request = request_for("gpt2-xl", 8);
  request.system.performance.reset();
  CHECK_THROWS_AS(search(request, {.devices = 8}), InputError);
}

}  // namespace
}  // namespace headroom
