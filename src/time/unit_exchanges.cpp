#include "headroom/time/unit_exchanges.hpp"

#include <algorithm>
#include <utility>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

// Computation of a unit in a pass.
struct UnitPass {
  PassCost cost;
  Race race;     // Race{} if the host never waits
  Seconds time;  // of host and device together
};

// A unit in its place: its repetitions in a row, its collectives and its computation.
struct PlacedUnit {
  std::size_t kind = 0;
  std::int64_t count = 1;
  UnitExchange exchange;  // in a recomputed layer, `activations` are the recomputed ones
  UnitPass forward;
  UnitPass backward;  // including recomputation
};

// Collectives and transfers beside the computation of a unit.
struct Beside {
  Seconds fetch;  // one after the other
  LinkTimes gather;
  LinkTimes reduction;  // one after the other
  Seconds send;
  Seconds from_host;  // activations
  Seconds to_host;
};

Seconds collectives(const Beside& beside) { return longest(beside.gather + beside.reduction); }
Seconds longest(const Beside& beside) {
  return std::max({collectives(beside), beside.fetch + longest(beside.gather),
                   longest(beside.reduction) + beside.send, beside.fetch + beside.from_host,
                   beside.send + beside.to_host});
}

class Passes {
 public:
  Passes(const ModelExchanges& exchanges, const ModelCost& cost, const StagePlace& place,
         const Recomputation& recompute, const Performance& performance, const Software& software,
         bool with_host = true)
      : exchanges_(exchanges),
        cost_(cost),
        rates_(performance.rates),
        software_(software),
        loss_(performance.rates.collectives.overlap_loss.value),
        gathers_ahead_(software.overlap_param_gather || software.sharding.prefetches_units),
        reduces_beside_(software.overlap_grad_reduce),
        with_host_(with_host) {
    add_ends(place, KindPosition::first);
    std::int64_t left = recomputed_layers(place.layers, recompute);
    for (const LayerRun& run : place.runs) {
      const std::int64_t recomputed = std::min(run.count, left);
      add(run.kind, recomputed, true);
      add(run.kind, run.count - recomputed, false);
      left -= recomputed;
    }
    add_ends(place, KindPosition::last);
  }

  [[nodiscard]] ExchangeTimes times() const {
    ExchangeTimes times{
        .gather = sum(root_.gather), .forward_gather = sum(root_.gather), .reduction = sum(root_.reduction)};
    const bool again = !exchanges_.keeps_gathered;
    for (const PlacedUnit& unit : units_) {
      // The last unit of a forward pass is the first of the backward pass that follows, and is not gathered
      // again.
      const bool last = &unit == &units_.back();
      const std::int64_t gathers = again ? 2 * unit.count - (last ? 1 : 0) : unit.count;
      const UnitExchange& exchange = unit.exchange;
      times.gather += real(gathers) * sum(exchange.gather);
      times.forward_gather += real(unit.count) * sum(exchange.gather);
      times.reduction += real(unit.count) * sum(exchange.reduction);
      times.host +=
          real(gathers) * exchange.fetch + real(unit.count) * (exchange.send + 2 * exchange.activations);
    }
    times.host += root_.fetch + root_.send;
    times.exposed_forward = gather_time(root_) + forward();
    times.exposed_backward = backward() + reduction_time(root_);
    return times;
  }

  [[nodiscard]] std::vector<UnitSpan> spans(bool backward) const {
    std::vector<PlacedUnit> units;
    for (PlacedUnit unit : units_) {
      const std::int64_t count = std::exchange(unit.count, 1);
      units.insert(units.end(), index(count), unit);
    }
    return backward ? backward_spans(units) : forward_spans(units);
  }

 private:
  // Lays out spans one after another. A unit's slot has the length of its computation plus the exposed time
  // of collectives beside it.
  struct Layout {
    std::vector<UnitSpan> spans;
    Seconds clock;

    void beside(UnitWork work, const PlacedUnit& unit, std::size_t place, Seconds from, Seconds to) {
      if (to > from)
        spans.push_back({work, unit.kind, static_cast<std::int64_t>(place), clock + from, clock + to});
    }
    void alone(UnitWork work, const PlacedUnit& unit, std::size_t place, Seconds time) {
      beside(work, unit, place, Seconds(0), time);
      clock += time;
    }
    // Collectives that are longer than the computation outlast it; otherwise they slow it down.
    void compute(const PlacedUnit& unit, std::size_t place, Seconds time, Seconds shown,
                 Seconds collectives) {
      beside(UnitWork::compute, unit, place, Seconds(0), collectives < time + shown ? time + shown : time);
      clock += time + shown;
    }
  };

  // Calls visit(i, next, times) for every unit of a forward pass with the unit after it; equal units in a row
  // count at once.
  template <class Visit>
  static void visit_forward(const std::vector<PlacedUnit>& units, Visit visit) {
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (units[i].count > 1) visit(i, units[i].exchange, units[i].count - 1);
      visit(i, i + 1 < units.size() ? units[i + 1].exchange : UnitExchange{}, std::int64_t{1});
    }
  }

  // Calls visit(i, before, after, times) for every unit of a backward pass with its neighbours in the model.
  template <class Visit>
  static void visit_backward(const std::vector<PlacedUnit>& units, Visit visit) {
    for (std::size_t i = units.size(); i-- > 0;) {
      const std::int64_t count = units[i].count;
      const UnitExchange& own = units[i].exchange;
      const UnitExchange before = i > 0 ? units[i - 1].exchange : UnitExchange{};
      const UnitExchange after = i + 1 < units.size() ? units[i + 1].exchange : UnitExchange{};
      visit(i, count > 1 ? own : before, after, std::int64_t{1});
      if (count > 2) visit(i, own, own, count - 2);
      if (count > 1) visit(i, before, own, std::int64_t{1});
    }
  }

  // Returns the spans of units, one by one.
  [[nodiscard]] std::vector<UnitSpan> forward_spans(const std::vector<PlacedUnit>& units) const {
    Layout layout;
    if (units.empty()) return {};
    const std::size_t last = units.size() - 1;
    layout.alone(UnitWork::gather, units[last], last, gather_time(root_));
    layout.alone(UnitWork::gather, units[0], 0, gather_time(units[0].exchange));
    visit_forward(units, [&](std::size_t i, const UnitExchange& next, std::int64_t) {
      const Beside beside = beside_forward(units[i].exchange, next);
      if (i < last && gathers_ahead_)
        layout.beside(UnitWork::gather, units[i + 1], i + 1, Seconds(0), gather_time(next));
      layout.compute(units[i], i, units[i].forward.time, exposed(beside, units[i].forward), longest(beside));
      if (i < last && !gathers_ahead_) layout.alone(UnitWork::gather, units[i + 1], i + 1, gather_time(next));
    });
    return layout.spans;
  }

  [[nodiscard]] std::vector<UnitSpan> backward_spans(const std::vector<PlacedUnit>& units) const {
    Layout layout;
    if (units.empty()) return {};
    const std::size_t last = units.size() - 1;
    layout.clock += units[last].exchange.activations;
    visit_backward(
        units, [&](std::size_t i, const UnitExchange& before, const UnitExchange& after, std::int64_t) {
          const Beside beside = beside_backward(before, after);
          const Seconds together = longest(beside);
          const bool gathers = i > 0 && !exchanges_.keeps_gathered;
          if (gathers && gathers_ahead_)
            layout.beside(UnitWork::gather, units[i - 1], i - 1, Seconds(0), gather_time(before));
          if (i < last && !reduces_beside_)
            layout.alone(UnitWork::reduce, units[i + 1], i + 1, reduction_time(after));
          if (i < last && reduces_beside_)
            layout.beside(UnitWork::reduce, units[i + 1], i + 1, together - reduction_time(after), together);
          layout.compute(units[i], i, units[i].backward.time, exposed(beside, units[i].backward), together);
          if (gathers && !gathers_ahead_)
            layout.alone(UnitWork::gather, units[i - 1], i - 1, gather_time(before));
        });
    layout.alone(UnitWork::reduce, units[0], 0, reduction_time(units[0].exchange));
    layout.alone(UnitWork::reduce, units[last], last, reduction_time(root_));
    return layout.spans;
  }

  void add_ends(const StagePlace& place, KindPosition position) {
    for (std::size_t i = 0; i < exchanges_.kinds.size(); ++i) {
      const UnitExchange& exchange = exchanges_.kinds[i];
      if (exchange.position != position || place.of_kind[i] == 0) continue;
      if (!exchanges_.ends_in_root) {
        add(i, place.of_kind[i], false);
        continue;
      }
      root_.gather = root_.gather + exchange.gather;
      root_.reduction = root_.reduction + exchange.reduction;
      if (!with_host_) continue;
      root_.fetch += exchange.fetch;
      root_.send += exchange.send;
    }
  }

  void add(std::size_t kind, std::int64_t count, bool recomputed) {
    if (count == 0) return;
    const LayerCost& cost = cost_.kinds[kind];
    const PassCost back = recomputed ? cost.recompute + headroom::backward(cost) : headroom::backward(cost);
    UnitExchange exchange = exchanges_.kinds[kind];
    if (recomputed) exchange.activations = exchange.recomputed_activations;
    if (!with_host_) exchange.fetch = exchange.send = exchange.activations = Seconds(0);
    units_.push_back({.kind = kind,
                      .count = count,
                      .exchange = exchange,
                      .forward = unit_pass(cost.forward, cost.race),
                      .backward = unit_pass(back, {})});
  }

  [[nodiscard]] UnitPass unit_pass(const PassCost& cost, const Race& race) const {
    return {.cost = cost, .race = race, .time = forward_time(cost, race, rates_.host, software_)};
  }

  // Return times without overlap.
  static Seconds gather_time(const UnitExchange& unit) { return unit.fetch + longest(unit.gather); }
  static Seconds reduction_time(const UnitExchange& unit) { return longest(unit.reduction) + unit.send; }

  [[nodiscard]] Beside beside_forward(const UnitExchange& own, const UnitExchange& next) const {
    Beside beside{.to_host = own.activations};
    if (gathers_ahead_) {
      beside.fetch = next.fetch;
      beside.gather = next.gather;
    }
    return beside;
  }
  [[nodiscard]] Beside beside_backward(const UnitExchange& before, const UnitExchange& after) const {
    Beside beside{.from_host = before.activations};
    if (reduces_beside_) {
      beside.reduction = after.reduction;
      beside.send = after.send;
    }
    if (!exchanges_.keeps_gathered && gathers_ahead_) {
      beside.fetch = before.fetch;
      beside.gather = before.gather;
    }
    return beside;
  }

  // Returns what collectives add to a unit's time: what outlasts it, or what they take from its kernels. Launches that
  // are longer than the kernels hide the latter.
  [[nodiscard]] Seconds exposed(const Beside& beside, const UnitPass& unit) const {
    const Seconds slowed = loss_ * collectives(beside);
    PassCost cost = unit.cost;
    cost.communication += slowed;
    const Race race =
        waits(unit.race) ? unit.race * Race{.host = {}, .both = slowed, .device = slowed} : unit.race;
    return std::max(longest(beside), forward_time(cost, race, rates_.host, software_)) - unit.time;
  }

  [[nodiscard]] Seconds forward() const {
    if (units_.empty()) return Seconds(0);
    Seconds shown = gather_time(units_.front().exchange);
    visit_forward(units_, [&](std::size_t i, const UnitExchange& next, std::int64_t times) {
      const PlacedUnit& unit = units_[i];
      shown += real(times) * exposed(beside_forward(unit.exchange, next), unit.forward);
      if (!gathers_ahead_) shown += real(times) * gather_time(next);
    });
    return shown;
  }

  [[nodiscard]] Seconds backward() const {
    if (units_.empty()) return Seconds(0);
    // The last unit's activations have nothing to return beside.
    Seconds shown = units_.back().exchange.activations;
    visit_backward(units_, [&](std::size_t i, const UnitExchange& before, const UnitExchange& after,
                               std::int64_t times) {
      shown += real(times) * exposed(beside_backward(before, after), units_[i].backward);
      if (!gathers_ahead_ && !exchanges_.keeps_gathered) shown += real(times) * gather_time(before);
      if (!reduces_beside_) shown += real(times) * reduction_time(after);
    });
    return shown + reduction_time(units_.front().exchange);
  }

  const ModelExchanges& exchanges_;
  const ModelCost& cost_;
  const Rates& rates_;
  const Software& software_;
  double loss_ = 0;
  bool gathers_ahead_ = true;   // gathers a unit beside the computation of the one before
  bool reduces_beside_ = true;  // reduces beside the next unit's computation
  bool with_host_ = true;
  std::vector<PlacedUnit> units_;
  UnitExchange root_;
};

}  // namespace

std::vector<UnitSpan> unit_spans(const ModelExchanges& exchanges, const ModelCost& cost,
                                 const StagePlace& place, const Recomputation& recompute,
                                 const Performance& performance, const Software& software, bool backward) {
  return Passes(exchanges, cost, place, recompute, performance, software).spans(backward);
}

ExchangeTimes exchange_times(const ModelExchanges& exchanges, const ModelCost& cost, const StagePlace& place,
                             const Recomputation& recompute, const Performance& performance,
                             const Software& software) {
  ExchangeTimes times = Passes(exchanges, cost, place, recompute, performance, software).times();
  if (times.host == Seconds(0)) return times;
  const ExchangeTimes alone = Passes(exchanges, cost, place, recompute, performance, software, false).times();
  times.exposed_host_forward = times.exposed_forward - alone.exposed_forward;
  times.exposed_host_backward = times.exposed_backward - alone.exposed_backward;
  times.exposed_forward = alone.exposed_forward;
  times.exposed_backward = alone.exposed_backward;
  return times;
}

StageCost with_exchanges(StageCost stage, const ModelExchanges& exchanges, const ExchangeTimes& times,
                         const StagePlace& place) {
  for (std::size_t i = 0; i < exchanges.kinds.size(); ++i) {
    const std::int64_t count = place.of_kind[i];
    const UnitExchange& unit = exchanges.kinds[i];
    stage.forward += count * unit.gather_copies;
    if (!exchanges.keeps_gathered) stage.backward += count * unit.gather_copies;
    stage.backward += count * unit.reduction_copies;
  }
  const auto add = [](PassCost& pass, Seconds shown, Seconds with_host) {
    pass.communication += shown + with_host;
    pass.data_communication += shown;
    pass.host_communication += with_host;
  };
  if (waits(stage.race)) {
    Seconds more = times.exposed_forward + times.exposed_host_forward;
    for (std::size_t i = 0; i < exchanges.kinds.size(); ++i)
      more += real(place.of_kind[i]) * device_time(exchanges.kinds[i].gather_copies);
    stage.race = stage.race * Race{.host = {}, .both = more, .device = more};
  }
  add(stage.forward, times.exposed_forward, times.exposed_host_forward);
  add(stage.backward, times.exposed_backward, times.exposed_host_backward);
  return stage;
}

}  // namespace headroom
