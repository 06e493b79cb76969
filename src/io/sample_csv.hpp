// Samples as CSV: a table of one kind of kernel, or of several with a column that names them.
#pragma once

#include <string>
#include <string_view>

#include "headroom/calibrate/sample.hpp"

namespace headroom {

bool is_sample_csv(std::string_view text);
SampleSet parse_sample_csv(std::string_view text, const std::string& file);

}  // namespace headroom
