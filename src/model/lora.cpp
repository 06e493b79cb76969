#include "headroom/model/lora.hpp"

#include <algorithm>
#include <tuple>

namespace headroom {

bool operator<(const Lora& x, const Lora& y) {
  return std::tie(x.rank, x.targets, x.base, x.dropout) < std::tie(y.rank, y.targets, y.base, y.dropout);
}

const LoraTarget* find_target(std::string_view name) {
  const auto found = std::find_if(lora_targets.begin(), lora_targets.end(), [&](const LoraTarget& target) {
    return target.name == name || (!target.also.empty() && target.also == name);
  });
  return found == lora_targets.end() ? nullptr : &*found;
}

}  // namespace headroom
