#include "search/longest_sequence.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/divided_sizes.hpp"
#include "search/largest.hpp"

namespace headroom {
namespace {

class SequenceFinder {
 public:
  SequenceFinder(const Request& base, const Space& space, const Question& question)
      : base_(base), space_(space), question_(question) {}

  // Sequences that the ranks of every tensor- and context-parallel size divide admit equal strategies, and no
  // strategy needs less memory for a longer one. Among these, the limit is bisected. In between, sequence and
  // context parallelism may be illegal.
  std::optional<std::int64_t> run() {
    std::int64_t unit = question_.step;
    const std::int64_t most = most_ranks(base_.model, ParallelAxis::tensor);
    for (const std::int64_t t : divisors(space_.devices)) {
      if (most % t != 0 || !allows(tensor_parallel_of(base_, space_), t)) continue;
      for (const std::int64_t c : divisors(space_.devices / t)) {
        if (allows(space_.context_parallel, c)) unit = std::lcm(unit, c > 1 ? 2 * c * t : t);
      }
    }
    const auto holds = [&](std::int64_t sequence) {
      return question_.within ? fits_at(sequence, base_, space_, question_) : fits(sequence);
    };
    const std::int64_t alike = largest(unit, unit, question_.most, holds).value_or(0);
    const std::int64_t step = question_.step;
    for (std::int64_t sequence = std::min(alike + unit - step, question_.most / step * step);
         sequence > alike; sequence -= step) {
      if (holds(sequence)) return sequence;
    }
    return alike > 0 ? std::optional(alike) : std::nullopt;
  }

 private:
  // Returns whether something fits at a sequence. Expects the order of run(): once a sequence does not fit,
  // all later ones are longer than the longest that did. Then only the layouts that fit at that length are
  // tried.
  bool fits(std::int64_t sequence) {
    const Request request = with_sequence(sequence);
    Feasibility feasibility(request);
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
    fitting_ = Feasibility(request).fitting_layouts(space_);
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
  std::int64_t longest_ = 0;       // that was found to fit
  std::vector<Strategy> fitting_;  // layouts in which it does: one, or all of them
  bool all_fitting_ = false;
};

}  // namespace

// A result with any context-parallel size counts if a search at that length tries this size too.
std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question) {
  Space any = space;
  if (any.context_parallel == Counts{}) any.context_parallel.most = most_parts(base.model, question.most);
  const std::optional<std::int64_t> longest = SequenceFinder(base, any, question).run();
  if (!longest || fits_at(*longest, base, space, question)) return longest;
  any.context_parallel = context_parallel_of(base, space);
  return SequenceFinder(base, any, question).run();
}

}  // namespace headroom
