#include "headroom/search/limits.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "headroom/core/contains.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/changes.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/find_held.hpp"
#include "headroom/search/widen.hpp"

namespace headroom {

std::optional<BlockedChange> blocked_by_memory(const Plan& plan) {
  std::optional<BlockedChange> fastest;
  Composer composer(plan.request);
  for (const Edits& change : changes_on_same_devices(plan.request)) {
    const Strategy strategy = changed(plan.request, change).strategy;
    if (!can_replace(plan.request, strategy, &composer.known_layers())) continue;
    const Layout layout = composer.layout(strategy);
    const Seconds iteration = layout.iteration(strategy);
    if (iteration >= (fastest ? fastest->iteration : plan.timing->iteration.total)) continue;
    const RankPeak peak = layout.peak(strategy);
    Bytes needed = peak.bytes;
    if (verdict_of(plan.request, needed) != Verdict::does_not_fit) {
      // The tensors have room. Whether PyTorch's reserved memory has room is known only after following the
      // allocator.
      const Settling found = settling(composer.evaluate(strategy));
      if (!found.fullest || found.verdict != Verdict::does_not_fit) continue;
      needed = found.fullest->bytes;
    }
    fastest = BlockedChange{change, iteration, needed - plan.request.system.memory, peak.of_host};
  }
  return fastest;
}

std::optional<NarrowerPlan> in_fp8(const Plan& plan) {
  const Request& request = plan.request;
  if (is_narrow(request.strategy.precision)) return std::nullopt;
  std::optional<NarrowerPlan> fastest;
  Composer composer(request);
  for (const Precision precision : {Precision::fp8, Precision::fp8_blockwise, Precision::mxfp8}) {
    Strategy strategy = request.strategy;
    strategy.precision = precision;
    if (!can_replace(request, strategy, &composer.known_layers())) continue;
    const Layout layout = composer.layout(strategy);
    const Seconds iteration = layout.iteration(strategy);
    if (iteration >= (fastest ? fastest->iteration : plan.timing->iteration.total)) continue;
    const Bytes peak = layout.peak(strategy).bytes;
    fastest = NarrowerPlan{precision, iteration, peak, verdict_of(plan.request, peak)};
  }
  if (fastest) {
    Request narrower = request;
    narrower.strategy.precision = fastest->precision;
    fastest->verdict = settled_verdict(evaluate(narrower));
  }
  return fastest;
}

namespace {

// A faster plan, and the change that leads to it: of a strategy, or cuda_graphs of the stack.
struct FasterChange {
  Edits change;
  Seconds iteration;
  Bytes peak;
};

std::string flags_of_change(const Edits& change) {
  return change.front().field == "cuda_graphs" ? "--cuda-graphs " + change.front().value : flags_of(change);
}

// The request on a stack that has every choice, to list the changes that a search of its own stack leaves out.
Request with_every_choice(Request request) {
  for (const auto& [choice, name] : spellings<WideChoice>) request.software.searches.push_back(choice);
  request.software.overlap_expert_all_to_all = true;
  request.software.recompute = {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full,
                                RecomputePolicy::ops};
  return request;
}

Request with_left_out(const Request& request, const Edits& change) {
  if (change.front().field != "cuda_graphs") return changed(request, change);
  Request with_graphs = request;
  with_graphs.software.cuda_graphs = CudaGraphs::layers;
  return with_graphs;
}

}  // namespace

std::vector<LeftOut> left_out(const Plan& plan, const Space& space) {
  const Request& request = plan.request;
  const Seconds most = worth_a_change * plan.timing->iteration.total;
  const Request open = with_every_choice(request);
  Space any = space;
  any.layouts = Layouts::any;
  std::vector<FasterChange> list;
  Composer composer(request);
  const auto consider = [&](const Edits& change) {
    const Strategy strategy = changed(request, change).strategy;
    // No launcher has windows, and no space tries them unasked.
    const bool window = strategy.recompute.window && !request.strategy.recompute.window;
    const bool possible =
        window ? holds(asked(request, strategy, &composer.known_layers()), all_rules)
               : admits(open, any, strategy) && can_replace(request, strategy, &composer.known_layers());
    if (strategy == request.strategy || !possible) return;
    const Layout layout = composer.layout(strategy);
    const Bytes peak = layout.peak(strategy).bytes;
    if (verdict_of(request, peak) > plan.verdict) return;
    if (!window && layout.least_iteration(strategy) >= most) return;
    const Seconds iteration = layout.iteration(strategy);
    if (iteration < most) list.push_back({.change = change, .iteration = iteration, .peak = peak});
  };
  for (const Edits& change : changes_on_same_devices(open)) consider(change);
  consider({{"moe_dispatcher", std::string(name_of(Dispatcher::hybridep))}});
  consider({{"gradient_dtype", std::string(name_of(Dtype::bf16))}});
  if (request.strategy.recompute.policy != RecomputePolicy::none) consider({{"recompute_window", "yes"}});
  if (contains(request.software.searches, WideChoice::cuda_graphs) &&
      request.software.cuda_graphs == CudaGraphs::none) {
    const Edits graphs{{"cuda_graphs", std::string(name_of(CudaGraphs::layers))}};
    const Evaluation evaluation = evaluate(with_left_out(request, graphs));
    const Plan& other = account(evaluation);
    if (other.verdict <= plan.verdict && other.timing->iteration.total < most)
      list.push_back({graphs, other.timing->iteration.total, peak(other)});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const FasterChange& x, const FasterChange& y) { return x.iteration < y.iteration; });
  // The fastest change of each field that fits by what PyTorch reserves.
  std::vector<LeftOut> named;
  std::set<std::string> fields;
  for (const auto& [change, iteration, peak] : list) {
    if (named.size() >= most_left_out || fields.contains(change.front().field)) continue;
    if (settled_verdict(evaluate(with_left_out(request, change))) > plan.verdict) continue;
    fields.insert(change.front().field);
    named.push_back({.change = flags_of_change(change), .iteration = iteration, .peak = peak});
  }
  return named;
}

std::vector<Found> relief(const Request& base, const Space& space, const Watch& watch) {
  const std::int64_t batch = base.workload.global_batch;
  const std::int64_t sequence = base.workload.sequence;
  // Lengths that suit kernels, if there is room for them.
  const std::int64_t step = sequence > usual_sequence_step ? usual_sequence_step : 1;
  std::vector<Found> list;
  for (const Question& question :
       {Question{.extreme = Extreme::min_devices, .most = usual_most_devices},
        Question{.extreme = Extreme::max_batch, .most = batch - 1},
        Question{.extreme = Extreme::max_sequence, .step = step, .most = sequence - 1}}) {
    Found found = find_held(base, space, question, watch);
    if (!found.stopped) list.push_back(std::move(found));
  }
  return list;
}

}  // namespace headroom
