#include "headroom/search/space.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/known_layers.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/module_choices.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/search/offload_choices.hpp"

namespace headroom {
namespace {

// Returns the largest number of ranks that can have equally many whole experts in every kind of layer.
std::int64_t most_expert_parallel(const Transformer& model) {
  std::int64_t most = 0;
  const auto consider = [&](const Architecture& architecture) {
    if (architecture.experts) most = std::gcd(most, architecture.experts->count);
  };
  if (model.layer_kinds.empty()) consider(model.architecture);
  for (const LayerDescription& kind : model.layer_kinds) consider(kind.architecture);
  return most;
}

std::vector<CpComm> cp_comms_of(const Request& base, const Space& space) {
  if (!space.cp_comm.empty()) return space.cp_comm;
  std::vector<CpComm> admitted = admitted_cp_comm(base.model);
  const std::vector<CpComm>& of_stack = base.software.cp_comm;
  std::erase_if(admitted, [&](CpComm comm) { return !of_stack.empty() && !contains(of_stack, comm); });
  return contains(admitted, CpComm::p2p) ? std::vector{CpComm::p2p} : admitted;
}

std::vector<Dispatcher> dispatchers_of(const Request& base, const Space& space) {
  if (!space.moe_dispatcher.empty()) return space.moe_dispatcher;
  return {base.strategy.moe_dispatcher};
}

// Returns the most ranks that can share the attention heads, or the linears of models without heads.
std::int64_t most_tensor_parallel(const Transformer& model) {
  std::int64_t most = model.heads;
  for (const LayerDescription& kind : model.layer_kinds) most = std::max(most, kind.heads);
  return std::max<std::int64_t>(most, 1);
}

// Whatever is recomputed.
constexpr RuleSet rules_of_layout{
    .whose = searched_rules(Reads::layout).whose,
    .reads = searched_rules(Reads::layout).reads | searched_rules(Reads::sharding).reads};

class LayoutVisit {
 public:
  LayoutVisit(const Request& base, const Space& space, const VisitLayout& visit, const RejectLayout& reject)
      : base_(base),
        space_(space),
        visit_(visit),
        reject_(reject),
        known_(base.model, base.software),
        cp_comms_(cp_comms_of(base, space)),
        dispatchers_(dispatchers_of(base, space)),
        experts_(any_experts(base.model)),
        most_expert_parallel_(most_expert_parallel(base.model)) {
    if (space.layouts == Layouts::even) return;
    ends_ = end_loads(base.model);
    loads_ = layer_loads(base.model);
  }

  void run() {
    const std::vector<Precision> precisions = precisions_of(base_, space_);
    for (const Precision precision : space_.precision) {
      if (!contains(precisions, precision))
        reject_({"precision", "must be one that the system multiplies in"});
    }
    const std::vector<Offload> offloads = offload_choices(base_, space_);
    for (const Precision precision : precisions) {
      for (const Offload& offload : offloads) {
        if (!rejected_names(precision, offload) && !visit_tensor_parallels(precision, offload)) return;
      }
    }
  }

 private:
  // Rejects lists with names that the model does not have, whatever the layout.
  bool rejected_names(Precision precision, const Offload& offload) {
    layout_ = base_.strategy;
    const Strategy usual = with_stack_defaults({}, base_.software, base_.model);
    Workload none;
    for (const StrategyField& field : strategy_fields) {  // of what is searched, the base says nothing
      if (field.searched) apply({std::string(field.name), value_of(field, usual, none)}, layout_, none);
    }
    layout_.precision = precision;
    layout_.offload = offload;
    layout_.recompute = {};
    if (const std::vector<std::string>& ops = space_.recompute_modules.only; !ops.empty())
      layout_.recompute = {.policy = RecomputePolicy::ops, .ops = ops};
    const std::optional<Problem> problem =
        first_problem(asked(base_, layout_, &known_), searched_rules(Reads::names));
    if (problem) reject_(*problem);
    return problem.has_value();
  }

  // Here and below, returns false to end the visit.
  bool visit_tensor_parallels(Precision precision, const Offload& offload) {
    for (const std::int64_t t : allowed_divisors(space_.devices, tensor_parallel_of(base_, space_))) {
      layout_ = base_.strategy;
      layout_.precision = precision;
      layout_.offload = offload;
      layout_.recompute = {};
      layout_.tensor_parallel = t;
      for (const std::int64_t c : allowed_divisors(space_.devices / t, context_parallel_of(base_, space_))) {
        layout_.context_parallel = c;
        for (const CpComm comm : c > 1 ? cp_comms_ : std::vector{CpComm::p2p}) {
          layout_.cp_comm = comm;
          if (!visit_pipelines(space_.devices / t / c)) return false;
        }
      }
    }
    return true;
  }

  // Other values would break the same rule again and again.
  bool rejected_whatever_follows() {
    layout_.virtual_pipeline = 1;
    layout_.stage_layers.clear();
    // Weights that step in the backward pass take a replica's whole batch.
    const std::int64_t replica = base_.workload.global_batch / layout_.data_parallel;
    layout_.micro_batch = layout_.step_in_backward ? std::max<std::int64_t>(replica, 1) : 1;
    layout_.sequence_parallel = false;
    layout_.schedule = ScheduleKind::one_forward_one_backward;
    layout_.microbatch_group_size = 0;
    layout_.overlap_expert_all_to_all = false;  // which goes with some schedules only
    std::optional<Problem> problem = problem_of_layout("schedule");
    // Experts, a split hidden size and some launchers need sequence parallelism.
    if (problem && layout_.tensor_parallel > 1) {
      layout_.sequence_parallel = true;
      std::optional<Problem> with = problem_of_layout("schedule");
      if (!with || problem->where == "sequence_parallel") problem = std::move(with);
    }
    if (problem) reject_(*problem);
    return problem.has_value();
  }

  bool rejected() {
    const std::optional<Problem> problem = problem_of_layout("");
    if (problem) reject_(*problem);
    return problem.has_value();
  }

  std::optional<Problem> problem_of_layout(std::string_view open_field) {
    std::vector<ShardingChoice> choices = sharding_choices(base_, space_, layout_);
    const bool legal = !choices.empty();
    if (!legal) choices = sharding_candidates(base_, space_, layout_);
    std::optional<Problem> problem;
    for (const ShardingChoice& choice : choices) {
      set_sharding(layout_, choice);
      problem = first_problem(asked(base_, layout_, &known_), rules_of_layout, open_field);
      // If none is legal, one may be with another value of the open field.
      if (legal || !problem) return problem;
    }
    // The only one says what is wrong with it.
    if (choices.size() == 1) return problem;
    return Problem{"data_sharding", "must be one that the stack and the layout have"};
  }

  bool visit_pipelines(std::int64_t devices) {
    for (const std::int64_t p : allowed_divisors(devices, space_.pipeline_parallel)) {
      layout_.pipeline_parallel = p;
      layout_.data_parallel = devices / p;
      if (allows(space_.data_parallel, layout_.data_parallel) && !visit_expert_parallels()) return false;
    }
    return true;
  }

  bool visit_expert_parallels() {
    layout_.expert_parallel = layout_.expert_tensor_parallel = 1;
    if (!experts_) {
      const bool alone = allows(space_.expert_parallel, 1);
      if (alone && allows(space_.expert_tensor_parallel, 1)) return visit_virtual_pipelines();
      reject_({alone ? "expert_tensor_parallel" : "expert_parallel", "needs a model with experts"});
      return true;
    }
    const std::int64_t stage = layout_.tensor_parallel * layout_.context_parallel * layout_.data_parallel;
    const bool said = space_.expert_tensor_parallel != Counts{};
    const std::int64_t tensor_ranks = said ? stage : layout_.tensor_parallel;
    for (const std::int64_t z : allowed_divisors(tensor_ranks, space_.expert_tensor_parallel)) {
      layout_.expert_tensor_parallel = z;
      for (const std::int64_t y : allowed_divisors(stage / z, space_.expert_parallel)) {
        layout_.expert_parallel = y;
        // By default, ranks share an expert only if no more ranks can have their own experts.
        if (!said && z > 1 && y < most_expert_parallel_) continue;
        const bool sends = y > 1 || z > 1;
        for (const Dispatcher dispatcher : sends ? dispatchers_ : std::vector{Dispatcher::alltoall}) {
          layout_.moe_dispatcher = dispatcher;
          if (!visit_virtual_pipelines()) return false;
        }
      }
    }
    return true;
  }

  bool visit_virtual_pipelines() {
    if (rejected_whatever_follows()) return true;
    const std::int64_t p = layout_.pipeline_parallel;
    const std::int64_t most =
        p > 1 ? (base_.model.layers + 2) / p : 1;  // with the ends on stages of their own
    for (std::int64_t m = 1; m <= most; ++m) {
      if (!allows(space_.virtual_pipeline, m)) continue;
      if (!lays(space_, base_.model.layers, p, m)) {
        // Among sizes that do not divide the layers, only those asked for are reported.
        if (m == 1 || contains(space_.virtual_pipeline.only, m))
          reject_({"layout", "must be any for stages of unequal numbers of layers"});
        continue;
      }
      layout_.virtual_pipeline = m;
      layout_.stage_layers.clear();
      if (!visit_micro_batches() || (lay_balanced() && !visit_micro_batches())) return false;
    }
    return true;
  }

  // Returns whether layers may be placed otherwise than by default.
  bool lay_balanced() {
    const std::vector<std::int64_t> usual = layers_by_stage(base_.model, layout_);
    if (space_.layouts == Layouts::even || std::ssize(usual) > base_.model.layers) return false;
    layout_.stage_layers = loads_.empty() ? balanced_layers(base_.model.layers, std::ssize(usual), ends_)
                                          : balanced_layers(loads_, std::ssize(usual), ends_);
    return layout_.stage_layers != usual;
  }

  // Returns the smallest group size if the stack has groups and this number of microbatches needs them; else
  // 0.
  [[nodiscard]] std::int64_t group_size_of(std::int64_t microbatches) const {
    const std::int64_t p = layout_.pipeline_parallel;
    const bool asked = layout_.schedule == ScheduleKind::interleaved && runs_groups(base_.software, space_);
    return asked && microbatches % p != 0 ? least_group_size(p, microbatches) : 0;
  }

  bool visit_micro_batches() {
    const std::int64_t replica = base_.workload.global_batch / layout_.data_parallel;
    for (const std::int64_t b : allowed_divisors(replica, space_.micro_batch)) {
      layout_.micro_batch = b;
      for (const bool sequence_parallel : choices(space_.sequence_parallel, layout_.tensor_parallel)) {
        layout_.sequence_parallel = sequence_parallel;
        for (const ScheduleKind schedule : space_.schedules) {
          if (!admits_virtual_pipeline(schedule, layout_.virtual_pipeline)) continue;
          layout_.schedule = schedule;
          layout_.microbatch_group_size = group_size_of(replica / b);
          if (!visit_overlaps()) return false;
        }
      }
    }
    return true;
  }

  // If both are open, illegal overlaps are left out rather than rejected.
  bool visit_overlaps() {
    const std::vector<bool>& open = space_.overlap_expert_all_to_all;
    const bool both = experts_ && (open.empty() ? base_.software.overlap_expert_all_to_all : open.size() > 1);
    layout_.overlap_expert_all_to_all =
        !both && (open.empty() ? base_.strategy.overlap_expert_all_to_all : open.front());
    if (rejected()) return true;
    if (!visit_(layout_)) return false;
    layout_.overlap_expert_all_to_all = true;
    return !both || !holds(asked(base_, layout_, &known_), rules_of_layout) || visit_(layout_);
  }

  const Request& base_;
  const Space& space_;
  const VisitLayout& visit_;
  const RejectLayout& reject_;
  KnownLayers known_;
  std::vector<CpComm> cp_comms_;
  std::vector<Dispatcher> dispatchers_;
  EndLoads ends_;
  bool experts_ = false;
  std::int64_t most_expert_parallel_ = 0;
  std::vector<double> loads_;  // of each layer, where they are of several kinds
  Strategy layout_;
};

}  // namespace

std::int64_t usual_global_batch(const Request& base, std::int64_t devices) {
  const std::vector<ParallelAxis>& axes = base.software.axes;
  const bool divides_models =
      axes.empty() || contains(axes, ParallelAxis::tensor) || contains(axes, ParallelAxis::pipeline);
  const std::int64_t usual = std::max<std::int64_t>(1, usual_batch_tokens / base.workload.sequence);
  std::int64_t replicas = devices;
  for (std::int64_t of_replica = 2; divides_models && replicas > usual; of_replica *= 2)
    replicas = devices / of_replica;
  return std::max<std::int64_t>(1, (usual + replicas / 2) / replicas) * replicas;
}

std::vector<std::int64_t> allowed_divisors(std::int64_t whole, const Counts& counts) {
  std::vector<std::int64_t> values = divisors(whole);
  std::erase_if(values, [&](std::int64_t value) { return !allows(counts, value); });
  return values;
}

bool allows(const Counts& counts, std::int64_t value) {
  return (counts.only.empty() || contains(counts.only, value)) && (counts.most == 0 || value <= counts.most);
}

bool tries(const Request& base, const Space& space, WideChoice choice) {
  const std::vector<ParallelAxis>& axes = base.software.axes;
  const bool few = !axes.empty() && !contains(axes, ParallelAxis::pipeline);
  return space.breadth == Breadth::wide && few && contains(base.software.searches, choice);
}

Counts tensor_parallel_of(const Request& base, const Space& space) {
  Counts counts = space.tensor_parallel;
  if (!counts.only.empty() || counts.most > 0) return counts;
  counts.most = base.system.devices_per_node;
  return counts;
}

Counts wide_tensor_parallel_of(const Request& base, const Space& space) {
  Counts counts = tensor_parallel_of(base, space);
  if (space.tensor_parallel == Counts{})
    counts.most = std::max(counts.most, most_tensor_parallel(base.model));
  return counts;
}

Counts context_parallel_of(const Request& base, const Space& space) {
  Counts counts = space.context_parallel;
  if (!counts.only.empty() || counts.most > 0) return counts;
  counts.most = most_parts(base.model, base.workload.sequence);
  return counts;
}

Counts wide_context_parallel_of(const Request& base, const Space& space) {
  Counts counts = context_parallel_of(base, space);
  if (space.context_parallel == Counts{} && attends_in_parts(base.model) &&
      contains(base.software.searches, WideChoice::context_parallel)) {
    counts.most = std::max(counts.most, base.workload.sequence / shortest_wide_part);
  }
  return counts;
}

bool admits(const Request& base, const Space& space, const Strategy& strategy) {
  const auto has = [](const auto& list, const auto& value) { return list.empty() || contains(list, value); };
  const Recomputation& recompute = strategy.recompute;
  const ModuleSets& sets = space.recompute_modules;
  const bool of_modules = recompute.policy == RecomputePolicy::ops;
  if (contains(space.ran_out, strategy)) return false;
  const bool recomputes = sets.only.empty()
                              ? of_modules ? sets.of_model && has(space.recompute, RecomputePolicy::selective)
                                           : has(space.recompute, recompute.policy)
                          : of_modules ? recompute.ops == sets.only
                                       : contains(space.recompute, recompute.policy);
  return recomputes && (space.recompute_layers || recompute.layers == 0) &&
         (space.recompute_window || !recompute.window) &&
         allows(wide_tensor_parallel_of(base, space), strategy.tensor_parallel) &&
         allows(wide_context_parallel_of(base, space), strategy.context_parallel) &&
         (strategy.context_parallel == 1 || has(space.cp_comm, strategy.cp_comm)) &&
         allows(space.pipeline_parallel, strategy.pipeline_parallel) &&
         allows(space.virtual_pipeline, strategy.virtual_pipeline) &&
         allows(space.data_parallel, strategy.data_parallel) &&
         allows(space.expert_parallel, strategy.expert_parallel) &&
         allows(space.expert_tensor_parallel, strategy.expert_tensor_parallel) &&
         has(space.moe_dispatcher, strategy.moe_dispatcher) &&
         allows(space.micro_batch, strategy.micro_batch) &&
         lays(space, base.model.layers, strategy.pipeline_parallel, strategy.virtual_pipeline) &&
         contains(choices(space.sequence_parallel, strategy.tensor_parallel), strategy.sequence_parallel) &&
         has(space.data_sharding, strategy.data_sharding) &&
         (space.shard_size == Counts{} || allows(space.shard_size, strategy.shard_size)) &&
         has(space.no_reshard_after_forward, strategy.no_reshard_after_forward) &&
         has(space.sync_each_batch, strategy.sync_each_batch) &&
         has(space.overlap_expert_all_to_all, strategy.overlap_expert_all_to_all) &&
         has(space.precision, strategy.precision) && contains(space.schedules, strategy.schedule);
}

std::vector<Precision> precisions_of(const Request& base, const Space& space) {
  std::vector<Precision> precisions;
  std::vector<Problem> problems;
  for (const Precision precision :
       space.precision.empty() ? std::vector{base.strategy.precision} : space.precision) {
    Strategy strategy = base.strategy;
    strategy.precision = precision;
    std::vector<Problem> lacking = system_illegalities(base.system, strategy, Whose::device);
    if (lacking.empty()) {
      precisions.push_back(precision);
    } else {
      problems.insert(problems.end(), lacking.begin(), lacking.end());
    }
  }
  if (precisions.empty()) throw InputError(std::move(problems));
  return precisions;
}

void check_devices(const Request& base, const Space& space) {
  precisions_of(base, space);
  std::vector<Problem> problems = system_illegalities(base.system, base.strategy, Whose::host);
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::vector<ScheduleKind> searched_schedules(const Software& software) {
  if (software.schedules.empty()) return Space().schedules;
  std::vector<ScheduleKind> schedules = software.schedules;
  if (!contains(schedules, ScheduleKind::one_forward_one_backward)) {
    schedules.insert(schedules.begin(), ScheduleKind::one_forward_one_backward);
    return schedules;
  }
  std::erase(schedules, ScheduleKind::gpipe);
  std::erase(schedules, ScheduleKind::looped_bfs);
  return schedules;
}

bool lays(const Space& space, std::int64_t layers, std::int64_t pipeline_parallel,
          std::int64_t virtual_pipeline) {
  return layers % (pipeline_parallel * virtual_pipeline) == 0 ||
         (space.layouts == Layouts::any && virtual_pipeline <= most_uneven_virtual_pipeline);
}

const std::vector<bool>& choices(const std::vector<bool>& open, std::int64_t ranks) {
  static const std::vector<bool> only_whole{false};
  return ranks > 1 ? open : only_whole;
}

bool is_legal_layout(const Request& base, const Strategy& layout) {
  return holds(asked(base, layout), rules_of_layout);
}

void visit_layouts(const Request& base, const Space& space, const VisitLayout& visit,
                   const RejectLayout& reject) {
  LayoutVisit(base, space, visit, reject).run();
}

std::vector<Recomputation> recomputations(const Request& base, const Space& space, const Strategy& layout) {
  std::vector<Recomputation> list;
  const bool windows = space.recompute_window && admits_window(layout.schedule);
  const auto add = [&](const Recomputation& recompute) {
    list.push_back(recompute);
    if (!windows || recompute.policy == RecomputePolicy::none || recompute.layers > 0) return;
    list.push_back(recompute);
    list.back().window = true;
  };
  const std::int64_t most = longest_stage(base.model.layers, layout);
  list.reserve(static_cast<std::size_t>(most) + 12);
  const Software& software = base.software;
  const std::vector<std::string>& only = space.recompute_modules.only;
  const bool whatever = space.recompute.empty() && only.empty();
  const std::vector<RecomputePolicy>& policies = whatever ? software.recompute : space.recompute;
  for (const RecomputePolicy policy : {RecomputePolicy::none, RecomputePolicy::selective,
                                       RecomputePolicy::selective_op, RecomputePolicy::full}) {
    // With named modules, Megatron-LM's selective recomputation means these modules.
    const bool named = policy == RecomputePolicy::selective && !only.empty();
    const bool has = contains(policies, policy) && !named;
    if (has || (policy == RecomputePolicy::none && whatever)) {
      Recomputation recompute{.policy = policy};
      if (policy == RecomputePolicy::full && space.recompute_layers && software.recompute_layers) {
        for (recompute.layers = 1; recompute.layers < most; ++recompute.layers) add(recompute);
      }
      recompute.layers = 0;
      add(recompute);
    }
    // Modules come after core attention, which is one of them.
    if (policy != RecomputePolicy::selective) continue;
    if (named) {
      add({.policy = RecomputePolicy::ops, .ops = only});
    } else if (space.recompute_modules.of_model && contains(software.recompute, RecomputePolicy::ops) &&
               (has || whatever)) {
      for (const std::vector<std::string>& modules : module_choices(base.model, layout.precision))
        add({.policy = RecomputePolicy::ops, .ops = modules});
    }
  }
  return list;
}

}  // namespace headroom
