#include "headroom/time/unit_exchanges.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

constexpr auto half_size = static_cast<double>(size_of(Dtype::half));

PassCost copies(Bytes moved, const Performance& performance) {
  PassCost cost{.gemm = {}, .attention = {}, .memory_bound = moved / streaming_bandwidth(performance)};
  cost.operations = moved > Bytes(0) ? 1 : 0;
  return cost;
}

// A unit in its place: how often it stands in a row, its collectives and what it computes.
struct PlacedUnit {
  std::size_t kind = 0;
  std::int64_t count = 1;
  const UnitExchange* exchange = nullptr;
  Seconds forward;
  Seconds backward;  // with the recomputation
};

class Passes {
 public:
  Passes(const ModelExchanges& exchanges, const ModelCost& cost, const StagePlace& place,
         const Recomputation& recompute, const Performance& performance, const Software& software)
      : exchanges_(exchanges),
        cost_(cost),
        rates_(performance.rates),
        software_(software),
        loss_(performance.rates.collectives.overlap_loss.value) {
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
    ExchangeTimes times{.gather = sum(root_.gather), .reduction = sum(root_.reduction)};
    const bool again = !exchanges_.keeps_gathered;
    for (const PlacedUnit& unit : units_) {
      // The last unit of a forward pass is the first of the backward pass that follows, and is not gathered again.
      const bool last = &unit == &units_.back();
      const std::int64_t gathers = again ? 2 * unit.count - (last ? 1 : 0) : unit.count;
      times.gather += real(gathers) * sum(unit.exchange->gather);
      times.reduction += real(unit.count) * sum(unit.exchange->reduction);
    }
    times.exposed_forward = longest(root_.gather) + forward();
    times.exposed_backward = backward(again) + longest(root_.reduction);
    return times;
  }

  [[nodiscard]] std::vector<UnitSpan> spans(bool backward) const {
    std::vector<PlacedUnit> units;
    for (const PlacedUnit& run : units_) units.insert(units.end(), index(run.count), run);
    return backward ? backward_spans(units) : forward_spans(units);
  }

 private:
  // Spans one after the other, each unit's computation in a slot that is as long as what shows of the collectives beside it makes it.
  struct Layout {
    std::vector<UnitSpan> spans;
    Seconds clock;

    void beside(UnitWork work, const PlacedUnit& unit, std::size_t place, Seconds from, Seconds to) {
      if (to > from)
        spans.push_back({work, unit.kind, static_cast<std::int64_t>(place), clock + from, clock + to});
    }
    void alone(UnitWork work, const PlacedUnit& unit, std::size_t place, const LinkTimes& time) {
      beside(work, unit, place, Seconds(0), longest(time));
      clock += longest(time);
    }
    // Collectives that are longer than the computation outlast it; otherwise they slow it down.
    void compute(const PlacedUnit& unit, std::size_t place, Seconds time, Seconds shown,
                 Seconds collectives) {
      beside(UnitWork::compute, unit, place, Seconds(0), collectives < time + shown ? time + shown : time);
      clock += time + shown;
    }
  };

  [[nodiscard]] std::vector<UnitSpan> forward_spans(const std::vector<PlacedUnit>& units) const {
    Layout layout;
    if (units.empty()) return {};
    const std::size_t last = units.size() - 1;
    layout.alone(UnitWork::gather, units[last], last, root_.gather);
    layout.alone(UnitWork::gather, units[0], 0, units[0].exchange->gather);
    for (std::size_t i = 0; i <= last; ++i) {
      const LinkTimes next = i < last ? units[i + 1].exchange->gather : LinkTimes{};
      if (i < last) layout.beside(UnitWork::gather, units[i + 1], i + 1, Seconds(0), longest(next));
      layout.compute(units[i], i, units[i].forward, exposed(next, units[i].forward), longest(next));
    }
    return layout.spans;
  }

  [[nodiscard]] std::vector<UnitSpan> backward_spans(const std::vector<PlacedUnit>& units) const {
    Layout layout;
    if (units.empty()) return {};
    const std::size_t last = units.size() - 1;
    for (std::size_t i = units.size(); i-- > 0;) {
      const bool gathers = i > 0 && !exchanges_.keeps_gathered;
      const LinkTimes before = gathers ? units[i - 1].exchange->gather : LinkTimes{};
      const LinkTimes after = i < last ? units[i + 1].exchange->reduction : LinkTimes{};
      const Seconds together = longest(before + after);
      if (i > 0) layout.beside(UnitWork::gather, units[i - 1], i - 1, Seconds(0), longest(before));
      if (i < last) layout.beside(UnitWork::reduce, units[i + 1], i + 1, together - longest(after), together);
      layout.compute(units[i], i, units[i].backward, exposed(before + after, units[i].backward), together);
    }
    layout.alone(UnitWork::reduce, units[0], 0, units[0].exchange->reduction);
    layout.alone(UnitWork::reduce, units[last], last, root_.reduction);
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
    }
  }

  void add(std::size_t kind, std::int64_t count, bool recomputed) {
    if (count == 0) return;
    const LayerCost& cost = cost_.kinds[kind];
    const PassCost back = recomputed ? cost.recompute + headroom::backward(cost) : headroom::backward(cost);
    units_.push_back({.kind = kind,
                      .count = count,
                      .exchange = &exchanges_.kinds[kind],
                      .forward = pass_time(cost.forward, rates_.host, software_),
                      .backward = pass_time(back, rates_.host, software_)});
  }

  [[nodiscard]] Seconds exposed(const LinkTimes& collectives, Seconds unit) const {
    const Seconds time = longest(collectives);
    return std::max(time - unit, loss_ * time);
  }

  [[nodiscard]] Seconds forward() const {
    if (units_.empty()) return Seconds(0);
    Seconds shown = longest(units_.front().exchange->gather);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const PlacedUnit& unit = units_[i];
      shown += real(unit.count - 1) * exposed(unit.exchange->gather, unit.forward);
      if (i + 1 < units_.size()) shown += exposed(units_[i + 1].exchange->gather, unit.forward);
    }
    return shown;
  }

  [[nodiscard]] Seconds backward(bool gathers) const {
    if (units_.empty()) return Seconds(0);
    Seconds shown;
    const auto gather_of = [&](const UnitExchange& exchange) {
      return gathers ? exchange.gather : LinkTimes{};
    };
    for (std::size_t i = units_.size(); i-- > 0;) {
      const PlacedUnit& unit = units_[i];
      const LinkTimes before = i > 0 ? gather_of(*units_[i - 1].exchange) : LinkTimes{};
      const LinkTimes after = i + 1 < units_.size() ? units_[i + 1].exchange->reduction : LinkTimes{};
      const LinkTimes own_gather = gather_of(*unit.exchange);
      const LinkTimes own_reduction = unit.exchange->reduction;
      if (unit.count == 1) {
        shown += exposed(before + after, unit.backward);
        continue;
      }
      shown += exposed(own_gather + after, unit.backward);
      shown += real(unit.count - 2) * exposed(own_gather + own_reduction, unit.backward);
      shown += exposed(before + own_reduction, unit.backward);
    }
    return shown + longest(units_.front().exchange->reduction);
  }

  const ModelExchanges& exchanges_;
  const ModelCost& cost_;
  const Rates& rates_;
  const Software& software_;
  double loss_ = 0;
  std::vector<PlacedUnit> units_;
  UnitExchange root_;
};

}  // namespace

ModelExchanges model_exchanges(const ModelLayers& layers, const ModelParameters& parameters,
                               const Strategy& strategy, std::int64_t devices_per_node,
                               const Performance& performance, const Software& software) {
  EXPECTS(has_units(strategy, software));
  ModelExchanges exchanges{.kinds = {},
                           .keeps_gathered = keeps_gathered(strategy),
                           .ends_in_root = software.sharding.ends_in_root};
  const bool gathers = gathers_in_passes(strategy);
  const bool reduces = reduces_in_passes(strategy, software);
  const bool in_buffers = software.sharding.copies_units;
  const double gradient = real(size_of(strategy.gradient_dtype));
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    Parameters held = parameters.kinds[i];
    if (layers.kinds[i].position == KindPosition::last) held = without_shared(held, parameters);
    UnitExchange& unit = exchanges.kinds.emplace_back();
    unit.position = layers.kinds[i].position;
    const auto add = [&](LinkTimes& times, CollectiveKind kind, Bytes bytes, const Group& group) {
      Seconds& link = group.ranks > group.ranks_in_node ? times.between_nodes : times.in_node;
      link += collective_time(kind, bytes, group, performance);
      unit.within_fit = unit.within_fit && within_fit(bytes, group, performance.rates.collectives);
    };
    const auto exchange = [&](WeightClass weights, const Parameters& share) {
      if (total(share) == 0) return;
      const Group ranks = shard_group(strategy, weights, devices_per_node);
      if (gathers) add(unit.gather, CollectiveKind::all_gather, gathered_bytes(share, strategy), ranks);
      const double count = total(trained(share));
      if (!reduces || count == 0) return;
      const Bytes gradients(count * gradient);
      add(unit.reduction, CollectiveKind::reduce_scatter, gradients, ranks);
      const Group alike = copies_group(strategy, weights, devices_per_node);
      if (alike.ranks > 1)
        add(unit.reduction, CollectiveKind::all_reduce, gradients / real(ranks.ranks), alike);
    };
    exchange(WeightClass::dense, of_class(held, WeightClass::dense));
    exchange(WeightClass::expert, of_class(held, WeightClass::expert));
    if (!in_buffers) continue;
    // From the buffer that was gathered into the weights; from the gradients into the buffer that is reduced.
    if (gathers) unit.gather_copies = copies(2 * gathered_bytes(held, strategy), performance);
    if (reduces)
      unit.reduction_copies = copies(Bytes(total(trained(held)) * (half_size + gradient)), performance);
  }
  return exchanges;
}

std::vector<UnitSpan> unit_spans(const ModelExchanges& exchanges, const ModelCost& cost,
                                 const StagePlace& place, const Recomputation& recompute,
                                 const Performance& performance, const Software& software, bool backward) {
  return Passes(exchanges, cost, place, recompute, performance, software).spans(backward);
}

ExchangeTimes exchange_times(const ModelExchanges& exchanges, const ModelCost& cost, const StagePlace& place,
                             const Recomputation& recompute, const Performance& performance,
                             const Software& software) {
  return Passes(exchanges, cost, place, recompute, performance, software).times();
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
  const auto add = [](PassCost& pass, Seconds shown) {
    pass.communication += shown;
    pass.data_communication += shown;
  };
  add(stage.forward, times.exposed_forward);
  add(stage.backward, times.exposed_backward);
  return stage;
}

}  // namespace headroom
