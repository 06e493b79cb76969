// Sentences of `headroom estimate` that other reports print too.
#pragma once

#include <string>

#include "headroom/answer/estimate.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// "Fits: PP rank 0 needs 62.55 GiB of 80.00 GiB, 17.45 GiB free."
std::string verdict_line(const Plan& plan, const Style& style);

// Returns the moment at which a rank holds the most: "at the end of the forward pass of microbatch 4".
std::string moment_text(const Plan& plan, const RankMemory& rank);

// Iteration time, throughput and utilization. Expects a plan whose time is known.
std::string time_line(const EstimateReply& report, const Plan& plan, const Style& style);

// "8 GPUs of a host keep 1.20 TiB of 1.82 TiB in its memory"
std::string host_memory_text(const HostMemory& host);

}  // namespace headroom
