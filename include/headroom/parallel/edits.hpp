// Edits: assignments of values to fields of a strategy and its workload. Changes, recipes and flags are lists
// of edits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/parallel/strategy.hpp"

namespace headroom {

// An assignment of a value to a field.
struct Edit {
  std::string field;
  std::string value;
  friend bool operator==(const Edit&, const Edit&) = default;
};
using Edits = std::vector<Edit>;

// Sets the field and what it implies. `recompute` resets all recomputation fields. `recompute_ops` sets the
// policy to ops. `virtual_pipeline` sets the schedule, and clears the group size unless that schedule has
// groups. Returns the rule that the value breaks, or an empty string. Expects the name of a field.
std::string apply(const Edit& edit, Strategy& strategy, Workload& workload);

// Applies edits one after the other. Expects values that the fields accept.
void apply(const Edits& edits, Strategy& strategy, Workload& workload);

enum class FlagNames : std::uint8_t { long_names, letters };
// Returns edits as flags, with long names ("--recompute full --recompute-layers 2") or letters ("-t 8 --sp").
std::string flags_of(const Edits& edits, FlagNames names = FlagNames::long_names);

// Returns the edits that flags_of() writes as this text, or nothing if it is no such text. Values are not
// checked.
std::optional<Edits> edits_of_flags(std::string_view flags);

// Returns the edits that turn `of` into a strategy. Parallel sizes and microbatch always get an edit; other
// fields only if the edits before do not imply them.
Edits edits_of(const Strategy& strategy, Strategy of = {});

}  // namespace headroom
