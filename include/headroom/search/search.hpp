// The best strategies of a space: least iteration time within memory, the Pareto front of time and peak memory, and
// what was rejected and why. What fits with the margin of the request comes before what is marginal. The answer is
// that of evaluating every strategy in full; a total order breaks ties: less time, less memory, then earlier in the
// space. It depends neither on threads nor on how the space is cut into shards.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/search/space.hpp"

namespace headroom {

struct Candidate {
  Strategy strategy;
  Verdict verdict = Verdict::fits;
  Bytes peak;  // of the peak rank
  std::size_t peak_rank = 0;
  std::optional<Bytes> held;  // on that rank's device by PyTorch's allocator and others, once confirmed
  Seconds iteration;
  double mfu = 0;
  std::size_t variant = 0;  // of those that are compared (search/variants.hpp)
  std::int64_t place = 0;   // in the order of the whole space, whichever part of it was searched
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// By verdict, time, memory and place.
bool operator<(const Candidate& x, const Candidate& y);

// Part `index` of `count`, from 1: of the layouts of a space, counted with those that are rejected, every count-th.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// What a search did for its result: it depends on shards and on which thread was faster, and is no part of it.
struct SearchEffort {
  std::int64_t timed =
      0;  // strategies whose exact time was computed; the others do not fit or are too slow at the least
};

struct SearchOptions {
  Shard shard;
  unsigned threads = 1;            // at the most
  SearchEffort* effort = nullptr;  // added to, where asked for
  std::function<void(double share)>
      progress;  // called by the calling thread alone, with how much is done, from 0 to 1
};

struct SearchResult {
  std::int64_t evaluated = 0;  // legal strategies: memory of every rank for each
  std::int64_t feasible = 0;   // of them, those that fit
  std::map<std::string, std::int64_t>
      rejected;  // by reason: layouts by the flag at fault, strategies by device_memory or host_memory
  std::vector<Candidate> plans;      // the best of each division of the devices (t, p, d), best first
  std::vector<Candidate> pareto;     // by time: each needs less memory than all that are faster
  std::optional<Candidate> nearest;  // where nothing fits: the one that needs the least memory
  friend bool operator==(const SearchResult&, const SearchResult&) = default;
};

// Throws InputError where the system's performance is not known.
SearchResult search(const Request& base, const Space& space, const SearchOptions& options = {});

// The result of one search over all of a space from those over its shards, in any order. No parts: an empty result.
SearchResult merged(std::span<const SearchResult> parts);

}  // namespace headroom
