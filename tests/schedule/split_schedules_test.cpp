// The schedules whose chunks take turns, whose weights have passes of their own, or whose passes run beside each other, held to a
// simulation by brute force.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "schedule/any_split_schedule.hpp"

namespace headroom {
namespace {

using enum ScheduleKind;

// Where a rank's chunk lies: the copy of the model, and the stage of it. In the words of the sources.
std::pair<std::int64_t, std::int64_t> lies(const ScheduleShape& shape, std::int64_t rank,
                                           std::int64_t chunk) {
  const std::int64_t p = shape.ranks;
  switch (shape.kind) {
    case zero_bubble_v:
    case v_half:
    case v_min:
    case dualpipe_v: return {0, chunk == 0 ? rank : 2 * p - 1 - rank};
    case dualpipe: {
      const bool first_half = rank < p / 2;  // whose chunk 0 is of the direction that starts there
      const bool forward = (chunk == 0) == first_half;
      return {forward ? 0 : 1, forward ? rank : p - 1 - rank};
    }
    default: return {0, chunk * p + rank};
  }
}

using PassKey = std::tuple<Pass, std::int64_t, std::int64_t, std::int64_t>;  // pass, copy, stage, microbatch

struct Block {
  std::vector<PassKey> keys;    // one pass, or two beside each other
  std::vector<PassKey> inputs;  // that other passes send
  Seconds work;
  Seconds transfer;
  Seconds start;
  [[nodiscard]] Seconds sent() const { return start + work + transfer; }
};

// What two passes take beside each other: each one's collectives run beside the other's computation.
Seconds both(const PassTimes& ahead, const PassTimes& back, double loss) {
  const Seconds forward = ahead.forward - ahead.forward_exchanges;
  const Seconds backward = back.recompute + back.backward - back.backward_exchanges + back.backward_weight;
  return forward + backward + std::max(ahead.forward_exchanges - backward, loss * ahead.forward_exchanges) +
         std::max(back.backward_exchanges - forward, loss * back.backward_exchanges);
}

class BruteForce {
 public:
  BruteForce(const ScheduleShape& shape, const ScheduleTimes& times) : shape_(shape), times_(times) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      for (const auto& [copy, stage] : places_of(rank)) holders_[{copy, stage}] = rank;
    }
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) ranks_.push_back(nodes_of(rank));
    relax();
  }

  [[nodiscard]] const std::vector<std::vector<Block>>& ranks() const { return ranks_; }

 private:
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> places_of(std::int64_t rank) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) places.push_back(lies(shape_, rank, chunk));
    return places;
  }

  void add(Block& node, std::int64_t rank, const Step& step) {
    const auto [copy, stage] = lies(shape_, rank, step.chunk);
    const std::int64_t last = stages_of(shape_) - 1;
    const PassTimes& pass = times_.stages[static_cast<std::size_t>(stage)];
    node.keys.emplace_back(step.pass, copy, stage, step.microbatch);
    std::int64_t to = stage;
    switch (step.pass) {
      case Pass::forward:
        node.work += pass.forward;
        if (stage > 0) node.inputs.emplace_back(Pass::forward, copy, stage - 1, step.microbatch);
        to = std::min(stage + 1, last);
        break;
      case Pass::backward:
        node.work += pass.recompute + pass.backward;
        if (step.whole) node.work += pass.backward_weight;
        if (stage < last) node.inputs.emplace_back(Pass::backward, copy, stage + 1, step.microbatch);
        node.inputs.emplace_back(Pass::forward, copy, stage, step.microbatch);
        to = std::max(stage - 1, std::int64_t{0});
        break;
      case Pass::backward_weight:
        node.work += pass.backward_weight;
        node.inputs.emplace_back(Pass::backward, copy, stage, step.microbatch);
        break;
    }
    const std::int64_t receiver = holders_.at({copy, to});
    if (receiver == rank || times_.links.empty()) return;
    // Round the ranks a link leads from a rank to the next one, also from the last to the first.
    const bool round = goes_round(shape_.kind);
    const std::int64_t from = std::min(stage, to);
    const std::int64_t link = round ? from % shape_.ranks : std::min(rank, receiver);
    node.transfer = std::max(node.transfer, times_.links[static_cast<std::size_t>(link)]);
  }

  std::vector<Block> nodes_of(std::int64_t rank) {
    std::vector<Block> nodes;
    const std::vector<Step> steps = steps_of_rank(shape_, rank);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Block node;
      add(node, rank, steps[i]);
      if (steps[i].beside) {
        RC_ASSERT(steps[i].pass == Pass::forward);
        const Step& next = steps.at(++i);
        RC_ASSERT(next.beside);
        RC_ASSERT(next.pass == Pass::backward);
        RC_ASSERT((shape_.in_pairs || next.chunk != steps[i - 1].chunk));
        add(node, rank, next);
        const auto stage = [&](const Step& step) {
          return times_.stages[static_cast<std::size_t>(lies(shape_, rank, step.chunk).second)];
        };
        node.work = both(stage(steps[i - 1]), stage(next), times_.overlap_loss);
      }
      nodes.push_back(node);
    }
    return nodes;
  }

  // Every step starts at 0, and is moved behind its rank's previous step and behind those that make its inputs, until nothing moves.
  // A schedule that deadlocks would move for ever.
  void relax() {
    std::map<PassKey, Block*> by_key;
    std::size_t count = 0;
    for (auto& nodes : ranks_) {
      for (Block& node : nodes) {
        for (const PassKey& key : node.keys) RC_ASSERT(by_key.emplace(key, &node).second);  // each pass once
        ++count;
      }
    }
    std::size_t rounds = 0;
    for (bool moved = true; moved;) {
      moved = false;
      RC_ASSERT(rounds++ <= count);
      for (auto& nodes : ranks_) {
        Seconds free;
        for (Block& node : nodes) {
          Seconds start = free;
          for (const PassKey& input : node.inputs) {
            const Block* const sender = by_key.at(input);
            if (sender != &node) start = std::max(start, sender->sent());
          }
          moved = moved || start != node.start;
          node.start = start;
          free = node.sent();
        }
      }
    }
  }

  const ScheduleShape& shape_;
  const ScheduleTimes& times_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> holders_;
  std::vector<std::vector<Block>> ranks_;
};

}  // namespace

TEST_CASE("split schedules: every event is where a simulation by brute force has it") {
  CHECK(rc::check([] {
    const ScheduleShape shape = tests::any_split_shape();
    const ScheduleTimes times = tests::any_split_times(shape);
    RC_CLASSIFY(overlaps_passes(shape), "with passes beside each other");
    const BruteForce expected(shape, times);
    std::map<PassKey, const Block*> nodes;
    Seconds makespan;
    for (const auto& rank : expected.ranks()) {
      for (const Block& node : rank) {
        for (const PassKey& key : node.keys) nodes[key] = &node;
        makespan = std::max(makespan, node.sent());
      }
    }
    const ReplayedSchedule replay = replay_schedule(shape, times, [&](const ReplayedStep& event) {
      const auto [copy, stage] = lies(shape, event.rank, event.step.chunk);
      const auto found = nodes.find({event.step.pass, copy, stage, event.step.microbatch});
      RC_ASSERT(found != nodes.end());
      RC_ASSERT(tests::about(event.start, found->second->start));
      RC_ASSERT(tests::about(event.end, found->second->start + found->second->work));
      RC_ASSERT(tests::about(event.sent, found->second->sent()));
      nodes.erase(found);
    });
    RC_ASSERT(nodes.empty());
    RC_ASSERT(tests::about(replay.makespan, makespan));
    for (std::size_t rank = 0; rank < replay.ranks.size(); ++rank) {
      const ReplayedRank& sum = replay.ranks[rank];
      RC_ASSERT(sum.idle >= Seconds(-tests::slack));
      RC_ASSERT(tests::about(busy(sum) + sum.sending + sum.idle, replay.makespan));
      const std::vector<Block>& of_rank = expected.ranks()[rank];
      if (has_weight_passes(shape))
        RC_ASSERT(tests::about(sum.span, of_rank.back().sent() - of_rank.front().start));
    }
  }));
}

}  // namespace headroom
