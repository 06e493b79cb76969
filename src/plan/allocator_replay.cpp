#include "plan/allocator_replay.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "plan/allocation_log.hpp"
#include "plan/gathered_units.hpp"
#include "plan/replayed_state.hpp"

namespace headroom {
namespace {

using Block = CachingAllocator::Block;

// Replayed iterations. The first has no optimizer state until its step; from the second on, all are alike.
constexpr int iterations = 3;

// Limit of members times passes, which a replay handles in a second or two.
constexpr double most_passes = 100'000;

// The replay of one rank.
class RankReplay {
 public:
  RankReplay(const ReplayedRanks& of, std::int64_t rank, CachingAllocator allocator, Repeats repeats,
             AllocationLog* log)
      : of_(of),
        copies_(of.plan.request.software.sharding.copies_units),
        memory_(of.plan.ranks[index(rank)]),
        shape_(of.order.shape()),
        order_(of.order.of(rank)),
        repeats_(repeats),
        allocator_(std::move(allocator), log),
        chunks_(members_of(of, rank)) {
    for (const std::vector<StageMember>& members : chunks_) {
      const bool none = members.empty();
      tensors_.push_back(none ? 0 : members.back().first + of_.events_of(members.back()).tensors);
    }
    alive_.resize(index(shape_.microbatches) * chunks_.size());
  }

  // Counts the passes of all iterations, each through one member.
  [[nodiscard]] double passes() const {
    double members = 0;
    for (const std::vector<StageMember>& chunk : chunks_) members += real(std::ssize(chunk));
    return iterations * 2 * real(shape_.microbatches) * members;
  }

  ReplayedAllocator run() && {
    resident_.allocate();
    State before;
    for (int iteration = 0; iteration < iterations && !out_of_memory(); ++iteration) {
      AllocationLog* const log = allocator_.log();
      if (log != nullptr && iteration == iterations - 1) log->start();
      if (of_.plan.request.software.memory.frees_gradients) free_shards();
      for (const Block& gradient : grown_) allocator_.free(gradient);
      grown_.clear();
      if (repeats_ == Repeats::skipped && iteration > 0 && log == nullptr) {
        if (iteration > 1 && is_in(before, Progress{})) break;
        before = state(Progress{});
      }
      run_iteration();
      if (log != nullptr) log->end_passes();
      resident_.step(iteration == 0);
    }
    return {.allocator = std::move(allocator_).take(), .passes = passes_};
  }

 private:
  // All that the tensors of later passes depend on. States with equal addresses and layouts go on alike.
  struct State {
    Progress done;
    std::vector<std::int64_t> addresses;  // of tensors that later passes free, from the oldest microbatch on
    CachingAllocator::Layout layout;
  };

  void run_iteration() {
    states_.clear();
    bool looks = repeats_ == Repeats::skipped && order_.rounds.empty();
    std::optional<Step> beside;  // forward pass that waits for the overlapped backward pass
    for (Progress done; !finished(shape_, order_, done) && !out_of_memory();) {
      const Step step = next_step(shape_, order_, done);
      count(shape_, order_, done, step);
      ++passes_;
      if (shape_.in_pairs && step.beside && step.pass == Pass::forward) {
        beside = step;
      } else if (beside) {
        go_beside(*std::exchange(beside, std::nullopt), step);
      } else if (step.pass == Pass::forward) {
        go_forward(step);
      } else {
        go_backward(step);
      }
      if (looks && step.pass == Pass::backward && ends_period(done)) looks = !skip_periods(done);
    }
  }

  [[nodiscard]] bool out_of_memory() const { return allocator_.allocator().out_of_memory(); }
  [[nodiscard]] std::int64_t address(Block block) const { return allocator_.allocator().address(block); }
  // Tells the log whose tensors follow.
  void begin(const Step& step) {
    if (allocator_.log() != nullptr) allocator_.log()->begin(step);
  }

  void free_shards() {
    for (auto& [member, block] : shards_) allocator_.free(block);
    shards_.clear();
  }

  [[nodiscard]] std::int64_t passes_of_period() const {
    return shape_.chunks == 1 ? 1 : group_size(shape_) * shape_.chunks;
  }

  // Returns whether a period of the steady state has just ended.
  [[nodiscard]] bool ends_period(const Progress& done) const {
    return done.forwards == done.backwards + order_.ahead && done.backwards % passes_of_period() == 0 &&
           done.forwards < shape_.microbatches * shape_.chunks;
  }

  // Skips the periods that are like those since an equal state. Returns whether there was one.
  bool skip_periods(Progress& done) {
    const auto known =
        std::find_if(states_.begin(), states_.end(), [&](const State& state) { return is_in(state, done); });
    if (known == states_.end()) {
      // States of 1F1B recur once all microbatches in flight are others.
      const bool due = shape_.chunks > 1 || states_.empty() ||
                       done.backwards - states_.back().done.backwards > done.forwards - done.backwards;
      if (due) states_.push_back(state(done));
      return false;
    }
    const std::int64_t of_whole_groups =
        shape_.chunks == 1 ? shape_.microbatches
                           : shape_.microbatches / group_size(shape_) * group_size(shape_) * shape_.chunks;
    const std::int64_t passes = done.backwards - known->done.backwards;
    const std::int64_t skipped =
        std::max<std::int64_t>(0, (of_whole_groups - done.forwards) / passes) * passes;
    const std::size_t moved = index(skipped / shape_.chunks) * chunks_.size();
    done.forwards += skipped;
    done.backwards += skipped;
    for (std::size_t i = alive_.size() - moved; moved > 0 && i-- > 0;) {
      if (!alive_[i].empty()) alive_[i + moved] = std::exchange(alive_[i], {});
    }
    return true;
  }

  [[nodiscard]] State state(const Progress& done) const {
    State state{.done = done, .addresses = {}, .layout = allocator_.allocator().layout()};
    visit_addresses(done, [&](std::int64_t number) {
      state.addresses.push_back(number);
      return true;
    });
    return state;
  }

  [[nodiscard]] bool is_in(const State& state, const Progress& done) const {
    auto next = state.addresses.begin();
    const auto alike = [&](std::int64_t number) {
      return next != state.addresses.end() && *next++ == number;
    };
    return visit_addresses(done, alike) && next == state.addresses.end() &&
           allocator_.allocator().has_layout(state.layout);
  }

  // Calls visit(number) for the addresses of a state until it returns false. Returns whether it never did.
  template <class Visit>
  bool visit_addresses(const Progress& done, const Visit& visit) const {
    const std::size_t first = index(done.backwards / shape_.chunks) * chunks_.size();
    for (std::size_t i = first; i < alive_.size(); ++i) {
      if (alive_[i].empty()) continue;
      if (!visit(std::int64_t(i - first))) return false;
      for (const StageMember& member : chunks_[i % chunks_.size()]) {
        for (const std::size_t tensor : of_.events_of(member).left) {
          if (!visit(address(alive_[i][member.first + tensor]))) return false;
        }
      }
    }
    const auto visit_block = [&](const std::optional<Block>& block) {
      return visit(block ? address(*block) : -1);
    };
    const auto visit_unit = [&](const GatheredUnit& unit) {
      return visit_block(unit.buffer) && visit_block(unit.weights);
    };
    if (!visit_unit(root_) || !visit_unit(ahead_)) return false;
    if (!std::all_of(kept_.begin(), kept_.end(), visit_unit)) return false;
    return std::all_of(shards_.begin(), shards_.end(),
                       [&](const auto& shard) { return visit(shard.first) && visit(address(shard.second)); });
  }

  // `blocks`: those of all tensors of the virtual stage.
  void play(const StageMember& member, const std::vector<BlockEvent>& events, std::vector<Block>& blocks) {
    Block* const own = blocks.data() + member.first;
    for (const BlockEvent& event : events) {
      if (event.bytes < 0) {
        allocator_.free(own[event.tensor]);
      } else {
        own[event.tensor] =
            allocator_.allocate_block(event.bytes, compute, [&] { return traced(member, event.tensor); });
      }
    }
  }
  void play_forward(const StageMember& member, std::vector<Block>& blocks) {
    play(member, of_.events_of(member).forward, blocks);
  }
  void play_backward(const StageMember& member, std::vector<Block>& blocks) {
    play(member, of_.events_of(member).backward, blocks);
  }

  [[nodiscard]] TracedTensor traced(const StageMember& member, std::size_t tensor) const {
    TracedTensor traced = of_member(member, BlockPart::pass);
    if (traced.kind < 0) traced.part = BlockPart::output;
    traced.source = of_.events_of(member).sources[tensor];
    return traced;
  }
  [[nodiscard]] TracedTensor of_member(const StageMember& member, BlockPart part) const {
    const bool is_kind = member.kind < of_.layers.kinds.size();
    return {
        .part = part, .kind = is_kind ? std::int64_t(member.kind) : -1, .layer = member.layer, .source = {}};
  }
  [[nodiscard]] TracedTensor unit_of(const StageMember& member) const {
    return of_member(member, BlockPart::gathered_weights);
  }

  // Gathers a unit, if there is a member of it.
  void gather_ahead(const StageMember* member) {
    EXPECTS(!is_there(ahead_));
    if (member != nullptr) ahead_ = gathering_.start(gathered_bytes_of(*member), unit_of(*member));
  }

  // Frees gathered weights that a forward pass left and no backward pass used.
  void release_gathered() {
    for (GatheredUnit& unit : kept_) gathering_.release(unit);
    gathering_.release(root_);
    gathering_.release(ahead_);
  }

  [[nodiscard]] Bytes gathered_bytes_of(const StageMember& member) const {
    return of_.gathers ? of_.units.kinds[member.kind].gathered : Bytes(0);
  }
  // Returns whether a member is a unit to gather by itself: members in the root unit or without weights are
  // not.
  [[nodiscard]] bool is_unit(const StageMember& member) const {
    return !member.rooted && gathered_bytes_of(member) > Bytes(0);
  }
  // Returns the next member, in direction `way`, that is a unit of its own; null if there is none.
  [[nodiscard]] const StageMember* next_unit(const std::vector<StageMember>& members, std::size_t after,
                                             int way) const {
    if (!of_.gathers) return nullptr;
    for (std::size_t i = after + static_cast<std::size_t>(way); i < members.size();
         i += static_cast<std::size_t>(way)) {
      if (is_unit(members[i])) return &members[i];
    }
    return nullptr;
  }

  // Blocks of the tensors of a microbatch that a virtual stage holds.
  [[nodiscard]] std::vector<Block>& alive(const Step& step) {
    return alive_[index(step.microbatch) * chunks_.size() + index(step.chunk)];
  }
  std::vector<Block>& begin_pass(const Step& step) {
    begin(step);
    std::vector<Block>& blocks = alive(step);
    if (!spare_.empty()) {
      blocks = std::move(spare_.back());
      spare_.pop_back();
    }
    blocks.resize(std::max<std::size_t>(tensors_[index(step.chunk)], 1));
    return blocks;
  }
  void end_pass(const Step& step) { spare_.push_back(std::exchange(alive(step), {})); }

  void go_forward(const Step& step) {
    const std::vector<StageMember>& members = chunks_[index(step.chunk)];
    std::vector<Block>& blocks = begin_pass(step);
    if (of_.gathers) {
      release_gathered();
      Bytes root;
      for (const StageMember& member : members) root += member.rooted ? gathered_bytes_of(member) : Bytes(0);
      const TracedTensor tensor{.part = BlockPart::gathered_weights, .source = {}};
      if (copies_) {
        root_ = gathering_.start_and_copy(root, tensor);
      } else {
        root_ = gathering_.start(root, tensor);
        gather_ahead(next_unit(members, std::size_t(0) - 1, 1));
      }
      kept_.assign(members.size(), {});
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool own = is_unit(members[i]);
      const StageMember* const next = next_unit(members, i, 1);
      if (own && copies_)
        kept_[i] = gathering_.start_and_copy(gathered_bytes_of(members[i]), unit_of(members[i]));
      if (own && !copies_) {
        kept_[i] = std::exchange(ahead_, {});
        gather_ahead(next);
      }
      play_forward(members[i], blocks);
      // The last unit is the first of the backward pass.
      if (own && !of_.units.keeps_gathered && next != nullptr) gathering_.release(kept_[i]);
    }
    gathering_.free_copied();
  }

  void go_backward(const Step& step) {
    const std::vector<StageMember>& members = chunks_[index(step.chunk)];
    std::vector<Block>& blocks = alive(step);
    begin(step);
    std::optional<Block> reducing;
    for (std::size_t i = members.size(); i-- > 0;) {
      const bool own = is_unit(members[i]);
      if (own && !is_there(kept_[i])) {
        kept_[i] = std::exchange(ahead_, {});
        if (copies_) gathering_.copy(kept_[i]);
      }
      if (own && !of_.units.keeps_gathered && i > 0) gather_ahead(next_unit(members, i, -1));
      go_backward_through(members, blocks, i, reducing);
      if (own) gathering_.release(kept_[i]);
      if (i + 1 == members.size() && of_.units.tied > Bytes(0))
        tied_ = allocator_.allocate(of_.units.tied, compute,
                                    [&] { return of_member(members[i], BlockPart::tied_gradient); });
    }
    if (tied_) allocator_.free(*std::exchange(tied_, std::nullopt));
    if (of_.gathers) gathering_.release(root_);
    finish_backward(members, blocks, reducing);
    end_pass(step);
  }

  void go_backward_through(const std::vector<StageMember>& members, std::vector<Block>& blocks, std::size_t i,
                           std::optional<Block>& reducing) {
    play_backward(members[i], blocks);
    if (of_.reduces && !members[i].rooted) reducing = reduce_unit(members, blocks, i, i, reducing);
    if (of_.reduces || !of_.grows) return;
    for (const std::size_t tensor : of_.events_of(members[i]).weight_gradients)
      grown_.push_back(blocks[members[i].first + tensor]);
  }

  void finish_backward(const std::vector<StageMember>& members, std::vector<Block>& blocks,
                       std::optional<Block>& reducing) {
    if (of_.reduces && !members.empty() && (members.front().rooted || members.back().rooted))
      reducing = reduce_unit(members, blocks, 0, members.size() - 1, reducing);
    if (reducing) allocator_.free(*reducing);
  }

  // Runs a forward pass beside a backward pass that steps back one layer for each forward layer
  // (memory/step.hpp).
  void go_beside(const Step& forward, const Step& backward) {
    const std::vector<StageMember>& coming = chunks_[index(forward.chunk)];
    const std::vector<StageMember>& going = chunks_[index(backward.chunk)];
    std::vector<Block>& made = begin_pass(forward);
    std::vector<Block>& blocks = alive(backward);
    std::optional<Block> reducing;
    std::size_t next = 0;               // member that the forward pass comes to
    std::size_t before = going.size();  // members still ahead of the backward pass
    const auto position_of = [&](const StageMember& member) {
      return of_.layers.kinds[member.kind].position;
    };
    const auto comes = [&](KindPosition position) {
      return next < coming.size() && position_of(coming[next]) == position;
    };
    const auto goes = [&](KindPosition position) {
      return before > 0 && position_of(going[before - 1]) == position;
    };
    const auto go_on = [&] {
      begin(forward);
      play_forward(coming[next++], made);
    };
    const auto go_back = [&] {
      begin(backward);
      go_backward_through(going, blocks, --before, reducing);
    };
    while (comes(KindPosition::first)) go_on();
    while (goes(KindPosition::last)) go_back();
    while (comes(KindPosition::layer) || goes(KindPosition::layer)) {
      if (comes(KindPosition::layer)) go_on();
      if (goes(KindPosition::layer)) go_back();
    }
    while (comes(KindPosition::last)) go_on();
    while (goes(KindPosition::first)) go_back();
    finish_backward(going, blocks, reducing);
    end_pass(backward);
  }

  // Reduces the gradients of one member's unit, or of all members in the root. The reduction waits for the
  // previous one, and frees what that one read [PyTorch, _fully_shard/_fsdp_param_group.py, post_backward].
  std::optional<Block> reduce_unit(const std::vector<StageMember>& members, std::vector<Block>& blocks,
                                   std::size_t first, std::size_t last, std::optional<Block> before) {
    if (before) allocator_.free(*before);
    Bytes input;
    double parameters = 0;
    const bool root = members[first].rooted || members[last].rooted;
    for (std::size_t i = first; i <= last; ++i) {
      if (members[i].rooted != root) continue;
      input += of_.units.kinds[members[i].kind].reduction;
      parameters += of_.parameters_of(members[i]);
    }
    const auto reduced = [&](BlockPart part) {
      return root ? TracedTensor{.part = part, .source = {}} : of_member(members[first], part);
    };
    const auto allocate = [&](Bytes bytes, int stream, BlockPart part) {
      return allocator_.allocate(bytes, stream, [&] { return reduced(part); });
    };
    std::optional<Block> own;
    if (input > Bytes(0)) own = allocate(input, compute, BlockPart::unit_gradients);
    for (std::size_t i = first; i <= last; ++i) {
      if (members[i].rooted != root) continue;
      for (const std::size_t tensor : of_.events_of(members[i]).weight_gradients)
        allocator_.free(blocks[members[i].first + tensor]);
    }
    Bytes stepped;
    for (std::size_t i = first; i <= last; ++i)
      stepped += members[i].rooted == root ? of_.units.kinds[members[i].kind].stepped : Bytes(0);
    if (stepped > Bytes(0)) allocator_.free(allocate(stepped, reduce, BlockPart::unit_gradients));
    const Bytes shard = parameters / resident_.parameters() * memory_.state.gradients;
    if (shard > Bytes(0)) {
      const Block made = allocate(shard, reduce, BlockPart::gradients);
      const auto [kept, is_first] = shards_.try_emplace(root ? -1 : std::int64_t(first), made);
      if (!is_first) allocator_.free(made);  // added to the previous gradient
    }
    return own;
  }

  const ReplayedRanks& of_;
  const bool copies_;
  const RankMemory& memory_;
  const ScheduleShape& shape_;
  RankOrder order_;
  Repeats repeats_;
  std::int64_t passes_ = 0;  // run so far
  LoggedAllocator allocator_;
  std::vector<std::vector<StageMember>> chunks_;
  ReplayedState resident_{of_, memory_, chunks_, allocator_};
  std::vector<std::size_t> tensors_;       // of each chunk
  std::vector<std::vector<Block>> alive_;  // by microbatch and chunk; empty: not in flight
  std::vector<std::vector<Block>> spare_;
  std::vector<State> states_;  // at ends of periods of this iteration
  GatheredUnits gathering_{allocator_};
  GatheredUnit root_;
  GatheredUnit ahead_;
  std::vector<GatheredUnit> kept_;        // by member
  std::map<std::int64_t, Block> shards_;  // of gradients, by unit
  std::optional<Block> tied_;             // the gradient of tied weights (ModelUnits::tied)
  std::vector<Block> grown_;              // gradients that the backward pass made, until the step
};

}  // namespace

std::optional<ReplayedAllocator> replay(const ReplayedRanks& ranks, std::int64_t rank,
                                        CachingAllocator allocator, Repeats repeats, AllocationLog* log) {
  RankReplay rank_replay(ranks, rank, std::move(allocator), repeats, log);
  if (rank_replay.passes() > most_passes) return std::nullopt;
  return std::move(rank_replay).run();
}

}  // namespace headroom
