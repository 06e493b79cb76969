// What replies promise: terms that add up, schedules that end where they should, neighbours of what is asked about.
#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "headroom/answer/compare.hpp"
#include "headroom/answer/inquiry.hpp"
#include "headroom/answer/plan.hpp"
#include "headroom/answer/trace.hpp"
#include "headroom/answer/validate.hpp"
#include "headroom/schedule/replay.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

double sum_of_all_but_the_last(const std::vector<ComparedTerm>& terms, double ComparedTerm::*side) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < terms.size(); ++i) sum += terms[i].*side;
  return sum;
}

}  // namespace

TEST_CASE("compare: the terms of both sides add up to the last") {
  const CompareReply reply =
      answer(CompareQuestion{.before = gpt3_timed(), .after = with_both_techniques(gpt3_timed())});
  for (const auto* terms : {&reply.time, &reply.memory}) {
    for (const auto side : {&ComparedTerm::before, &ComparedTerm::after}) {
      CHECK(sum_of_all_but_the_last(*terms, side) == doctest::Approx(terms->back().*side).epsilon(1e-12));
    }
  }
  CHECK(reply.memory.back().after == peak(account(reply.after)).count());
  // Without performance figures there is memory alone.
  CHECK(answer(CompareQuestion{.before = gpt3_on_a100(), .after = gpt3_on_a100()}).time.empty());
}

TEST_CASE(
    "estimate: remedies where it does not fit, improvements where it does, none where they are not asked "
    "for") {
  const EstimateReply too_large = answer(EstimateQuestion{.request = gpt3_timed()});
  CHECK(!fits(too_large));
  REQUIRE(!too_large.alternatives.empty());
  CHECK(peak(too_large.alternatives.front().plan) <= 80_GiB);

  EstimateQuestion question{.request = with_both_techniques(gpt3_timed()), .with_alternatives = false};
  question.request.strategy.recompute.policy = RecomputePolicy::full;
  const EstimateReply alone = answer(question);
  CHECK(fits(alone));
  CHECK(alone.alternatives.empty());
  CHECK(!alone.looked_for_alternatives);
  CHECK_FALSE(alone.trace);
  question.with_alternatives = true;
  const Seconds now = account(alone.evaluation).timing->iteration.total;
  const EstimateReply improved = answer(question);
  REQUIRE(!improved.alternatives.empty());
  CHECK(improved.alternatives.front().plan.timing->iteration.total < now);
}

TEST_CASE("estimate: without performance figures there is no interval, no cost and no schedule") {
  const EstimateReply reply =
      answer(EstimateQuestion{.request = gpt3_on_a100(), .training = {.tokens = 1e9}, .with_schedule = true});
  CHECK(!reply.interval);
  CHECK(!reply.cost);
  CHECK_FALSE(reply.trace);
  CHECK(reply.allocated.predicted > Bytes(0));
}

TEST_CASE(
    "trace: each rank's steps are in order, its last span is the optimizer and ends with the iteration") {
  const TraceReply reply = answer(TraceQuestion{.request = with_both_techniques(gpt3_timed())});
  const Plan& plan = account(reply.evaluation);
  const IterationTime& iteration = plan.timing->iteration;
  CHECK(reply.trace.end == iteration.total);
  CHECK(reply.trace.resident.size() == 8);
  std::map<std::int64_t, Seconds> ends;
  std::int64_t steps = 0;
  std::int64_t last = 0;
  reply.trace.visit_steps([&](const ReplayedStep& step, const StepBytes& bytes) {
    CHECK(step.rank >= last);
    last = step.rank;
    ++steps;
    CHECK(step.start >= ends[step.rank]);
    ends[step.rank] = step.end;
    CHECK(step.end <= (1 + 1e-12) * iteration.schedule.makespan);  // whose sums round otherwise
    CHECK(bytes.highest >= bytes.after);
  });
  CHECK(ends.size() == 8);
  CHECK(steps == trace_steps(plan));
  int optimizers = 0;
  reply.trace.visit_spans([&](const TraceSpan& span) {
    optimizers += span.name == "optimizer" && span.end == iteration.total ? 1 : 0;
  });
  CHECK(optimizers == 8);
  CHECK_THROWS_AS(answer(TraceQuestion{.request = gpt3_on_a100()}), InputError);
}

TEST_CASE("trace: a rank's steps are in order also where those of all ranks are more than are held at once") {
  Request request = gpt3_timed();
  request.strategy.virtual_pipeline = 1;
  request.strategy.schedule = ScheduleKind::one_forward_one_backward;
  request.workload.global_batch = 80'000 * request.strategy.micro_batch;
  const Plan plan = account(evaluate(request));
  REQUIRE(trace_steps(plan) > most_drawn_steps);
  const IterationTime& iteration = plan.timing->iteration;
  std::vector<std::vector<Seconds>> starts(8);
  replay_schedule(iteration.shape, iteration.times, [&](const ReplayedStep& step) {
    starts[static_cast<std::size_t>(step.rank)].push_back(step.start);
  });
  std::vector<std::size_t> done(8);
  std::int64_t wrong = 0;
  trace_stream(plan).visit_steps([&](const ReplayedStep& step, const StepBytes&) {
    const auto rank = static_cast<std::size_t>(step.rank);
    wrong += step.start == starts[rank].at(done[rank]++) ? 0 : 1;
  });
  CHECK(wrong == 0);
  for (std::size_t rank = 0; rank < 8; ++rank) CHECK(done[rank] == starts[rank].size());
}

TEST_CASE("trace: more steps than a viewer opens, or than can be drawn, are refused") {
  Request request = gpt3_timed();
  request.workload.global_batch = 1'000'000 * request.strategy.micro_batch;
  const auto refused = [](const auto& question) {
    try {
      answer(question);
    } catch (const InputError& error) {
      return error.problems().front().where;
    }
    return std::string();
  };
  REQUIRE(trace_steps(account(evaluate(request))) > most_trace_steps);
  CHECK(refused(TraceQuestion{.request = request}) == "global_batch");
  CHECK(refused(EstimateQuestion{.request = request, .with_alternatives = false, .with_schedule = true}) ==
        "timeline");
}

TEST_CASE("inquiry: the best plan is known as such, and what does not fit has changes that make it fit") {
  Request base = gpt3_timed();
  base.strategy = {};
  PlanQuestion question{.base = base, .space = {.devices = 64}, .accounts = 0};
  const PlanReply plan = answer(question);
  // The first two are accounted for whatever was asked.
  REQUIRE(plan.accounts.size() == 2);
  question.why = AskedStrategy{.strategy = plan.result.plans.front().strategy, .problems = {}};
  CHECK(is_best(*answer(question).inquiry));

  question.why->strategy = gpt3_timed().strategy;
  const InquiryReply inquiry = *answer(question).inquiry;
  CHECK(!is_best(inquiry));
  CHECK(inquiry.problems.empty());
  CHECK(inquiry.nearest.empty());
  REQUIRE(!inquiry.remedies.empty());
  for (const Alternative& remedy : inquiry.remedies) CHECK(peak(remedy.plan) <= 80_GiB);

  question.why->strategy.tensor_parallel = 3;
  question.why->problems = {{"data_parallel", "does not follow"}};
  const InquiryReply illegal = *answer(question).inquiry;
  CHECK(illegal.problems == question.why->problems);
  CHECK(!illegal.against_best);
  REQUIRE(!illegal.nearest.empty());
  for (const Plan& near : illegal.nearest) CHECK(devices(near.request.strategy) == 64);
}

TEST_CASE("validate: coverage counts the rows that have an interval") {
  const ValidateReply reply =
      answer(ValidateQuestion{.measurements = embedded_measurements(), .skipped = {}});
  REQUIRE(!reply.coverage.empty());
  for (const Coverage& coverage : reply.coverage) {
    const auto with = [&](bool inside) {
      return static_cast<std::size_t>(
          std::count_if(reply.rows.begin(), reply.rows.end(), [&](const Comparison& row) {
            return row.measure == coverage.measure && row.in_interval == inside;
          }));
    };
    CHECK(coverage.covered == with(true));
    CHECK(coverage.intervals == with(true) + with(false));
  }
}

}  // namespace headroom
