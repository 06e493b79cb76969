#include "headroom/plan/allocator_use.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "gathered_units.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/memory/caching_allocator.hpp"
#include "headroom/memory/pass_events.hpp"
#include "headroom/memory/units.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/schedule/order.hpp"
#include "memory/kept_layers.hpp"

namespace headroom {
namespace {

using Block = CachingAllocator::Block;

// Replayed iterations. The first has no optimizer state until its step; from the second on, all are alike.
constexpr int iterations = 3;

// Layer of a virtual stage, or the embedding or output layer at an end of the model.
struct StageMember {
  std::size_t kind = 0;
  bool recomputed = false;
  bool rooted = false;  // in the root unit
};

// Tensors of one microbatch that a virtual stage holds, by member.
using Alive = std::vector<std::vector<Block>>;

bool follows_order(const Plan& plan) {
  const Strategy& strategy = plan.request.strategy;
  const Recomputation& recompute = strategy.recompute;
  return !has_weight_passes(strategy.schedule) && !recompute.window && strategy.offload == Offload{} &&
         !(shares_checkpoints(recompute) && recompute.layers != 1) && !strategy.keep_pipeline_outputs &&
         !(strategy.overlap_expert_all_to_all && gathers_in_passes(strategy));
}

// Returns whether a plan is small enough to replay. Blocks do not matter far beyond the GPU's memory, and the
// replay would run out of addresses.
bool is_within_reach(const Plan& plan, const RankMemory& memory) {
  constexpr Bytes most(0x1p48);
  return total(memory) < std::min(100.0 * plan.request.system.memory, most);
}

// Returns how many microbatches to replay. In the steady state of 1F1B and interleaved schedules, every group
// of microbatches requests the same tensors in the same order. Memory that suffices for some groups suffices
// for all later groups. GPipe and similar schedules hold all microbatches at once.
std::int64_t replayed_microbatches(const Request& request) {
  const std::int64_t count = microbatches(request.strategy, request.workload);
  const ScheduleKind kind = request.strategy.schedule;
  if (kind != ScheduleKind::one_forward_one_backward && kind != ScheduleKind::interleaved) return count;
  constexpr std::int64_t groups = 6;
  const std::int64_t group = group_size(request.strategy);
  const std::int64_t most = groups * std::max(group, request.strategy.pipeline_parallel) + groups;
  return count <= most ? count : count - (count - most + group - 1) / group * group;
}

// Limit of members times passes, which a replay handles in a second or two.
constexpr double most_passes = 100'000;

class Replay {
 public:
  Replay(const Plan& plan, std::int64_t rank, CachingAllocator allocator)
      : request_(plan.request),
        strategy_(request_.strategy),
        memory_(plan.ranks[index(rank)]),
        layers_(layers_of(request_.model, strategy_, request_.software)),
        sharding_(sharding_of(request_.model, strategy_)),
        letters_(bindings(request_.model, strategy_, request_.workload)),
        shape_(same_liveness(schedule_shape(strategy_, replayed_microbatches(request_)))),
        rank_(rank),
        reduces_(reduces_in_passes(strategy_, request_.workload, request_.software)),
        gathers_(gathers_in_passes(strategy_)),
        allocator_(std::move(allocator)) {
    find_members();
    find_events();
    if (has_units(strategy_, request_.workload, request_.software)) {
      const ModelParameterExprs parameters =
          model_parameter_exprs(layers_, sharding_, strategy_.tensor_parallel);
      units_ = model_units(layers_, evaluate(parameters, letters_), strategy_, request_.workload,
                           request_.software);
    }
  }

  // Counts the passes of all iterations, each through one member.
  [[nodiscard]] double passes() const {
    double members = 0;
    for (const std::vector<StageMember>& chunk : chunks_) members += real(std::ssize(chunk));
    return iterations * 2 * real(shape_.microbatches) * members;
  }

  CachingAllocator run() && {
    allocate_resident();
    for (int iteration = 0; iteration < iterations; ++iteration) {
      for (auto& [member, block] : shards_) allocator_.free(block);
      shards_.clear();
      alive_.clear();
      std::optional<Step> beside;  // forward pass that waits for the overlapped backward pass
      visit_steps(shape_, rank_, [&](const Step& step) {
        if (shape_.in_pairs && step.beside && step.pass == Pass::forward) {
          beside = step;
        } else if (beside) {
          go_beside(*std::exchange(beside, std::nullopt), step);
        } else if (step.pass == Pass::forward) {
          go_forward(step);
        } else {
          go_backward(step);
        }
      });
      if (iteration == 0) allocate_state(memory_.state.optimizer);
    }
    return std::move(allocator_);
  }

 private:
  void find_members() {
    const std::vector<StagePlace> places = stage_places(layers_, strategy_);
    const bool in_root = request_.software.sharding.ends_in_root;
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      const StagePlace& place = places[index(stage_of(shape_, rank_, chunk))];
      std::vector<StageMember>& members = chunks_.emplace_back();
      const auto add_ends = [&](KindPosition position) {
        for (std::size_t i = 0; i < layers_.kinds.size(); ++i) {
          if (layers_.kinds[i].position != position) continue;
          const bool again = is_layer(layers_.kinds[i]) && recomputes_all_layers(strategy_.recompute);
          for (std::int64_t n = 0; n < place.of_kind[i]; ++n) members.push_back({i, again, in_root});
        }
      };
      add_ends(KindPosition::first);
      visit_kept_layers(place, strategy_.recompute, [&](const KeptLayers& of) {
        for (std::int64_t n = 0; n < of.count; ++n) members.push_back({of.kind, of.recomputed});
      });
      add_ends(KindPosition::last);
    }
  }

  void find_events() {
    for (const LayerKind& kind : layers_.kinds) {
      const Bindings letters = bindings_of(kind.sizes, letters_);
      const Sharding sharding = sharding_of(kind.sizes, sharding_, strategy_.tensor_parallel);
      const auto events = [&](const RecomputedOps& recomputed) {
        return pass_events(kind, sharding, recomputed, request_.detail, request_.software, letters, reduces_);
      };
      events_.emplace_back(events({}), events(recomputed_ops_of(kind, strategy_.recompute, sharding)));
      std::vector<double>& parameters = parameters_.emplace_back();
      for (const Op& op : kind.ops.ops()) {
        const double count = headroom::parameters(op, sharding).evaluate(letters);
        if (count > 0) parameters.push_back(count);
      }
    }
    for (const std::vector<StageMember>& members : chunks_) {
      for (const StageMember& member : members) all_parameters_ += parameters_of(member);
    }
  }

  [[nodiscard]] double parameters_of(const StageMember& member) const {
    double sum = 0;
    for (const double count : parameters_[member.kind]) sum += count;
    return sum;
  }

  // Allocates `bytes` for each parameter, for all ops of all members in turn.
  void allocate_state(Bytes bytes) {
    for (const std::vector<StageMember>& members : chunks_) {
      for (const StageMember& member : members) {
        for (const double count : parameters_[member.kind])
          allocator_.allocate(count / all_parameters_ * bytes, compute);
      }
    }
  }

  void allocate_resident() {
    if (all_parameters_ > 0) {
      allocate_state(memory_.state.weights);
      if (!reduces_) allocate_state(memory_.state.gradients);
    }
    for (const Bytes bytes : {memory_.workspaces, memory_.dummy_gradients, units_.buckets}) {
      if (bytes > Bytes(0)) allocator_.allocate(bytes, compute);
    }
  }

  void play(const std::vector<MemoryEvent>& events, std::vector<Block>& blocks) {
    for (const MemoryEvent& event : events) {
      Block& block = blocks[index(event.tensor)];
      if (frees(event)) {
        allocator_.free(block);
      } else {
        block = allocator_.allocate(event.bytes, compute);
      }
    }
  }

  [[nodiscard]] const PassEvents& events_of(const StageMember& member) const {
    const auto& [plain, recomputed] = events_[member.kind];
    return member.recomputed ? recomputed : plain;
  }

  void gather_ahead(Bytes bytes) {
    EXPECTS(!is_there(ahead_));
    ahead_ = gathering_.start(bytes);
  }

  // Frees gathered weights that a forward pass left and no backward pass used.
  void release_gathered() {
    for (GatheredUnit& unit : kept_) gathering_.release(unit);
    gathering_.release(root_);
    gathering_.release(ahead_);
  }

  [[nodiscard]] Bytes gathered_bytes_of(const StageMember& member) const {
    return gathers_ ? units_.kinds[member.kind].gathered : Bytes(0);
  }
  // Returns whether a member is a unit to gather by itself: members in the root unit or without weights are
  // not.
  [[nodiscard]] bool is_unit(const StageMember& member) const {
    return !member.rooted && gathered_bytes_of(member) > Bytes(0);
  }
  // Returns the bytes of the next member, in direction `way`, that is a unit of its own; 0 if there is none.
  [[nodiscard]] Bytes next_unit(const std::vector<StageMember>& members, std::size_t after, int way) const {
    for (std::size_t i = after + static_cast<std::size_t>(way); i < members.size();
         i += static_cast<std::size_t>(way)) {
      if (is_unit(members[i])) return gathered_bytes_of(members[i]);
    }
    return Bytes(0);
  }

  void go_forward(const Step& step) {
    const std::vector<StageMember>& members = chunks_[index(step.chunk)];
    Alive& alive = alive_[{step.microbatch, step.chunk}];
    const bool copies = request_.software.sharding.copies_units;
    if (gathers_) {
      release_gathered();
      Bytes root;
      for (const StageMember& member : members) root += member.rooted ? gathered_bytes_of(member) : Bytes(0);
      if (copies) {
        root_ = gathering_.start_and_copy(root);
      } else {
        root_ = gathering_.start(root);
        gather_ahead(next_unit(members, std::size_t(0) - 1, 1));
      }
      kept_.assign(members.size(), {});
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      const PassEvents& events = events_of(members[i]);
      std::vector<Block>& blocks = alive.emplace_back(index(events.tensors));
      const bool own = is_unit(members[i]);
      const Bytes next = next_unit(members, i, 1);
      if (own && copies) kept_[i] = gathering_.start_and_copy(gathered_bytes_of(members[i]));
      if (own && !copies) {
        kept_[i] = std::exchange(ahead_, {});
        gather_ahead(next);
      }
      play(events.forward, blocks);
      // The last unit is the first of the backward pass.
      if (own && !units_.keeps_gathered && next > Bytes(0)) gathering_.release(kept_[i]);
    }
    gathering_.free_copied();
  }

  void go_backward(const Step& step) {
    const std::vector<StageMember>& members = chunks_[index(step.chunk)];
    auto node = alive_.extract({step.microbatch, step.chunk});
    Alive& alive = node.mapped();
    const bool copies = request_.software.sharding.copies_units;
    std::optional<Block> reducing;
    for (std::size_t i = members.size(); i-- > 0;) {
      const bool own = is_unit(members[i]);
      if (own && !is_there(kept_[i])) {
        kept_[i] = std::exchange(ahead_, {});
        if (copies) gathering_.copy(kept_[i]);
      }
      if (own && !units_.keeps_gathered && i > 0) gather_ahead(next_unit(members, i, -1));
      go_backward_through(members, alive, i, reducing);
      if (own) gathering_.release(kept_[i]);
    }
    if (gathers_) gathering_.release(root_);
    finish_backward(members, alive, reducing);
  }

  void go_backward_through(const std::vector<StageMember>& members, Alive& alive, std::size_t i,
                           std::optional<Block>& reducing) {
    play(events_of(members[i]).backward, alive[i]);
    if (reduces_ && !members[i].rooted) reducing = reduce_unit(members, alive, i, i, reducing);
  }

  void finish_backward(const std::vector<StageMember>& members, Alive& alive,
                       std::optional<Block>& reducing) {
    if (reduces_ && !members.empty() && (members.front().rooted || members.back().rooted))
      reducing = reduce_unit(members, alive, 0, members.size() - 1, reducing);
    if (reducing) allocator_.free(*reducing);
  }

  // Runs a forward pass beside a backward pass that steps back one layer for each forward layer (step.hpp).
  void go_beside(const Step& forward, const Step& backward) {
    const std::vector<StageMember>& coming = chunks_[index(forward.chunk)];
    const std::vector<StageMember>& going = chunks_[index(backward.chunk)];
    auto node = alive_.extract({backward.microbatch, backward.chunk});
    Alive& left = alive_[{forward.microbatch, forward.chunk}];
    std::optional<Block> reducing;
    std::size_t before = going.size();  // members still ahead of the backward pass
    const auto comes = [&](KindPosition position) {
      return left.size() < coming.size() && layers_.kinds[coming[left.size()].kind].position == position;
    };
    const auto goes = [&](KindPosition position) {
      return before > 0 && layers_.kinds[going[before - 1].kind].position == position;
    };
    const auto go_on = [&] {
      const PassEvents& events = events_of(coming[left.size()]);
      play(events.forward, left.emplace_back(index(events.tensors)));
    };
    const auto go_back = [&] { go_backward_through(going, node.mapped(), --before, reducing); };
    while (comes(KindPosition::first)) go_on();
    while (goes(KindPosition::last)) go_back();
    while (comes(KindPosition::layer) || goes(KindPosition::layer)) {
      if (comes(KindPosition::layer)) go_on();
      if (goes(KindPosition::layer)) go_back();
    }
    while (comes(KindPosition::last)) go_on();
    while (goes(KindPosition::first)) go_back();
    finish_backward(going, node.mapped(), reducing);
  }

  // Reduces the gradients of one member's unit, or of all members in the root. The reduction waits for the
  // previous one, and frees what that one read [PyTorch, _fully_shard/_fsdp_param_group.py, post_backward].
  std::optional<Block> reduce_unit(const std::vector<StageMember>& members, Alive& alive, std::size_t first,
                                   std::size_t last, std::optional<Block> before) {
    if (before) allocator_.free(*before);
    Bytes input;
    double parameters = 0;
    const bool root = members[first].rooted || members[last].rooted;
    for (std::size_t i = first; i <= last; ++i) {
      if (members[i].rooted != root) continue;
      input += units_.kinds[members[i].kind].reduction;
      parameters += parameters_of(members[i]);
    }
    std::optional<Block> own;
    if (input > Bytes(0)) own = allocator_.allocate(input, compute);
    for (std::size_t i = first; i <= last; ++i) {
      if (members[i].rooted != root) continue;
      for (const int tensor : events_of(members[i]).weight_gradients)
        allocator_.free(alive[i][index(tensor)]);
    }
    const Bytes shard = parameters / all_parameters_ * memory_.state.gradients;
    if (shard > Bytes(0)) {
      const Block made = allocator_.allocate(shard, reduce);
      const auto [kept, is_first] = shards_.try_emplace(root ? -1 : std::int64_t(first), made);
      if (!is_first) allocator_.free(made);  // added to the previous gradient
    }
    return own;
  }

  const Request& request_;
  const Strategy& strategy_;
  const RankMemory& memory_;
  ModelLayers layers_;
  Sharding sharding_;
  Bindings letters_;
  ScheduleShape shape_;
  std::int64_t rank_ = 0;
  bool reduces_ = false;
  bool gathers_ = false;
  CachingAllocator allocator_;
  ModelUnits units_;
  std::vector<std::vector<StageMember>> chunks_;
  std::vector<std::pair<PassEvents, PassEvents>> events_;  // by kind: plain and recomputed
  std::vector<std::vector<double>> parameters_;            // of each kind, by op
  double all_parameters_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, Alive> alive_;  // by microbatch and chunk
  GatheredUnits gathering_{allocator_};
  GatheredUnit root_;
  GatheredUnit ahead_;
  std::vector<GatheredUnit> kept_;        // by member
  std::map<std::int64_t, Block> shards_;  // of gradients, by unit
};

}  // namespace

namespace {

std::optional<CachingAllocator> replayed(const Plan& plan, std::int64_t rank, bool expandable) {
  if (!follows_order(plan) || !is_within_reach(plan, plan.ranks[index(rank)])) return std::nullopt;
  Replay replay(plan, rank, CachingAllocator(expandable));
  if (replay.passes() > most_passes) return std::nullopt;
  return std::move(replay).run();
}

}  // namespace

std::optional<Bytes> reserved_bytes(const Plan& plan, std::int64_t rank) {
  const std::optional<CachingAllocator> allocator =
      replayed(plan, rank, plan.request.software.memory.expandable_segments);
  return allocator ? std::optional(allocator->reserved()) : std::nullopt;
}

std::optional<AllocatorUse> allocator_use(const Plan& plan, std::int64_t rank) {
  const std::optional<CachingAllocator> growing = replayed(plan, rank, true);
  if (!growing) return std::nullopt;
  const CachingAllocator& expandable = *growing;
  AllocatorUse use{.rank = index(rank),
                   .reserved = expandable.reserved(),
                   .allocated = expandable.most_allocated(),
                   .expandable = expandable.reserved()};
  if (plan.request.software.memory.expandable_segments) return use;
  use.reserved = Replay(plan, rank, CachingAllocator(false)).run().reserved();
  const RankMemory& memory = plan.ranks[index(rank)];
  const Bytes available = plan.request.system.memory - memory.reserved;
  if (use.reserved > available && total(memory) <= plan.request.system.memory)
    use.fits_with_retries = !Replay(plan, rank, CachingAllocator(available)).run().out_of_memory();
  return use;
}

std::optional<DeviceUse> fullest_device(const Plan& plan) {
  std::optional<DeviceUse> fullest;
  std::vector<std::size_t> followed;
  const auto takes_no_more = [&](std::size_t rank, std::size_t than) {
    return std::all_of(memory_parts.begin(), memory_parts.end(), [&](const MemoryPart& part) {
      return part.of(plan.ranks[rank]) <= part.of(plan.ranks[than]);
    });
  };
  const auto follow = [&](std::size_t rank) {
    const auto covers = [&](std::size_t other) { return takes_no_more(rank, other); };
    if (std::any_of(followed.begin(), followed.end(), covers)) return true;
    followed.push_back(rank);
    const std::optional<Bytes> reserved = reserved_bytes(plan, static_cast<std::int64_t>(rank));
    if (!reserved) return false;
    const DeviceUse use{.rank = rank, .bytes = *reserved + plan.ranks[rank].reserved};
    if (!fullest || use.bytes > fullest->bytes) fullest = use;
    return true;
  };
  if (!follow(plan.peak_rank)) return std::nullopt;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    if (!follow(rank)) return std::nullopt;
  }
  return fullest;
}

std::optional<Bytes> held_bytes(const Plan& plan) {
  if (!plan.allocator) return std::nullopt;
  return plan.allocator->reserved + plan.ranks[plan.allocator->rank].reserved;
}

Evaluation settled(Evaluation evaluation) {
  auto* const infeasible = std::get_if<Infeasible>(&evaluation);
  Plan& plan = infeasible != nullptr ? infeasible->attempt : std::get<Plan>(evaluation);
  const std::optional<DeviceUse> fullest = fullest_device(plan);
  if (!fullest) return evaluation;
  plan.allocator = allocator_use(plan, static_cast<std::int64_t>(fullest->rank));
  const Bytes capacity = plan.request.system.memory;
  if (infeasible != nullptr || fullest->bytes <= capacity) return evaluation;
  const Bytes grown = plan.allocator->expandable + plan.ranks[fullest->rank].reserved;
  if (plan.allocator->fits_with_retries || grown <= capacity) {
    plan.verdict = Verdict::marginal;
    return evaluation;
  }
  plan.verdict = Verdict::does_not_fit;
  return Infeasible{.attempt = std::move(plan),
                    .limit = "reserved_memory",
                    .needed = std::min(fullest->bytes, grown),
                    .available = capacity};
}

}  // namespace headroom
