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
  // Looks at sequences from `known.from` on.
  SequenceFinder(const Request& base, const Space& space, const Question& question, const KnownLayouts& known,
                 const Watch& watch)
      : base_(base),
        space_(space),
        question_(question),
        watch_(watch),
        from_(known.from),
        fitting_(known.layouts),
        all_fitting_(true) {}

  // Sequences that the ranks of every tensor- and context-parallel size divide admit equal strategies, and no
  // strategy needs less memory for a longer one. Among these, the limit is bisected. In between, sequence and
  // context parallelism may be illegal.
  std::optional<std::int64_t> run() {
    const std::int64_t unit = alike_unit(base_, space_, question_);
    const auto holds = [&](std::int64_t sequence) {
      return question_.within ? fits_at(sequence, base_, space_, question_, watch_) : fits(sequence);
    };
    const std::int64_t alike = largest(unit, std::max(from_, unit), question_.most, holds).value_or(0);
    if (alike < from_) return std::nullopt;
    const std::int64_t step = question_.step;
    for (std::int64_t sequence = std::min(alike + unit - step, question_.most / step * step);
         sequence > alike && !stops(watch_); sequence -= step) {
      if (holds(sequence)) return sequence;
    }
    return alike > 0 ? std::optional(alike) : std::nullopt;
  }

  // Returns whether a layout that fits at the length that run() found has a context-parallel size that a search at that
  // length tries.
  [[nodiscard]] bool has_layout_of(const Space& space, std::int64_t longest) const {
    const Counts counts = context_parallel_of(with_sequence(longest), space);
    return longest == longest_ && std::any_of(fitting_.begin(), fitting_.end(), [&](const Strategy& layout) {
             return allows(counts, layout.context_parallel);
           });
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
  std::int64_t from_ = 0;
  std::int64_t longest_ = 0;       // that was found to fit
  std::vector<Strategy> fitting_;  // layouts in which it does: one, or all of them
  bool all_fitting_ = false;
};

}  // namespace

// A result with any context-parallel size counts if a search at that length tries this size too.
std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question, const Watch& watch) {
  Space any = with_any_context(base, space, question);
  SequenceFinder finder(base, any, question, watch);
  const std::optional<std::int64_t> longest = finder.run();
  if (!longest || stops(watch) || finder.has_layout_of(space, *longest) ||
      fits_at(*longest, base, space, question, watch))
    return longest;
  any.context_parallel = context_parallel_of(base, space);
  return SequenceFinder(base, any, question, watch).run();
}

std::optional<std::int64_t> longest_sequence(const Request& base, const Space& space,
                                             const Question& question, const KnownLayouts& known,
                                             const Watch& watch) {
  const Space any = with_any_context(base, space, question);
  SequenceFinder finder(base, any, question, known, watch);
  const std::optional<std::int64_t> longest = finder.run();
  return longest && finder.has_layout_of(space, *longest) ? longest : std::nullopt;
}

KnownLayouts known_layouts(const Request& base, const Space& space, const Question& question,
                           std::int64_t longest, const Watch& watch) {
  const Space any = with_any_context(base, space, question);
  const std::int64_t unit = alike_unit(base, any, question);
  KnownLayouts known{.layouts = {}, .from = longest / 4 * 3 / unit * unit};
  if (known.from == 0) return known;
  Request request = base;
  request.workload.sequence = known.from;
  known.layouts = Feasibility(request, watch).fitting_layouts(any);
  if (stops(watch)) known.layouts.clear();
  return known;
}

}  // namespace headroom
