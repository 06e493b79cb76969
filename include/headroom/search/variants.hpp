// Searching several requests and comparing the best of each: systems at their prices, numbers of devices, global batches.
// Larger batches do more in an iteration, so what is compared is the time that a sequence takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headroom/search/search.hpp"

namespace headroom {

// A system that is compared with others, and what runs on it.
struct Offer {
  System system;
  Software software;
  Layouts layouts = Layouts::even;
  std::optional<Strategy> strategy;  // that its stack makes of the base's; absent: the base's
  std::optional<double> price_per_device_hour;
  friend bool operator==(const Offer&, const Offer&) = default;
};

// What is compared: each of a list with each of the others.
struct Compared {
  std::vector<Offer> offers;  // each list has at least one
  std::vector<std::int64_t> device_counts;
  std::vector<std::int64_t> global_batches;
  friend bool operator==(const Compared&, const Compared&) = default;
};

// One of them.
struct Variant {
  std::size_t offer = 0;
  std::int64_t devices = 1;
  std::int64_t global_batch = 1;
  friend bool operator==(const Variant&, const Variant&) = default;
};

// In order of systems, devices and batches; a candidate of a comparison names its own by the place in it.
std::vector<Variant> variants_of(const Compared& comparison);

// What is searched for a variant.
Request request_of(const Request& base, const Compared& comparison, const Variant& variant);
Space space_of(const Space& space, const Compared& comparison, const Variant& variant);

// Seconds for each sequence of a global batch.
double seconds_per_sequence(const Candidate& candidate, const Variant& variant);

// Of the results of all variants, in their order: the best plan of each, ordered; what of their Pareto fronts nothing
// beats; the candidate that comes nearest. On one system a plan is beaten by one that takes no more time, no more memory
// and no more devices. Memories of different systems do not compare: there a plan is beaten by one that takes no more time
// and costs no more, where both have a price, and by none where they have not.
SearchResult compared_variants(const Compared& comparison, std::vector<SearchResult> results);

// Searches them all.
SearchResult search_variants(const Request& base, const Space& space, const Compared& comparison,
                             const SearchOptions& options = {});

}  // namespace headroom
