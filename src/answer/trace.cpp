#include "headroom/answer/trace.hpp"

#include <algorithm>
#include <array>

#include "headroom/core/error.hpp"
#include "headroom/memory/units.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/time/model_exchanges.hpp"

namespace headroom {

namespace {

std::string name_of_unit(const ModelLayers& layers, const UnitSpan& span, bool has_embedding) {
  const LayerKind& kind = layers.kinds[span.kind];
  if (kind.position != KindPosition::layer) return kind.name;
  return "layer " + std::to_string(span.unit - (has_embedding ? 1 : 0));
}

// Computation and collectives of each unit in each pass of the only rank of a pipeline, as long together as the pass is.
void add_unit_spans(Trace& trace, const Plan& plan) {
  const Request& request = plan.request;
  const Strategy& strategy = request.strategy;
  if (!has_units(strategy, request.workload, request.software)) return;
  const Performance& performance = *request.system.performance;
  const ModelLayers layers = layers_of(request.model, strategy, request.software);
  const ModelExchanges exchanges = model_exchanges(
      layers, model_parameters(request.model, strategy, request.workload, request.software), strategy,
      request.workload, connected_devices(request.system, devices(strategy)), performance, request.software);
  const StagePlace place = stage_places(layers, strategy).front();
  const auto spans_of = [&](bool backward) {
    return unit_spans(exchanges, plan.timing->iteration.cost, place, strategy.recompute, performance,
                      request.software, backward);
  };
  const std::array<std::vector<UnitSpan>, 2> spans{spans_of(false), spans_of(true)};
  for (const ReplayedStep& event : trace.steps) {
    const std::vector<UnitSpan>& of_pass = spans.at(event.step.pass == Pass::backward ? 1 : 0);
    if (of_pass.empty()) continue;
    Seconds length;
    for (const UnitSpan& span : of_pass) length = std::max(length, span.end);
    const double scale = (event.end - event.start) / length;
    for (const UnitSpan& span : of_pass) {
      const std::string unit = name_of_unit(layers, span, !exchanges.ends_in_root);
      const char* const verb = span.work == UnitWork::gather   ? "gather "
                               : span.work == UnitWork::reduce ? "reduce "
                                                               : "";
      trace.spans.push_back({.name = verb + unit,
                             .rank = event.rank,
                             .start = event.start + scale * span.start,
                             .end = event.start + scale * span.end,
                             .collective = span.work != UnitWork::compute});
    }
  }
}

}  // namespace

Trace trace_of(const Plan& plan) {
  EXPECTS(plan.timing.has_value());
  const Request& request = plan.request;
  const IterationTime& iteration = plan.timing->iteration;
  Trace trace{.end = iteration.total};
  replay_schedule(iteration.shape, iteration.times,
                  [&](const ReplayedStep& step) { trace.steps.push_back(step); });
  // Grouped by rank, each rank's in order.
  std::stable_sort(trace.steps.begin(), trace.steps.end(),
                   [](const ReplayedStep& x, const ReplayedStep& y) { return x.rank < y.rank; });

  add_unit_spans(trace, plan);

  const std::vector<StageActivations> stages =
      stage_activations(request.model, request.strategy, request.workload, request.detail, request.software);
  Strategy everything = request.strategy;
  everything.recompute = {};
  const std::vector<StageActivations> full =
      stage_activations(request.model, everything, request.workload, request.detail, request.software);
  // Where no rank waits for another's step, it steps its optimizer when it has run its passes.
  const bool ranks_step_apart = iteration.pipeline < iteration.schedule.makespan;
  std::vector<Seconds> done(plan.ranks.size(), iteration.schedule.makespan);
  if (ranks_step_apart) {
    for (const ReplayedStep& step : trace.steps) done[static_cast<std::size_t>(step.rank)] = step.sent;
  }
  const Seconds communication = iteration.total - iteration.pipeline - iteration.breakdown.optimizer;
  for (const RankMemory& memory : plan.ranks) {
    const std::int64_t rank = memory.activations.pipeline_rank;
    trace.activations.push_back(activations_by_step(stages, full, memory.window, iteration.shape, rank));
    trace.resident.push_back({.state = memory.state.weights + memory.state.gradients + memory.state.optimizer,
                              .reserved = memory.dummy_gradients + memory.workspaces + memory.reserved});
    const Seconds ends = done[static_cast<std::size_t>(rank)];
    const Seconds reduced =
        ranks_step_apart ? ends + communication : iteration.total - iteration.breakdown.optimizer;
    const Seconds stepped = ranks_step_apart ? reduced + iteration.breakdown.optimizer : iteration.total;
    if (reduced > ends) {
      trace.spans.push_back({"reduce gradients", rank, ends, reduced, true});
    }
    trace.spans.push_back({"optimizer", rank, reduced, stepped});
    trace.end = std::max(trace.end, stepped);
  }
  return trace;
}

TraceReply answer(const TraceQuestion& question) {
  const Request& request = question.request;
  TraceReply reply{.evaluation = evaluate(request), .trace = {}};
  const Plan& plan = account(reply.evaluation);
  if (!plan.timing) throw InputError(request.system.name, "has no performance figures, which a trace needs");
  reply.trace = trace_of(plan);
  return reply;
}

}  // namespace headroom
