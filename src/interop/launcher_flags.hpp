// A list of flags under construction, and what several launchers say of a strategy. For launch_flags.cpp and titan_flags.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/interop/launch_flags.hpp"

namespace headroom {

class FlagList {
 public:
  explicit FlagList(Launcher launcher) { result_.launcher = launcher; }
  void add(std::string_view name, std::string_view value) {
    result_.flags.push_back(std::string(name).append(" ").append(value));
  }
  void add(std::string_view name, std::int64_t value) { add(name, std::to_string(value)); }
  void on(std::string_view name) { result_.flags.emplace_back(name); }
  void lacks(std::string what) { result_.lacks.push_back(std::move(what)); }
  LaunchFlags take() { return std::move(result_); }

 private:
  LaunchFlags result_;
};

// Half precision is BF16 to every launcher here.
constexpr bool sums_in_bf16(const Strategy& strategy) {
  return strategy.gradient_dtype == Dtype::half || strategy.gradient_dtype == Dtype::bf16;
}

inline std::string schedule_lacks(ScheduleKind schedule, std::string_view why) {
  return std::string("--schedule ").append(name_of(schedule)).append(": ").append(why);
}

inline std::string precision_lacks(Precision precision, std::string_view why) {
  return std::string("--precision ").append(name_of(precision)).append(": ").append(why);
}

}  // namespace headroom
