// Cuts a list of layers into the virtual stages of a pipeline, by dynamic programming over boundaries.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace headroom {

// Returns the load of a virtual stage that holds the layers from `first` up to `end`, or nothing if it must
// not hold them. More layers must weigh no less. A stage that may hold some layers must be allowed fewer of
// them, except none.
using StageLoad =
    std::function<std::optional<double>(std::int64_t stage, std::int64_t first, std::int64_t end)>;

// Returns the layers of each of `chunks` times `ranks` virtual stages, or nothing if no cut is allowed. The
// stages of a chunk wait for the heaviest of them, one microbatch after the other, and chunks take turns. The
// sum over the chunks of the heaviest stage's load is therefore made least; with one chunk, the load of the
// heaviest stage. No other allowed cut has a smaller sum. Within these loads, the sum of squares of each
// chunk is least.
std::optional<std::vector<std::int64_t>> lightest_stages(std::int64_t layers, std::int64_t ranks,
                                                         std::int64_t chunks, const StageLoad& load);

}  // namespace headroom
