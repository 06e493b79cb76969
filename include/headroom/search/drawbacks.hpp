// What engineers avoid in a strategy unless it pays: uneven layouts, further parallel axes, recomputation,
// exchanges between nodes, full memory. Predictions of two strategies differ by noise
// (search/time_belief.hpp). Among strategies that are equal within it, a plan takes the one whose time with
// these prices is least (search/choice.hpp).
#pragma once

#include <string_view>
#include <vector>

#include "headroom/search/search.hpp"

namespace headroom {

struct Drawback {
  std::string_view name;  // in JSON
  std::string_view text;  // "an uneven layout"
  // Part of an iteration that a strategy without the drawback may take longer.
  double price;
  // Expects a request with the candidate's strategy.
  bool (*has)(const Request& request, const Candidate& candidate);
};

// Returns the drawbacks of a candidate. The strategy of the request does not count.
std::vector<const Drawback*> drawbacks_of(const Request& base, const Candidate& candidate);

// Returns the sum of their prices.
double price_of(const std::vector<const Drawback*>& drawbacks);

}  // namespace headroom
