#include "report/validation_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text.hpp"

namespace headroom {

std::string points(double part) { return fmt::format("{:.2f} points", 100 * part); }

std::string error_text(double error, bool ratio) {
  return ratio ? fmt::format("{:+.2f} points", 100 * error) : signed_percent(error, 2);
}

std::string size_text(double error, bool ratio) { return ratio ? points(error) : percent(error, 2); }

std::string value_text(Measure measure, double value) {
  if (is_ratio(measure)) return fmt::format("{:.1f}%", 100 * value);
  if (is_bytes(measure)) return human(Bytes(value));
  return human(Seconds(value));
}

std::string covered_rows(std::size_t covered, std::size_t intervals) {
  return intervals == 0 ? "" : fmt::format("{} of {}", covered, intervals);
}

std::string predicted_text(const ValidateReply& reply) {
  return fmt::format("{} of {} runs are predicted, {} skipped", reply.runs, reply.runs + reply.skipped.size(),
                     reply.skipped.size());
}

std::vector<Comparison> worst_first(const ValidateReply& reply, const std::string& group) {
  std::vector<Comparison> rows;
  for (const Comparison& row : reply.rows) {
    if (row.group == group) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Comparison& x, const Comparison& y) {
    return std::abs(x.error) > std::abs(y.error);
  });
  return rows;
}

}  // namespace headroom
