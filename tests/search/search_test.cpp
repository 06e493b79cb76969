// The search against brute force: every strategy of a small space evaluated in full.
#include "headroom/search/search.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/search/evaluator.hpp"

namespace headroom {
namespace {

Request request_for(const std::string& model, std::int64_t batch) {
  Request request{.model = read_model(model), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  return request;
}

std::vector<Strategy> strategies(const Request& request, const Space& space) {
  std::vector<Strategy> all;
  visit_layouts(
      request, space,
      [&](const Strategy& layout) {
        for (const Recomputation& recompute : recomputations(request, space, layout)) {
          for (const bool sharded : choices(space.distributed_optimizer, layout.data_parallel)) {
            all.push_back(layout);
            all.back().recompute = recompute;
            all.back().distributed_optimizer = sharded;
          }
        }
      },
      [](const std::string&) {});
  return all;
}

struct BruteForce {
  std::vector<Candidate> feasible;
  std::int64_t evaluated = 0;
};

BruteForce brute_force(const Request& request, const Space& space) {
  BruteForce result;
  for (const Strategy& strategy : strategies(request, space)) {
    Request asked = request;
    asked.strategy = strategy;
    const Evaluation evaluation = evaluate(asked);
    const std::int64_t place = result.evaluated++;
    if (const auto* plan = std::get_if<Plan>(&evaluation)) {
      result.feasible.push_back({.strategy = strategy,
                                 .peak = peak(*plan),
                                 .peak_rank = plan->peak_rank,
                                 .iteration = plan->timing->iteration.total,
                                 .mfu = plan->timing->throughput.mfu,
                                 .place = place});
    }
  }
  std::sort(result.feasible.begin(), result.feasible.end());
  return result;
}

std::vector<Candidate> pareto_of(const std::vector<Candidate>& sorted) {
  std::vector<Candidate> front;
  for (const Candidate& candidate : sorted) {
    if (front.empty() || candidate.peak < front.back().peak) front.push_back(candidate);
  }
  return front;
}

std::vector<Candidate> best_by_division(const std::vector<Candidate>& sorted) {
  std::vector<Candidate> best;
  for (const Candidate& candidate : sorted) {
    const bool seen = std::any_of(best.begin(), best.end(), [&](const Candidate& other) {
      return other.strategy.tensor_parallel == candidate.strategy.tensor_parallel &&
             other.strategy.pipeline_parallel == candidate.strategy.pipeline_parallel;
    });
    if (!seen) best.push_back(candidate);
  }
  return best;
}

void check_against_brute_force(const Request& request, const Space& space) {
  const BruteForce all = brute_force(request, space);
  const SearchResult found = search(request, space);
  CHECK(found.evaluated == all.evaluated);
  CHECK(found.feasible == std::ssize(all.feasible));
  CHECK(found.plans == best_by_division(all.feasible));
  CHECK(found.pareto == pareto_of(all.feasible));
  CHECK(search(request, space) == found);
}

TEST_CASE("search: a small space is answered as by evaluating all of it") {
  check_against_brute_force(request_for("gpt2-xl", 16), {.devices = 8, .recompute_window = true});
  check_against_brute_force(request_for("gpt3-13b", 24), {.devices = 12});
  check_against_brute_force(request_for("llama-2-7b", 8), {.devices = 16, .micro_batch = {.most = 2}});
}

TEST_CASE("search: layers that do not divide, outputs kept, exact detail, overlapped reduction") {
  Request request = request_for("gpt3-13b", 30);
  request.strategy.deallocate_outputs = false;
  request.strategy.regather = false;
  request.strategy.gradients = Dtype::half;
  request.detail = Detail::exact;
  request.software.overlaps_data_parallel = true;
  check_against_brute_force(request, {.devices = 30, .interleave = {.only = {1, 2, 3}}});
}

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

// K22 table 3: what its authors chose, t = 8 with sequence parallelism and selective recomputation.
struct PaperRun {
  std::string model;
  std::int64_t devices;
  std::int64_t batch;
  Strategy strategy;
};

// Without what an evaluator's layout leaves open.
Strategy layout_of(Strategy strategy) {
  strategy.recompute = {};
  strategy.distributed_optimizer = false;
  return strategy;
}

TEST_CASE("K22 table 3: the paper's configurations fit and are among the best few percent") {
  const auto chosen = [](std::int64_t p, std::int64_t m, std::int64_t b) {
    return Strategy{.tensor_parallel = 8,
                    .pipeline_parallel = p,
                    .interleave = m,
                    .micro_batch = b,
                    .sequence_parallel = true,
                    .recompute = {.policy = RecomputePolicy::selective},
                    .schedule = m > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward};
  };
  constexpr double best_part = 0.05;
  for (const PaperRun& run :
       {PaperRun{"gpt-22b", 8, 4, chosen(1, 1, 4)}, PaperRun{"gpt3-175b", 64, 64, chosen(8, 3, 1)},
        PaperRun{"mt-nlg-530b", 280, 280, chosen(35, 3, 1)},
        PaperRun{"gpt-1t", 512, 512, chosen(64, 1, 1)}}) {
    CAPTURE(run.model);
    Request request = request_for(run.model, run.batch);
    request.strategy.gradients = Dtype::half;
    const Space space{.devices = run.devices};
    const SearchResult found = search(request, space);
    request.strategy = run.strategy;
    request.strategy.gradients = Dtype::half;
    const Evaluation evaluation = evaluate(request);
    CHECK(std::holds_alternative<Plan>(evaluation));
    const Seconds paper = account(evaluation).timing->iteration.total;
    std::int64_t faster = 0;
    Evaluator evaluator(request);
    const Strategy* layout = nullptr;
    for (const Strategy& strategy : strategies(request, space)) {
      if (layout == nullptr || layout_of(*layout) != layout_of(strategy)) evaluator.set_layout(strategy);
      layout = &strategy;
      if (evaluator.peak(strategy).bytes > request.system.memory) continue;
      faster += evaluator.least_iteration(strategy) < paper && evaluator.iteration(strategy) < paper ? 1 : 0;
    }
    MESSAGE(run.model << ": " << paper.count() << " s, best " << found.plans.front().iteration.count()
                      << " s; " << faster << " faster of " << found.feasible << " feasible of "
                      << found.evaluated);
    CHECK(paper <= 1.12 * found.plans.front().iteration);
    CHECK(static_cast<double>(faster) <= best_part * static_cast<double>(found.feasible));
  }
}

}  // namespace
}  // namespace headroom
