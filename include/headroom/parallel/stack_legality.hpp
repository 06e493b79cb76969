// What a training stack has no way to run.
#pragma once

#include <span>
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

// A rule of a stack's launcher: strategies that its mechanism could run, and that it has no flag for. Each is written once; an estimate
// warns of it, searches and suggestions leave it out unless it is asked for, and a launch says it.
struct LauncherRule {
  std::string_view field;  // that has no flag for its value
  bool (*holds)(const Software& software, const Transformer& model, const Strategy& strategy);
  std::string (*text)(const Software& software, const Strategy& strategy);  // what has no flag, and what has
  void (*put_usual)(Strategy& strategy);  // the value that a launch without a flag leaves
};
std::span<const LauncherRule> launcher_rules();

// The rules of a stack's launcher that a strategy breaks, by field.
std::vector<Problem> launcher_gaps(const Software& software, const Transformer& model,
                                   const Strategy& strategy);

// What a stack divides where nobody says it: the least that it has.
DataSharding least_sharding(const Software& software);

// What a stack does where no other rank holds the weights of a rank, and nothing says it.
DataSharding sharding_of_one(const Software& software, const Strategy& strategy);

}  // namespace headroom
