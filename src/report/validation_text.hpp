// Text of measured and predicted figures of runs, in tables and plots.
#pragma once

#include <string>
#include <vector>

#include "headroom/answer/validate.hpp"

namespace headroom {

// "0.34 points", of a part of one.
std::string points(double part);

// "-4.36%", or of a ratio "-0.34 points".
std::string error_text(double error, bool ratio);

// Returns a size of errors, in percent or in points.
std::string size_text(double error, bool ratio);

std::string value_text(Measure measure, double value);

// "6 of 9"; empty where no row has an interval.
std::string covered_rows(std::size_t covered, std::size_t intervals);

// "385 of 677 runs are predicted, 292 skipped".
std::string predicted_text(const ValidateReply& reply);

// Returns the rows of a group, largest error first; equal rows keep their order.
std::vector<Comparison> worst_first(const ValidateReply& reply, const std::string& group);

}  // namespace headroom
