// Replayed samples, one by one: as words of a table, as JSON, and all of them as CSV.
#pragma once

#include <string>

#include "headroom/calibrate/sample_replay.hpp"
#include "report/json.hpp"

namespace headroom {

// "4096 x 4096 x 1024", "64 MiB over 8 ranks"
std::string size_of_sample(const Sample& sample);

// "attention fp8 forward (sustained)"
std::string kind_of_sample(const Sample& sample);

OrderedJson json_of(const ReplayedSample& row);
std::string csv_of(const SampleReplay& replay);

}  // namespace headroom
