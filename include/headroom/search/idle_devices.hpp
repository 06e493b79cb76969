// Searches on fewer GPUs than there are: some numbers of GPUs divide neither the model nor the batch well.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/search/search.hpp"

namespace headroom {

// A search on fewer GPUs; its first plan is confirmed (search/confirm.hpp).
struct FewerDevices {
  Request base;
  Space space;
  SearchResult result;
};

// `devices`: usual_global_batch() of the number of GPUs
enum class BatchOf : std::uint8_t { request, devices };

// Returns the search on fewer GPUs whose best plan trains the most sequences a second, or nothing if the best
// plan of `with_all`, on all GPUs, trains at least as many. Confirms the first plan of `with_all` for this
// comparison. Tries multiples of powers of two, which more sizes divide, with at most a quarter of the GPUs
// idle. If nothing fits on those, tries whole hosts. Returns nothing if the watch stops it. Heeds the threads and the
// watch of the options.
std::optional<FewerDevices> fewer_devices(const Request& base, const Space& space, SearchResult& with_all,
                                          BatchOf batch, const SearchOptions& options);

}  // namespace headroom
