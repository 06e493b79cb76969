#include "headroom/search/kind_choices.hpp"

#include <algorithm>

namespace headroom {
namespace {

KindChoices nothing_of(const std::vector<LayerFront>& fronts) {
  KindChoices nothing;
  for (const LayerFront& front : fronts) nothing.push_back(front.choices.front());
  return nothing;
}

double seconds_for_a_byte(const LayerChoice& from, const LayerChoice& to) {
  return (device_time(to.recompute) - device_time(from.recompute)).count() /
         (from.bytes.kept - to.bytes.kept).count();
}

// Of choices from the most kept to the least: those at the lower convex hull, from the first on.
std::vector<const LayerChoice*> hull_of(const LayerFront& front) {
  std::vector<const LayerChoice*> hull;
  for (const LayerChoice& choice : front.choices) {
    if (!hull.empty() && choice.bytes.kept == hull.back()->bytes.kept) {
      if (device_time(choice.recompute) >= device_time(hull.back()->recompute)) continue;
      hull.pop_back();
    }
    while (hull.size() > 1 && seconds_for_a_byte(*hull[hull.size() - 2], *hull.back()) >=
                                  seconds_for_a_byte(*hull.back(), choice)) {
      hull.pop_back();
    }
    hull.push_back(&choice);
  }
  return hull;
}

// A kind moves on from one set of its hull to the next.
struct Move {
  double price = 0;
  std::size_t kind = 0;
  const LayerChoice* to = nullptr;
};

}  // namespace

std::vector<KindChoices> alone(const std::vector<LayerFront>& fronts, std::size_t kind) {
  std::vector<KindChoices> choices;
  for (const LayerChoice& choice : fronts[kind].choices) {
    choices.push_back(nothing_of(fronts));
    choices.back()[kind] = choice;
  }
  return choices;
}

std::vector<KindChoices> combined(const std::vector<LayerFront>& fronts) {
  if (fronts.size() == 1) return alone(fronts, 0);
  const KindChoices nothing = nothing_of(fronts);
  std::vector<Move> moves;
  std::vector<KindChoices> choices{nothing};
  const auto add = [&](const KindChoices& one) {
    if (std::find(choices.begin(), choices.end(), one) == choices.end()) choices.push_back(one);
  };
  KindChoices everything = nothing;
  for (std::size_t kind = 0; kind < fronts.size(); ++kind) {
    const std::vector<const LayerChoice*> hull = hull_of(fronts[kind]);
    for (std::size_t i = 1; i < hull.size(); ++i) {
      moves.push_back({seconds_for_a_byte(*hull[i - 1], *hull[i]), kind, hull[i]});
      KindChoices one = nothing;
      one[kind] = *hull[i];
      add(one);
    }
    everything[kind] = fronts[kind].choices.back();
  }
  // The moves of a kind are in order already: the price rises along a hull.
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& x, const Move& y) { return x.price < y.price; });
  KindChoices now = nothing;
  for (const Move& move : moves) {
    now[move.kind] = *move.to;
    add(now);
  }
  add(everything);
  return choices;
}

bool recomputes_nothing(const KindChoices& choices) { return recomputed_op_count(choices) == 0; }

int recomputed_op_count(const KindChoices& choices) {
  int count = 0;
  for (const LayerChoice& choice : choices) count += choice.ops.size();
  return count;
}

}  // namespace headroom
