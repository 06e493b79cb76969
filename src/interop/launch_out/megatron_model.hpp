// A model in the words of Megatron-LM and Megatron-Bridge. For megatron_launch.cpp.
#pragma once

#include <string>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

struct ModelWords {
  std::vector<std::string> words;
  std::vector<std::string> lacks;  // what Megatron-Core's layers have not, and why
};
ModelWords megatron_model(const Request& request, bool bridge);

}  // namespace headroom
