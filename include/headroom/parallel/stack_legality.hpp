// What a training stack has no way to run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// The field of an offload that a stack cannot leave to the host; empty where it can.
std::string_view offload_lacking(const Software& software, const Offload& offload);

// The rule that a recomputation breaks on a stack; empty where the stack has it.
std::string policy_rule(const Software& software, RecomputePolicy policy);

// Whether a stack runs forward passes beside backward passes, for the exchanges between experts. Stacks that list neither
// schedules nor axes run whatever others are compared with.
bool may_overlap_experts(const Software& software);

// Of a strategy whose sizes are legal (parallel/legality.hpp): every rule that is broken, by field.
std::vector<Problem> stack_illegalities(const Software& software, const Strategy& strategy);

// What a stack divides where nobody says it: the least that it has.
DataSharding least_sharding(const Software& software);

// What a stack does where no other rank holds the weights of a rank, and nothing says it.
DataSharding sharding_of_one(const Software& software, const Strategy& strategy);

}  // namespace headroom
