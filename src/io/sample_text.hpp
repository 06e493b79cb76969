// What reading samples line by line takes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/sample.hpp"
#include "headroom/core/error.hpp"
#include "strict_json.hpp"

namespace headroom {

inline constexpr std::size_t most_samples = longest_list_of_rows;

// Mistakes of a file, up to a number that is enough to mend it by.
class LineProblems {
 public:
  explicit LineProblems(std::string file) : file_(std::move(file)) {}
  void report(std::size_t line, std::string rule);
  // Throws InputError if anything was noted.
  void finish() const;

 private:
  std::string file_;
  std::vector<Problem> problems_;
};

// Lines without their ends.
std::vector<std::string_view> lines_of(std::string_view text);

// "alltoall" and "all_to_all" are one.
std::optional<SampleKind> collective_of(std::string_view name);

}  // namespace headroom
