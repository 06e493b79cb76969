#include "headroom/search/find.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <utility>

#include "headroom/core/error.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/divided_sizes.hpp"
#include "headroom/search/feasibility.hpp"
#include "headroom/search/insisted.hpp"
#include "headroom/search/obstacle.hpp"
#include "search/largest.hpp"
#include "search/longest_sequence.hpp"

namespace headroom {
namespace {

class Finder {
 public:
  Finder(const Request& base, const Space& space, const Question& question,
         std::span<const std::int64_t> global_batches, const Watch& watch)
      : base_(base),
        space_(space),
        question_(question),
        global_batches_(global_batches),
        watch_(watch),
        found_{.question = question} {}

  Found run() {
    switch (question_.extreme) {
      case Extreme::min_devices: min_devices(); break;
      case Extreme::max_batch: max_batch(); break;
      case Extreme::max_sequence: found_.value = longest_sequence(base_, space_, question_, watch_); break;
      case Extreme::max_layers: max_layers(); break;
    }
    const bool fewest = question_.extreme == Extreme::min_devices && found_.value;
    found_.stopped = stops(watch_) && !fewest;
    if (!found_.value && !found_.micro_batch && !found_.stopped) say_why_nothing_fits();
    return found_;
  }

 private:
  // Returns whether something fits at a value in a part of the space.
  [[nodiscard]] bool holds(std::int64_t value, const Space& space) const {
    return fits_at(value, base_, space, question_, watch_);
  }

  // Divisibility decides which layouts are legal on a number of GPUs, so a larger number need not fit where a
  // smaller one does.
  void min_devices() {
    std::vector<Request> requests(global_batches_.size(), base_);
    std::deque<Feasibility> feasibilities;
    found_.least = most_count;
    std::int64_t largest_batch = 1;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Workload& workload = requests[i].workload;
      workload.global_batch = global_batches_[i];
      largest_batch = std::max(largest_batch, workload.global_batch);
      feasibilities.emplace_back(requests[i], watch_);
      // Fewer GPUs fail less often and leave more time for an iteration.
      found_.least =
          std::min(found_.least, devices_lower_bound(requests[i], space_, within_of(question_, workload, 1)));
    }
    // No legal t exceeds what it splits, no p the layers, no d the batch.
    const double most_used = static_cast<double>(most_ranks(base_.model, ParallelAxis::tensor)) *
                             static_cast<double>(base_.model.layers) * static_cast<double>(largest_batch);
    const std::int64_t most = static_cast<double>(question_.most) > most_used
                                  ? static_cast<std::int64_t>(most_used)
                                  : question_.most;
    Space space = space_;
    visit_device_counts(found_.least, most, host_size(base_.system), [&](std::int64_t devices) {
      if (stops(watch_)) return false;
      tell(watch_, finding, devices);
      space.devices = devices;
      for (std::size_t i = 0; i < requests.size() && !found_.value; ++i) {
        const std::optional<Seconds> within = within_of(question_, requests[i].workload, devices);
        if (within ? feasibilities[i].fits_within(space, *within) : feasibilities[i].fits(space)) {
          found_.value = devices;
        }
        found_.question.within = within;
      }
      return !found_.value.has_value();
    });
  }

  // Visits the divisors of a host, then whole hosts. `visit` returns false to end.
  template <class Visit>
  static void visit_device_counts(std::int64_t least, std::int64_t most, std::int64_t host, Visit visit) {
    for (std::int64_t devices = least; devices <= most; ++devices) {
      if (devices > host) devices = round_up(devices, host);
      if (devices > most) return;
      if (devices < host && host % devices != 0) continue;
      if (!visit(devices)) return;
    }
  }

  void say_why_nothing_fits() {
    Request request = base_;
    Space space = space_;
    if (question_.extreme == Extreme::min_devices) {
      visit_device_counts(found_.least, question_.most, host_size(base_.system), [&](std::int64_t devices) {
        space.devices = devices;
        found_.obstacle = obstacle(request, space);
        return found_.obstacle.has_value();
      });
      return;
    }
    if (question_.extreme == Extreme::max_batch) {
      const std::vector<std::int64_t>& sizes = space.micro_batch.only;
      request.workload.global_batch = space.devices * (sizes.empty() ? 1 : sizes.front());
    }
    found_.obstacle = obstacle(request, space);
    if (!found_.obstacle) found_.most_model_parallel = most_model_parallel(request, space);
  }

  // With several kinds of layers, a deeper model may move a heavy layer to a rank with more room, so
  // bisection is not valid. Every depth is tried, from the deepest whose state all GPUs together can hold.
  void max_layers_of_kinds() {
    const std::int64_t step = question_.step;
    const auto holds_state = [&](std::int64_t layers) {
      Request request = base_;
      request.model = with_layers(base_.model, layers);
      return devices_lower_bound(request, space_, {}) <= space_.devices;
    };
    const std::int64_t most = std::min(question_.most, most_layers) / step * step;
    for (std::int64_t layers = largest(step, step, most, holds_state).value_or(0); layers > 0;
         layers -= step) {
      if (stops(watch_)) return;
      if (!holds(layers, space_)) continue;
      found_.value = layers;
      return;
    }
  }

  // On p stages of m chunks, a deeper model never needs less memory, and all depths that the chunks admit are
  // legal.
  void max_layers() {
    const bool kinds = !base_.model.layer_kinds.empty() || has_bf16_layers(base_.strategy.precision_scope);
    if (kinds) return max_layers_of_kinds();
    const Space lean = leanest(base_, space_);
    const std::int64_t most = std::min(question_.most, most_layers);
    std::int64_t best = 0;
    for (const std::int64_t p : divisors(space_.devices)) {
      if (!allows(lean.pipeline_parallel, p)) continue;
      for (std::int64_t m = 1; m * p <= most; ++m) {
        if (!allows(lean.virtual_pipeline, m) || (p == 1 && m > 1)) continue;
        const bool any_depth = lays(lean, p * m + 1, p, m);
        const std::int64_t unit = any_depth ? question_.step : std::lcm(question_.step, p * m);
        Space part = lean;
        part.pipeline_parallel = {.only = {p}};
        part.virtual_pipeline = {.only = {m}};
        const auto fits = [&](std::int64_t layers) { return holds(layers, part); };
        best = largest(unit, round_up(std::max(p * m, best + 1), unit), most, fits).value_or(best);
      }
    }
    if (best > 0) found_.value = best;
  }

  // With all else fixed, more microbatches need no less memory and no less time.
  void max_batch() {
    const Space space = question_.within ? space_ : leanest(base_, space_);
    std::int64_t best = 0;
    for (const std::int64_t p : divisors(space.devices)) {
      if (!allows(space.pipeline_parallel, p) || p > base_.model.layers) continue;
      for (const std::int64_t d : divisors(space.devices / p)) {
        for (const ScheduleKind schedule : space.schedules) {
          if (!allows(space.data_parallel, d) || (p == 1 && !admits_virtual_pipeline(schedule, 1))) continue;
          Space part = space;
          part.pipeline_parallel = {.only = {p}};
          part.data_parallel = {.only = {d}};
          part.schedules = {schedule};
          raise_batch(part, rounds_of(schedule, p), best);
        }
      }
    }
    if (best > 0) found_.value = best;
    found_.at_least = at_least_;
    if (unbounded_ && question_.most == Question{}.most) found_.micro_batch = max_micro_batch();
  }

  // Fewest microbatches of a pipeline, and the multiple in which they are tried.
  struct Rounds {
    std::int64_t least = 1;
    std::int64_t step = 1;
  };
  static Rounds rounds_of(ScheduleKind schedule, std::int64_t ranks) {
    if (overlaps_passes(schedule)) return {.least = 2 * ranks, .step = model_copies(schedule)};
    return schedule == ScheduleKind::interleaved ? Rounds{ranks, ranks} : Rounds{};
  }

  // Raises `best` to the largest batch of a part of the space in which p, d and the schedule are fixed and
  // the microbatches of a pipeline come in rounds.
  void raise_batch(Space part, const Rounds& rounds, std::int64_t& best) {
    const Counts sizes = part.micro_batch;
    const std::int64_t p = part.pipeline_parallel.only.front();
    const std::int64_t d = part.data_parallel.only.front();
    const std::int64_t largest_size =
        sizes.only.empty() ? question_.most / d : *std::max_element(sizes.only.begin(), sizes.only.end());
    for (std::int64_t b = 1; b <= largest_size && b <= question_.most / (d * rounds.least); ++b) {
      if (!allows(sizes, b)) continue;
      part.micro_batch = {.only = {b}};
      Request smallest = base_;
      smallest.workload.global_batch = b * d * rounds.least;
      if (!Feasibility(smallest, watch_).fits(part)) return;  // nor do larger microbatches
      const std::int64_t unit = std::lcm(question_.step, b * d * rounds.step);
      const std::int64_t most = std::min(question_.most / (b * d), most_microbatches) * b * d / unit * unit;
      const std::int64_t before = best;
      const auto fits = [&](std::int64_t batch) { return holds(batch, part); };
      if (most > best && fits(most)) {
        best = most;
        // No pipeline has more than two rounds in flight, unless it runs all forward passes first.
        const bool saturated = most / (b * d) >= 2 * p && has_steady_state(part.schedules.front());
        unbounded_ = unbounded_ || (saturated && !question_.within);
      }
      const std::int64_t least = std::max(best + 1, b * d * rounds.least);
      best = largest(unit, round_up(least, unit), most, fits).value_or(best);
      if (part.schedules.front() == ScheduleKind::interleaved && runs_groups(base_.software, part)) {
        // Between two multiples of the ranks, each number of microbatches has its own groups.
        const std::int64_t between = std::lcm(question_.step, b * d);
        const std::int64_t last = std::min(best / unit * unit + unit, question_.most / between * between);
        for (std::int64_t batch = last; batch > best && !stops(watch_); batch -= between) {
          if (batch >= b * d * rounds.least && batch / (b * d) <= most_microbatches && fits(batch))
            best = batch;
        }
      }
      if (best > before) at_least_ = best == most && question_.most / (b * d) > most_microbatches;
    }
  }

  // Uses a batch that gives each pipeline t p microbatches, so the same strategies are legal at every size.
  [[nodiscard]] std::optional<std::int64_t> max_micro_batch() const {
    const auto fits = [&](std::int64_t b) {
      if (!allows(space_.micro_batch, b)) return false;
      Request request = base_;
      request.workload.global_batch = b * space_.devices;
      Space part = space_;
      part.micro_batch = {.only = {b}};
      return Feasibility(request, watch_).fits(part);
    };
    const std::int64_t most = question_.most / space_.devices;
    if (space_.micro_batch.only.empty()) return largest(1, 1, most, fits);
    std::optional<std::int64_t> best;
    for (const std::int64_t b : space_.micro_batch.only) {
      if (b <= most && b > best.value_or(0) && fits(b)) best = b;
    }
    return best;
  }

  const Request& base_;
  const Space& space_;
  const Question& question_;
  std::span<const std::int64_t> global_batches_;
  const Watch& watch_;
  Found found_;
  bool unbounded_ = false;
  bool at_least_ = false;
};

}  // namespace

std::optional<Seconds> within_of(const Question& question, const Workload& workload, std::int64_t devices) {
  if (!question.run) return question.within;
  const auto& [training, deadline, share] = *question.run;
  return share * iteration_by(training, workload, devices, deadline);
}

Found find(const Request& base, const Space& space, const Question& question, const Watch& watch) {
  return find(base, space, question, std::array{base.workload.global_batch}, watch);
}

Found find(const Request& base, const Space& space, const Question& question,
           std::span<const std::int64_t> global_batches, const Watch& watch) {
  EXPECTS(!global_batches.empty() && (!question.run || question.extreme == Extreme::min_devices));
  const Request insisted = with_insisted(base, space);
  if ((question.within || question.run) && !insisted.system.performance) {
    throw InputError("system", "has no performance figures, without which no iteration is timed");
  }
  check_devices(insisted, space);
  Space fixed = space;
  if (question.extreme != Extreme::max_sequence)
    fixed.context_parallel = context_parallel_of(insisted, space);
  if (question.extreme == Extreme::min_devices)
    return Finder(insisted, fixed, question, global_batches, watch).run();
  std::optional<Found> furthest;
  for (const std::int64_t batch : global_batches) {
    Request request = insisted;
    request.workload.global_batch = batch;
    Found found = Finder(request, fixed, question, std::array{batch}, watch).run();
    const bool stopped = found.stopped;
    if (!furthest || found.value.value_or(0) > furthest->value.value_or(0)) furthest = std::move(found);
    furthest->stopped = stopped;
  }
  return *furthest;
}

void put(Extreme extreme, std::int64_t value, Request& base, Space& space) {
  switch (extreme) {
    case Extreme::min_devices: space.devices = value; return;
    case Extreme::max_batch: base.workload.global_batch = value; return;
    case Extreme::max_sequence: base.workload.sequence = value; return;
    case Extreme::max_layers: base.model = with_layers(std::move(base.model), value); return;
  }
  EXPECTS(!"unknown extreme");
}

}  // namespace headroom
