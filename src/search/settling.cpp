#include "search/settling.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "headroom/plan/allocator_use.hpp"

namespace headroom {

Candidate settled_candidate(const Request& base, Candidate candidate) {
  Request request = base;
  request.strategy = candidate.strategy;
  const Evaluation evaluation = evaluate(request);
  const Plan& plan = account(evaluation);
  candidate.peak = peak(plan);
  candidate.peak_rank = plan.peak_rank;
  const Settling found = settling(evaluation);
  if (found.fullest) candidate.held = found.fullest->bytes;
  candidate.verdict = found.verdict;
  return candidate;
}

std::optional<Candidate> first_settled(const Request& base, std::vector<Candidate> candidates,
                                       std::size_t most, Verdict verdict) {
  for (std::size_t i = 0; i < std::min(candidates.size(), most); ++i) {
    Candidate candidate = settled_candidate(base, std::move(candidates[i]));
    if (candidate.verdict <= verdict) return candidate;
  }
  return std::nullopt;
}

Bytes excess(const Request& base, const Candidate& candidate) {
  constexpr double least_step = 0.01;
  const Bytes over = candidate.held ? *candidate.held - base.system.memory : Bytes(0);
  constexpr double most_step = 0.04;  // goes past few of the plans that fit, in most_settling_tries steps
  return std::clamp(over / 2, least_step * base.system.memory, most_step * base.system.memory);
}

}  // namespace headroom
