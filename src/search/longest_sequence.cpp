#include "search/longest_sequence.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/divided_sizes.hpp"
#include "search/largest.hpp"

namespace headroom {
namespace {

// Returns the sequences whose multiples the ranks of every tensor- and context-parallel size divide.
std::int64_t alike_unit(const Request& base, const Space& space, const Question& question) {
  std::int64_t unit = question.step;
  const std::int64_t most = most_ranks(base.model, ParallelAxis::tensor);
  for (const std::int64_t t : divisors(space.devices)) {
    if (most % t != 0 || !allows(tensor_parallel_of(base, space), t)) continue;
    for (const std::int64_t c : divisors(space.devices / t)) {
      if (allows(space.context_parallel, c)) unit = std::lcm(unit, c > 1 ? 2 * c * t : t);
    }
  }
  return unit;
}

// Returns the space with every context-parallel size, where it leaves them open.
Space with_any_context(const Request& base, const Space& space, const Question& question) {
  Space any = space;
  if (any.context_parallel == Counts{}) any.context_parallel.most = most_parts(base.model, question.most);
  return any;
}

class SequenceFinder {
 public:
  SequenceFinder(const Request& base, const Space& space, const Question& question, const Watch& watch)
      : base_(base), space_(space), question_(question), watch_(watch) {}

  // Sequences that the ranks of every tensor- and context-parallel size divide admit equal strategies, and no
  // strategy needs less memory for a longer one. Among these, the limit is bisected. In between, sequence and
  // context parallelism may be illegal.
  std::optional<std::int64_t> run() {
    const std::int64_t unit = alike_unit(base_, space_, question_);
    const auto holds = [&](std::int64_t sequence) {
      return question_.within ? fits_at(sequence, base_, space_, question_, watch_) : fits(sequence);
    };
    const std::int64_t alike = largest(unit, unit, question_.most, holds).value_or(0);
    const std::int64_t step = question_.step;
    for (std::int64_t sequence = std::min(alike + unit - step, question_.most / step * step);
         sequence > alike && !stops(watch_); sequence -= step) {
      if (holds(sequence)) return sequence;
    }
    return alike > 0 ? std::optional(alike) : std::nullopt;
  }

 private:
  // Returns whether something fits at a sequence. Expects the order of run(): once a sequence does not fit,
  // all later ones are longer than the longest that did. Then only the layouts that fit at that length are
  // tried.
  bool fits(std::int64_t sequence) {
    tell(watch_, finding, sequence);
    const Request request = with_sequence(sequence);
    Feasibility feasibility(request, watch_);
    if (all_fitting_) {
      std::vector<Strategy> left = feasibility.fitting_of(space_, fitting_);
      if (left.empty()) return false;
      fitting_ = std::move(left);
    } else if (feasibility.fitting_of(space_, fitting_).empty()) {
      const std::optional<Strategy> first = feasibility.fitting_layout(space_);
      if (!first) {
        find_all_fitting();
        return false;
      }
      fitting_ = {*first};
    }
    longest_ = sequence;
    return true;
  }

  void find_all_fitting() {
    if (longest_ == 0) return;
    const Request request = with_sequence(longest_);
    fitting_ = Feasibility(request, watch_).fitting_layouts(space_);
    all_fitting_ = true;
  }

  [[nodiscard]] Request with_sequence(std::int64_t sequence) const {
    Request request = base_;
    request.workload.sequence = sequence;
    return request;
  }

  const Request& base_;
  const Space& space_;
  const Question& question_;
  const Watch& watch_;
  std::int64_t longest_ = 0;       // that was found to fit
  std::vector<Strategy> fitting_;  // layouts in which it does: one, or all of them
  bool all_fitting_ = false;
};

}  // namespace

// A result with any context-parallel size counts if a search at that length tries this size too.
std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question, const Watch& watch) {
  Space any = with_any_context(base, space, question);
  const std::optional<std::int64_t> longest = SequenceFinder(base, any, question, watch).run();
  if (!longest || stops(watch) || fits_at(*longest, base, space, question, watch)) return longest;
  any.context_parallel = context_parallel_of(base, space);
  return SequenceFinder(base, any, question, watch).run();
}

NarrowedSpace narrowed(const Request& base, const Space& space, const Question& question,
                       std::int64_t longest, const Watch& watch) {
  const Space any = with_any_context(base, space, question);
  const std::int64_t unit = alike_unit(base, any, question);
  NarrowedSpace part{.space = space, .from = longest / 4 * 3 / unit * unit};
  if (part.from == 0) return part;
  Request request = base;
  request.workload.sequence = part.from;
  const std::vector<Strategy> layouts = Feasibility(request, watch).fitting_layouts(any);
  if (layouts.empty() || stops(watch)) return {.space = space, .from = 0};
  const auto keep = [&](Counts& counts, std::int64_t Strategy::*size) {
    std::set<std::int64_t> sizes;
    for (const Strategy& layout : layouts) sizes.insert(layout.*size);
    counts.only.assign(sizes.begin(), sizes.end());
  };
  keep(part.space.tensor_parallel, &Strategy::tensor_parallel);
  keep(part.space.pipeline_parallel, &Strategy::pipeline_parallel);
  keep(part.space.virtual_pipeline, &Strategy::virtual_pipeline);
  keep(part.space.data_parallel, &Strategy::data_parallel);
  return part;
}

}  // namespace headroom
