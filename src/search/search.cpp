#include "headroom/search/search.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "headroom/search/evaluator.hpp"

namespace headroom {
namespace {

using Kind = std::array<std::int64_t, 3>;  // t, p, d

Kind kind_of(const Strategy& strategy) {
  return {strategy.tensor_parallel, strategy.pipeline_parallel, strategy.data_parallel};
}

// By time, each needing less memory than those before it.
class Front {
 public:
  // Whether something on the front is faster and needs no more.
  [[nodiscard]] bool beats(Seconds iteration, Bytes peak) const {
    return std::any_of(members_.begin(), members_.end(), [&](const Candidate& member) {
      return member.iteration < iteration && member.peak <= peak;
    });
  }

  void add(const Candidate& candidate) {
    const auto dominates = [](const Candidate& x, const Candidate& y) {
      const bool alike = x.iteration == y.iteration && x.peak == y.peak;
      return alike ? x.place <= y.place : x.iteration <= y.iteration && x.peak <= y.peak;
    };
    for (const Candidate& member : members_) {
      if (dominates(member, candidate)) return;
    }
    std::erase_if(members_, [&](const Candidate& member) { return dominates(candidate, member); });
    members_.insert(std::upper_bound(members_.begin(), members_.end(), candidate), candidate);
  }

  std::vector<Candidate> take() { return std::move(members_); }

 private:
  std::vector<Candidate> members_;
};

class Search {
 public:
  Search(const Request& base, const Space& space) : base_(base), space_(space), evaluator_(base) {}

  SearchResult run() {
    // What has a closed form first: it sets the times that interleaved schedules and windows have to beat.
    pass(false);
    pass(true);
    result_.pareto = front_.take();
    for (auto& [kind, best] : best_) result_.plans.push_back(std::move(best));
    std::sort(result_.plans.begin(), result_.plans.end());
    if (result_.feasible > 0) result_.nearest.reset();
    return std::move(result_);
  }

 private:
  static bool has_closed_form(const Strategy& strategy) {
    return strategy.schedule != ScheduleKind::interleaved && !strategy.recompute.window;
  }

  void pass(bool replays) {
    std::int64_t place = 0;
    visit_layouts(
        base_, space_,
        [&](const Strategy& layout) {
          bool set = false;
          Candidate candidate{.strategy = layout};
          for (Recomputation& recompute : recomputations(base_, space_, layout)) {
            candidate.strategy.recompute = std::move(recompute);
            for (const bool sharded : choices(space_.distributed_optimizer, layout.data_parallel)) {
              candidate.strategy.distributed_optimizer = sharded;
              candidate.place = place++;
              if (has_closed_form(candidate.strategy) == replays) continue;
              if (!set) evaluator_.set_layout(layout);
              set = true;
              consider(candidate);
            }
          }
        },
        [&](const std::string& reason) {
          if (!replays) ++result_.rejected[reason];
        });
  }

  void consider(Candidate& candidate) {
    const Strategy& strategy = candidate.strategy;
    ++result_.evaluated;
    const RankPeak peak = evaluator_.peak(strategy);
    candidate.peak = peak.bytes;
    candidate.peak_rank = peak.rank;
    if (peak.bytes > base_.system.memory) {
      ++result_.rejected["device_memory"];
      const auto need = [](const Candidate& x) { return std::tuple(x.peak, x.place); };
      if (!result_.nearest || need(candidate) < need(*result_.nearest)) result_.nearest = candidate;
      return;
    }
    ++result_.feasible;
    const auto best = best_.find(kind_of(strategy));
    if (!has_closed_form(strategy) && best != best_.end()) {
      const Seconds least = evaluator_.least_iteration(strategy);
      if (best->second.iteration < least && front_.beats(least, candidate.peak)) {
        ++result_.outpaced;
        return;
      }
    }
    candidate.iteration = evaluator_.iteration(strategy);
    candidate.mfu = evaluator_.mfu(strategy, candidate.iteration);
    front_.add(candidate);
    if (best == best_.end()) {
      best_.emplace(kind_of(strategy), candidate);
    } else if (candidate < best->second) {
      best->second = candidate;
    }
  }

  const Request& base_;
  const Space& space_;
  Evaluator evaluator_;
  SearchResult result_;
  Front front_;
  std::map<Kind, Candidate> best_;
};

}  // namespace

bool operator<(const Candidate& x, const Candidate& y) {
  return std::tie(x.iteration, x.peak, x.place) < std::tie(y.iteration, y.peak, y.place);
}

SearchResult search(const Request& base, const Space& space) {
  if (!base.system.performance) {
    throw InputError("--system", "has no performance figures, without which strategies cannot be ranked");
  }
  return Search(base, space).run();
}

}  // namespace headroom
