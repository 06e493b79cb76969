// Searches several requests and compares the best plans of each: systems at their prices, numbers of GPUs,
// global batches. Larger batches do more in an iteration, so the time per sequence is compared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headroom/search/search.hpp"

namespace headroom {

// A system to compare, and the stack that runs on it.
struct Offer {
  System system;
  Software software;
  Layouts layouts = Layouts::even;
  std::optional<Strategy> strategy;  // the base's strategy as this stack has it; absent: the base's
  std::optional<double> price_per_device_hour;
  friend bool operator==(const Offer&, const Offer&) = default;
};

// Lists to compare: every combination of their elements is a variant.
struct Compared {
  std::vector<Offer> offers;  // each list has at least one
  std::vector<std::int64_t> device_counts;
  std::vector<std::int64_t> global_batches;
  friend bool operator==(const Compared&, const Compared&) = default;
};

// One combination of offer, number of GPUs and global batch.
struct Variant {
  std::size_t offer = 0;
  std::int64_t devices = 1;
  std::int64_t global_batch = 1;
  friend bool operator==(const Variant&, const Variant&) = default;
};

// Returns the variants in order of systems, GPUs and batches. A candidate of a comparison refers to its
// variant by the index in this list.
std::vector<Variant> variants_of(const Compared& comparison);

// Return the request and the space to search for a variant.
Request request_of(const Request& base, const Compared& comparison, const Variant& variant);
Space space_of(const Space& space, const Compared& comparison, const Variant& variant);

// Returns the seconds per sequence of a global batch.
double seconds_per_sequence(const Candidate& candidate, const Variant& variant);

// Combines the results of all variants, in their order: the best plan of each variant, sorted; the
// undominated points of their Pareto fronts; and the nearest candidate. On one system, a plan dominates
// another if it takes no more time, memory and GPUs. Memory of different systems is not comparable. There a
// plan dominates another if it takes no more time and costs no more; without a price for both, neither
// dominates.
SearchResult compared_variants(const Compared& comparison, std::vector<SearchResult> results);

// Searches all variants and combines their results. Tells of whole variants only.
SearchResult search_variants(const Request& base, const Space& space, const Compared& comparison,
                             const SearchOptions& options = {});

}  // namespace headroom
