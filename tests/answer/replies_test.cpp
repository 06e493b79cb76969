// What replies promise: terms that add up, schedules that end where they should, neighbours of what is asked about.
#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "headroom/answer/compare.hpp"
#include "headroom/answer/inquiry.hpp"
#include "headroom/answer/plan.hpp"
#include "headroom/answer/trace.hpp"
#include "headroom/answer/validate.hpp"
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
  const IterationTime& iteration = account(reply.evaluation).timing->iteration;
  CHECK(reply.trace.end == iteration.total);
  CHECK(reply.trace.resident.size() == 8);
  std::map<std::int64_t, Seconds> ends;
  for (const ReplayedStep& step : reply.trace.steps) {
    CHECK(step.start >= ends[step.rank]);
    ends[step.rank] = step.end;
    CHECK(step.end <= (1 + 1e-12) * iteration.schedule.makespan);  // whose sums round otherwise
  }
  CHECK(ends.size() == 8);
  CHECK(std::count_if(reply.trace.spans.begin(), reply.trace.spans.end(), [&](const TraceSpan& span) {
          return span.name == "optimizer" && span.end == iteration.total;
        }) == 8);
  CHECK_THROWS_AS(answer(TraceQuestion{.request = gpt3_on_a100()}), InputError);
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
