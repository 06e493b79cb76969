#include "report/strategy_flags.hpp"

#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {

std::string strategy_flags(const Strategy& strategy) {
  return flags_of(edits_of(strategy), FlagNames::letters);
}

}  // namespace headroom
