// Finds the best strategies of a space: those of least iteration time within memory, the Pareto front of time
// and peak memory, and what was rejected and why. Plans that fit with the request's margin come before
// marginal ones. The answer equals that of evaluating every strategy in full. A total order breaks ties: less
// time, less memory, then earlier in the space. The answer depends neither on threads nor on how the space is
// divided into shards.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/core/watch.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

struct Candidate {
  Strategy strategy;
  Verdict verdict = Verdict::fits;
  Bytes peak;  // of the peak rank
  std::size_t peak_rank = 0;
  // memory in use on that rank's GPU, by PyTorch's allocator and others, once confirmed
  std::optional<Bytes> held;
  Seconds iteration;
  double mfu = 0;
  std::size_t variant = 0;  // index among the compared variants (search/variants.hpp)
  std::int64_t place = 0;   // in the order of the whole space, whichever part was searched
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// Compares by verdict, time, memory and place.
bool operator<(const Candidate& x, const Candidate& y);

// Part `index` (from 1) of `count` parts: every count-th layout of a space, counting rejected ones.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// Work that a search did. It depends on shards and on which thread was faster, so it is not part of the
// result.
struct SearchEffort {
  std::int64_t timed =
      0;  // strategies whose exact time was computed; the others do not fit or have too slow a lower bound
};

// How far a search is.
struct SearchProgress {
  double decided = 0;               // fraction of the layouts, 0 to 1
  const Candidate* best = nullptr;  // best that fits so far, by its tensors
  std::optional<Seconds> least;     // no strategy left takes less; absent if not known
};

struct SearchOptions {
  Shard shard;
  unsigned threads = 1;            // at most
  SearchEffort* effort = nullptr;  // added to, if not null
  // The space that the user described, if a part of it is searched. Only what the user set may be what the
  // launcher refuses (Request::insisted). Null: the searched space.
  const Space* described = nullptr;
  Watch watch;
  // Called by the calling thread alone, after each layout that it looks at.
  std::function<void(const SearchProgress&)> progress;
  // Bounds the time of every layout first and evaluates those of least bound first, so that what is left has a
  // lower bound. The result is the same.
  bool bounds = false;
};

// What a search left open because its watch stopped it.
struct Undecided {
  double decided = 0;            // fraction of the layouts of the usual space that were decided
  std::optional<Seconds> least;  // no strategy left of the usual space takes less; absent if not known
  friend bool operator==(const Undecided&, const Undecided&) = default;
};

struct SearchResult {
  std::int64_t evaluated = 0;  // legal strategies, with the memory of every rank computed
  std::int64_t feasible = 0;   // evaluated strategies that fit
  std::map<std::string, std::int64_t>
      // count by reason: the flag at fault for layouts, device_memory or host_memory for strategies
      rejected;
  std::vector<Candidate> plans;        // best plan of each division of the GPUs (t, p, d), best first
  std::vector<Candidate> pareto;       // by time: each needs less memory than all faster ones
  std::optional<Candidate> nearest;    // if nothing fits: the strategy that needs the least memory
  std::optional<Undecided> undecided;  // if the search was stopped; the lists then hold what it found
  friend bool operator==(const SearchResult&, const SearchResult&) = default;
};

// Leaves a result undecided if the watch stops what was to follow the search of the usual space.
void leave_undecided(SearchResult& result, const Watch& watch);

// Adds the counts of a search to those of another.
void add_counts(SearchResult& sum, const SearchResult& part);

// Searches a space. Throws InputError if the system's performance is not known.
SearchResult search(const Request& request, const Space& space, const SearchOptions& options = {});

// Merges the results of a space's shards, in any order, into the result of one search over the whole space.
// Returns an empty result for no parts.
SearchResult merged(std::span<const SearchResult> parts);

}  // namespace headroom
