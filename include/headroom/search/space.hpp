// Strategies that a search tries, and their order. Every dimension of a strategy can be fixed to a list of
// values or bounded. Fields without a dimension keep the request's values.
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
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/search/sharding_choices.hpp"

namespace headroom {

// Values that a count may take: those listed, or all; none above `most`.
struct Counts {
  std::vector<std::int64_t> only;  // empty: all
  std::int64_t most = 0;           // 0: no bound
  friend bool operator==(const Counts&, const Counts&) = default;
};

bool allows(const Counts& counts, std::int64_t value);
std::vector<std::int64_t> allowed_divisors(std::int64_t whole, const Counts& counts);

// Returns the choices of splitting something over so many ranks. Splitting over one rank changes nothing and
// is not tried.
const std::vector<bool>& choices(const std::vector<bool>& open, std::int64_t ranks);

// Tokens of an iteration if none are given. Assumed: the batch of all Llama 2 models (arXiv:2307.09288, table
// 1).
inline constexpr std::int64_t usual_batch_tokens = std::int64_t{4} << 20;

// Returns the global batch of a search that names none: the batch nearest to `usual_batch_tokens` that the
// replicas on so many GPUs divide evenly. A replica has one GPU. On a stack with model parallelism, a replica
// has the smallest power of two of GPUs that leaves every replica a sequence.
std::int64_t usual_global_batch(const Request& base, std::int64_t devices);

// usual: the values that most plans have, for a quick answer. wide: also what the stack and its launcher have
// beyond them (Software::searches), and tensor parallelism beyond a node (search/widen.hpp).
enum class Breadth : std::uint8_t { usual, wide };

// Sets of ops and modules that layers recompute.
struct ModuleSets {
  // Tries the sets for experts and latent attention (parallel/module_choices.hpp) if the stack has them, and
  // selective recomputation is tried or no recomputation is given.
  bool of_model = true;
  // One set instead of the model's sets and of all recomputation that Space::recompute does not name; empty:
  // none.
  std::vector<std::string> only;
  friend bool operator==(const ModuleSets&, const ModuleSets&) = default;
};

struct Space {
  Breadth breadth = Breadth::usual;  // of what the fields below leave open
  std::int64_t devices = 1;          // all are used: d = devices / (t c p)
  Counts tensor_parallel;            // divisors of the GPUs; usually within a node
  Counts context_parallel;           // divisors of the GPUs left; usually only 1 for short sequences
  std::vector<CpComm> cp_comm;       // for CP > 1; empty: usually p2p, or else what the model admits
  Counts pipeline_parallel;          // divisors of the GPUs left
  Counts virtual_pipeline;           // among the values that the layouts admit
  Counts data_parallel;
  Counts expert_parallel;  // divisors of t d and of the experts
  // Divisors of the ranks left. Default: 1, and the divisors of t if expert_parallel is as large as the model
  // admits.
  Counts expert_tensor_parallel;
  std::vector<Dispatcher> moe_dispatcher;  // for EP > 1; empty: usually the request's own
  Counts micro_batch;                      // divisors of a replica's batch
  // even: virtual stages hold equal numbers of layers, so p m divides the layers. any: also other layouts,
  // with layers as even as possible and placed so that no stage takes longer than it must. If the stack has
  // groups of microbatches, `any` also tries interleaved schedules whose ranks do not divide the
  // microbatches, in the smallest groups.
  Layouts layouts = Layouts::even;
  std::vector<bool> sequence_parallel{true, false};
  std::vector<DataSharding> data_sharding;  // empty: what the training stack has
  // Among divisors of the ranks that hold the same weights; default: usually all of these ranks.
  Counts shard_size;
  std::vector<bool> no_reshard_after_forward;      // empty: usually false
  std::vector<bool> sync_each_batch{false, true};  // if the stack has the switch and accumulates gradients
  std::vector<RecomputePolicy> recompute;          // empty: what the training stack has
  // Tries full recomputation also for only the first K layers of each stage, for every K, if the stack has
  // it.
  bool recompute_layers = true;
  ModuleSets recompute_modules;
  // Tries windows. The passes of a window differ, so its time takes a simulation, and its memory a walk
  // through the schedule for every window size. That takes milliseconds; other strategies take a microsecond.
  bool recompute_window = false;
  std::vector<Precision> precision;  // among those that the GPUs support; empty: the request's own
  // GPipe saves more than 1F1B and is never faster [schedule/makespan.hpp], so it is tried only on request.
  std::vector<ScheduleKind> schedules{ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved};
  // Also tries offloading the optimizer, sharded weights with it, and activations; if false, only the
  // request's offloading.
  bool offload = false;
  // Whether all-to-alls of experts overlap other passes; empty: without and, if the stack has it, with.
  std::vector<bool> overlap_expert_all_to_all;
  // Strategies that ran out of memory on the cluster. No change leads to them (admits()), and what is shown in their
  // place needs less memory (search/confirm.hpp).
  std::vector<Strategy> ran_out;
  friend bool operator==(const Space&, const Space&) = default;
};

// Member of Space for a strategy's field: the values that the field may take, or whether values other than
// the request's are tried.
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
// Fields of a space, in the order of the help.
inline constexpr std::array space_fields{
    SpaceField{"tensor_parallel", &Space::tensor_parallel,
               "Tensor-parallel (TP) sizes (default: any; with --fast those within a node)"},
    SpaceField{
        "context_parallel", &Space::context_parallel,
        "Context-parallel (CP) sizes (default: any that the stack has; with --fast 1 below 32k tokens)"},
    SpaceField{"cp_comm", &Space::cp_comm,
               "With CP: p2p, all_gather, a2a, a2a_p2p (default: what the stack has; with --fast p2p)"},
    SpaceField{"pipeline_parallel", &Space::pipeline_parallel, "Pipeline-parallel (PP) sizes"},
    SpaceField{"virtual_pipeline", &Space::virtual_pipeline,
               "Virtual pipeline (VP) stages on each PP rank (default: all that the layout admits)"},
    SpaceField{"data_parallel", &Space::data_parallel, "Data-parallel (DP) sizes"},
    SpaceField{"expert_parallel", &Space::expert_parallel, "Expert-parallel (EP) sizes"},
    SpaceField{"expert_tensor_parallel", &Space::expert_tensor_parallel,
               "Ranks that share each expert (ETP; default: 1, and up to TP with the largest EP)"},
    SpaceField{"moe_dispatcher", &Space::moe_dispatcher,
               "With EP: alltoall, allgather, deepep, hybridep (default: what the stack has, without "
               "hybridep; with --fast alltoall)"},
    SpaceField{"micro_batch", &Space::micro_batch, "Sequences in a microbatch (MBS)"},
    SpaceField{"sequence_parallel", &Space::sequence_parallel, "Sequence parallelism (default both)"},
    SpaceField{"data_sharding", &Space::data_sharding,
               "none, zero1, zero2, zero3 (default: what the software has)"},
    SpaceField{"shard_size", &Space::shard_size,
               "Ranks that shard together (HSDP; default: any where the stack has it; with --fast all)"},
    SpaceField{
        "no_reshard_after_forward", &Space::no_reshard_after_forward,
        "With zero3: keep gathered weights until the backward pass (default: both where the stack has the "
        "switch; with --fast no)"},
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

// Returns whether a strategy, with its layout and data sharding, may have its recomputation.
inline bool may_recompute(const Request& base, const Strategy& strategy, KnownLayers* known = nullptr) {
  return holds(asked(base, strategy, known), searched_rules(Reads::recompute));
}

// Returns the space's precisions that its system supports, or the request's own if the space names none.
// Throws InputError if the system supports none of them.
std::vector<Precision> precisions_of(const Request& base, const Space& space);

// Throws InputError if the GPUs can run no strategy of the space, for lack of a precision or of a host for
// what the request offloads.
void check_devices(const Request& base, const Space& space);

// Returns the schedules that a search tries by default. If the stack runs 1F1B: its schedules without GPipe
// and looped breadth-first, which save more than 1F1B and interleaved schedules and are no faster. Otherwise:
// its schedules and 1F1B, which a single pipeline rank runs. For a stack that runs every schedule: 1F1B and
// interleaved.
std::vector<ScheduleKind> searched_schedules(const Software& software);

// Returns the layouts that a stack launches without help.
constexpr Layouts layouts_of(const Software& software) {
  return software.uneven_stages ? Layouts::any : Layouts::even;
}

// Returns whether interleaved schedules are tried with any number of microbatches from the number of ranks
// on. The stack must have groups of microbatches, and the space must admit layouts that no launcher takes.
constexpr bool runs_groups(const Software& software, const Space& space) {
  return software.microbatch_groups && space.layouts == Layouts::any;
}

// Returns whether a search tries all values of a choice that the space leaves open: those of stacks without
// pipelines, which have few layouts.
bool tries(const Request& base, const Space& space, WideChoice choice);

// Return the space's tensor-parallel and context-parallel sizes, or the usual ones: within a node, and one for
// short sequences.
Counts tensor_parallel_of(const Request& base, const Space& space);
Counts context_parallel_of(const Request& base, const Space& space);

// Return the sizes of a wide search.
Counts wide_tensor_parallel_of(const Request& base, const Space& space);
Counts wide_context_parallel_of(const Request& base, const Space& space);

// Returns whether a strategy has only values that the space lists or bounds; what the space leaves open may
// have any value.
bool admits(const Request& base, const Space& space, const Strategy& strategy);

// Called with a strategy without recomputation, and with the first choice of its data sharding. Returns false
// to end the visit.
using VisitLayout = std::function<bool(const Strategy& layout)>;
// Called with the first rule that a layout breaks, as the problem of a field such as "global_batch". Layouts
// with impossible shapes, such as a microbatch that does not divide the batch, are not in the space.
using RejectLayout = std::function<void(const Problem& first)>;

// Visits every legal layout in a total order: t, c, p, m, b, sequence parallelism, schedule; values
// ascending.
void visit_layouts(const Request& base, const Space& space, const VisitLayout& visit,
                   const RejectLayout& reject);

// Returns whether a layout with its data sharding is legal with some recomputation.
bool is_legal_layout(const Request& base, const Strategy& layout);

// Largest number of virtual stages on a rank for which uneven layouts are tried. At that number, the bubble
// of a pipeline with at least p microbatches is a 64th of the time, and a model of a thousand layers would
// have as many such layouts.
inline constexpr std::int64_t most_uneven_virtual_pipeline = 64;

// Returns whether the space can place so many layers on p ranks of m virtual stages.
bool lays(const Space& space, std::int64_t layers, std::int64_t pipeline_parallel,
          std::int64_t virtual_pipeline);

// Returns the recomputations that a layout of the space can have, from the least recomputed to the most.
// Layouts with equal schedules and equally long longest virtual stages have equal recomputations.
std::vector<Recomputation> recomputations(const Request& base, const Space& space, const Strategy& layout);

// Calls visit(strategy) for every strategy of a layout that has these choices of data sharding and these
// recomputations. Strategies with equal passes follow each other, by recomputation and then by data sharding.
template <class Visit>
void visit_strategies(const Request& base, const Strategy& layout, std::span<const ShardingChoice> choices,
                      std::span<const Recomputation> recomputations, Visit visit,
                      KnownLayers* known = nullptr) {
  Strategy strategy = layout;
  for (auto first = choices.begin(); first != choices.end();) {
    const auto end = std::find_if(first, choices.end(), [&](const ShardingChoice& other) {
      return !same_passes(*first, other, layout, base.software);
    });
    for (const Recomputation& recompute : recomputations) {
      strategy.recompute = recompute;
      for (auto choice = first; choice != end; ++choice) {
        set_sharding(strategy, *choice);
        if (may_recompute(base, strategy, known)) visit(static_cast<const Strategy&>(strategy));
      }
    }
    first = end;
  }
}

}  // namespace headroom
