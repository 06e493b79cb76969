#include "headroom/search/layer_front.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "search/corners.hpp"

namespace headroom {

bool no_worse(const LayerChoice& x, const LayerChoice& y) {
  return x.bytes.kept <= y.bytes.kept && x.bytes.recomputed <= y.bytes.recomputed &&
         device_time(x.recompute) <= device_time(y.recompute) && x.recompute.host <= y.recompute.host;
}

LayerSets::LayerSets(const OpTable& table, const PricedTable& prices, const Sharding& sharding,
                     const Bindings& letters, Detail detail)
    : table_(table), prices_(prices), sharding_(sharding), detail_(detail) {
  for (const Storable& storable : storables(table, sharding, detail)) {
    const auto on_rank = [&](Placement placement) {
      return Bytes(Expr(bytes_on_rank(table[storable.value], placement, sharding)).evaluate(letters));
    };
    values_.push_back(storable);
    sizes_.push_back(
        {.shared = on_rank(table[storable.value].placement), .whole = on_rank(Placement::whole)});
  }
}

void LayerSets::add_bytes(LayerActivations& sum, std::span<const Storable> values,
                          std::span<const Sizes> sizes, const RecomputedOps& recomputed) const {
  visit_stored(table_, values, sharding_, recomputed, detail_, [&](const StoredValue& stored) {
    const bool shared = stored.placement == table_[values[stored.index].value].placement;
    (stored.kept ? sum.kept : sum.recomputed) +=
        shared ? sizes[stored.index].shared : sizes[stored.index].whole;
  });
}

LayerChoice LayerSets::choice(OpSet ops) const {
  const RecomputedOps recomputed{.ops = ops, .discarded = ops};
  LayerChoice choice{.ops = ops};
  add_bytes(choice.bytes, values_, sizes_, recomputed);
  if (saves_random_state(recomputed, detail_)) choice.bytes.kept += Bytes(checkpoint_random_state_bytes);
  // In the order of the table, as the sums of table_cost() run.
  for (std::size_t op = 0; op < table_.ops().size(); ++op) {
    if (ops.contains(op)) choice.recompute += prices_.ops[op].forward;
  }
  return choice;
}

std::vector<LayerChoice> unbeaten(std::vector<LayerChoice> choices) {
  const auto order = [](const LayerChoice& choice) {
    return std::tuple(choice.bytes.kept, device_time(choice.recompute), choice.recompute.host,
                      choice.bytes.recomputed, choice.ops);
  };
  std::sort(choices.begin(), choices.end(),
            [&](const LayerChoice& x, const LayerChoice& y) { return order(x) < order(y); });
  std::vector<LayerChoice> front;
  for (const LayerChoice& choice : choices) {
    const bool beaten = std::any_of(front.begin(), front.end(),
                                    [&](const LayerChoice& other) { return no_worse(other, choice); });
    if (!beaten) front.push_back(choice);
  }
  std::reverse(front.begin(), front.end());
  return front;
}

// Partial sets: of the ops up to one of the table, with the bytes of the values whose fate these ops decide.
class LayerFrontSearch {
 public:
  explicit LayerFrontSearch(const LayerSets& sets) : sets_(sets) { make_units(); }

  LayerFront front() {
    std::vector<Partial> partial{{}};
    for (std::size_t op = 0; op < sets_.ops(); ++op) {
      const std::size_t without = partial.size();
      for (std::size_t i = 0; i < without; ++i) {
        Partial with = partial[i];
        with.choice.ops.insert(op);
        with.choice.recompute += sets_.prices_.ops[op].forward;
        partial.push_back(with);
      }
      for (Partial& one : partial) decide(one, op);
      partial = prune(std::move(partial), 0);
      if (partial.size() > most_partial_choices) partial = thin(std::move(partial));
    }
    LayerFront result;
    for (const Partial& one : partial) result.choices.push_back(sets_.choice(one.choice.ops));
    result.choices = unbeaten(std::move(result.choices));
    result.unbeaten = result.choices.size();
    result.tolerance = tolerance_;
    if (result.unbeaten <= most_choices) return result;
    const std::vector<LayerChoice> all = std::move(result.choices);
    double part = least_part;
    do {
      part *= 2;
      result.choices = standing_in(all, part);
    } while (result.choices.size() > most_choices && part < 1);
    result.tolerance += part;
    return result;
  }

 private:
  struct Partial {
    LayerChoice choice;
    std::string open;  // what the rest of the table can tell of it
    Seconds time;      // device_time() of the recomputation
  };

  // A value, or all members of a buffer, whose fates depend on each other.
  struct Unit {
    std::vector<Storable> values;
    std::vector<LayerSets::Sizes> sizes;
    std::size_t decided = 0;  // the op after which their fate is known
    int buffer = nowhere;
  };

  // Ops whose part in a recomputation decides the fate of a value: who makes it and, where its backward pass does not
  // need it, who reads it; where gathered inputs are kept whole, also who needs it so; of a copy, also who could make it again.
  [[nodiscard]] OpSet deciders(const Storable& storable) const {
    OpSet ops = storable.use.producer;
    if (storable.use.savers == 0) ops |= storable.use.readers;
    if (storable.use.copy) ops |= storable.use.savers;
    const bool boundary = sets_.table_[storable.value].placement == Placement::boundary;
    if (boundary && sets_.sharding_.save_gathered_input) ops |= storable.use.split_savers;
    return ops;
  }

  void make_units() {
    for (std::size_t i = 0; i < sets_.values_.size(); ++i) {
      const Storable& storable = sets_.values_[i];
      const int buffer = storable.received ? nowhere : sets_.table_[storable.value].buffer;
      auto unit = std::find_if(units_.begin(), units_.end(), [&](const Unit& other) {
        return buffer != nowhere && other.buffer == buffer;
      });
      if (unit == units_.end()) unit = units_.insert(units_.end(), Unit{.buffer = buffer});
      unit->values.push_back(storable);
      unit->sizes.push_back(sets_.sizes_[i]);
      const OpSet ops = deciders(storable);
      if (ops != 0) unit->decided = std::max(unit->decided, static_cast<std::size_t>(ops.highest()));
    }
  }

  // What op `last` decides of a partial set of the ops up to it, and what stays open.
  void decide(Partial& one, std::size_t last) const {
    const RecomputedOps recomputed{.ops = one.choice.ops, .discarded = one.choice.ops};
    const OpSet seen = OpSet::first(last + 1);
    one.open.clear();
    one.time = device_time(one.choice.recompute);
    for (const Unit& unit : units_) {
      if (unit.decided == last) sets_.add_bytes(one.choice.bytes, unit.values, unit.sizes, recomputed);
      if (unit.decided <= last) continue;
      for (const Storable& storable : unit.values) {
        const OpSet& ops = one.choice.ops;
        const ValueUse& use = storable.use;
        const bool made = (use.producer & ops) != 0;
        const bool read = use.savers == 0 && (use.readers & ops) != 0;
        const bool left = (deciders(storable) & use.split_savers & seen & ~ops) != 0;
        one.open.push_back(static_cast<char>((made ? 1 : 0) + (read ? 2 : 0) + (left ? 4 : 0)));
      }
    }
  }

  // How far one may exceed another that stands in for it.
  struct Slack {
    Bytes bytes;
    Seconds time;
    Seconds host;
  };

  static Corner corner_of(const Partial& one, const Slack& slack) {
    return {.kept = one.choice.bytes.kept + slack.bytes,
            .recomputed = one.choice.bytes.recomputed + slack.bytes,
            .time = one.time + slack.time,
            .host = one.choice.recompute.host + slack.host};
  }

  // Parts of all that the layer keeps and of its forward pass.
  [[nodiscard]] Slack slack_of(double part) const {
    const LayerChoice nothing = sets_.choice({});
    const LayerChoice all = sets_.choice(every_op(sets_.table_));
    return {.bytes = part * nothing.bytes.kept,
            .time = part * device_time(all.recompute),
            .host = part * all.recompute.host};
  }

  // Sets of which one exceeds each of the others by no more than that, nothing and the least kept among them.
  [[nodiscard]] std::vector<LayerChoice> standing_in(const std::vector<LayerChoice>& choices,
                                                     double part) const {
    const Slack slack = slack_of(part);
    std::vector<LayerChoice> kept;
    Corners corners;
    const auto any = [](std::size_t) { return true; };
    for (const LayerChoice& choice : choices) {
      const Partial whole{.choice = choice, .open = {}, .time = device_time(choice.recompute)};
      const bool end = &choice == &choices.front() || &choice == &choices.back();
      if (!end && corners.any_within(corner_of(whole, slack), any)) continue;
      corners.insert(corner_of(whole, {}), kept.size());
      kept.push_back(choice);
    }
    return kept;
  }

  // Also when the same is added to both, whichever way the sums are then rounded.
  static bool surely_no_slower(const Partial& x, const Partial& y) {
    constexpr double beyond_rounding = 1 - 1e-12;
    if (x.time <= beyond_rounding * y.time) return true;
    const PassCost& less = x.choice.recompute;
    const PassCost& more = y.choice.recompute;
    const bool no_slower = less.gemm <= more.gemm && less.attention <= more.attention &&
                           less.memory_bound <= more.memory_bound &&
                           less.communication <= more.communication && less.drained <= more.drained;
    // As alike as they are, rounding can make them equal in the end: then the first by bits is due.
    return no_slower && (x.choice.ops < y.choice.ops || x.choice.bytes.kept < y.choice.bytes.kept ||
                         x.choice.bytes.recomputed < y.choice.bytes.recomputed || less.host < more.host);
  }

  // Without the partial sets that another one, open in the same way, beats. What is added later is added to both.
  [[nodiscard]] std::vector<Partial> prune(std::vector<Partial> partial, double part) const {
    std::sort(partial.begin(), partial.end(), [](const Partial& x, const Partial& y) {
      return std::tie(x.open, x.choice.bytes.kept, x.time, x.choice.recompute.host, x.choice.bytes.recomputed,
                      x.choice.ops) < std::tie(y.open, y.choice.bytes.kept, y.time, y.choice.recompute.host,
                                               y.choice.bytes.recomputed, y.choice.ops);
    });
    const Slack slack = slack_of(part);
    std::vector<Partial> kept;
    Corners corners;  // of those that are open in the same way
    for (Partial& one : partial) {
      if (!kept.empty() && kept.back().open != one.open) corners.clear();
      const auto stands_in = [&](std::size_t other) {
        return part > 0 || surely_no_slower(kept[other], one);
      };
      if (one.choice.ops != 0 && corners.any_within(corner_of(one, slack), stands_in)) continue;
      corners.insert(corner_of(one, {}), kept.size());
      kept.push_back(std::move(one));
    }
    return kept;
  }

  // By as little as leaves few enough, in powers of two, and as a rule by no less than the last time.
  [[nodiscard]] std::vector<Partial> thin(std::vector<Partial> partial) {
    for (double part = std::max(least_part, part_ / 2); part < 1; part *= 2) {
      std::vector<Partial> thinner = prune(partial, part);
      if (thinner.size() > most_partial_choices) continue;
      part_ = part;
      tolerance_ += part;
      return thinner;
    }
    return partial;  // open in more ways than that, of which none can stand in for another
  }

  static constexpr double least_part = 1.0 / 4096;

  const LayerSets& sets_;
  std::vector<Unit> units_;
  double tolerance_ = 0;
  double part_ = 0;  // of the last thinning
};

LayerFront layer_front(const LayerSets& sets) { return LayerFrontSearch(sets).front(); }

}  // namespace headroom
