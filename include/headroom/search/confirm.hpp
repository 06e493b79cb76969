// Confirms the candidates that a search shows: decides whether each fits by the memory that PyTorch will
// reserve (plan/allocator_use.hpp). The allocator is followed tensor by tensor, which takes too long to do
// for every strategy.
#pragma once

#include <cstddef>
#include <functional>

#include "headroom/search/search.hpp"

namespace headroom {

// Request and space that a candidate was searched with.
struct Searched {
  Request base;
  Space space;
};
using SearchedOf = std::function<Searched(const Candidate&)>;
using BetterPlan = std::function<bool(const Candidate&, const Candidate&)>;

// Numbers of plans and of Pareto points that are shown.
struct Shown {
  std::size_t plans = 10;
  std::size_t pareto = 10;
};

// Confirms the shown candidates and sorts the plans by `better`. A plan for which PyTorch reserves more than
// a GPU has is replaced by the fastest plan of the same TP x CP x PP x DP whose tensors need enough less
// memory, if there is one. A marginal plan is replaced by the fastest point of the front with the same
// TP x CP x PP x DP for which PyTorch reserves no more. Plans that do not fit leave both lists. If no plan is
// left, the first of them becomes `nearest`. A result that is undecided, or is left so by the watch, keeps the
// few plans that were confirmed, and one if any fits.
void confirm(SearchResult& result, const Shown& asked, const SearchedOf& searched_of,
             const BetterPlan& better, unsigned threads, const Watch& watch = {});

// Confirms the results of a search with one request and space, fastest plan first.
void confirm(SearchResult& result, const Shown& shown, const Request& base, const Space& space,
             unsigned threads, const Watch& watch = {});

}  // namespace headroom
