#include "headroom/time/unit_exchanges.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::performance;

// One unit after the other, as the stream of the passes sees them.
struct PlainUnit {
  double gather = 0;
  double reduction = 0;
  double forward = 0;
  double backward = 0;
};

double shown_beside(double collectives, double unit, double loss) {
  return std::max(collectives - unit, loss * collectives);
}

}  // namespace

TEST_CASE("unit exchanges: what shows is that of a walk from unit to unit") {
  CHECK(rc::check([] {
    const auto seconds = [] { return *rc::gen::inRange(0, 100) / 100.0; };
    const std::int64_t first = *rc::gen::inRange<std::int64_t>(1, 4);
    const std::int64_t second = *rc::gen::inRange<std::int64_t>(0, 3);
    const bool keeps = *rc::gen::arbitrary<bool>();
    ModelExchanges exchanges{.kinds = {}, .keeps_gathered = keeps};
    ModelCost cost;
    std::vector<PlainUnit> of_kind;
    for (const KindPosition position :
         {KindPosition::first, KindPosition::layer, KindPosition::layer, KindPosition::last}) {
      const PlainUnit unit{seconds(), seconds(), seconds(), seconds()};
      of_kind.push_back(unit);
      exchanges.kinds.push_back({.position = position,
                                 .gather = {.in_node = Seconds(unit.gather)},
                                 .reduction = {.in_node = Seconds(unit.reduction)}});
      LayerCost& of = cost.kinds.emplace_back();
      of.forward.gemm = Seconds(unit.forward);
      of.backward_data.gemm = Seconds(unit.backward);
    }
    StagePlace place{.layers = first + second, .first = true, .last = true, .of_kind = {1, first, second, 1}};
    place.runs.push_back({1, first});
    if (second > 0) place.runs.push_back({2, second});

    std::vector<PlainUnit> units{of_kind[0]};
    units.insert(units.end(), static_cast<std::size_t>(first), of_kind[1]);
    units.insert(units.end(), static_cast<std::size_t>(second), of_kind[2]);
    units.push_back(of_kind[3]);
    const double loss = performance().rates.collectives.overlap_loss.value;
    Software stack = tests::megatron();
    stack.overlap_param_gather = *rc::gen::arbitrary<bool>();
    stack.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
    const auto apart = [](bool beside, double time) { return beside ? 0 : time; };
    const auto beside_only = [](bool beside, double time) { return beside ? time : 0; };
    double forward = units.front().gather;
    double backward = units.front().reduction;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const double next = i + 1 < units.size() ? units[i + 1].gather : 0;
      const double after = i + 1 < units.size() ? units[i + 1].reduction : 0;
      const double before = i > 0 && !keeps ? units[i - 1].gather : 0;
      const bool ahead = stack.overlap_param_gather;
      const bool reduces = stack.overlap_grad_reduce;
      forward += shown_beside(beside_only(ahead, next), units[i].forward, loss) + apart(ahead, next);
      const double beside = beside_only(ahead, before) + beside_only(reduces, after);
      backward +=
          shown_beside(beside, units[i].backward, loss) + apart(ahead, before) + apart(reduces, after);
    }
    const ExchangeTimes times = exchange_times(exchanges, cost, place, {}, performance(), stack);
    const auto near = [](Seconds found, double expected) {
      return std::abs(found.count() - expected) <= 1e-9 * std::max(1.0, expected);
    };
    RC_ASSERT(near(times.exposed_forward, forward));
    RC_ASSERT(near(times.exposed_backward, backward));

    // Laid out in time: as long as work and what shows, one unit computing at a time, every collective whole.
    for (const bool back : {false, true}) {
      double work = 0;
      double collectives = 0;
      for (std::size_t i = 0; i < units.size(); ++i) {
        work += back ? units[i].backward : units[i].forward;
        const bool gathered = back ? !keeps && i + 1 < units.size() : true;
        collectives += (gathered ? units[i].gather : 0) + (back ? units[i].reduction : 0);
      }
      Seconds end;
      Seconds computed;
      Seconds communicated;
      for (const UnitSpan& span : unit_spans(exchanges, cost, place, {}, performance(), stack, back)) {
        end = std::max(end, span.end);
        if (span.work != UnitWork::compute) {
          communicated += span.end - span.start;
          continue;
        }
        RC_ASSERT(span.start >= computed - Seconds(1e-9));
        computed = span.end;
      }
      RC_ASSERT(near(end, work + (back ? backward : forward)));
      RC_ASSERT(near(communicated, collectives));
    }
  }));
}

TEST_CASE("unit exchanges: launches hide what collectives take from kernels, but not what outlasts them") {
  constexpr std::int64_t layers = 10;
  StagePlace place{.layers = layers, .of_kind = {layers}};
  place.runs.push_back({0, layers});
  const Performance system = performance();
  Software stack = tests::megatron();
  stack.overlap_param_gather = true;
  const auto forward = [&](Seconds kernels, Seconds launches, Seconds gather) {
    const ModelExchanges exchanges{
        .kinds = {{.position = KindPosition::layer, .gather = {.in_node = gather}}}};
    ModelCost cost{.kinds = {LayerCost{}}};
    cost.kinds.front().forward.gemm = kernels;
    cost.kinds.front().forward.host = launches;
    const StageCost stage = stage_cost(cost, place, {});
    const ExchangeTimes times = exchange_times(exchanges, cost, place, {}, system, stack);
    return pass_time(with_exchanges(stage, exchanges, times, place).forward, system.rates.host, stack);
  };
  const Seconds alone = forward(Seconds(0.1), Seconds(1), Seconds(0));
  // The first gather has nothing to run beside.
  CHECK(forward(Seconds(0.1), Seconds(1), Seconds(0.01)).count() ==
        doctest::Approx((alone + Seconds(0.01)).count()).epsilon(1e-3));
  CHECK(forward(Seconds(0.1), Seconds(1), Seconds(2)).count() == doctest::Approx(20 + alone.count() / 10));
  CHECK(forward(Seconds(1), Seconds(0.1), Seconds(2)).count() ==
        doctest::Approx(20 + alone.count() / 10).epsilon(1e-3));
}

TEST_CASE("unit exchanges: collectives in a node run beside those between nodes") {
  CHECK(longest(LinkTimes{Seconds(2), Seconds(1)}) == Seconds(2));
  CHECK(longest(LinkTimes{Seconds(2), Seconds(1)} + LinkTimes{Seconds(0), Seconds(3)}) == Seconds(4));
}

}  // namespace headroom
