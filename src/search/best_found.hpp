// What a search keeps of the strategies that it meets. Keeping one twice changes nothing, and the order in which they
// come changes nothing, so that threads and shards can be joined.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "headroom/search/search.hpp"

namespace headroom {

class BestFound {
 public:
  // One that fits, with its time.
  void add(const Candidate& candidate);
  // One that does not fit.
  void add_too_large(const Candidate& candidate);
  void add(const BestFound& other);
  void add(const SearchResult& part);

  // Whether a strategy like this one would change nothing, whose time is no less than that of the candidate.
  [[nodiscard]] bool beats(const Candidate& least) const;

  // Puts the lists into a result; `nearest` where its count of feasible strategies is 0.
  void fill(SearchResult& result) const;

 private:
  using Division = std::array<std::int64_t, 4>;  // t, c, p, d
  static Division division_of(const Strategy& strategy);
  void add_to_front(const Candidate& candidate);

  std::map<Division, Candidate> best_;
  std::vector<Candidate> front_;  // by time, each needing less memory than those before it
  std::optional<Candidate> nearest_;
};

}  // namespace headroom
