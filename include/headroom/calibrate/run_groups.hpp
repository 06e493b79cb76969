// Traits that group the rows of runs, besides their source: `headroom validate --group-by`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

enum class RunTrait : std::uint8_t {
  gpu,        // "H100-SXM5-80GB", as the system of the run names its device
  model,      // its name
  precision,  // of linears: "16 bits", "fp8", "mxfp8"
  kind,       // "dense" or "MoE", with "CP" where context is split and "FSDP" where weights are
};

template <>
inline constexpr std::array<Spelling<RunTrait>, 4> spellings<RunTrait>{{
    {RunTrait::gpu, "gpu"},
    {RunTrait::model, "model"},
    {RunTrait::precision, "precision"},
    {RunTrait::kind, "kind"},
}};

// Returns the traits of a request as text, in the order given: "B200-SXM-180GB, MoE CP".
std::string group_text(const Request& request, const std::vector<RunTrait>& traits);

}  // namespace headroom
