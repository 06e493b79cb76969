// Confirms the candidates that a search shows: their verdicts are what PyTorch will hold (plan/allocator_use.hpp), which is followed
// tensor by tensor and takes too long to ask of every strategy.
#pragma once

#include <cstddef>
#include <functional>

#include "headroom/search/search.hpp"

namespace headroom {

// The request and the space that a candidate was searched with.
struct Searched {
  Request base;
  Space space;
};
using SearchedOf = std::function<Searched(const Candidate&)>;
using BetterPlan = std::function<bool(const Candidate&, const Candidate&)>;

// How many of the best plans and of the Pareto front are shown.
struct Shown {
  std::size_t plans = 10;
  std::size_t pareto = 10;
};

// Settles the candidates that are shown and puts the plans in the order of `better`. Where PyTorch holds more than the device has, the
// fastest plan of the same TP x CP x PP x DP whose tensors take enough less takes the place of a plan, if there is one. Plans that do
// not fit leave both lists; where no plan is left, the first of them is the nearest.
void confirm(SearchResult& result, const Shown& shown, const SearchedOf& searched_of,
             const BetterPlan& better, unsigned threads);

// The same for one request and space, the fastest first.
void confirm(SearchResult& result, const Shown& shown, const Request& base, const Space& space,
             unsigned threads);

}  // namespace headroom
