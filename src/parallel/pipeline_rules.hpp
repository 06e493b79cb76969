// Which pipelines are legal: their virtual stages, the schedule, and the microbatches that it can run. For legality.cpp.
#pragma once

#include <cstdint>

#include "headroom/parallel/strategy.hpp"
#include "parallel/rules.hpp"

namespace headroom {

void check_pipeline(Rules& rules, const Transformer& model, const Strategy& strategy,
                    const Software& software);

// Of the n microbatches of a pipeline.
void check_microbatches(Rules& rules, const Strategy& strategy, std::int64_t n);

}  // namespace headroom
