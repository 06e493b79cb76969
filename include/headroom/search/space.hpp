// Which strategies a search tries: what is left open, and in which order. Every dimension of a strategy can be pinned
// to a list of values or bounded; the fields that no dimension covers are those of the request.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/offload_legality.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/sharding_choices.hpp"

namespace headroom {

// The values that a count may take: those listed, or all; none above `most`.
struct Counts {
  std::vector<std::int64_t> only;  // empty: all
  std::int64_t most = 0;           // 0: no bound
  friend bool operator==(const Counts&, const Counts&) = default;
};

bool allows(const Counts& counts, std::int64_t value);
std::vector<std::int64_t> allowed_divisors(std::int64_t whole, const Counts& counts);

// Whether to split something over so many ranks: over one of them it changes nothing, and is not done.
const std::vector<bool>& choices(const std::vector<bool>& open, std::int64_t ranks);

// Tokens of an iteration where nobody says how many. Assumed: that of all Llama 2 models (arXiv:2307.09288, table 1).
inline constexpr std::int64_t usual_batch_tokens = std::int64_t{4} << 20;

// The global batch of a search that names none: that nearest to `usual_batch_tokens` of those that the replicas on so many devices
// divide evenly. A replica has one device or, on a stack that divides models, the smallest power of two that leaves every replica a
// sequence.
std::int64_t usual_global_batch(const Request& base, std::int64_t devices);

// Sets of ops and modules that layers recompute.
struct ModuleSets {
  // Where selective recomputation is tried, or nothing is said, and the stack has it: those of experts and of latent
  // attention (parallel/module_choices.hpp).
  bool of_model = true;
  // One set in their place, and in place of all other recomputation but what Space::recompute names; empty: none.
  std::vector<std::string> only;
  friend bool operator==(const ModuleSets&, const ModuleSets&) = default;
};

struct Space {
  std::int64_t devices = 1;  // all of them are used: d = devices / (t c p)
  Counts tensor_parallel;    // divisors of the devices, within a node unless listed
  Counts context_parallel;  // divisors of what is left; 1 alone where nothing is said and sequences are short
  std::vector<CpComm> cp_comm;  // where ranks divide a sequence; empty: p2p, or else what the model admits
  Counts pipeline_parallel;     // likewise
  Counts virtual_pipeline;      // of those that the layouts admit
  Counts data_parallel;
  Counts expert_parallel;  // divisors of t d and of the experts
  // Divisors of what is left; where nothing is said 1, and those of t where expert_parallel is as large as the model admits.
  Counts expert_tensor_parallel;
  std::vector<Dispatcher> moe_dispatcher;  // where ranks share experts; empty: the request's own
  Counts micro_batch;                      // divisors of a replica's batch
  // even: virtual stages that hold as many layers each, so that p m divides the layers. any: also others, with the
  // layers as even as can be, and laid so that no stage takes longer than it must; and where the stack has groups of
  // microbatches, interleaved schedules whose ranks do not divide the microbatches, in the smallest groups.
  Layouts layouts = Layouts::even;
  std::vector<bool> sequence_parallel{true, false};
  std::vector<DataSharding> data_sharding;  // empty: what the training stack has
  Counts
      shard_size;  // of those that divide the ranks which hold the same weights; where nothing is said all of them
  std::vector<bool> no_reshard_after_forward{false};
  std::vector<bool> sync_each_batch{false, true};  // where the stack has the switch and sums microbatches
  std::vector<RecomputePolicy> recompute;          // empty: what the training stack has
  // Full recomputation also of the first K layers of each stage only, for every K, where the stack has it.
  bool recompute_layers = true;
  ModuleSets recompute_modules;
  // A window's passes differ from each other, so that its time takes a replay, and its memory a walk through the
  // schedule for every size that it may have: milliseconds, where other strategies take a microsecond.
  bool recompute_window = false;
  std::vector<Precision> precision;  // of those that the devices multiply; empty: the request's own
  // GPipe keeps more than 1F1B does and is never faster [schedule/makespan.hpp], so it is tried when asked for only.
  std::vector<ScheduleKind> schedules{ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved};
  // Also with the optimizer on the host, sharded weights with it, and activations; else what the request offloads alone.
  bool offload = false;
  // With what experts exchange beside other passes; empty: without, and where the stack has it also with.
  std::vector<bool> overlap_expert_all_to_all;
  friend bool operator==(const Space&, const Space&) = default;
};

// The fields of a strategy that a space sets, and what it holds for each: the values that it may take, or whether other
// values than that of the request are tried too.
using SpaceMember =
    std::variant<Counts Space::*, std::vector<bool> Space::*, std::vector<RecomputePolicy> Space::*,
                 std::vector<ScheduleKind> Space::*, std::vector<DataSharding> Space::*,
                 std::vector<CpComm> Space::*, std::vector<Dispatcher> Space::*,
                 std::vector<Precision> Space::*, ModuleSets Space::*, bool Space::*>;
struct SpaceField {
  std::string_view field;
  SpaceMember values;
  std::string_view help;
};
// In the order of the help.
inline constexpr std::array space_fields{
    SpaceField{"tensor_parallel", &Space::tensor_parallel,
               "Tensor-parallel (TP) sizes (default: those within a node)"},
    SpaceField{"context_parallel", &Space::context_parallel,
               "Context-parallel (CP) sizes (default: 1; larger too for sequences of 32k tokens or more)"},
    SpaceField{"cp_comm", &Space::cp_comm,
               "With CP: p2p (default; with windows or sinks what they admit), all_gather, a2a, a2a_p2p"},
    SpaceField{"pipeline_parallel", &Space::pipeline_parallel, "Pipeline-parallel (PP) sizes"},
    SpaceField{"virtual_pipeline", &Space::virtual_pipeline,
               "Virtual pipeline (VP) stages on each PP rank (default: all that the layout admits)"},
    SpaceField{"data_parallel", &Space::data_parallel, "Data-parallel (DP) sizes"},
    SpaceField{"expert_parallel", &Space::expert_parallel, "Expert-parallel (EP) sizes"},
    SpaceField{"expert_tensor_parallel", &Space::expert_tensor_parallel,
               "Ranks that share each expert (ETP; default: 1, and up to TP with the largest EP)"},
    SpaceField{"moe_dispatcher", &Space::moe_dispatcher,
               "With EP: alltoall (default), allgather, deepep, hybridep"},
    SpaceField{"micro_batch", &Space::micro_batch, "Sequences in a microbatch (MBS)"},
    SpaceField{"sequence_parallel", &Space::sequence_parallel, "Sequence parallelism (default both)"},
    SpaceField{"data_sharding", &Space::data_sharding,
               "none, zero1, zero2, zero3 (default: what the software has)"},
    SpaceField{"shard_size", &Space::shard_size, "Ranks that shard together (HSDP; default: all)"},
    SpaceField{"no_reshard_after_forward", &Space::no_reshard_after_forward,
               "With zero3: keep gathered weights until the backward pass (default no)"},
    SpaceField{"sync_each_batch", &Space::sync_each_batch,
               "Reduce sharded gradients in every microbatch (default both, where the stack has the switch)"},
    SpaceField{"recompute", &Space::recompute,
               "none, selective, selective_op (of torchtitan), full (default: what the stack has)"},
    SpaceField{"recompute_ops", &Space::recompute_modules,
               "Recompute these ops or modules, and nothing else but what --recompute names"},
    SpaceField{"recompute_layers", &Space::recompute_layers, "Try full recomputation of all layers only"},
    SpaceField{"recompute_window", &Space::recompute_window,
               "Also try to exempt windows of microbatches from recomputation (a slower search)"},
    SpaceField{
        "schedule", &Space::schedules,
        "gpipe, 1f1b, interleaved, looped-bfs, zero-bubble-h1, -h2, -2p or -v, v-half, v-min, dualpipe, "
        "dualpipe-v "
        "(default: what the software runs, but for gpipe and looped-bfs; 1f1b,interleaved where it "
        "runs all)"},
    SpaceField{"overlap_expert_all_to_all", &Space::overlap_expert_all_to_all,
               "Overlap all-to-alls of experts with other passes (default: both, where the stack has it)"},
    SpaceField{"precision", &Space::precision,
               "Precision of linear layers: bf16 (default), fp8, fp8_delayed, fp8_blockwise, mxfp8, nvfp4"},
};

// Whether strategies of a layout, which offload what it does, can have the recomputation with this data sharding.
inline bool goes_with(const Recomputation& recompute, DataSharding sharding, const Transformer& model,
                      const Strategy& layout) {
  return (!recompute.window || sharding < DataSharding::zero2) &&
         (!layout.overlap_expert_all_to_all || goes_beside(recompute)) &&
         (!layout.offload.parameters || sharding == DataSharding::zero3) &&
         offload_rule(model, layout, recompute).empty();
}

// Those of the space that its system multiplies; the request's own where it says nothing. Throws InputError where there is none.
std::vector<Precision> precisions_of(const Request& base, const Space& space);

// Throws InputError where the devices can run no strategy of the space: for want of a precision, or of a host for what the request offloads.
void check_devices(const Request& base, const Space& space);

// The schedules that a search of a stack tries where nobody names any: those that it runs, but for GPipe and looped breadth-first, which keep
// more than 1F1B and interleaved ones do and are no faster; of a stack that runs all, these two.
std::vector<ScheduleKind> searched_schedules(const Software& software);

// What a stack launches by itself.
constexpr Layouts layouts_of(const Software& software) {
  return software.uneven_stages ? Layouts::any : Layouts::even;
}

// Whether interleaved schedules are tried with any number of microbatches, from that of the ranks on: the stack has groups of
// them, and a layout need not be one that any launcher takes.
constexpr bool runs_groups(const Software& software, const Space& space) {
  return software.microbatch_groups && space.layouts == Layouts::any;
}

// The tensor-parallel sizes: those of the space, which stay within a node where it says nothing.
Counts tensor_parallel_of(const Request& base, const Space& space);

// The context-parallel sizes, likewise.
Counts context_parallel_of(const Request& base, const Space& space);

// A strategy without what layouts share: recomputation; its data sharding is the first of its choices. False ends the visit.
using VisitLayout = std::function<bool(const Strategy& layout)>;
// The field whose rule a layout breaks: "global_batch". Layouts that no rule of shapes admits, such
// as a microbatch that does not divide the batch, are not in the space.
using RejectLayout = std::function<void(const Problem& first)>;  // of the rules that it breaks

// Every legal layout, in a total order: t, c, p, m, b, sequence parallelism, schedule; values ascending.
void visit_layouts(const Request& base, const Space& space, const VisitLayout& visit,
                   const RejectLayout& reject);

// The rules that a layout breaks, whatever it recomputes.
std::vector<Problem> layout_illegalities(const Request& base, const Strategy& layout);

// Of more virtual stages on a rank than this, only even layouts are tried: the bubble of a pipeline that is given at
// least p microbatches is by then a 64th of the time, and a model of a thousand layers would have as many.
inline constexpr std::int64_t most_uneven_virtual_pipeline = 64;

// Whether the space lays so many layers on p ranks of m virtual stages.
bool lays(const Space& space, std::int64_t layers, std::int64_t pipeline_parallel,
          std::int64_t virtual_pipeline);

// The recomputations that a layout of the space can have, from the least recomputed to the most. Layouts of the same schedule whose longest
// virtual stage is as long have the same.
std::vector<Recomputation> recomputations(const Request& base, const Space& space, const Strategy& layout);

// Calls visit(strategy) for every strategy of a layout that has these recomputations. Those with the same passes follow each
// other, by recomputation and then by data sharding.
template <class Visit>
void visit_strategies(const Request& base, const Space& space, const Strategy& layout,
                      std::span<const Recomputation> recomputations, Visit visit) {
  const std::vector<ShardingChoice> choices = sharding_choices(base, space, layout);
  for (auto first = choices.begin(); first != choices.end();) {
    const auto end = std::find_if(first, choices.end(), [&](const ShardingChoice& other) {
      return !same_passes(*first, other, layout, base.software);
    });
    for (const Recomputation& recompute : recomputations) {
      for (auto choice = first; choice != end; ++choice) {
        if (!goes_with(recompute, choice->data_sharding, base.model, layout)) continue;
        Strategy strategy = with_sharding(layout, *choice);
        strategy.recompute = recompute;
        visit(static_cast<const Strategy&>(strategy));
      }
    }
    first = end;
  }
}

}  // namespace headroom
