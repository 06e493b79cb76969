#include "headroom/answer/trace.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/memory/step.hpp"
#include "headroom/memory/units.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/schedule/replay.hpp"
#include "headroom/schedule/window.hpp"
#include "headroom/time/model_exchanges.hpp"

namespace headroom {

namespace {

std::string name_of_unit(const ModelLayers& layers, const UnitSpan& span, bool has_embedding) {
  const LayerKind& kind = layers.kinds[span.kind];
  if (kind.position != KindPosition::layer) return kind.name;
  return "layer " + std::to_string(span.unit - (has_embedding ? 1 : 0));
}

// Computation and collectives of the units in a pass of the only rank of a pipeline, from the start of the pass on.
struct UnitTrack {
  std::vector<TraceSpan> spans;
  Seconds length;
};

// By pass: forward, backward. Empty where weights are not divided into units.
std::array<UnitTrack, 2> unit_tracks(const Plan& plan) {
  std::array<UnitTrack, 2> tracks;
  const Request& request = plan.request;
  const Strategy& strategy = request.strategy;
  if (!has_units(strategy, request.workload, request.software)) return tracks;
  const Performance& performance = *request.system.performance;
  const ModelLayers& layers = *plan.layers.tables;
  const ModelExchanges exchanges = model_exchanges(
      layers, model_parameters(request.model, strategy, request.workload, request.software), strategy,
      request.workload, connected_devices(request.system, devices(strategy)), performance, request.software);
  const StagePlace place = stage_places(layers, strategy).front();
  for (const bool backward : {false, true}) {
    UnitTrack& track = tracks.at(backward ? 1 : 0);
    for (const UnitSpan& span : unit_spans(exchanges, plan.timing->iteration.cost, place, strategy.recompute,
                                           performance, request.software, backward)) {
      const char* const verb = span.work == UnitWork::gather   ? "gather "
                               : span.work == UnitWork::reduce ? "reduce "
                                                               : "";
      track.spans.push_back({.name = verb + name_of_unit(layers, span, !exchanges.ends_in_root),
                             .start = span.start,
                             .end = span.end,
                             .collective = span.work != UnitWork::compute});
      track.length = std::max(track.length, span.end);
    }
  }
  return tracks;
}

// Those of a step, as long together as the pass is.
void visit_units(const std::array<UnitTrack, 2>& tracks, const ReplayedStep& event,
                 const TraceStream::TakeSpan& take) {
  const UnitTrack& track = tracks.at(event.step.pass == Pass::backward ? 1 : 0);
  if (track.spans.empty()) return;
  const double scale = (event.end - event.start) / track.length;
  for (TraceSpan span : track.spans) {
    span.rank = event.rank;
    span.start = event.start + scale * span.start;
    span.end = event.start + scale * span.end;
    take(span);
  }
}

std::int64_t steps_of_rank_in(const ScheduleShape& shape) {
  return (has_weight_passes(shape) ? 3 : 2) * shape.microbatches * shape.chunks;
}

// Calls visit(step) for the steps of all ranks, each rank's in order. The schedule is replayed once for as many ranks as there is
// room to hold the steps of; those of the first of them are passed on at once.
template <class Visit>
void visit_by_rank(const PipelineOrder& order, const ScheduleTimes& times, const Visit& visit) {
  const ScheduleShape& shape = order.shape();
  const std::int64_t at_once = std::max<std::int64_t>(1, most_drawn_steps / steps_of_rank_in(shape));
  for (std::int64_t first = 0; first < shape.ranks; first += at_once) {
    std::vector<std::vector<ReplayedStep>> later(index(std::min(at_once, shape.ranks - first) - 1));
    replay_schedule(order, times, [&](const ReplayedStep& step) {
      if (step.rank == first) {
        visit(step);
      } else if (step.rank > first && step.rank <= first + std::ssize(later)) {
        later[index(step.rank - first - 1)].push_back(step);
      }
    });
    for (const std::vector<ReplayedStep>& of_rank : later)
      std::for_each(of_rank.begin(), of_rank.end(), visit);
  }
}

// What a plan's trace is made from.
struct TraceSource {
  PipelineOrder order;
  ScheduleTimes times;
  std::vector<StageActivations> stages;
  std::vector<StageActivations> full;  // where a window stores a pass in full
  std::vector<std::int64_t> windows;   // by rank
  std::array<UnitTrack, 2> units;
  std::vector<TraceSpan> ends;  // after the passes

  explicit TraceSource(const Plan& plan)
      : order(plan.timing->iteration.shape),
        times(plan.timing->iteration.times),
        stages(activations_of(plan.request, plan.request.strategy)),
        full(activations_of(plan.request, storing_all(plan.request.strategy))),
        units(unit_tracks(plan)) {
    for (const RankMemory& memory : plan.ranks) windows.push_back(memory.window);
  }

  [[nodiscard]] std::vector<StepBytes> bytes_of(std::int64_t rank) const {
    std::vector<StepBytes> bytes;
    const ScheduleShape& shape = order.shape();
    bytes.reserve(index(steps_of_rank_in(shape)));
    const Bytes grown = stages.front().grown_gradients;  // part of the state that is not there throughout
    visit_activations(pass_activations(stages, shape, rank), pass_activations(full, shape, rank),
                      windows[index(rank)], order, rank, Walk::every_step, [&](const StepActivations& step) {
                        bytes.push_back({total(step.highest) + grown, total(step.after) + grown});
                      });
    return bytes;
  }

  void visit_steps(const TraceStream::TakeStep& take) const {
    std::int64_t rank = -1;
    std::vector<StepBytes> bytes;
    std::size_t done = 0;
    visit_by_rank(order, times, [&](const ReplayedStep& step) {
      if (step.rank != rank) {
        rank = step.rank;
        bytes = bytes_of(rank);
        done = 0;
      }
      take(step, bytes.at(done++));
    });
  }

  void visit_spans(const TraceStream::TakeSpan& take) const {
    const bool has_tracks =
        std::any_of(units.begin(), units.end(), [](const UnitTrack& it) { return !it.spans.empty(); });
    if (has_tracks)
      visit_by_rank(order, times, [&](const ReplayedStep& step) { visit_units(units, step, take); });
    std::for_each(ends.begin(), ends.end(), take);
  }

 private:
  static Strategy storing_all(Strategy strategy) {
    strategy.recompute = {};
    return strategy;
  }
  static std::vector<StageActivations> activations_of(const Request& request, const Strategy& strategy) {
    return stage_activations(request.model, strategy, request.workload, request.detail, request.software);
  }
};

bool is_collective_span(const TraceSpan& span) { return span.collective; }

}  // namespace

std::int64_t trace_steps(const Plan& plan) {
  const ScheduleShape& shape = plan.timing->iteration.shape;
  return shape.ranks * steps_of_rank_in(shape);
}

TraceStream trace_stream(const Plan& plan) {
  EXPECTS(plan.timing.has_value());
  const IterationTime& iteration = plan.timing->iteration;
  const auto source = std::make_shared<TraceSource>(plan);
  TraceStream stream{.resident = {},
                     .end = iteration.total,
                     .visit_steps = [source](const auto& take) { source->visit_steps(take); },
                     .visit_spans = [source](const auto& take) { source->visit_spans(take); }};
  std::vector<Seconds> done(plan.ranks.size(), iteration.schedule.makespan);
  // Where no rank waits for another's step, it steps its optimizer when it has run its passes.
  const bool ranks_step_apart = iteration.pipeline < iteration.schedule.makespan;
  replay_schedule(source->order, source->times, [&](const ReplayedStep& step) {
    stream.beside = stream.beside || step.step.beside;
    if (ranks_step_apart) done[index(step.rank)] = step.sent;
  });
  const Seconds communication = iteration.total - iteration.pipeline - iteration.breakdown.optimizer;
  for (const RankMemory& memory : plan.ranks) {
    const std::int64_t rank = memory.activations.pipeline_rank;
    stream.resident.push_back({.state = total(memory.state) - memory.activations.grown_gradients,
                               .reserved = memory.dummy_gradients + memory.workspaces + memory.reserved +
                                           memory.activations.kept_logits});
    const Seconds ends = done[index(rank)];
    const Seconds reduced =
        ranks_step_apart ? ends + communication : iteration.total - iteration.breakdown.optimizer;
    const Seconds stepped = ranks_step_apart ? reduced + iteration.breakdown.optimizer : iteration.total;
    if (reduced > ends) source->ends.push_back({"reduce gradients", rank, ends, reduced, true});
    source->ends.push_back({"optimizer", rank, reduced, stepped});
    stream.end = std::max(stream.end, stepped);
  }
  stream.collectives = std::any_of(source->ends.begin(), source->ends.end(), is_collective_span);
  for (const UnitTrack& track : source->units) {
    stream.collectives =
        stream.collectives || std::any_of(track.spans.begin(), track.spans.end(), is_collective_span);
  }
  return stream;
}

Trace trace_of(const Plan& plan) {
  const TraceStream stream = trace_stream(plan);
  Trace trace{.resident = stream.resident, .end = stream.end};
  stream.visit_steps([&](const ReplayedStep& step, const StepBytes&) { trace.steps.push_back(step); });
  stream.visit_spans([&](const TraceSpan& span) { trace.spans.push_back(span); });
  const TraceSource source(plan);
  for (std::int64_t rank = 0; rank < source.order.shape().ranks; ++rank) {
    trace.activations.push_back(
        activations_by_step(source.stages, source.full, source.windows[index(rank)], source.order, rank));
  }
  return trace;
}

TraceStream streamed(const Trace& trace) {
  return {.resident = trace.resident,
          .end = trace.end,
          .beside = std::any_of(trace.steps.begin(), trace.steps.end(),
                                [](const ReplayedStep& step) { return step.step.beside; }),
          .collectives = std::any_of(trace.spans.begin(), trace.spans.end(), is_collective_span),
          .visit_steps =
              [&trace](const auto& take) {
                std::vector<std::size_t> done(trace.activations.size(), 0);
                for (const ReplayedStep& step : trace.steps) {
                  const StepActivations& alive =
                      trace.activations[index(step.rank)].at(done[index(step.rank)]++);
                  EXPECTS(alive.step == step.step);
                  take(step, StepBytes{total(alive.highest), total(alive.after)});
                }
              },
          .visit_spans =
              [&trace](const auto& take) { std::for_each(trace.spans.begin(), trace.spans.end(), take); }};
}

TraceReply answer(const TraceQuestion& question) {
  const Request& request = question.request;
  TraceReply reply{.evaluation = evaluate(request), .trace = {}};
  const Plan& plan = account(reply.evaluation);
  if (!plan.timing) throw InputError(request.system.name, "has no performance figures, which a trace needs");
  if (const std::int64_t steps = trace_steps(plan); steps > most_trace_steps) {
    throw InputError("global_batch", "makes a trace of " + std::to_string(steps) + " steps, of at most " +
                                         std::to_string(most_trace_steps) + ": give fewer microbatches");
  }
  reply.trace = trace_stream(plan);
  return reply;
}

}  // namespace headroom
