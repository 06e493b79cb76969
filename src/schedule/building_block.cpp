#include "headroom/schedule/building_block.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

// Passes of a microbatch on a rank, in their order, or an idle slot.
enum Place : std::uint8_t { forward_down, forward_up, backward_up, backward_down, weights, idle };

// Slots of a microbatch: forward, backward and weight gradients of both chunks.
constexpr std::int64_t period = 6;

// Returns the slots in which the passes of the first microbatch start. Added intervals keep passes of one
// rank apart: no two slots are equal modulo 6.
std::array<std::int64_t, 4> building_block(ScheduleKind kind, std::int64_t p, std::int64_t rank) {
  if (kind == ScheduleKind::v_min) {
    const std::int64_t interval = p % 3 == 0 ? 2 : 0;
    return {rank, 2 * p - rank - 1, 2 * p + interval + rank, 4 * p + interval - rank - 1};
  }
  EXPECTS(kind == ScheduleKind::v_half);
  const std::int64_t interval = p % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * p - rank - 2, 3 * p + interval + 2 * rank - 1, 6 * p + interval - rank - 2};
}

// Time slots of a rank.
struct Slots {
  // By place: slot of each microbatch's pass; for weights, of the k-th pass.
  std::array<std::vector<std::int64_t>, 5> of;
  std::vector<Place> at;  // by slot: what it holds
};

void put(Slots& slots, Place place, std::int64_t k, std::int64_t slot) {
  if (slots.at.size() <= index(slot)) slots.at.resize(index(slot + 1), idle);
  EXPECTS(slots.at[index(slot)] == idle);
  slots.at[index(slot)] = place;
  slots.of[place][index(k)] = slot;
}

void move(Slots& slots, Place place, std::int64_t k, std::int64_t slot) {
  slots.at[index(slots.of[place][index(k)])] = idle;
  put(slots, place, k, slot);
}

bool leaves_weights(Place place) { return place == backward_up || place == backward_down; }

void drop_weights(Slots& slots) {
  slots.of[weights].clear();
  std::replace(slots.at.begin(), slots.at.end(), weights, idle);
  while (!slots.at.empty() && slots.at.back() == idle) slots.at.pop_back();
}

// Puts a weight-gradient pass into every idle slot that can take one.
void fill_with_weights(Slots& slots) {
  drop_weights(slots);
  std::int64_t left = 0;
  const auto bound = std::ssize(slots.at);
  for (std::int64_t slot = 0; slot < bound || left > 0; ++slot) {
    const Place place = slot < bound ? slots.at[index(slot)] : idle;
    if (leaves_weights(place)) ++left;
    if (place != idle || left == 0) continue;
    --left;
    slots.of[weights].push_back(slot);
    if (slot >= bound) slots.at.push_back(idle);
    slots.at[index(slot)] = weights;
  }
}

// Returns the largest number of passes that a rank holds at once, each from its forward to its
// weight-gradient pass. If there are no weight-gradient passes, every idle slot counts as one.
std::int64_t most_held(const Slots& slots) {
  const bool apart = !slots.of[weights].empty();
  std::int64_t held = 0;
  std::int64_t most = 0;
  std::int64_t left = 0;
  for (const Place place : slots.at) {
    if (place <= forward_up) ++held;
    if (leaves_weights(place)) ++left;
    if (place == weights || (place == idle && !apart && left > 0)) {
      --held;
      --left;
    }
    most = std::max(most, held);
  }
  return most;
}

struct Placed {
  std::int64_t slot = 0;
  std::int64_t rank = 0;
  Place place = idle;
  std::int64_t k = 0;
};

using Ranks = std::vector<Slots>;

std::vector<Placed> in_order(const Ranks& ranks) {
  std::vector<Placed> all;
  for (std::int64_t rank = 0; rank < std::ssize(ranks); ++rank) {
    for (const Place place : {forward_down, forward_up, backward_up, backward_down, weights}) {
      const std::vector<std::int64_t>& slots = ranks[index(rank)].of[place];
      for (std::int64_t k = 0; k < std::ssize(slots); ++k) all.push_back({slots[index(k)], rank, place, k});
    }
  }
  std::sort(all.begin(), all.end(), [](const Placed& x, const Placed& y) {
    return std::tie(x.slot, x.rank, x.place, x.k) < std::tie(y.slot, y.rank, y.place, y.k);
  });
  return all;
}

// Returns the first slot after everything that a pass waits for, whatever else its rank runs.
std::int64_t earliest(const Ranks& ranks, const Placed& pass) {
  const auto& [slot, rank, place, k] = pass;
  const Slots& own = ranks[index(rank)];
  std::int64_t last = -1;
  const auto behind = [&](const Slots& of, Place what, std::int64_t which) {
    last = std::max(last, of.of[what][index(which)]);
  };
  if (place == weights) {  // the k-th one waits for the k-th backward pass of any chunk
    std::int64_t before = k;
    for (last = 0; !leaves_weights(own.at[index(last)]) || before-- > 0;) ++last;
  } else {
    const bool comes_down = place == forward_down || place == backward_up;
    const std::int64_t sender = comes_down ? rank - 1 : rank + 1;
    if (sender >= 0 && sender < std::ssize(ranks)) behind(ranks[index(sender)], place, k);
    if (place > forward_down) behind(own, static_cast<Place>(place - 1), k);
  }
  if (k > 0) behind(own, place, k - 1);
  return last + 1;
}

// Moves every pass to the earliest slot that its inputs and the order of its rank allow.
void squeeze(Ranks& ranks) {
  const std::vector<Placed> all = in_order(ranks);
  for (Slots& slots : ranks) slots.at.clear();
  for (const Placed& pass : all) {
    Slots& slots = ranks[index(pass.rank)];
    const std::int64_t end = std::ssize(slots.at);
    const std::int64_t slot = std::max(earliest(ranks, pass), end);
    slots.at.resize(index(slot), idle);
    slots.at.push_back(pass.place);
    slots.of[pass.place][index(pass.k)] = slot;
  }
}

// Moves passes of the warm-up and the cool-down to earlier idle slots. The warm-up lasts until the first rank
// has had a microbatch back; the cool-down starts with the first rank's last forward pass. `with_weights`:
// also moves weight-gradient passes. Without it, the warm-up stays as it is.
void move_ahead(Ranks& ranks, bool with_weights) {
  for (Slots& slots : ranks) {
    if (with_weights) fill_with_weights(slots);
    if (!with_weights) drop_weights(slots);
  }
  std::int64_t limit = 0;
  for (const Slots& slots : ranks) limit = std::max(limit, most_held(slots));
  const auto microbatches = std::ssize(ranks.front().of[forward_down]);
  bool warm = false;
  bool cools_down = false;
  for (const Placed& pass : in_order(ranks)) {
    const auto& [slot, rank, place, k] = pass;
    if (rank == 0 && place == backward_down) warm = true;
    if (warm && rank == 0 && place == forward_down && k == microbatches - 1) {
      cools_down = true;
      continue;
    }
    if (!cools_down && (warm || !with_weights)) continue;
    Slots& slots = ranks[index(rank)];
    const bool may_hold_more = place <= forward_up || !with_weights;
    for (std::int64_t to = earliest(ranks, pass); to < slot; ++to) {
      if (slots.at[index(to)] != idle) continue;
      move(slots, place, k, to);
      if (!may_hold_more || most_held(slots) <= limit) break;
      move(slots, place, k, slot);
    }
  }
  if (!with_weights) std::for_each(ranks.begin(), ranks.end(), fill_with_weights);
  squeeze(ranks);
}

// Returns the moves of a rank in the order of their slots. Among weight-gradient passes that could run, the
// chunk whose backward pass comes first has priority.
std::vector<RoundMove> moves_of(const Slots& slots) {
  std::vector<RoundMove> moves;
  std::array<std::int64_t, 2> left{};
  for (const Place place : slots.at) {
    switch (place) {
      case forward_down: moves.push_back({.pass = Pass::forward, .chunk = 0}); break;
      case forward_up: moves.push_back({.pass = Pass::forward, .chunk = 1}); break;
      case backward_up: moves.push_back({.pass = Pass::backward, .chunk = 1}); break;
      case backward_down: moves.push_back({.pass = Pass::backward, .chunk = 0}); break;
      case weights: {
        const std::int64_t chunk = left[1] > 0 ? 1 : 0;
        EXPECTS(left[index(chunk)] > 0);
        --left[index(chunk)];
        moves.push_back({.pass = Pass::backward_weight, .chunk = chunk});
        break;
      }
      case idle: break;
    }
    if (leaves_weights(place)) ++left[place == backward_up ? 1 : 0];
  }
  return moves;
}

}  // namespace

std::vector<std::vector<RoundMove>> building_block_moves(ScheduleKind kind, std::int64_t ranks,
                                                         std::int64_t microbatches) {
  EXPECTS(ranks > 1 && ranks <= most_block_ranks && microbatches > 0);
  Ranks all(index(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Slots& slots = all[index(rank)];
    const std::array<std::int64_t, 4> first = building_block(kind, ranks, rank);
    for (const Place place : {forward_down, forward_up, backward_up, backward_down}) {
      slots.of[place].resize(index(microbatches));
      for (std::int64_t k = 0; k < microbatches; ++k) put(slots, place, k, first[place] + period * k);
    }
  }
  move_ahead(all, true);
  move_ahead(all, false);
  std::for_each(all.begin(), all.end(), fill_with_weights);
  std::vector<std::vector<RoundMove>> moves;
  for (const Slots& slots : all) moves.push_back(moves_of(slots));
  return moves;
}

BuildingBlocks::BuildingBlocks(ScheduleKind kind, std::int64_t ranks, std::int64_t microbatches)
    : without_period_(std::min(microbatches, all_alike_from(ranks) - 1)) {
  std::vector<std::vector<RoundMove>> few = building_block_moves(kind, ranks, without_period_);
  ranks_.reserve(few.size());
  if (microbatches == without_period_) {
    for (std::vector<RoundMove>& moves : few) ranks_.push_back({.head = std::move(moves)});
    return;
  }
  const std::vector<std::vector<RoundMove>> more = building_block_moves(kind, ranks, without_period_ + 1);
  for (std::size_t rank = 0; rank < few.size(); ++rank) {
    const std::vector<RoundMove>& base = few[rank];
    const std::vector<RoundMove>& longer = more[rank];
    const auto at = std::mismatch(base.begin(), base.end(), longer.begin()).second;
    const auto end = at + period;
    EXPECTS(std::equal(end, longer.end(), base.begin() + (at - longer.begin()), base.end()));
    ranks_.push_back({.head = {longer.begin(), at}, .period = {at, end}, .tail = {end, longer.end()}});
  }
}

std::vector<Round> BuildingBlocks::rounds(std::int64_t rank, std::int64_t microbatches) const {
  EXPECTS(rank >= 0 && rank < std::ssize(ranks_));
  const OfRank& of = ranks_[index(rank)];
  const std::int64_t repetitions = microbatches - without_period_;
  EXPECTS(of.period.empty() ? repetitions == 0 : repetitions > 0);
  if (repetitions == 0) return {{1, of.head}};
  return {{1, of.head}, {repetitions, of.period}, {1, of.tail}};
}

}  // namespace headroom
