#include "headroom/search/search.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <iterator>
#include <limits>
#include <span>
#include <system_error>
#include <tuple>

#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/parallel/known_layers.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/schedule/makespan.hpp"
#include "headroom/search/insisted.hpp"
#include "headroom/search/layers_by_memory.hpp"
#include "search/best_found.hpp"
#include "search/layout_bound.hpp"

namespace headroom {
namespace {

// A round of a search: layouts whose bounds lie in [from, to). All layouts lie in one round if there are no bounds.
struct Round {
  double from = 0;
  double to = std::numeric_limits<double>::infinity();
};

// Properties of layouts that all threads share, by number. A layout is written by the thread that takes it.
struct Bounds {
  static constexpr double rejected = std::numeric_limits<double>::infinity();
  std::vector<double> of;  // in seconds; empty: not known
};

// What is done with the layouts of a shard. Strategies with a closed form for their time come before the others. They
// set the times that interleaved schedules and windows must beat.
enum class Pass : std::uint8_t { bounds, closed_forms, replays };

// One thread's part of a search.
class Worker {
 public:
  using Reached = std::function<void(const Worker&)>;

  Worker(const Request& base, const Space& space, const Shard& shard, const Watch& watch)
      : base_(base),
        space_(space),
        shard_(shard),
        watch_(watch),
        composer_(base),
        known_(base.model, base.software),
        layers_by_memory_(base, space) {}

  // Enumerates the space and takes the layouts of the shard and the round that it reaches before other threads do.
  // Calls `reached` for each layout, if it is not null. Ends early if the watch stops it.
  void run(Pass pass, const Round& round, Bounds& bounds, std::atomic<std::int64_t>& next,
           const Reached& reached) {
    std::int64_t number = 0;  // of layouts, with those rejected
    std::int64_t turn = 0;    // of those of the shard and the round
    std::int64_t place = 0;
    std::int64_t mine = next++;
    const auto taken = [&] {
      const std::int64_t i = number++;
      if (reached) reached(*this);
      if (i % shard_.count != shard_.index - 1) return false;
      if (pass != Pass::bounds && !bounds.of.empty()) {
        const double bound = bounds.of[index(i)];
        if (bound < round.from || bound >= round.to) return false;
      }
      if (turn++ != mine) return false;
      mine = next++;
      return true;
    };
    visit_layouts(
        base_, space_,
        [&](const Strategy& layout) {
          stopped_ = stopped_ || stops(watch_);
          if (stopped_) return false;
          const std::int64_t first = place;
          list_recomputations(layout);
          const std::vector<ShardingChoice> choices = sharding_choices(base_, space_, layout);
          const std::int64_t count = std::ssize(recomputations_) * std::ssize(choices);
          // The strategies of a layout come first, then those placed by memory.
          const std::int64_t placed = layers_by_memory_.applies(layout) ? count : 0;
          place += count + placed;
          if (!taken()) return true;
          if (pass == Pass::bounds) {
            bounds.of[index(number - 1)] = bound(layout, choices, first, placed > 0);
            return true;
          }
          const bool replays = has_replays(layout);
          if (pass == Pass::replays ? replays : headroom::has_closed_form(layout))
            evaluate_layout(layout, choices, first, placed, pass == Pass::replays);
          if (!stopped_ && replays == (pass == Pass::replays)) ++decided;
          return !stopped_;
        },
        [&](const Problem& problem) {
          if (!taken() || pass == Pass::replays || (pass == Pass::closed_forms && !bounds.of.empty())) return;
          ++counts.rejected[problem.where];
          if (pass == Pass::bounds) bounds.of[index(number - 1)] = Bounds::rejected;
        });
  }

  // Returns the best candidate that this thread knows, or null.
  [[nodiscard]] const Candidate* best() const { return best_ ? &*best_ : nullptr; }
  void learn(const std::optional<Candidate>& other) {
    if (other && (!best_ || *other < *best_)) best_ = other;
  }
  [[nodiscard]] bool stopped() const { return stopped_; }

  SearchResult counts;
  std::int64_t decided = 0;  // layouts
  std::int64_t too_large = 0;
  std::int64_t too_large_for_host = 0;
  BestFound found;
  SearchEffort effort;

 private:
  static bool has_closed_form(const Strategy& strategy) {
    return headroom::has_closed_form(strategy) && !strategy.recompute.window;
  }

  // Expects the recomputations of the layout.
  [[nodiscard]] bool has_replays(const Strategy& layout) const {
    return !headroom::has_closed_form(layout) ||
           std::any_of(recomputations_.begin(), recomputations_.end(),
                       [](const Recomputation& recompute) { return recompute.window; });
  }

  // Recomputations depend on the schedule, the precision and the longest virtual stage, which rarely change
  // from one layout to the next.
  void list_recomputations(const Strategy& layout) {
    const std::int64_t longest = longest_stage(base_.model.layers, layout);
    if (longest == listed_longest_ && layout.schedule == listed_schedule_ &&
        layout.precision == listed_precision_) {
      return;
    }
    listed_longest_ = longest;
    listed_schedule_ = layout.schedule;
    listed_precision_ = layout.precision;
    recomputations_ = recomputations(base_, space_, layout);
  }

  // Returns a lower bound of the seconds that a strategy of the layout takes. Meanwhile looks for a first plan: few
  // strategies of each layout that are quickly timed.
  double bound(const Strategy& layout, std::span<const ShardingChoice> choices, std::int64_t place,
               bool placed) {
    constexpr double most = std::numeric_limits<double>::max();
    double least = most;
    std::optional<ShardingChoice> set;
    for (const ShardingChoice& sharding : choices) {
      Strategy strategy = with_sharding(layout, sharding);
      const bool same_layout = set && same_passes(*set, sharding, layout, base_.software);
      if (!same_layout) layout_ = composer_.layout(strategy, recomputations_);
      set = sharding;
      const Seconds of_sharding = layout_->least_iteration(strategy);
      least = std::min(least, of_sharding.count());
      if (placed && !same_layout) least = std::min(least, placed_bound(*layout_, strategy).count());
      if (best_ && best_->iteration <= of_sharding) continue;
      if (too_much_at_least(strategy)) continue;
      for (const Recomputation& recompute : recomputations_) {
        if (recompute.layers > 0 || recompute.window || recompute.policy == RecomputePolicy::ops) continue;
        strategy.recompute = recompute;
        if (!has_closed_form(strategy) || !may_recompute(base_, strategy, &known_)) continue;
        Candidate candidate{.strategy = strategy, .place = place};
        if (fits(candidate)) {
          timed(candidate);
          break;  // what recomputes more is slower
        }
      }
    }
    return std::min(least, most);
  }

  // `placed`: offset from a strategy's place to the place of its version with layers placed by memory; 0 if
  // there is none.
  void evaluate_layout(const Strategy& layout, std::span<const ShardingChoice> choices, std::int64_t place,
                       std::int64_t placed, bool replays) {
    std::optional<ShardingChoice> set;
    Candidate candidate{.strategy = layout, .place = place - 1};
    too_large_.clear();
    places_.clear();
    const auto visit = [&](const Strategy& strategy) {
      ++candidate.place;
      if (stopped_ || has_closed_form(strategy) == replays) return;
      if (replays && stops(watch_)) {  // each takes a while
        stopped_ = true;
        return;
      }
      candidate.strategy = strategy;
      const ShardingChoice sharding = sharding_choice(candidate.strategy);
      const bool same_layout = set && same_passes(*set, sharding, layout, base_.software);
      if (set && *set != sharding) place_by_memory();
      if (!same_layout) layout_ = composer_.layout(with_sharding(layout, sharding), recomputations_);
      set = sharding;
      consider(candidate);
      if (placed == 0 || candidate.verdict == Verdict::fits || candidate.strategy.recompute.window) return;
      too_large_.push_back(candidate.strategy);
      places_.push_back(candidate.place + placed);
    };
    visit_strategies(base_, layout, choices, recomputations_, visit, &known_);
    place_by_memory();
  }

  // Considers what becomes of the strategies that are too large, all of one data sharding, with their layers placed by
  // memory.
  void place_by_memory() {
    if (too_large_.empty() || stopped_) return;
    std::optional<Layout> balanced = std::exchange(layout_, std::nullopt);
    for (auto& [of, strategy] : layers_by_memory_.fitting(*balanced, too_large_)) {
      Candidate other{.strategy = std::move(strategy), .place = places_[of]};
      layout_ = composer_.layout(other.strategy);
      consider(other);
    }
    layout_ = std::move(balanced);
    too_large_.clear();
    places_.clear();
  }

  // Sets the memory of a candidate.
  bool fits(Candidate& candidate, bool* of_host = nullptr) {
    const RankPeak peak = layout_->peak(candidate.strategy);
    candidate.peak = peak.bytes;
    candidate.peak_rank = peak.rank;
    candidate.verdict = verdict_of(base_, peak.bytes);
    if (of_host != nullptr) *of_host = peak.of_host;
    return candidate.verdict != Verdict::does_not_fit;
  }

  void timed(Candidate& candidate) {
    candidate.iteration = layout_->iteration(candidate.strategy);
    candidate.mfu = layout_->mfu(candidate.iteration);
    if (!best_ || candidate < *best_) best_ = candidate;
  }

  // Returns the least that a strategy holds, its state and the inputs of its layers, if that is too much.
  // Windows, and what the host holds, need the whole account.
  [[nodiscard]] std::optional<Bytes> too_much_at_least(const Strategy& strategy) const {
    if (strategy.recompute.window || offloads(strategy.offload)) return std::nullopt;
    const Bytes least = layout_->least_peak(strategy);
    if (verdict_of(base_, least) != Verdict::does_not_fit) return std::nullopt;
    return least;
  }

  void consider(Candidate& candidate) {
    const Strategy& strategy = candidate.strategy;
    ++counts.evaluated;
    if (const auto least = too_much_at_least(strategy); least && found.has_nearer(*least)) {
      ++too_large;
      candidate.verdict = Verdict::does_not_fit;
      return;
    }
    bool of_host = false;
    if (!fits(candidate, &of_host)) {
      ++(of_host ? too_large_for_host : too_large);
      found.add_too_large(candidate);
      return;
    }
    ++counts.feasible;
    if (!has_closed_form(strategy)) {
      candidate.iteration = layout_->least_iteration(strategy);
      if (found.beats(candidate)) return;
    }
    ++effort.timed;
    timed(candidate);
    found.add(candidate);
  }

  const Request& base_;
  const Space& space_;
  const Shard shard_;
  const Watch& watch_;
  Composer composer_;
  std::optional<Layout> layout_;  // layout of the strategies under consideration
  KnownLayers known_;
  std::int64_t listed_longest_ = 0;
  ScheduleKind listed_schedule_ = ScheduleKind::one_forward_one_backward;
  Precision listed_precision_ = Precision::bf16;
  std::vector<Recomputation> recomputations_;
  LayersByMemory layers_by_memory_;
  std::vector<Strategy> too_large_;   // those of a layout that its layers' placement may make fit
  std::vector<std::int64_t> places_;  // of what becomes of them
  std::optional<Candidate> best_;
  bool stopped_ = false;
};

// Counts the layouts: all, with rejected ones, and those that are legal.
struct LayoutCounts {
  std::int64_t all = 0;
  std::int64_t legal = 0;
};

LayoutCounts count_layouts(const Request& base, const Space& space) {
  LayoutCounts counts;
  visit_layouts(
      base, space, [&](const Strategy&) { return ++counts.legal > 0; },
      [&](const Problem&) { ++counts.all; });
  counts.all += counts.legal;
  return counts;
}

// Rounds of ever more layouts: the first 1/64 of them by bound, then four times as many.
std::vector<Round> rounds_of(const Bounds& bounds) {
  std::vector<double> sorted;
  sorted.reserve(bounds.of.size());
  std::copy_if(bounds.of.begin(), bounds.of.end(), std::back_inserter(sorted),
               [](double bound) { return bound != Bounds::rejected; });
  std::sort(sorted.begin(), sorted.end());
  std::vector<Round> rounds(1);
  if (sorted.empty()) return rounds;
  rounds.front().from = sorted.front();
  constexpr std::size_t fewest = 32;  // of a round
  for (std::size_t end = std::max(fewest, sorted.size() / 64); end < sorted.size(); end *= 4) {
    if (sorted[end] <= rounds.back().from) continue;
    rounds.back().to = sorted[end];
    rounds.push_back({.from = sorted[end]});
  }
  return rounds;
}

// A search with all its threads.
class Search {
 public:
  Search(const Request& base, const Space& space, const SearchOptions& options)
      : base_(base), space_(space), options_(options) {
    constexpr unsigned most_threads = 256;  // more would only repeat the pricing of layers
    for (unsigned i = 0; i < std::clamp(options.threads, 1U, most_threads); ++i) {
      workers_.emplace_back(base, space, options.shard, options.watch);
    }
  }

  SearchResult run() {
    if (options_.bounds || options_.progress) layouts_ = count_layouts(base_, space_);
    if (options_.bounds) {
      bounds_.of.assign(index(layouts_.all), Bounds::rejected);
      run_all(Pass::bounds, {});
    }
    for (const Round& round : options_.bounds && !stopped() ? rounds_of(bounds_) : std::vector(1, Round{})) {
      if (options_.bounds && !stopped()) least_ = Seconds(round.from);
      for (const Pass pass : {Pass::closed_forms, Pass::replays}) {
        if (stopped()) break;
        for (Worker& worker : workers_) worker.found = found_;
        run_all(pass, round);
        for (const Worker& worker : workers_) found_.add(worker.found);
      }
    }
    return result();
  }

 private:
  [[nodiscard]] bool stopped() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const Worker& it) { return it.stopped(); });
  }

  // Returns the fraction of the layouts that are decided.
  [[nodiscard]] double decided() const {
    std::int64_t count = 0;
    for (const Worker& worker : workers_) count += worker.decided;
    return real(count) / real(std::max<std::int64_t>(layouts_.legal, 1));
  }

  // Runs all workers at once, the first on this thread; fewer if the machine has no more threads.
  void run_all(Pass pass, const Round& round) {
    Worker::Reached reached;
    if (options_.progress) {
      // What the other threads decide meanwhile is known only after the pass.
      const double layouts = real(std::max<std::int64_t>(layouts_.legal, 1));
      const double others = decided() - real(workers_.front().decided) / layouts;
      reached = [this, others, layouts](const Worker& worker) {
        options_.progress(
            {.decided = others + real(worker.decided) / layouts, .best = worker.best(), .least = least_});
      };
    }
    std::atomic<std::int64_t> next = 0;
    std::vector<std::future<void>> others;
    try {
      for (std::size_t i = 1; i < workers_.size(); ++i) {
        others.push_back(
            std::async(std::launch::async, [&, i] { workers_[i].run(pass, round, bounds_, next, {}); }));
      }
    } catch (const std::system_error&) {
      // The machine has no more threads. Those that started do all the work, with the same result.
    }
    workers_.front().run(pass, round, bounds_, next, reached);
    for (std::future<void>& other : others) other.get();
    for (Worker& worker : workers_) {
      if (const Candidate* const best = worker.best()) workers_.front().learn(*best);
    }
  }

  SearchResult result() {
    SearchResult result;
    for (const Worker& worker : workers_) {
      add_counts(result, worker.counts);
      if (worker.too_large > 0) result.rejected["device_memory"] += worker.too_large;
      if (worker.too_large_for_host > 0) result.rejected["host_memory"] += worker.too_large_for_host;
      if (options_.effort != nullptr) options_.effort->timed += worker.effort.timed;
    }
    if (stopped()) {
      if (layouts_.all == 0) layouts_ = count_layouts(base_, space_);
      result.undecided = Undecided{.decided = decided(), .least = least_};
      // Perhaps found while layouts were bounded.
      if (const Candidate* const best = workers_.front().best()) {
        found_.add(*best);
        result.evaluated = std::max<std::int64_t>(result.evaluated, 1);
        result.feasible = std::max<std::int64_t>(result.feasible, 1);
      }
    }
    found_.fill(result);
    return result;
  }

  const Request& base_;
  const Space& space_;
  const SearchOptions& options_;
  std::deque<Worker> workers_;
  LayoutCounts layouts_;
  Bounds bounds_;
  std::optional<Seconds> least_;
  BestFound found_;
};

}  // namespace

bool operator<(const Candidate& x, const Candidate& y) {
  return std::tie(x.verdict, x.iteration, x.peak, x.place) <
         std::tie(y.verdict, y.iteration, y.peak, y.place);
}

void leave_undecided(SearchResult& result, const Watch& watch) {
  if (!result.undecided && stops(watch)) result.undecided = Undecided{.decided = 1};
}

void add_counts(SearchResult& sum, const SearchResult& part) {
  sum.evaluated += part.evaluated;
  sum.feasible += part.feasible;
  for (const auto& [reason, count] : part.rejected) sum.rejected[reason] += count;
}

SearchResult search(const Request& request, const Space& space, const SearchOptions& options) {
  EXPECTS(1 <= options.shard.index && options.shard.index <= options.shard.count);
  const Request base = with_insisted(request, options.described != nullptr ? *options.described : space);
  if (!base.system.performance) {
    throw InputError("system", "has no performance figures, without which strategies cannot be ranked");
  }
  check_devices(base, space);
  return Search(base, space, options).run();
}

SearchResult merged(std::span<const SearchResult> parts) {
  SearchResult result;
  BestFound found;
  for (const SearchResult& part : parts) {
    add_counts(result, part);
    found.add(part);
  }
  found.fill(result);
  return result;
}

}  // namespace headroom
