// What goes to the host and comes back in a pass, and what of it shows beside computation and collectives.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/time/offload.hpp"
#include "headroom/time/unit_exchanges.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::performance;

struct HostUnit {
  double gather = 0;
  double reduction = 0;
  double fetch = 0;
  double send = 0;
  double activations = 0;
  double forward = 0;
  double backward = 0;
};

struct Shown {
  double collectives = 0;
  double all = 0;
};

// Of a slot: what outlasts the unit, or what collectives take from it.
void add(Shown& shown, double longest, double collectives, double unit) {
  const double loss = performance().rates.collectives.overlap_loss.value * collectives;
  shown.collectives += std::max(collectives - unit, loss);
  shown.all += std::max(longest - unit, loss);
}

Shown forward_of(const std::vector<HostUnit>& units) {
  Shown shown{units.front().gather, units.front().fetch + units.front().gather};
  for (std::size_t i = 0; i < units.size(); ++i) {
    const HostUnit next = i + 1 < units.size() ? units[i + 1] : HostUnit{};
    add(shown, std::max(next.fetch + next.gather, units[i].activations), next.gather, units[i].forward);
  }
  return shown;
}

Shown backward_of(const std::vector<HostUnit>& units, bool keeps) {
  const double last_fetch = units.back().activations;
  Shown shown{units.front().reduction, units.front().reduction + units.front().send + last_fetch};
  for (std::size_t i = 0; i < units.size(); ++i) {
    HostUnit before = i > 0 ? units[i - 1] : HostUnit{};
    if (keeps) before.gather = before.fetch = 0;
    const HostUnit after = i + 1 < units.size() ? units[i + 1] : HostUnit{};
    const double collectives = before.gather + after.reduction;
    const double longest = std::max({collectives, before.fetch + before.gather, after.reduction + after.send,
                                     before.fetch + before.activations, after.send});
    add(shown, longest, collectives, units[i].backward);
  }
  return shown;
}

}  // namespace

TEST_CASE("host transfers: what shows is that of a walk from unit to unit") {
  CHECK(rc::check([] {
    const auto seconds = [] { return *rc::gen::inRange(0, 100) / 100.0; };
    const std::int64_t layers = *rc::gen::inRange<std::int64_t>(1, 5);
    const bool keeps = *rc::gen::arbitrary<bool>();
    ModelExchanges exchanges{.kinds = {}, .keeps_gathered = keeps};
    ModelCost cost;
    std::vector<HostUnit> of_kind;
    for (const KindPosition position : {KindPosition::first, KindPosition::layer, KindPosition::last}) {
      HostUnit unit{seconds(), seconds(), seconds(), seconds(), seconds(), seconds(), seconds()};
      if (position != KindPosition::layer) unit.activations = 0;
      of_kind.push_back(unit);
      exchanges.kinds.push_back({.position = position,
                                 .gather = {.in_node = Seconds(unit.gather)},
                                 .reduction = {.in_node = Seconds(unit.reduction)},
                                 .fetch = Seconds(unit.fetch),
                                 .send = Seconds(unit.send),
                                 .activations = Seconds(unit.activations),
                                 .recomputed_activations = Seconds(unit.activations)});
      LayerCost& of = cost.kinds.emplace_back();
      of.forward.gemm = Seconds(unit.forward);
      of.backward_data.gemm = Seconds(unit.backward);
    }
    const bool head = *rc::gen::arbitrary<bool>();
    StagePlace place{.layers = layers, .first = true, .last = head, .of_kind = {1, layers, head ? 1 : 0}};
    place.runs.push_back({1, layers});
    std::vector<HostUnit> units{of_kind[0]};
    units.insert(units.end(), static_cast<std::size_t>(layers), of_kind[1]);
    if (head) units.push_back(of_kind[2]);

    Software stack = tests::megatron();
    stack.overlap_param_gather = stack.overlap_grad_reduce = true;
    const ExchangeTimes times = exchange_times(exchanges, cost, place, {}, performance(), stack);
    const Shown forward = forward_of(units);
    const Shown backward = backward_of(units, keeps);
    const auto near = [](Seconds found, double expected) {
      return std::abs(found.count() - expected) <= 1e-9 * std::max(1.0, expected);
    };
    if (times.host == Seconds(0)) return;
    RC_ASSERT(near(times.exposed_forward, forward.collectives));
    RC_ASSERT(near(times.exposed_backward, backward.collectives));
    RC_ASSERT(near(times.exposed_host_forward, forward.all - forward.collectives));
    RC_ASSERT(near(times.exposed_host_backward, backward.all - backward.collectives));
    const StageCost stage = with_exchanges({}, exchanges, times, place);
    RC_ASSERT(stage.forward.host_communication == times.exposed_host_forward);
    RC_ASSERT(near(stage.backward.communication, backward.all));
  }));
}

TEST_CASE("host transfers: all devices of a host share the bandwidth of its memory") {
  const Host host{.memory = Bytes(2e12),
                  .memory_bandwidth = BytesPerSecond(400e9),
                  .device_link = BytesPerSecond(64e9),
                  .source = "a sheet"};
  CHECK(link_of(host, 1) == BytesPerSecond(64e9));
  CHECK(link_of(host, 8) == BytesPerSecond(50e9));
}

}  // namespace headroom
