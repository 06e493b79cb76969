// Devices that are better left idle: some numbers of them divide neither the model nor the batch well.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/search/search.hpp"

namespace headroom {

// A search on fewer devices, whose first plan is confirmed (search/confirm.hpp).
struct FewerDevices {
  Request base;
  Space space;
  SearchResult result;
};

enum class BatchOf : std::uint8_t { request, devices };  // `devices`: usual_global_batch() of as many

// Returns the search on fewer devices than the space has whose best plan trains the most sequences a second, if that is more than the
// best of `with_all` does on all of them, whose first plan is confirmed for it. Tries multiples of powers of two, which more sizes
// divide, with at most a quarter of the devices idle, and whole hosts where nothing fits on those.
std::optional<FewerDevices> fewer_devices(const Request& base, const Space& space, SearchResult& with_all,
                                          BatchOf batch, unsigned threads);

}  // namespace headroom
