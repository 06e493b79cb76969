#include "search/settling.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "headroom/plan/allocator_use.hpp"

namespace headroom {

Candidate settled_candidate(const Request& base, Candidate candidate) {
  Request request = base;
  request.strategy = candidate.strategy;
  Evaluation evaluation = evaluate(request);
  const Plan& plan = account(evaluation);
  candidate.peak = peak(plan);
  candidate.peak_rank = plan.peak_rank;
  if (const std::optional<DeviceUse> fullest = fullest_device(plan)) candidate.held = fullest->bytes;
  // A candidate with room needs no simulation of what could make room.
  if (candidate.held > base.system.memory) evaluation = settled(std::move(evaluation));
  candidate.verdict = account(evaluation).verdict;
  return candidate;
}

Bytes excess(const Request& base, const Candidate& candidate) {
  constexpr double least_step = 0.01;
  const Bytes over = candidate.held ? *candidate.held - base.system.memory : Bytes(0);
  return std::max(over / 2, least_step * base.system.memory);
}

}  // namespace headroom
