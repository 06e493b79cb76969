#include "report/strategy_flags.hpp"

#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {

std::string strategy_flags(const Strategy& strategy, const Software& software, const Transformer& model) {
  return flags_of(edits_of(strategy, software, model), FlagNames::letters);
}

}  // namespace headroom
