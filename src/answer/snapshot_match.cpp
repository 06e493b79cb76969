#include "answer/snapshot_match.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/plan/allocator_trace.hpp"

namespace headroom {
namespace {

// A planned block's place is its part, and the op in parentheses if it is of one.
bool has_part(const BlockGroup& group, BlockPart part) {
  const std::string_view name = name_of(part);
  if (!group.place.starts_with(name)) return false;
  return group.place.size() == name.size() || group.place.substr(name.size()).starts_with(" (");
}

// Lives are compared only as far as both are known. Short and long ones blur: a last layer's activations live
// shortly.
bool may_be(const BlockGroup& measured, const BlockGroup& predicted) {
  if (measured.life == BlockLife::unknown || predicted.life == BlockLife::unknown) return true;
  return (measured.life == BlockLife::state) == (predicted.life == BlockLife::state);
}

class SnapshotMatching {
 public:
  SnapshotMatching(const SnapshotUse& use, const SnapshotUse& predicted) : use_(use), predicted_(predicted) {
    for (const BlockGroup& group : use.groups) left_.push_back(group.count);
    for (const BlockGroup& group : predicted.groups) open_.push_back(group.count);
  }

  // Matches groups of equal size for which agree(measured, predicted).
  template <class Agree>
  void match_equal(const Agree& agree) {
    for (std::size_t i = 0; i < left_.size(); ++i) {
      for (std::size_t k = 0; k < open_.size() && left_[i] > 0; ++k) {
        const BlockGroup& measured = use_.groups[i];
        const BlockGroup& predicted = predicted_.groups[k];
        if (open_[k] == 0 || measured.each != predicted.each || !agree(measured, predicted)) continue;
        const std::int64_t count = std::min(left_[i], open_[k]);
        add(i, predicted.place, count);
        open_[k] -= count;
      }
    }
  }

  // Matches what the prediction has as one block of an op with blocks of so many bytes of each parameter. A
  // predicted block counts as matched once its first piece is.
  void match_pieces(BlockPart part, double whole, double piece, const std::string& name, bool first) {
    if (piece <= 0 || piece >= whole) return;
    for (std::size_t k = 0; k < open_.size(); ++k) {
      const BlockGroup& predicted = predicted_.groups[k];
      if (!has_part(predicted, part)) continue;
      std::int64_t wanted = first ? open_[k] : predicted.count;
      const double bytes = real(predicted.each) * piece / whole;
      for (std::size_t i = 0; i < left_.size() && wanted > 0; ++i) {
        // Predicted blocks are rounded up to 512 bytes.
        if (left_[i] == 0 || use_.groups[i].life == BlockLife::activation ||
            std::abs(real(use_.groups[i].each) - bytes) > 512)
          continue;
        const std::int64_t count = std::min(left_[i], wanted);
        add(i, name + predicted.place.substr(name_of(part).size()), count);
        wanted -= count;
        if (first) open_[k] -= count;
      }
    }
  }

  // Matches one block that holds all of a part, up to the padding of the part's buffers. Returns whether
  // there is one.
  bool match_whole(Bytes bytes, const std::string& name) {
    // Megatron-LM pads its buffers for each bucket: assumed to be at most this part of them.
    constexpr double padding = 1e-3;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (left_[i] == 0 || bytes <= Bytes(0) || use_.groups[i].life == BlockLife::activation) continue;
      if (std::abs(real(use_.groups[i].each) / bytes.count() - 1) > padding) continue;
      add(i, name, 1);
      return true;
    }
    return false;
  }
  // Counts what is left of a part as explained.
  void close(BlockPart part) {
    for (std::size_t k = 0; k < open_.size(); ++k) {
      if (has_part(predicted_.groups[k], part)) open_[k] = 0;
    }
  }
  [[nodiscard]] bool is_open(BlockPart part) const {
    for (std::size_t k = 0; k < open_.size(); ++k) {
      if (open_[k] > 0 && has_part(predicted_.groups[k], part)) return true;
    }
    return false;
  }

  void finish(SnapshotMatch& match) && {
    std::stable_sort(blocks_.begin(), blocks_.end(),
                     [](const MatchedBlocks& x, const MatchedBlocks& y) { return x.group < y.group; });
    match.blocks = std::move(blocks_);
    for (const MatchedBlocks& blocks : match.blocks)
      match.matched += real(blocks.count) * Bytes(real(use_.groups[blocks.group].each));
    for (std::size_t k = 0; k < open_.size(); ++k) {
      if (open_[k] == 0) continue;
      BlockGroup& group = match.missing.emplace_back(predicted_.groups[k]);
      group.count = open_[k];
    }
  }

 private:
  void add(std::size_t group, const std::string& name, std::int64_t count) {
    blocks_.push_back({.group = group, .name = name, .count = count});
    left_[group] -= count;
  }

  const SnapshotUse& use_;
  const SnapshotUse& predicted_;
  std::vector<std::int64_t> left_;  // blocks of each measured group without a match
  std::vector<std::int64_t> open_;  // of each predicted one
  std::vector<MatchedBlocks> blocks_;
};

void match_optimizer(SnapshotMatching& matching, const Optimizer& optimizer, Bytes state) {
  const double main = size_of(optimizer.main_params);
  const double moments = moments_size(optimizer);
  const double whole = main + moments;
  if (whole <= 0) return;
  const std::array<std::pair<double, const char*>, 3> pieces{
      {{main, "main params"}, {moments / 2, "exp_avg"}, {moments / 2, "exp_avg_sq"}}};
  bool first = true;
  for (const auto& [bytes, name] : pieces) {
    matching.match_pieces(BlockPart::optimizer, whole, bytes, name, first);
    first = first && bytes <= 0;
  }
  if (!matching.is_open(BlockPart::optimizer)) return;
  bool any = matching.match_whole(state, "optimizer state");
  for (const auto& [bytes, name] : pieces) any = matching.match_whole(bytes / whole * state, name) || any;
  if (any) matching.close(BlockPart::optimizer);
}

}  // namespace

SnapshotMatch matched(const SnapshotUse& use, const SnapshotUse& predicted, const Plan& plan,
                      std::size_t rank) {
  SnapshotMatch match{.rank = rank,
                      .predicted_peak = predicted.peak,
                      .predicted_reserved = predicted.reserved,
                      .blocks = {},
                      .missing = {}};
  SnapshotMatching matching(use, predicted);
  matching.match_equal([](const BlockGroup& measured, const BlockGroup& of) {
    return measured.place == of.place && may_be(measured, of);
  });
  matching.match_equal(may_be);
  const ModelState& state = plan.ranks[rank].state;
  match_optimizer(matching, plan.request.strategy.optimizer, state.optimizer);
  for (const auto& [part, bytes] :
       {std::pair{BlockPart::weights, state.weights}, {BlockPart::gradients, state.gradients}}) {
    if (matching.is_open(part) && matching.match_whole(bytes, std::string(name_of(part))))
      matching.close(part);
  }
  std::move(matching).finish(match);
  return match;
}

}  // namespace headroom
