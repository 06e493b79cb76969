#include "headroom/schedule/replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/schedule/window.hpp"

namespace headroom {
namespace {

// Input that a pass waits for. A forward pass waits for the stage before it, and a backward pass for the
// stage after it. The last stage's backward pass waits for its own forward pass. The first stage's forward
// pass waits for nothing. A weight-gradient pass waits for nothing either, since its rank has run the
// backward pass.
struct Input {
  Pass pass = Pass::forward;
  PlaceOfCopy place;
  friend bool operator==(const Input&, const Input&) = default;
};

constexpr bool must_arrive(const Input& input) {
  return input.pass == Pass::backward || (input.pass == Pass::forward && input.place.stage > 0);
}

// Returns what the pass that uses `input` makes for another pass, or nothing.
std::optional<Input> output_of(const Input& input, std::int64_t stages) {
  const auto [copy, stage] = input.place;
  if (input.pass == Pass::backward_weight) return std::nullopt;
  if (input.pass == Pass::backward) {
    return stage > 0 ? std::optional(Input{Pass::backward, {copy, stage - 1}}) : std::nullopt;
  }
  const bool last = stage + 1 == stages;
  return last ? Input{Pass::backward, {copy, stage}} : Input{Pass::forward, {copy, stage + 1}};
}

// Returns how long sending the output blocks the rank.
Seconds transfer_time(const ScheduleShape& shape, const ScheduleTimes& times, const Input& input) {
  const std::optional<Input> output = output_of(input, stages_of(shape));
  if (!output || output->place == input.place || times.links.empty()) return Seconds(0);
  const std::int64_t first = std::min(input.place.stage, output->place.stage);
  const auto link = link_after(shape, {input.place.copy, first});
  return link ? times.links[index(*link)] : Seconds(0);
}

PassTimes spent_on(const Step& step, bool stored, const PassTimes& stage) {
  switch (step.pass) {
    case Pass::forward: return {.forward = stage.forward};
    case Pass::backward_weight: return {.backward_weight = stage.backward_weight};
    case Pass::backward: break;
  }
  return {.recompute = stored ? Seconds(0) : stage.recompute,
          .backward = stage.backward,
          .backward_weight = step.whole ? stage.backward_weight : Seconds(0)};
}

// State of a virtual stage of a copy of the model: its transfer times, and the arrival times of inputs.
// Microbatches arrive and are used in the same order, so queues of times suffice. (In breadth-first
// schedules, the last stage uses its own forward passes in the opposite order, once all of them are done.)
struct StageState {
  std::array<Seconds, 3> transfer;  // by pass
  std::array<std::deque<Seconds>, 2> arrived;
};

struct RankState {
  RankOrder order;
  StorageWindow window;
  Progress done;
  Seconds clock;
  std::optional<Input> waits_for;
};

// Sums of a rank that grow by the same amount in every period.
constexpr std::array sums_of_rank{&ReplayedRank::forward, &ReplayedRank::recompute, &ReplayedRank::backward,
                                  &ReplayedRank::sending, &ReplayedRank::hidden,    &ReplayedRank::idle};

// State of a replay when its first rank has just ended a period: a group of microbatches, or a turn of a
// round. `waiting` and `progress` decide the order of all later steps, and `times` when they start.
struct Snapshot {
  std::vector<std::int64_t> waiting;  // ranks that may run, inputs that ranks wait for, lengths of queues
  std::vector<Progress> progress;     // by rank
  std::vector<Seconds> times;         // clocks of the ranks, arrivals of inputs
  std::vector<ReplayedRank> ranks;
};

// Whether periods that are alike run step by step.
enum class Periods : std::uint8_t { replayed, skipped };

class Replay {
 public:
  Replay(const PipelineOrder& order, const ScheduleTimes& times,
         const std::function<void(const ReplayedStep&)>& visit)
      : shape_(order.shape()), times_(times), visit_(visit), result_{.makespan = {}, .ranks = {}} {
    const ScheduleShape& shape = shape_;
    result_.ranks.resize(index(shape.ranks));
    first_start_.resize(index(shape.ranks));
    stages_.resize(times.stages.size() * index(model_copies(shape.kind)));
    for (std::int64_t copy = 0; copy < model_copies(shape.kind); ++copy) {
      for (std::int64_t stage = 0; stage < stages_of(shape); ++stage) {
        for (const Pass pass : {Pass::forward, Pass::backward}) {
          state_at({copy, stage}).transfer[index(pass)] = transfer_time(shape, times, {pass, {copy, stage}});
        }
      }
    }
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      const std::int64_t window = times.windows.empty() ? 0 : times.windows[index(rank)];
      ranks_.push_back({.order = order.of(rank), .window = {shape.chunks, window}});
      runnable_.push_back(shape.ranks - 1 - rank);
    }
  }

  // Periods::skipped: once every time of the pipeline has moved on by the same amount in a period, the
  // periods that follow are alike, and are added up without running their steps.
  ReplayedSchedule run(Periods periods) {
    bool looks = periods == Periods::skipped && times_.windows.empty();
    // A rank runs until it waits, and its input wakes it, so that no step is tried twice.
    while (!runnable_.empty()) {
      const std::int64_t rank = runnable_.back();
      runnable_.pop_back();
      bool ran = true;
      while (ran && !finished(rank)) {
        ran = step(rank);
        if (looks && rank == 0 && ran && ends_period()) looks = !skip_periods();
      }
    }
    for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
      EXPECTS(finished(rank));  // otherwise ranks wait for each other
      result_.makespan = std::max(result_.makespan, ranks_[index(rank)].clock);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ReplayedRank& sum = result_.ranks[rank];
      if (has_weight_passes(shape_)) sum.span = ranks_[rank].clock - first_start_[rank];
      sum.idle += result_.makespan - ranks_[rank].clock;
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool finished(std::int64_t rank) const {
    const RankState& state = ranks_[index(rank)];
    return headroom::finished(shape_, state.order, state.done);
  }

  StageState& state_at(const PlaceOfCopy& place) {
    return stages_[index(place.copy * stages_of(shape_) + place.stage)];
  }
  [[nodiscard]] const PassTimes& times_at(const PlaceOfCopy& place) const {
    return times_.stages[index(place.stage)];
  }

  [[nodiscard]] Input input_of(std::int64_t rank, const Step& step) const {
    return {step.pass, place_of(shape_, rank, step.chunk)};
  }

  std::deque<Seconds>& arrivals(const Input& input) {
    return state_at(input.place).arrived[index(input.pass)];
  }

  // Returns whether the input has arrived. If not, its arrival wakes the rank.
  bool ready(std::int64_t rank, const Input& input) {
    if (!must_arrive(input) || !arrivals(input).empty()) return true;
    ranks_[index(rank)].waits_for = input;
    return false;
  }

  void arrive(const Input& input, Seconds when) {
    arrivals(input).push_back(when);
    const std::int64_t receiver = rank_of(shape_, input.place);
    if (ranks_[index(receiver)].waits_for != input) return;
    ranks_[index(receiver)].waits_for.reset();
    runnable_.push_back(receiver);
  }

  void take(const Input& input, Seconds& start) {
    if (!must_arrive(input)) return;
    start = std::max(start, arrivals(input).front());
    arrivals(input).pop_front();
  }

  // Runs the next step of a rank, or the next two if they overlap. Returns false if the rank has to wait.
  bool step(std::int64_t rank) {
    RankState& state = ranks_[index(rank)];
    const Step step = next_step(shape_, state.order, state.done);
    const Input input = input_of(rank, step);
    if (!ready(rank, input)) return false;
    if (step.beside) return pair(rank, step, input);
    ReplayedStep event = started(rank, step);
    take(input, event.start);
    const PassTimes spent = spent_on(step, event.stored, times_at(input.place));
    event.recompute_end = event.start + spent.recompute;
    event.end = event.recompute_end + (spent.forward + spent.backward + spent.backward_weight);
    event.sent = event.end + state_at(input.place).transfer[index(step.pass)];

    ReplayedRank& sum = result_.ranks[index(rank)];
    sum.idle += event.start - state.clock;
    add(sum, spent);
    sum.sending += event.sent - event.end;
    if (event.stored && step.pass == Pass::forward) ++sum.stored_forwards;
    complete(rank, event, input);
    return true;
  }

  bool pair(std::int64_t rank, const Step& forward, const Input& forward_input) {
    RankState& state = ranks_[index(rank)];
    Progress after = state.done;
    count(shape_, state.order, after, forward);
    const Step backward = next_step(shape_, state.order, after);
    const Input backward_input = input_of(rank, backward);
    if (!ready(rank, backward_input)) return false;
    ReplayedStep ahead = started(rank, forward);
    take(forward_input, ahead.start);
    take(backward_input, ahead.start);
    const PassTimes& of_forward = times_at(forward_input.place);
    const PassTimes& of_backward = times_at(backward_input.place);
    const PassTimes spent_ahead = spent_on(forward, false, of_forward);
    const PassTimes spent_back = spent_on(backward, false, of_backward);
    const Seconds hidden = hidden_beside(of_forward, of_backward, times_.overlap_loss);
    ahead.recompute_end = ahead.start;
    ahead.end = ahead.start + (total(spent_ahead) + total(spent_back) - hidden);
    // Both outputs are sent at the same time.
    ahead.sent = ahead.end + std::max(state_at(forward_input.place).transfer[index(Pass::forward)],
                                      state_at(backward_input.place).transfer[index(Pass::backward)]);
    ReplayedStep back = ahead;
    back.step = backward;
    back.recompute_end = back.start + spent_back.recompute;

    ReplayedRank& sum = result_.ranks[index(rank)];
    sum.idle += ahead.start - state.clock;
    add(sum, spent_ahead);
    add(sum, spent_back);
    sum.backward -= hidden;
    sum.hidden += hidden;
    sum.sending += ahead.sent - ahead.end;
    complete(rank, ahead, forward_input);
    complete(rank, back, backward_input);
    return true;
  }

  ReplayedStep started(std::int64_t rank, const Step& step) {
    RankState& state = ranks_[index(rank)];
    return {.rank = rank, .step = step, .stored = state.window.stores(step), .start = state.clock};
  }

  static void add(ReplayedRank& sum, const PassTimes& spent) {
    sum.forward += spent.forward;
    sum.recompute += spent.recompute;
    sum.backward += spent.backward + spent.backward_weight;
  }

  void complete(std::int64_t rank, const ReplayedStep& event, const Input& input) {
    RankState& state = ranks_[index(rank)];
    if (state.done == Progress{}) first_start_[index(rank)] = event.start;
    state.clock = event.sent;
    count(shape_, state.order, state.done, event.step);
    if (const auto output = output_of(input, stages_of(shape_))) arrive(*output, event.sent);
    if (visit_) visit_(event);
  }

  [[nodiscard]] std::int64_t passes_of_period() const { return group_size(shape_) * shape_.chunks; }

  // Returns whether the first rank has just ended a period.
  [[nodiscard]] bool ends_period() const {
    const RankState& first = ranks_.front();
    if (finished(0)) return false;
    if (!first.order.rounds.empty()) return first.done.move == 0 && first.done.turn > 0;
    return first.done.backwards > 0 && first.done.forwards > first.done.backwards &&
           first.done.backwards % passes_of_period() == 0 && first.done.backwards != last_period_;
  }

  [[nodiscard]] Snapshot snapshot() const {
    Snapshot now{.waiting = runnable_, .ranks = result_.ranks};
    for (const RankState& rank : ranks_) {
      now.progress.push_back(rank.done);
      now.times.push_back(rank.clock);
      const Input input = rank.waits_for.value_or(Input{Pass::backward_weight, {}});
      now.waiting.insert(now.waiting.end(),
                         {std::int64_t(index(input.pass)), input.place.copy, input.place.stage});
    }
    for (const StageState& stage : stages_) {
      for (const std::deque<Seconds>& arrived : stage.arrived) {
        now.waiting.push_back(std::ssize(arrived));
        now.times.insert(now.times.end(), arrived.begin(), arrived.end());
      }
    }
    return now;
  }

  // Returns how many more periods every rank surely runs as it ran the last one.
  [[nodiscard]] std::int64_t periods_left(const Snapshot& before) const {
    std::int64_t left = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const Progress& then = before.progress[i];
      const Progress& now = ranks_[i].done;
      const std::vector<Round>& rounds = ranks_[i].order.rounds;
      if (rounds.empty()) {
        const std::int64_t passes = passes_of_period();
        const std::int64_t of_whole_groups = shape_.microbatches / group_size(shape_) * passes;
        const bool same = now.forwards - then.forwards == passes && now.backwards - then.backwards == passes;
        left = same ? std::min(left, (of_whole_groups - now.forwards) / passes - 1) : 0;
        if (has_weight_passes(shape_) && now.weights - then.weights != passes) left = 0;
        continue;
      }
      if (finished(std::int64_t(i)) || now.round != then.round || now.move != then.move ||
          now.turn <= then.turn) {
        return 0;
      }
      const std::int64_t turns = now.turn - then.turn;
      left = std::min(left, (rounds[now.round].times - 1 - now.turn) / turns - 1);
      for (std::size_t pass = 0; pass < now.of_chunk.size(); ++pass) {
        for (std::size_t chunk = 0; chunk < now.of_chunk[pass].size(); ++chunk) {
          const std::int64_t step = now.of_chunk[pass][chunk] - then.of_chunk[pass][chunk];
          if (step == 0) continue;
          left = std::min(left, (microbatches_of_chunk(shape_) - now.of_chunk[pass][chunk]) / step - 1);
        }
      }
    }
    return left;
  }

  // Skips the periods that are like the last one. Returns whether no more of them will be found.
  bool skip_periods() {
    last_period_ = ranks_.front().done.backwards;
    Snapshot now = snapshot();
    const Snapshot before = std::exchange(last_, now);
    if (before.waiting != now.waiting) return false;
    const std::int64_t count = periods_left(before);
    if (count < 1) return false;
    const Seconds period = now.times.front() - before.times.front();
    constexpr double rounding = 1e-12;  // relative, of sums of a few thousand times
    for (std::size_t i = 0; i < now.times.size(); ++i) {
      const Seconds off = now.times[i] - before.times[i] - period;
      if (std::abs(off.count()) > rounding * now.times[i].count()) return false;
    }
    const Seconds skipped = real(count) * period;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].clock += skipped;
      advance(ranks_[i].done, before.progress[i], count);
      for (const auto sum : sums_of_rank) {
        result_.ranks[i].*sum += real(count) * (now.ranks[i].*sum - before.ranks[i].*sum);
      }
    }
    for (StageState& stage : stages_) {
      for (std::deque<Seconds>& arrived : stage.arrived) {
        for (Seconds& when : arrived) when += skipped;
      }
    }
    return true;
  }

  // Moves progress on by `count` times what it is ahead of `before`.
  static void advance(Progress& now, const Progress& before, std::int64_t count) {
    const auto move = [count](std::int64_t& value, std::int64_t from) { value += count * (value - from); };
    move(now.forwards, before.forwards);
    move(now.backwards, before.backwards);
    move(now.weights, before.weights);
    move(now.turn, before.turn);
    for (std::size_t pass = 0; pass < now.of_chunk.size(); ++pass) {
      for (std::size_t chunk = 0; chunk < now.of_chunk[pass].size(); ++chunk)
        move(now.of_chunk[pass][chunk], before.of_chunk[pass][chunk]);
    }
  }

  const ScheduleShape& shape_;
  const ScheduleTimes& times_;
  const std::function<void(const ReplayedStep&)>& visit_;
  ReplayedSchedule result_;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::vector<Seconds> first_start_;  // by rank
  std::vector<std::int64_t> runnable_;
  Snapshot last_;                  // at the end of the last period
  std::int64_t last_period_ = -1;  // backward passes that the first rank had run then
};

ReplayedSchedule replayed(const PipelineOrder& order, const ScheduleTimes& times, Periods periods,
                          const std::function<void(const ReplayedStep&)>& visit) {
  const ScheduleShape& shape = order.shape();
  EXPECTS(std::ssize(times.stages) == stages_of(shape));
  EXPECTS(times.links.empty() || std::ssize(times.links) == shape.ranks);
  EXPECTS(times.windows.empty() || std::ssize(times.windows) == shape.ranks);
  return Replay(order, times, visit).run(periods);
}

}  // namespace

Seconds hidden_beside(const PassTimes& forward, const PassTimes& backward, double overlap_loss) {
  const Seconds ahead = forward.forward_exchanges;
  const Seconds back = backward.backward_exchanges;
  const Seconds forward_work = forward.forward - ahead;
  const Seconds backward_work =
      backward.recompute - backward.recompute_exchanges + backward.backward - back + backward.backward_weight;
  const Seconds delayed = backward.delayed_weight;
  const auto left = [](Seconds collective, Seconds work) { return std::max(collective - work, Seconds(0)); };
  if (delayed == Seconds(0)) {
    const auto shown = [&](Seconds collective, Seconds work) {
      return std::max(left(collective, work), overlap_loss * collective);
    };
    return ahead + back - shown(ahead, backward_work) - shown(back, forward_work);
  }
  // Delayed weight gradients hide what the other pass leaves exposed.
  const Seconds both = left(ahead, backward_work - delayed) + left(back, forward_work);
  return ahead + back - std::max(left(both, delayed), overlap_loss * (ahead + back));
}

ReplayedSchedule replay_schedule(const PipelineOrder& order, const ScheduleTimes& times,
                                 const std::function<void(const ReplayedStep&)>& visit) {
  return replayed(order, times, Periods::replayed, visit);
}

ReplayedSchedule replay_periods(const PipelineOrder& order, const ScheduleTimes& times) {
  return replayed(order, times, Periods::skipped, {});
}

}  // namespace headroom
