// A list of flags under construction.
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
  LaunchFlags take() { return std::move(result_); }

 private:
  LaunchFlags result_;
};

// Half precision is BF16 to every launcher here.
constexpr bool sums_in_bf16(const Strategy& strategy) {
  return strategy.gradient_dtype == Dtype::half || strategy.gradient_dtype == Dtype::bf16;
}

}  // namespace headroom
