// What NVIDIA's nccl-tests (all_reduce_perf, all_gather_perf, ...) print, read as samples. Several logs may follow one
// another in a file.
#pragma once

#include <string>
#include <string_view>

#include "headroom/calibrate/sample.hpp"

namespace headroom {

bool is_nccl_tests(std::string_view text);
SampleSet parse_nccl_tests(std::string_view text, const std::string& file);

}  // namespace headroom
