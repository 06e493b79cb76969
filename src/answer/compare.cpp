#include "headroom/answer/compare.hpp"

#include <iterator>

#include "headroom/plan/allocator_use.hpp"

namespace headroom {
namespace {

// Of the peak rank of each plan; the last is their sum.
std::vector<ComparedTerm> memory_terms(const Plan& before, const Plan& after) {
  const RankMemory& x = before.ranks[before.peak_rank];
  const RankMemory& y = after.ranks[after.peak_rank];
  std::vector<ComparedTerm> terms;
  terms.reserve(std::size(memory_parts) + 1);
  for (const MemoryPart& part : memory_parts) {
    terms.push_back({std::string(part.name) + "_bytes", part.of(x).count(), part.of(y).count()});
  }
  terms.push_back({"peak_bytes", peak(before).count(), peak(after).count()});
  return terms;
}

// The last is the sum of the others. Empty where time is not known.
std::vector<ComparedTerm> time_terms(const Plan& before, const Plan& after) {
  std::vector<ComparedTerm> terms;
  if (!before.timing || !after.timing) return terms;
  const IterationTime& x = before.timing->iteration;
  const IterationTime& y = after.timing->iteration;
  for (const auto& [name, part] : breakdown_parts) {
    terms.push_back(
        {std::string(name) + "_seconds", (x.breakdown.*part).count(), (y.breakdown.*part).count()});
  }
  terms.push_back({"iteration_seconds", x.total.count(), y.total.count()});
  return terms;
}

}  // namespace

CompareReply compared(Evaluation before, Evaluation after) {
  std::vector<ComparedTerm> time = time_terms(account(before), account(after));
  std::vector<ComparedTerm> memory = memory_terms(account(before), account(after));
  return {.before = std::move(before),
          .after = std::move(after),
          .time = std::move(time),
          .memory = std::move(memory)};
}

CompareReply answer(const CompareQuestion& question) {
  return compared(settled(evaluate(question.before)), settled(evaluate(question.after)));
}

}  // namespace headroom
