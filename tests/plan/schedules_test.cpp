// Schedules as a user asks for them: what each takes and holds in a plan, by the composer's short questions and in full.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/answer/explain.hpp"
#include "headroom/answer/trace.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/schedule/replay.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

Request run_by(ScheduleKind schedule) {
  Request request = with_both_techniques(gpt3_timed());
  request.strategy.schedule = schedule;
  request.strategy.virtual_pipeline = runs_in_v(schedule) || schedule == ScheduleKind::looped_bfs ? 2 : 1;
  return request;
}

constexpr std::array split_kinds{ScheduleKind::zero_bubble_h2, ScheduleKind::zero_bubble_2p,
                                 ScheduleKind::zero_bubble_v,  ScheduleKind::dualpipe_v,
                                 ScheduleKind::dualpipe,       ScheduleKind::looped_bfs};

// Mixtral, whose experts 8 ranks share.
Request with_experts(ScheduleKind schedule) {
  Request request = gpt3_timed();
  request.model = read_model("mixtral-8x7b");
  request.workload = {.global_batch = 256, .sequence = 4096};
  request.strategy = {.pipeline_parallel = 4,
                      .virtual_pipeline = runs_in_v(schedule) ? 2 : 1,
                      .data_parallel = 8,
                      .expert_parallel = 8,
                      .recompute = {.policy = RecomputePolicy::full},
                      .schedule = schedule};
  return request;
}

}  // namespace

TEST_CASE("schedules: short questions and the whole account agree, one after the other in one composer") {
  const Request base = run_by(ScheduleKind::one_forward_one_backward);
  Composer composer(base);
  for (const ScheduleKind kind : split_kinds) {
    const Request request = run_by(kind);
    const Plan plan = account(evaluate(request));
    const IterationTime& time = plan.timing->iteration;
    CAPTURE(name_of(kind));
    const Layout layout = composer.layout(request.strategy);
    CHECK(layout.peak(request.strategy) == RankPeak{plan.peak_rank, peak(plan)});
    CHECK(layout.iteration(request.strategy) == time.total);
    CHECK(layout.least_iteration(request.strategy) <= time.total);
    const ReplayedSchedule replayed = replay_schedule(time.shape, time.times);
    CHECK(time.schedule.makespan.count() == doctest::Approx(replayed.makespan.count()));
    Seconds sum;
    for (const auto& [name, part] : breakdown_parts) sum += time.breakdown.*part;
    CHECK(sum.count() == doctest::Approx(time.total.count()));
    CHECK(time.breakdown.bubble > Seconds(0));
    // The work of 1F1B, whatever the order.
    const Request plain = run_by(ScheduleKind::one_forward_one_backward);
    CHECK(time.breakdown.attention.count() ==
          doctest::Approx(account(evaluate(plain)).timing->iteration.breakdown.attention.count()));
  }
}

TEST_CASE("schedules: explain counts what an estimate counts") {
  for (const ScheduleKind kind : split_kinds) {
    for (const std::int64_t batch : {64, 18}) {
      Request request = run_by(kind);
      request.workload.global_batch = batch;
      CAPTURE(name_of(kind));
      const ExplainReply reply =
          answer(ExplainQuestion{request.model, request.strategy, request.workload, request.detail});
      const Plan plan = account(evaluate(request));
      const RankActivations& first = plan.ranks.front().activations;
      CHECK(reply.first_stage.rank.at_peak == first.at_peak);
      CHECK(reply.first_stage.rank.chunks_in_flight == first.chunks_in_flight);
    }
  }
}

TEST_CASE("schedules: a trace has every step, and ends where its last span does") {
  for (const ScheduleKind kind : split_kinds) {
    Request request = run_by(kind);
    request.software.post_validation = true;
    const Plan plan = account(evaluate(request));
    const Trace trace = trace_of(plan);
    CAPTURE(name_of(kind));
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const auto of_rank = std::count_if(trace.steps.begin(), trace.steps.end(),
                                         [&](const ReplayedStep& step) { return step.rank == rank; });
      CHECK(of_rank == std::ssize(trace.activations[static_cast<std::size_t>(rank)]));
    }
    for (const TraceSpan& span : trace.spans) CHECK(span.end <= trace.end);
  }
}

TEST_CASE("schedules: ranks that step their optimizers alone start the next iteration one after the other") {
  for (const ScheduleKind kind : split_kinds) {
    Request request = run_by(kind);
    request.model.architecture.tied_embeddings = false;
    const IterationTime waits = account(evaluate(request)).timing->iteration;
    request.software.post_validation = true;
    const IterationTime goes_on = account(evaluate(request)).timing->iteration;
    CAPTURE(name_of(kind));
    CHECK(goes_on.schedule == waits.schedule);
    CHECK(waits.pipeline == waits.schedule.makespan);
    // DualPipe's first rank starts first and ends last.
    const bool symmetric = overlaps_passes(kind) || kind == ScheduleKind::looped_bfs;
    CHECK((goes_on.total < waits.total) != symmetric);
    CHECK((goes_on.pipeline < waits.pipeline) != symmetric);
  }
}

TEST_CASE("schedules: ends that share weights step their optimizers together") {
  Request request = run_by(ScheduleKind::zero_bubble_h2);
  request.model.architecture.tied_embeddings = true;
  const IterationTime waits = account(evaluate(request)).timing->iteration;
  request.software.post_validation = true;
  CHECK(account(evaluate(request)).timing->iteration.total == waits.total);
}

TEST_CASE("schedules: two copies of the model have two of everything but activations") {
  const Request one = run_by(ScheduleKind::one_forward_one_backward);
  const Request two = run_by(ScheduleKind::dualpipe);
  const std::vector<Parameters> alone = parameters_by_rank(one.model, one.strategy, one.workload);
  const std::vector<Parameters> copies = parameters_by_rank(two.model, two.strategy, two.workload);
  const Plan plan = account(evaluate(two));
  for (std::size_t rank = 0; rank < 8; ++rank) {
    CHECK(total(copies[rank]) == total(alone[rank]) + total(alone[7 - rank]));
    CHECK(plan.ranks[rank].activations.layers == 24);
    CHECK(plan.ranks[rank].activations.at_peak == plan.ranks[7 - rank].activations.at_peak);
  }
  // The copies exchange their gradients.
  CHECK(plan.timing->iteration.breakdown.data_communication >
        account(evaluate(one)).timing->iteration.breakdown.data_communication);
}

TEST_CASE("schedules: in a V the first rank holds both ends, and tied embeddings once") {
  const Request request = run_by(ScheduleKind::zero_bubble_v);
  const std::vector<Parameters> held = parameters_by_rank(request.model, request.strategy, request.workload);
  const double words_and_positions = (51200.0 / 8 + 2048) * 12288;
  CHECK(total(held[0]) - total(held[1]) == doctest::Approx(words_and_positions).epsilon(0.001));
  CHECK(total(held[7]) == total(held[1]));
  CHECK(account(evaluate(request)).timing->iteration.breakdown.data_communication == Seconds(0));
}

TEST_CASE("schedules: DualPipe hides exchanges between experts beside the other pass") {
  const IterationTime apart = account(evaluate(with_experts(ScheduleKind::zero_bubble_v))).timing->iteration;
  const IterationTime beside = account(evaluate(with_experts(ScheduleKind::dualpipe_v))).timing->iteration;
  CHECK(beside.breakdown.expert_communication < 0.9 * apart.breakdown.expert_communication);
  CHECK(beside.breakdown.expert_communication > Seconds(0));
  CHECK(beside.breakdown.gemm == apart.breakdown.gemm);
}

TEST_CASE(
    "schedules: 1F1B in pairs hides exchanges between experts, for one more layer of a second microbatch") {
  Request request = with_experts(ScheduleKind::one_forward_one_backward);
  request.strategy.pipeline_parallel = 1;
  request.strategy.recompute = {.policy = RecomputePolicy::selective};
  const Plan apart = account(settled(evaluate(request)));
  request.strategy.overlap_expert_all_to_all = true;
  const Plan beside = account(settled(evaluate(request)));
  CHECK(beside.timing->iteration.total < apart.timing->iteration.total);
  CHECK(beside.timing->iteration.breakdown.expert_communication <
        0.5 * apart.timing->iteration.breakdown.expert_communication);
  CHECK(beside.ranks[0].activations.chunks_in_flight == apart.ranks[0].activations.chunks_in_flight + 1);
  CHECK(peak(beside) > peak(apart));
  REQUIRE(beside.allocator);
  REQUIRE(apart.allocator);
  const double layers = static_cast<double>(beside.ranks[0].activations.layers);
  CHECK(beside.ranks[0].activations.at_peak.layers <=
        (layers + 1) / layers * apart.ranks[0].activations.at_peak.layers);
  CHECK(beside.allocator->allocated - apart.allocator->allocated <
        3 / layers * apart.ranks[0].activations.at_peak.layers);
  Composer composer(request);
  const Layout layout = composer.layout(request.strategy);
  CHECK(layout.peak(request.strategy) == RankPeak{beside.peak_rank, peak(beside)});
  CHECK(layout.iteration(request.strategy) == beside.timing->iteration.total);
  CHECK(layout.least_iteration(request.strategy) <= beside.timing->iteration.total);
  request.strategy.recompute = {.policy = RecomputePolicy::full};
  CHECK(illegalities(request.model, request.strategy, request.workload, request.software).front().where ==
        "overlap_expert_all_to_all");
}

TEST_CASE("schedules: a slower network never makes an iteration faster, also where the host is the limit") {
  CHECK(rc::check([] {
    Request request = with_experts(*rc::gen::element(ScheduleKind::one_forward_one_backward,
                                                     ScheduleKind::dualpipe_v, ScheduleKind::dualpipe));
    Strategy& strategy = request.strategy;
    if (strategy.schedule == ScheduleKind::one_forward_one_backward) {
      strategy.overlap_expert_all_to_all = true;
      strategy.pipeline_parallel = 1;
      strategy.recompute = {.policy = RecomputePolicy::selective};
    }
    strategy.data_parallel = 8 * *rc::gen::inRange(1, 3);
    request.workload.global_batch = strategy.data_parallel * 2 * *rc::gen::inRange(4, 7);
    request.software.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
    request.software.overlap_param_gather = request.software.overlap_grad_reduce;
    Rates& rates = request.system.performance->rates;
    rates.collectives.overlap_loss.value = 0.1 * *rc::gen::inRange(0, 10);
    rates.host.operation.value = *rc::gen::inRange(1, 20) * rates.host.operation.value;
    const auto takes = [&] { return account(settled(evaluate(request))).timing->iteration.total; };
    const auto slow_by = [&](double factor) {
      for (BytesPerSecond* const rate :
           {&rates.collectives.ring_bandwidth.value, &rates.collectives.low_latency_bandwidth.value,
            &request.system.performance->network.nic_bandwidth})
        *rate = *rate / factor;
    };
    slow_by(*rc::gen::inRange(1, 10));
    const Seconds before = takes();
    slow_by(1 + 0.1 * *rc::gen::inRange(1, 50));
    RC_ASSERT(takes() >= (1 - 1e-9) * before);
  }));
}

TEST_CASE("schedules: delayed weight gradients hide what passes in pairs leave of exchanges") {
  Request request = with_experts(ScheduleKind::one_forward_one_backward);
  request.strategy.pipeline_parallel = 1;
  request.strategy.expert_parallel = 8;
  request.strategy.recompute = {.policy = RecomputePolicy::selective};
  request.strategy.overlap_expert_all_to_all = true;
  // More than a forward pass hides and less than a backward pass, neither of which collectives slow.
  CollectiveRates& rates = request.system.performance->rates.collectives;
  rates.ring_bandwidth.value = rates.ring_bandwidth.value / 40;
  rates.low_latency_bandwidth.value = rates.low_latency_bandwidth.value / 40;
  rates.overlap_loss.value = 0;
  const IterationTime at_once = account(evaluate(request)).timing->iteration;
  request.software.delay_weight_gradients = true;
  const IterationTime delayed = account(evaluate(request)).timing->iteration;
  CHECK(delayed.total < at_once.total);
  CHECK(delayed.breakdown.expert_communication < at_once.breakdown.expert_communication);
  CHECK(delayed.breakdown.gemm == at_once.breakdown.gemm);
}

TEST_CASE("schedules: shared experts beside exchanges hide a part of these") {
  Request request = with_experts(ScheduleKind::one_forward_one_backward);
  request.strategy.pipeline_parallel = 1;
  request.strategy.recompute = {};
  request.model.architecture.experts->shared_feedforward = 4096;
  const IterationTime apart = account(evaluate(request)).timing->iteration;
  request.software.overlap_shared_experts = true;
  const IterationTime beside = account(evaluate(request)).timing->iteration;
  CHECK(beside.total < apart.total);
  CHECK(beside.breakdown.expert_communication < apart.breakdown.expert_communication);
  CHECK(beside.breakdown.gemm == apart.breakdown.gemm);
  request.model.architecture.experts->shared_feedforward = 0;
  const IterationTime without = account(evaluate(request)).timing->iteration;
  request.software.overlap_shared_experts = false;
  CHECK(without.total == account(evaluate(request)).timing->iteration.total);
  request.software.overlap_shared_experts = true;
  request.strategy.recompute = {.policy = RecomputePolicy::ops, .ops = {"shared_experts"}};
  CHECK(illegalities(request, request.strategy).front().where == "recompute_ops");
  request.strategy.recompute = {};
  request.strategy.overlap_expert_all_to_all = true;
  CHECK(illegalities(request, request.strategy).front().where == "overlap_expert_all_to_all");
}

TEST_CASE("schedules: what each asks of the layout is said in the words of its fields") {
  const auto problem = [](ScheduleKind kind, std::int64_t p, std::int64_t m, std::int64_t sequences) {
    Request request = run_by(kind);
    request.strategy.pipeline_parallel = p;
    request.strategy.virtual_pipeline = m;
    request.workload.global_batch = sequences;
    const std::vector<Problem> problems =
        illegalities(request.model, request.strategy, request.workload, request.software);
    return problems.empty() ? Problem{} : problems.front();
  };
  CHECK(problem(ScheduleKind::zero_bubble_v, 8, 2, 3) == Problem{});
  CHECK(problem(ScheduleKind::zero_bubble_v, 8, 1, 64) ==
        Problem{"virtual_pipeline", "must be 2 for `schedule` zero-bubble-v: each rank holds two stages"});
  CHECK(problem(ScheduleKind::looped_bfs, 8, 1, 64) ==
        Problem{"virtual_pipeline", "must be at least 2 for `schedule` looped-bfs"});
  CHECK(problem(ScheduleKind::dualpipe_v, 8, 2, 15).rule ==
        "must give `schedule` dualpipe-v at least 16 microbatches (one per virtual stage), not 15");
  CHECK(problem(ScheduleKind::dualpipe, 8, 1, 17).rule ==
        "must give `schedule` dualpipe an even number of microbatches, at least 16 (twice the pipeline "
        "ranks), not 17");
  CHECK(problem(ScheduleKind::dualpipe, 3, 1, 64).rule == "must be even for `schedule` dualpipe, not 3");
  CHECK(problem(ScheduleKind::zero_bubble_h2, 8, 2, 64).rule ==
        "must be interleaved or zero-bubble-v or v-half or v-min or dualpipe-v or looped-bfs when "
        "`virtual_pipeline` is 2, not zero-bubble-h2");
}

TEST_CASE("schedules: a stack runs those that it lists") {
  const Request request = run_by(ScheduleKind::zero_bubble_v);
  CHECK(stack_illegalities(read_software("zero-bubble-2023"), request.strategy).empty());
  CHECK(stack_illegalities(read_software("megatron-2022"), request.strategy).empty());
  CHECK(stack_illegalities(read_software("megatron-core-2025"), request.strategy) ==
        std::vector<Problem>{
            {"schedule", "must be 1f1b or interleaved on the stack megatron-core-2025, not zero-bubble-v"}});
}

}  // namespace headroom
