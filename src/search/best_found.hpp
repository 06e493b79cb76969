// Strategies that a search keeps. Adding a strategy twice, or in another order, changes nothing, so threads
// and shards can be merged.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "headroom/search/search.hpp"
#include "search/division.hpp"

namespace headroom {

class BestFound {
 public:
  // Adds a candidate that fits, with its time.
  void add(const Candidate& candidate);
  // Adds a candidate that does not fit.
  void add_too_large(const Candidate& candidate);
  void add(const BestFound& other);
  void add(const SearchResult& part);

  // Returns whether adding a strategy like `least`, with at least this time, would change nothing.
  [[nodiscard]] bool beats(const Candidate& least) const;

  // Returns whether adding a strategy that does not fit and needs at least this would change nothing.
  [[nodiscard]] bool has_nearer(Bytes least) const {
    return !best_.empty() || (nearest_ && nearest_->peak < least);
  }

  // Writes the lists into a result, and `nearest` if its count of feasible strategies is 0.
  void fill(SearchResult& result) const;

 private:
  void add_to_front(const Candidate& candidate);

  std::map<Division, Candidate> best_;
  std::vector<Candidate> front_;  // by time, each needing less memory than those before it
  std::optional<Candidate> nearest_;
};

}  // namespace headroom
