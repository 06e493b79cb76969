#include "headroom/schedule/replay.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <queue>

#include "headroom/core/counts.hpp"
#include "headroom/schedule/window.hpp"

namespace headroom {
namespace {

// What a pass through a stage waits for: a forward pass for the stage before it, a backward pass for the stage
// after it, the last stage's backward for its own forward. The first stage's forward waits for nothing, nor does a pass
// for weights, whose backward pass its rank has run.
struct Input {
  Pass pass = Pass::forward;
  std::int64_t stage = 0;
  friend bool operator==(const Input&, const Input&) = default;
};

constexpr bool must_arrive(const Input& input) {
  return input.pass == Pass::backward || (input.pass == Pass::forward && input.stage > 0);
}

// What the pass that uses `input` makes for another pass, if it makes anything.
std::optional<Input> output_of(const Input& input, std::int64_t stages) {
  if (input.pass == Pass::backward_weight) return std::nullopt;
  if (input.pass == Pass::backward) {
    return input.stage > 0 ? std::optional(Input{Pass::backward, input.stage - 1}) : std::nullopt;
  }
  const bool last = input.stage + 1 == stages;
  return last ? Input{Pass::backward, input.stage} : Input{Pass::forward, input.stage + 1};
}

// How long the output keeps its sender. A link is named by the rank whose forward passes use it.
Seconds transfer_time(const ScheduleShape& shape, const ScheduleTimes& times, const Input& input) {
  const std::optional<Input> output = output_of(input, shape.ranks * shape.chunks);
  if (!output || output->stage == input.stage || shape.ranks == 1 || times.links.empty()) return Seconds(0);
  const std::int64_t link = std::min(input.stage, output->stage) % shape.ranks;
  return times.links[index(link)];
}

PassTimes spent_on(Pass pass, bool stored, const PassTimes& stage) {
  if (pass == Pass::forward) return {.forward = stage.forward};
  if (pass == Pass::backward_weight) return {.backward_weight = stage.backward_weight};
  return {.recompute = stored ? Seconds(0) : stage.recompute, .backward = stage.backward};
}

// Of a virtual stage: times of its transfers, and when what its passes wait for arrived. Microbatches arrive and are
// used in the same order, so that a queue of times is all there is to know.
struct StageState {
  std::array<Seconds, 3> transfer;  // by pass
  std::array<std::queue<Seconds>, 2> arrived;
};

struct RankState {
  RankOrder order;
  StorageWindow window;
  Progress done;
  Seconds clock;
  std::optional<Input> waits_for;
};

}  // namespace

ReplayedSchedule replay_schedule(const ScheduleShape& shape, const ScheduleTimes& times,
                                 const std::function<void(const ReplayedStep&)>& visit) {
  EXPECTS(std::ssize(times.stages) == shape.ranks * shape.chunks);
  EXPECTS(times.links.empty() || std::ssize(times.links) == shape.ranks);
  EXPECTS(times.windows.empty() || std::ssize(times.windows) == shape.ranks);

  ReplayedSchedule result{.ranks = std::vector<ReplayedRank>(index(shape.ranks))};
  std::vector<StageState> stages(times.stages.size());
  for (std::int64_t stage = 0; stage < std::ssize(stages); ++stage) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      stages[index(stage)].transfer[index(pass)] = transfer_time(shape, times, {pass, stage});
    }
  }
  // A rank runs until it waits and is woken by what it waits for, so that no step is tried twice.
  std::vector<RankState> ranks;
  std::vector<std::int64_t> runnable;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    const std::int64_t window = times.windows.empty() ? 0 : times.windows[index(rank)];
    ranks.push_back({.order = order_of(shape, rank), .window = {shape.chunks, window}});
    runnable.push_back(shape.ranks - 1 - rank);
  }

  const auto arrive = [&](const Input& input, Seconds when) {
    stages[index(input.stage)].arrived[index(input.pass)].push(when);
    const std::int64_t receiver = input.stage % shape.ranks;
    if (ranks[index(receiver)].waits_for != input) return;
    ranks[index(receiver)].waits_for.reset();
    runnable.push_back(receiver);
  };

  // Runs a step whose input has arrived.
  const auto run = [&](std::int64_t rank, const Step& step, const Input& input) {
    RankState& state = ranks[index(rank)];
    StageState& stage = stages[index(input.stage)];
    ReplayedStep event{.rank = rank, .step = step, .stored = state.window.stores(step), .start = state.clock};
    if (must_arrive(input)) {
      std::queue<Seconds>& arrived = stage.arrived[index(input.pass)];
      event.start = std::max(event.start, arrived.front());
      arrived.pop();
    }
    const PassTimes spent = spent_on(step.pass, event.stored, times.stages[index(input.stage)]);
    const Seconds transfer = stage.transfer[index(step.pass)];
    event.recompute_end = event.start + spent.recompute;
    event.end = event.recompute_end + (spent.forward + spent.backward + spent.backward_weight);
    event.sent = event.end + transfer;

    ReplayedRank& sum = result.ranks[index(rank)];
    sum.idle += event.start - state.clock;
    sum.forward += spent.forward;
    sum.recompute += spent.recompute;
    sum.backward += spent.backward + spent.backward_weight;
    sum.sending += transfer;
    if (event.stored && step.pass == Pass::forward) ++sum.stored_forwards;

    state.clock = event.sent;
    count(state.done, step.pass);
    if (const auto output = output_of(input, std::ssize(stages))) arrive(*output, event.sent);
    if (visit) visit(event);
  };

  while (!runnable.empty()) {
    const std::int64_t rank = runnable.back();
    runnable.pop_back();
    RankState& state = ranks[index(rank)];
    while (!finished(shape, state.done)) {
      const Step step = next_step(shape, state.order, state.done);
      const Input input{step.pass, stage_of(shape, rank, step.chunk)};
      if (must_arrive(input) && stages[index(input.stage)].arrived[index(input.pass)].empty()) {
        state.waits_for = input;
        break;
      }
      run(rank, step, input);
    }
  }

  for (const RankState& state : ranks) {
    EXPECTS(finished(shape, state.done));  // or ranks wait for each other
    result.makespan = std::max(result.makespan, state.clock);
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    result.ranks[rank].idle += result.makespan - ranks[rank].clock;
  }
  return result;
}

}  // namespace headroom
