// Confirms the candidates that a search shows: their verdicts are what PyTorch will hold (plan/allocator_use.hpp), which is followed tensor
// by tensor and takes too long to ask of every strategy.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "headroom/search/find.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

// What a candidate is searched with.
struct Searched {
  Request base;
  Space space;
};
using SearchedOf = std::function<Searched(const Candidate&)>;

// How many of the best plans and of the Pareto front are shown.
struct Shown {
  std::size_t plans = 10;
  std::size_t pareto = 10;
};

// Confirms what is shown, in the order of the plans. Where PyTorch holds more than the device has, the fastest plan of the same division
// of the devices (t, c, p, d) that leaves it room takes the place of a plan, if there is one. Plans that do not fit leave both lists;
// where no plan is left, the first of them is the nearest.
using BetterPlan = std::function<bool(const Candidate&, const Candidate&)>;
void confirm(SearchResult& result, const Shown& shown, const SearchedOf& searched_of,
             const BetterPlan& better, unsigned threads);

// find(), whose answer leaves room for what PyTorch's allocator holds: some strategy fits there by that as well.
Found find_held(const Request& base, const Space& space, const Question& question,
                std::span<const std::int64_t> global_batches);
Found find_held(const Request& base, const Space& space, const Question& question);

}  // namespace headroom
