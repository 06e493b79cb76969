#include "search/best_found.hpp"

#include <algorithm>
#include <tuple>

namespace headroom {

void BestFound::add(const Candidate& candidate) {
  add_to_front(candidate);
  const auto [best, first] = best_.try_emplace(division_of(candidate.strategy), candidate);
  if (!first && candidate < best->second) best->second = candidate;
}

void BestFound::add_too_large(const Candidate& candidate) {
  const auto need = [](const Candidate& x) { return std::tuple(x.peak, x.place); };
  if (!nearest_ || need(candidate) < need(*nearest_)) nearest_ = candidate;
}

void BestFound::add_to_front(const Candidate& candidate) {
  const auto dominates = [](const Candidate& x, const Candidate& y) {
    const bool alike = x.iteration == y.iteration && x.peak == y.peak;
    return alike ? x.place <= y.place : x.iteration <= y.iteration && x.peak <= y.peak;
  };
  for (const Candidate& member : front_) {
    if (dominates(member, candidate)) return;
  }
  std::erase_if(front_, [&](const Candidate& member) { return dominates(candidate, member); });
  const auto faster = [](const Candidate& x, const Candidate& y) { return x.iteration < y.iteration; };
  front_.insert(std::upper_bound(front_.begin(), front_.end(), candidate, faster), candidate);
}

void BestFound::add(const BestFound& other) {
  for (const auto& [division, candidate] : other.best_) add(candidate);
  for (const Candidate& candidate : other.front_) add(candidate);
  if (other.nearest_) add_too_large(*other.nearest_);
}

void BestFound::add(const SearchResult& part) {
  for (const Candidate& candidate : part.plans) add(candidate);
  for (const Candidate& candidate : part.pareto) add(candidate);
  if (part.nearest) add_too_large(*part.nearest);
}

bool BestFound::beats(const Candidate& least) const {
  const auto best = best_.find(division_of(least.strategy));
  const auto better = [&](const Candidate& x) {
    return std::tie(x.verdict, x.iteration) < std::tie(least.verdict, least.iteration);
  };
  if (best == best_.end() || !better(best->second)) return false;
  return std::any_of(front_.begin(), front_.end(), [&](const Candidate& member) {
    return member.iteration < least.iteration && member.peak <= least.peak;
  });
}

void BestFound::fill(SearchResult& result) const {
  for (const auto& [division, candidate] : best_) result.plans.push_back(candidate);
  std::sort(result.plans.begin(), result.plans.end());
  result.pareto = front_;
  if (result.feasible == 0) result.nearest = nearest_;
}

}  // namespace headroom
