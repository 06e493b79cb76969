#include "headroom/search/search.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <span>
#include <system_error>
#include <tuple>

#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/layers_by_memory.hpp"
#include "search/best_found.hpp"

namespace headroom {
namespace {

// One thread's part of a search.
using Reached = std::function<void(std::int64_t layouts)>;

class Worker {
 public:
  Worker(const Request& base, const Space& space, const Shard& shard)
      : base_(base),
        space_(space),
        shard_(shard),
        composer_(base),
        known_(base.model, base.software),
        layers_by_memory_(base, space) {}

  // Enumerates the space and evaluates the layouts of its shard that it takes from the shared counter before
  // other threads do. Evaluates either the strategies with a closed form for their time, or those without
  // one. Passes the number of enumerated layouts to `reached`.
  void run(bool replays, std::atomic<std::int64_t>& next, const Reached& reached = {}) {
    std::int64_t number = 0;  // of layouts, with those rejected
    std::int64_t place = 0;
    std::int64_t mine = next++;
    const auto taken = [&] {
      const std::int64_t i = number++;
      if (reached) reached(i);
      if (i % shard_.count != shard_.index - 1 || i / shard_.count != mine) return false;
      mine = next++;
      return true;
    };
    visit_layouts(
        base_, space_,
        [&](const Strategy& layout) {
          const std::int64_t first = place;
          list_recomputations(layout);
          const std::vector<ShardingChoice> choices = sharding_choices(base_, space_, layout);
          const std::int64_t count = std::ssize(recomputations_) * std::ssize(choices);
          // The strategies of a layout come first, then those placed by memory.
          const std::int64_t placed = layers_by_memory_.applies(layout) ? count : 0;
          place += count + placed;
          if (taken()) evaluate_layout(layout, choices, first, placed, replays);
          return true;
        },
        [&](const Problem& problem) {
          if (taken() && !replays) ++counts.rejected[problem.where];
        });
  }

  SearchResult counts;
  std::int64_t too_large = 0;
  std::int64_t too_large_for_host = 0;
  BestFound found;
  SearchEffort effort;

 private:
  static bool has_closed_form(const Strategy& strategy) {
    return headroom::has_closed_form(strategy) && !strategy.recompute.window;
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

  // `placed`: offset from a strategy's place to the place of its version with layers placed by memory; 0 if
  // there is none.
  void evaluate_layout(const Strategy& layout, std::span<const ShardingChoice> choices, std::int64_t place,
                       std::int64_t placed, bool replays) {
    std::optional<ShardingChoice> set;
    Candidate candidate{.strategy = layout, .place = place - 1};
    too_large_.clear();
    places_.clear();
    const auto visit = [&](const Strategy& strategy) {
      candidate.strategy = strategy;
      ++candidate.place;
      if (has_closed_form(candidate.strategy) == replays) return;
      const ShardingChoice sharding = sharding_choice(candidate.strategy);
      if (!set || !same_passes(*set, sharding, layout, base_.software))
        composer_.set_layout(with_sharding(layout, sharding), recomputations_);
      set = sharding;
      consider(candidate);
      if (placed == 0 || candidate.verdict == Verdict::fits || candidate.strategy.recompute.window) return;
      too_large_.push_back(candidate.strategy);
      places_.push_back(candidate.place + placed);
    };
    visit_strategies(base_, layout, choices, recomputations_, visit, &known_);
    if (too_large_.empty()) return;
    for (auto& [of, strategy] : layers_by_memory_.fitting(composer_, too_large_)) {
      Candidate other{.strategy = std::move(strategy), .place = places_[of]};
      composer_.set_layout(other.strategy);
      consider(other);
    }
  }

  void consider(Candidate& candidate) {
    const Strategy& strategy = candidate.strategy;
    ++counts.evaluated;
    const RankPeak peak = composer_.peak(strategy);
    candidate.peak = peak.bytes;
    candidate.peak_rank = peak.rank;
    candidate.verdict = verdict_of(base_, peak.bytes);
    if (candidate.verdict == Verdict::does_not_fit) {
      ++(peak.of_host ? too_large_for_host : too_large);
      found.add_too_large(candidate);
      return;
    }
    ++counts.feasible;
    if (!has_closed_form(strategy)) {
      candidate.iteration = composer_.least_iteration(strategy);
      if (found.beats(candidate)) return;
    }
    ++effort.timed;
    candidate.iteration = composer_.iteration(strategy);
    candidate.mfu = composer_.mfu(candidate.iteration);
    found.add(candidate);
  }

  const Request& base_;
  const Space& space_;
  const Shard shard_;
  Composer composer_;
  KnownLayers known_;
  std::int64_t listed_longest_ = 0;
  ScheduleKind listed_schedule_ = ScheduleKind::one_forward_one_backward;
  Precision listed_precision_ = Precision::bf16;
  std::vector<Recomputation> recomputations_;
  LayersByMemory layers_by_memory_;
  std::vector<Strategy> too_large_;   // those of a layout that its layers' placement may make fit
  std::vector<std::int64_t> places_;  // of what becomes of them
};

// Runs all workers at once, the first on this thread; fewer if the machine has no more threads.
void run_all(std::deque<Worker>& workers, bool replays, const Reached& reached) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::future<void>> others;
  try {
    for (std::size_t i = 1; i < workers.size(); ++i) {
      others.push_back(std::async(std::launch::async, [&, i, replays] { workers[i].run(replays, next); }));
    }
  } catch (const std::system_error&) {
    // The machine has no more threads. Those that started do all the work, with the same result.
  }
  workers.front().run(replays, next, reached);
  for (std::future<void>& other : others) other.get();
}

// Counts the layouts, including rejected ones.
std::int64_t count_layouts(const Request& base, const Space& space) {
  std::int64_t count = 0;
  visit_layouts(
      base, space, [&](const Strategy&) { return ++count > 0; }, [&](const Problem&) { ++count; });
  return count;
}

}  // namespace

bool operator<(const Candidate& x, const Candidate& y) {
  return std::tie(x.verdict, x.iteration, x.peak, x.place) <
         std::tie(y.verdict, y.iteration, y.peak, y.place);
}

void add_counts(SearchResult& sum, const SearchResult& part) {
  sum.evaluated += part.evaluated;
  sum.feasible += part.feasible;
  for (const auto& [reason, count] : part.rejected) sum.rejected[reason] += count;
}

SearchResult search(const Request& base, const Space& space, const SearchOptions& options) {
  EXPECTS(1 <= options.shard.index && options.shard.index <= options.shard.count);
  if (!base.system.performance) {
    throw InputError("system", "has no performance figures, without which strategies cannot be ranked");
  }
  check_devices(base, space);
  constexpr unsigned most_threads = 256;  // more would only repeat the pricing of layers
  std::deque<Worker> workers;
  for (unsigned i = 0; i < std::clamp(options.threads, 1U, most_threads); ++i) {
    workers.emplace_back(base, space, options.shard);
  }
  // Strategies with a closed form come first. They set the times that interleaved schedules and windows must
  // beat.
  BestFound found;
  const double layouts = options.progress ? real(count_layouts(base, space)) : 0;
  for (const bool replays : {false, true}) {
    for (Worker& worker : workers) worker.found = found;
    Reached reached;
    if (options.progress) {
      reached = [&](std::int64_t count) {
        options.progress((real(count) / layouts + (replays ? 1 : 0)) / 2);
      };
    }
    run_all(workers, replays, reached);
    for (const Worker& worker : workers) found.add(worker.found);
  }
  SearchResult result;
  for (const Worker& worker : workers) {
    add_counts(result, worker.counts);
    if (worker.too_large > 0) result.rejected["device_memory"] += worker.too_large;
    if (worker.too_large_for_host > 0) result.rejected["host_memory"] += worker.too_large_for_host;
  }
  found.fill(result);
  if (options.effort != nullptr) {
    for (const Worker& worker : workers) options.effort->timed += worker.effort.timed;
  }
  return result;
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
