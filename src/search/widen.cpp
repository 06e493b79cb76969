#include "headroom/search/widen.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/search/layers_by_time.hpp"
#include "search/best_found.hpp"
#include "search/division.hpp"
#include "search/neighbourhood.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

// Divisions with one size doubled and another halved.
std::vector<Division> neighbours_of(const Division& division) {
  std::vector<Division> neighbours;
  for (std::size_t more = 0; more < division.size(); ++more) {
    for (std::size_t less = 0; less < division.size(); ++less) {
      if (more == less || division[less] % 2 != 0) continue;
      Division neighbour = division;
      neighbour[more] *= 2;
      neighbour[less] /= 2;
      neighbours.push_back(neighbour);
    }
  }
  return neighbours;
}

constexpr std::string_view widening = "widening the search";

// The candidates of later searches come after those of earlier ones.
constexpr std::int64_t places_of_search = std::int64_t{1} << 40;

class Widening {
 public:
  Widening(SearchResult& result, const Request& base, const Space& space, const SearchOptions& options)
      : result_(result),
        base_(base),
        space_(space),
        options_(options),
        usual_tensor_(tensor_parallel_of(base, space)),
        usual_context_(context_parallel_of(base, space)),
        wide_tensor_(wide_tensor_parallel_of(base, space)),
        wide_context_(wide_context_parallel_of(base, space)) {}

  void run() {
    if (usual_tensor_ == wide_tensor_ && usual_context_ == wide_context_) return;
    if (result_.feasible == 0) {
      Space all = space_;
      all.tensor_parallel = wide_tensor_;
      all.context_parallel = wide_context_;
      result_ = search(base_, all, options_);
      return;
    }
    climb();
  }

  // Searches divisions again with the dispatcher of the fastest plan, unless it is the usual one: the best
  // microbatch and virtual pipeline may then differ. A dispatcher may gain 10% in one division and nothing in
  // another, so the divisions that are fastest with it are searched. Returns whether it searched any.
  bool search_with_dispatcher() {
    const std::vector<Dispatched> plans = dispatched();
    const Dispatcher dispatcher = plans.front().dispatcher;
    if (dispatcher == base_.strategy.moe_dispatcher) return false;
    constexpr std::size_t most_divisions = 8;
    std::set<Division> divisions;
    for (const Dispatched& plan : plans) {
      const bool searched = plan.dispatcher == dispatcher || !plan.has_others;
      if (divisions.size() >= most_divisions) break;
      if (!searched || !divisions.insert(plan.division).second) continue;
      Space part = part_of(space_, plan.division);
      part.moe_dispatcher = {dispatcher};
      if (ends()) break;
      take(search(base_, part, of_part()));
    }
    return true;
  }

  // Returns whether the watch stops the search, and leaves the result undecided then.
  bool ends() {
    leave_undecided(result_, options_.watch);
    return result_.undecided.has_value();
  }

 private:
  // Assumed: a plan up to this much slower than the best may lead to a better one. With 1.25, the best plans of
  // Llama 3 405B, Mixtral and DeepSeek-V3 on the GPUs of docs/search.md are the same.
  static constexpr double within_reach = 1.1;
  // Limits of the time that a question takes: divisions searched, and strategies evaluated in them, as many as
  // the usual search evaluated or these.
  static constexpr std::size_t most_searches = 64;
  static constexpr std::int64_t most_evaluated = 200'000;

  [[nodiscard]] bool is_wide(const Division& division) const {
    const bool usual = allows(usual_tensor_, division[0]) && allows(usual_context_, division[1]);
    return !usual && allows(wide_tensor_, division[0]) && allows(wide_context_, division[1]) &&
           allows(space_.pipeline_parallel, division[2]) && allows(space_.data_parallel, division[3]);
  }

  void climb() {
    std::deque<Division> from;
    const auto add = [&](const std::vector<Candidate>& plans) {
      for (const Candidate& plan : plans) {
        if (plan.iteration > within_reach * result_.plans.front().iteration) break;
        from.push_back(division_of(plan.strategy));
      }
    };
    add(result_.plans);
    std::set<Division> seen;
    const std::int64_t usual = result_.evaluated;
    const std::int64_t most = usual + std::max(most_evaluated, usual);
    while (!from.empty() && seen.size() < most_searches) {
      const Division division = from.front();
      from.pop_front();
      for (const Division& neighbour : neighbours_of(division)) {
        const bool enough = seen.size() >= most_searches || result_.evaluated >= most;
        if (enough || !is_wide(neighbour) || !seen.insert(neighbour).second) continue;
        if (ends()) return;
        const SearchResult part = search(base_, part_of(space_, neighbour), of_part());
        take(part);
        add(part.plans);
      }
    }
  }

  // A plan with its own dispatcher, or with another.
  struct Dispatched {
    Seconds iteration;
    Dispatcher dispatcher;
    bool has_others;  // the plan may take other dispatchers
    Division division;
  };

  // Returns the plans with each dispatcher that a search tries, fastest first.
  [[nodiscard]] std::vector<Dispatched> dispatched() const {
    std::vector<Dispatched> list;
    Neighbourhood neighbourhood(base_, space_);
    for (const Candidate& plan : result_.plans) {
      const std::size_t own = list.size();
      const Division division = division_of(plan.strategy);
      list.push_back({plan.iteration, plan.strategy.moe_dispatcher, false, division});
      neighbourhood.visit_changes(plan, [&](const Strategy& strategy) {
        const bool other = strategy.moe_dispatcher != plan.strategy.moe_dispatcher;
        if (!other || !neighbourhood.reaches(plan, strategy)) return;
        const Seconds iteration = neighbourhood.composer().layout(strategy).iteration(strategy);
        list.push_back({iteration, strategy.moe_dispatcher, true, division});
        list[own].has_others = true;
      });
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Dispatched& x, const Dispatched& y) { return x.iteration < y.iteration; });
    return list;
  }

  // Parts are small, and so is what is told of them.
  [[nodiscard]] SearchOptions of_part() const {
    return {.threads = options_.threads,
            .described = &space_,
            .watch = {.stops = options_.watch.stops, .tells = {}}};
  }

  // Adds the result of a further search.
  void take(SearchResult part) {
    ++searches_;
    for (std::vector<Candidate>* list : {&part.plans, &part.pareto}) {
      for (Candidate& candidate : *list) candidate.place += searches_ * places_of_search;
    }
    BestFound found;
    found.add(result_);
    found.add(part);
    result_.plans.clear();
    add_counts(result_, part);
    found.fill(result_);
    if (part.undecided) result_.undecided = Undecided{.decided = 1};
    if (options_.progress && !result_.plans.empty())
      options_.progress({.decided = 1, .best = result_.plans.data()});
    tell(options_.watch, widening, searches_);
  }

  SearchResult& result_;
  const Request& base_;
  const Space& space_;
  const SearchOptions& options_;
  std::int64_t searches_ = 0;
  Counts usual_tensor_;
  Counts usual_context_;
  Counts wide_tensor_;
  Counts wide_context_;
};

bool faster_than(const Candidate& x, const Candidate& y) { return x.iteration < y.iteration; }

// Makes a candidate faster, change by change.
class Refinement {
 public:
  Refinement(const Request& base, const Space& space)
      : base_(base), space_(space), neighbourhood_(base, space) {}

  // Returns the candidate after each change that is worth it, fastest first.
  std::vector<Candidate> faster(const Candidate& from) {
    const Seconds most = worth_a_change * from.iteration;
    std::vector<Candidate> found;
    neighbourhood_.visit_changes(from, [&](const Strategy& strategy) {
      if (!neighbourhood_.reaches(from, strategy)) return;
      if (std::optional<Candidate> one = within(from, strategy, most)) found.push_back(std::move(*one));
    });
    std::stable_sort(found.begin(), found.end(), faster_than);
    if (!found.empty()) return found;
    if (std::optional<Candidate> one = laid_otherwise(from, from.verdict, most))
      found.push_back(std::move(*one));
    return found;
  }

  // Returns the fastest change of a marginal candidate that fits and takes less than `most`.
  std::optional<Candidate> fitting(const Candidate& from, Seconds most) {
    std::optional<Candidate> best;
    neighbourhood_.visit_changes(from, [&](const Strategy& strategy) {
      if (!neighbourhood_.reaches(from, strategy)) return;
      const Seconds limit = best ? best->iteration : most;
      const auto keeps = [&](const Candidate& one) { return one.iteration < limit; };
      std::optional<Candidate> one = neighbourhood_.evaluated(from, strategy, Verdict::fits, keeps);
      if (one) best = std::move(one);
    });
    return best;
  }

  // Returns the time of a candidate without recomputation, even if it then does not fit.
  Seconds without_recomputation(const Candidate& from) {
    Strategy strategy = from.strategy;
    strategy.recompute = {};
    return neighbourhood_.composer().layout(strategy).iteration(strategy);
  }

  // Returns the candidate with its layers placed by time and memory, if it then has at most this verdict and takes
  // less than `most`. What PyTorch's allocator reserves must fit as well, or a plan might be lost.
  std::optional<Candidate> laid_otherwise(const Candidate& from, Verdict verdict, Seconds most) {
    if (space_.layouts == Layouts::even) return std::nullopt;
    const std::optional<Strategy> placed =
        with_layers_by_time(base_, neighbourhood_.composer(), from.strategy, verdict);
    if (!placed || !neighbourhood_.can_replace(from, *placed)) return std::nullopt;
    std::optional<Candidate> one = within(from, *placed, most);
    const Verdict least = std::min(from.verdict, Verdict::marginal);
    if (one && settled_candidate(base_, *one).verdict > least) return std::nullopt;
    return one;
  }

  // Returns the fastest candidate with another number of stages and layers placed by time and memory, if it is
  // worth the change. Placing takes milliseconds, so only balanced layouts that are nearly as fast are placed.
  std::optional<Candidate> laid_on_other_stages(const Candidate& from) {
    if (from.strategy.stage_layers.empty()) return std::nullopt;
    // Assumed, to bound the time: placing by time gained 1.7% on Nemotron 3 Nano, of layouts 5% apart.
    constexpr std::size_t most_placed = 2;
    constexpr double nearly = 1.05;
    const auto stages = [](const Strategy& of) { return of.pipeline_parallel * of.virtual_pipeline; };
    std::vector<Candidate> balanced;
    neighbourhood_.visit_changes(from, [&](const Strategy& strategy) {
      if (stages(strategy) == stages(from.strategy) || !neighbourhood_.reaches(from, strategy)) return;
      if (std::optional<Candidate> one = within(from, strategy, nearly * from.iteration))
        balanced.push_back(std::move(*one));
    });
    std::stable_sort(balanced.begin(), balanced.end(), faster_than);
    std::optional<Candidate> best;
    Seconds most = worth_a_change * from.iteration;
    for (std::size_t i = 0; i < std::min(balanced.size(), most_placed); ++i) {
      std::optional<Candidate> one = laid_otherwise(balanced[i], from.verdict, most);
      if (!one) continue;
      most = one->iteration;
      best = std::move(one);
    }
    return best;
  }

 private:
  std::optional<Candidate> within(const Candidate& from, const Strategy& strategy, Seconds most) {
    return neighbourhood_.evaluated(from, strategy, from.verdict,
                                    [&](const Candidate& one) { return one.iteration < most; });
  }

  const Request& base_;
  const Space& space_;
  Neighbourhood neighbourhood_;
};

constexpr int most_steps = 64;

Candidate refined_by(Refinement& refinement, Candidate candidate, const Watch& watch = {}) {
  for (int i = 0; i < most_steps && !stops(watch); ++i) {
    std::vector<Candidate> next = refinement.faster(candidate);
    if (next.empty()) break;
    candidate = std::move(next.front());
  }
  return candidate;
}

// Puts what was found in the place of a result's lists.
void refill(SearchResult& result, const BestFound& found) {
  result.plans.clear();
  found.fill(result);
}

// Adds the fastest fitting change of each marginal plan that is nearly as fast as the best. Recomputing a
// module may free the margin for less than another division costs.
void fit_marginal(SearchResult& result, Refinement& refinement, const Watch& watch) {
  if (result.plans.front().verdict != Verdict::fits) return;
  BestFound found;
  found.add(result);
  constexpr double most_slower = 1.05;  // assumed: what refining may gain after it
  const Seconds most = most_slower * result.plans.front().iteration;
  for (const Candidate& candidate : result.pareto) {  // by time
    if (candidate.iteration >= most || stops(watch)) break;
    if (candidate.verdict != Verdict::marginal) continue;
    if (const std::optional<Candidate> fitting = refinement.fitting(candidate, most)) found.add(*fitting);
  }
  refill(result, found);
}

// Plans that are always changed. Changing all would take most of the time.
constexpr std::size_t first_plans = 3;

// Returns the places of the plans to refine: the first ones, and those whose time without recomputation and
// with layers placed by time would beat the first plan. Changes may free the memory in a cheaper way.
std::vector<std::size_t> promising(const SearchResult& result, const Space& space, Refinement& refinement) {
  struct Later {
    Seconds least;
    std::size_t place;
  };
  constexpr std::size_t most_later = 5;  // bounds the time
  // Assumed: placing layers by time in place of FLOPs gains at most this. On gpt-oss-20b it gained 6%.
  constexpr double placed = 0.93;
  std::vector<std::size_t> places;
  std::vector<Later> later;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    if (i < first_plans) {
      places.push_back(i);
      continue;
    }
    const Candidate& plan = result.plans[i];
    const bool places_layers = space.layouts == Layouts::any && plan.strategy.pipeline_parallel > 1;
    const Seconds least = (places_layers ? placed : 1) * refinement.without_recomputation(plan);
    if (least < worth_a_change * result.plans.front().iteration) later.push_back({least, i});
  }
  std::stable_sort(later.begin(), later.end(),
                   [](const Later& x, const Later& y) { return x.least < y.least; });
  for (std::size_t i = 0; i < std::min(later.size(), most_later); ++i) places.push_back(later[i].place);
  return places;
}

// Refines promising plans. If changes lead to another division, also refines the plan within its own, where it
// may become faster.
void refine(SearchResult& result, const Request& base, const Space& space, Refinement& refinement,
            const Watch& watch) {
  BestFound found;
  for (const std::size_t i : promising(result, space, refinement)) {
    if (result.undecided) break;
    const Candidate& plan = result.plans[i];
    const Division division = division_of(plan.strategy);
    const Candidate refined = refined_by(refinement, plan, watch);
    found.add(refined);
    if (division_of(refined.strategy) != division) {
      const Space part = part_of(space, division);
      Refinement in_division(base, part);
      found.add(refined_by(in_division, plan, watch));
    }
    leave_undecided(result, watch);
  }
  found.add(result);
  refill(result, found);
}

// Adds the first plans with other numbers of stages.
void restage_first(SearchResult& result, Refinement& refinement, const Watch& watch) {
  BestFound found;
  found.add(result);
  for (std::size_t i = 0; i < std::min(result.plans.size(), first_plans) && !stops(watch); ++i) {
    const std::optional<Candidate> staged = refinement.laid_on_other_stages(result.plans[i]);
    if (staged) found.add(refined_by(refinement, *staged, watch));
  }
  leave_undecided(result, watch);
  refill(result, found);
}

// If nothing fits, makes a plan of what needs the least memory, if its layers can be placed so that it fits.
void lay_nearest(SearchResult& result, Refinement& refinement) {
  constexpr Seconds any(std::numeric_limits<double>::infinity());
  std::optional<Candidate> placed = refinement.laid_otherwise(*result.nearest, Verdict::fits, any);
  if (!placed) placed = refinement.laid_otherwise(*result.nearest, Verdict::marginal, any);
  if (!placed) return;
  ++result.evaluated;
  ++result.feasible;
  result.nearest.reset();
  result.plans = result.pareto = {*placed};
}

}  // namespace

Candidate refined(const Request& base, const Space& space, Candidate candidate) {
  if (space.breadth == Breadth::usual) return candidate;
  Refinement refinement(base, space);
  return refined_by(refinement, std::move(candidate));
}

Candidate refined_and_settled(const Request& base, const Space& space, Candidate candidate) {
  if (space.breadth == Breadth::usual) return candidate;
  Refinement refinement(base, space);
  // Following the allocator takes milliseconds.
  constexpr std::size_t most_settled = 8;
  for (int i = 0; i < most_steps; ++i) {
    std::optional<Candidate> next =
        first_settled(base, refinement.faster(candidate), most_settled, candidate.verdict);
    if (!next) break;
    candidate = std::move(*next);
  }
  return candidate;
}

void widen(SearchResult& result, const Request& base, const Space& space, const SearchOptions& options) {
  if (space.breadth == Breadth::usual || result.undecided) return;
  tell(options.watch, widening);
  Widening widening(result, base, space, options);
  widening.run();
  if (result.undecided) return;
  Refinement refinement(base, space);
  if (result.nearest) lay_nearest(result, refinement);
  if (result.plans.empty()) return;
  fit_marginal(result, refinement, options.watch);
  refine(result, base, space, refinement, options.watch);
  if (!result.undecided && any_experts(base.model) && widening.search_with_dispatcher() && !result.undecided)
    refine(result, base, space, refinement, options.watch);
  if (!result.undecided) restage_first(result, refinement, options.watch);
}

}  // namespace headroom
