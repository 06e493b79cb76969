// The names that users of Megatron-LM, NeMo, DeepSpeed and PyTorch give to what Headroom has flags for, or has not.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/error.hpp"

namespace headroom::cli {

// Arguments in Headroom's own names: "--tensor-parallel=8" of "--tp=8", "--data-sharding=zero1" of "--zero-stage 1";
// what says what holds anyway ("--cp 1") is left out. A flag that `known` knows is as it is. The problems
// name, for each flag of what is called or done otherwise, Headroom's way to it, or that it is not modelled yet.
struct OwnNames {
  std::vector<std::string> arguments;
  std::map<std::string, std::string>
      typed;  // an own flag, or "--set-software KEY" -> the flag that it was given as
  std::vector<Problem> problems;
};
OwnNames in_own_names(const std::vector<std::string>& arguments,
                      const std::function<bool(const std::string& flag)>& known);

// What is wrong with varying a field in a sweep that others have and Headroom has not, or calls otherwise; empty for all other names.
std::string rule_of_varied(const std::string& field);

}  // namespace headroom::cli
