#include "headroom/search/given_values.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <type_traits>

#include "headroom/core/contains.hpp"

namespace headroom {
namespace {

using IsField = std::function<bool(std::string_view field)>;

bool is_searched(std::string_view field) {
  return std::any_of(space_fields.begin(), space_fields.end(),
                     [&](const SpaceField& it) { return it.field == field; });
}

std::vector<std::int64_t> sizes_of(const Counts& counts, const std::vector<std::int64_t>& open) {
  return counts.only.empty() ? open : counts.only;
}

template <class T>
std::vector<T> choices_of(const std::vector<T>& given, const std::vector<T>& open) {
  return given.empty() ? open : given;
}

// Of a switch that one value is asked for, that one.
std::vector<bool> switch_of(const std::vector<bool>& given, const std::vector<bool>& open) {
  return given.size() == 1 ? given : open;
}

std::vector<Recomputation> recomputations_of(const Request& base, const Space& space) {
  const std::vector<std::string>& ops = space.recompute_modules.only;
  std::vector<Recomputation> list;
  if (!ops.empty()) list.push_back({.policy = RecomputePolicy::ops, .ops = ops});
  std::vector<RecomputePolicy> policies = space.recompute;
  if (policies.empty() && ops.empty()) policies = base.software.recompute;
  for (const RecomputePolicy policy : policies) {
    if (policy == RecomputePolicy::ops) continue;
    list.push_back({.policy = policy});
    if (policy == RecomputePolicy::full) list.push_back({.policy = policy, .layers = 1});
  }
  if (list.empty()) list.emplace_back();
  for (Recomputation& recompute : list) recompute.window = space.recompute_window;
  return list;
}

// Strategies of a space: the listed values of each field with those of all others, and of fields that are open the values that
// other fields may need. GPUs and sequences there are as many as such a strategy takes.
class Probes {
 public:
  Probes(const Request& base, const Space& space)
      : base_(base), shard_sizes_(sizes_of(space.shard_size, {0})) {
    const auto with = [&](auto values, auto set) {
      axes_.push_back({values.size(), [values, set](Strategy& it, std::size_t i) { set(it, values[i]); }});
    };
    with(recomputations_of(base, space), [](Strategy& it, const Recomputation& to) { it.recompute = to; });
    with(choices_of(choices_of(space.data_sharding, base.software.sharding.modes), {DataSharding::none}),
         [](Strategy& it, DataSharding to) { it.data_sharding = to; });
    with(switch_of(space.sequence_parallel, {false, true}),
         [](Strategy& it, bool to) { it.sequence_parallel = to; });
    with(sizes_of(space.pipeline_parallel, {1, 2}),
         [](Strategy& it, std::int64_t to) { it.pipeline_parallel = to; });
    with(sizes_of(space.virtual_pipeline, {1, 2}),
         [](Strategy& it, std::int64_t to) { it.virtual_pipeline = to; });
    with(space.schedules, [](Strategy& it, ScheduleKind to) { it.schedule = to; });
    with(sizes_of(space.tensor_parallel, {1, 2}),
         [](Strategy& it, std::int64_t to) { it.tensor_parallel = to; });
    with(sizes_of(space.context_parallel, {1, 2}),
         [](Strategy& it, std::int64_t to) { it.context_parallel = to; });
    with(choices_of(choices_of(space.cp_comm, admitted_cp_comm(base.model)), {CpComm::p2p}),
         [](Strategy& it, CpComm to) { it.cp_comm = to; });
    with(sizes_of(space.expert_parallel,
                  any_experts(base.model) ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{1}),
         [](Strategy& it, std::int64_t to) { it.expert_parallel = to; });
    with(sizes_of(space.expert_tensor_parallel, {1}),
         [](Strategy& it, std::int64_t to) { it.expert_tensor_parallel = to; });
    with(choices_of(space.moe_dispatcher, {base.strategy.moe_dispatcher}),
         [](Strategy& it, Dispatcher to) { it.moe_dispatcher = to; });
    with(sizes_of(space.micro_batch, {1}), [](Strategy& it, std::int64_t to) { it.micro_batch = to; });
    with(shard_sizes_, [](Strategy& it, std::int64_t to) { it.shard_size = to; });
    with(choices_of(space.no_reshard_after_forward, {false}),
         [](Strategy& it, bool to) { it.no_reshard_after_forward = to; });
    with(switch_of(space.sync_each_batch, {false}), [](Strategy& it, bool to) { it.sync_each_batch = to; });
    with(choices_of(space.precision, {base.strategy.precision}),
         [](Strategy& it, Precision to) { it.precision = to; });
    with(choices_of(space.overlap_expert_all_to_all, {base.strategy.overlap_expert_all_to_all}),
         [](Strategy& it, bool to) { it.overlap_expert_all_to_all = to; });
    data_parallel_ = space.data_parallel.only;
  }

  // Returns the rules of fields that every probe breaks, as the first breaks them.
  [[nodiscard]] std::vector<Problem> common(const IsField& is_field) const {
    constexpr std::int64_t most_probes = 100'000;  // beyond them the search itself has to tell
    std::vector<std::size_t> at(axes_.size(), 0);
    std::vector<Problem> all;
    for (std::int64_t probes = 0; probes < most_probes; ++probes) {
      const std::vector<Problem> broken = broken_at(at);
      if (probes == 0) {
        std::copy_if(broken.begin(), broken.end(), std::back_inserter(all),
                     [&](const Problem& problem) { return is_field(problem.where); });
      }
      std::erase_if(all, [&](const Problem& problem) {
        return std::none_of(broken.begin(), broken.end(),
                            [&](const Problem& other) { return other.where == problem.where; });
      });
      if (all.empty() || !advance(at)) return all;
    }
    return {};
  }

 private:
  struct Axis {
    std::size_t count;
    std::function<void(Strategy&, std::size_t)> set;
  };

  // The first axis is the fastest.
  bool advance(std::vector<std::size_t>& at) const {
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      if (++at[axis] < axes_[axis].count) return true;
      at[axis] = 0;
    }
    return false;
  }

  [[nodiscard]] std::vector<Problem> broken_at(const std::vector<std::size_t>& at) const {
    Request probe = base_;
    Strategy& strategy = probe.strategy;
    for (std::size_t axis = 0; axis < at.size(); ++axis) axes_[axis].set(strategy, at[axis]);
    const std::int64_t of_experts = strategy.expert_parallel * strategy.expert_tensor_parallel;
    strategy.data_parallel =
        std::lcm(std::max<std::int64_t>(of_experts, 2), std::max<std::int64_t>(strategy.shard_size, 1));
    if (!data_parallel_.empty()) strategy.data_parallel = data_parallel_.front();
    // As many microbatches as any schedule asks for, of each rank; one where each backward pass steps.
    const std::int64_t rounds =
        strategy.step_in_backward ? 1 : 4 * strategy.pipeline_parallel * strategy.virtual_pipeline;
    probe.workload.global_batch = rounds * strategy.micro_batch * strategy.data_parallel;
    return illegalities(probe, strategy);
  }

  const Request& base_;
  std::vector<std::int64_t> shard_sizes_;
  std::vector<std::int64_t> data_parallel_;
  std::vector<Axis> axes_;
};

bool any_layout_is_legal(const Request& base, const Space& space) {
  bool legal = false;
  try {
    visit_layouts(
        base, space, [&](const Strategy&) { return !(legal = true); }, [](const Problem&) {});
  } catch (const InputError&) {
    return false;  // the devices have none of the precisions
  }
  return legal;
}

// The rules that a field breaks in the whole space. Layouts say nothing of recomputation, nor of what is offloaded with it; of other
// fields they have the last word.
std::vector<Problem> broken_everywhere(const Request& base, const Space& space, const IsField& is_field) {
  std::vector<Problem> broken = Probes(base, space).common(is_field);
  const bool of_layouts = std::none_of(broken.begin(), broken.end(), [](const Problem& problem) {
    return problem.where.starts_with("recompute") || problem.where.starts_with("offload");
  });
  if (!broken.empty() && of_layouts && any_layout_is_legal(base, space)) return {};
  return broken;
}

// Windows are tried besides whatever else is.
Space without_windows(Space space) {
  space.recompute_window = false;
  return space;
}

// Calls visit(part) with the space of each value that a field of it lists alone. Of listed sizes some may divide what they must: they
// stay together.
template <class Visit>
void visit_values(const Request& base, const Space& space, const SpaceField& field, const Visit& visit) {
  Space part = without_windows(space);
  const auto each = [&](auto member) {
    using Values = std::remove_cvref_t<decltype(space.*member)>;
    if constexpr (std::is_same_v<Values, Counts> || std::is_same_v<Values, ModuleSets>) {
      if (!(space.*member).only.empty()) visit(part);
    } else if constexpr (std::is_same_v<Values, bool>) {
      if (space.*member != Space().*member) visit(space);
    } else if constexpr (std::is_same_v<Values, std::vector<ScheduleKind>>) {
      if (space.*member == searched_schedules(base.software) || space.*member == Space().*member) return;
      for (const ScheduleKind value : space.*member) {
        part.*member = {value};
        visit(part);
      }
    } else if ((space.*member).size() == 1 || !std::is_same_v<Values, std::vector<bool>>) {
      for (const auto value : space.*member) {
        part.*member = {value};
        visit(part);
      }
    }
  };
  std::visit(each, field.values);
}

Space without_sizes(Space space) {
  for (const SpaceField& field : space_fields) {
    if (const auto* const member = std::get_if<Counts Space::*>(&field.values)) space.*(*member) = {};
  }
  return space;
}

}  // namespace

std::vector<Problem> value_illegalities(const Request& base, const Space& space) {
  std::vector<Problem> problems = broken_everywhere(
      base, without_windows(space), [](std::string_view field) { return !is_searched(field); });
  if (!problems.empty()) return problems;
  for (const SpaceField& field : space_fields) {
    visit_values(base, space, field, [&](const Space& part) {
      for (Problem& problem :
           broken_everywhere(base, part, [&](std::string_view broken) { return broken == field.field; })) {
        if (!contains(problems, problem)) problems.push_back(std::move(problem));
      }
    });
  }
  return problems;
}

void check_values(const Request& base, const Space& space, const Compared& comparison, ModelSize size) {
  std::vector<Problem> first;
  for (std::size_t offer = 0; offer < comparison.offers.size(); ++offer) {
    const Variant variant{.offer = offer,
                          .devices = comparison.device_counts.front(),
                          .global_batch = comparison.global_batches.front()};
    const Space part = space_of(space, comparison, variant);
    std::vector<Problem> problems = value_illegalities(request_of(base, comparison, variant),
                                                       size == ModelSize::given ? part : without_sizes(part));
    if (problems.empty()) return;
    if (offer == 0) first = std::move(problems);
  }
  throw InputError(std::move(first));
}

}  // namespace headroom
