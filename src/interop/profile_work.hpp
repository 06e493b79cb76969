// What the operators and kernels of PyTorch do, of those that rates are fitted to: as samples that lack only their time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/calibrate/profile.hpp"
#include "interop/profile_events.hpp"

namespace headroom {

struct ProfiledWork {
  std::string work;              // "matrix products"
  std::string problem;           // why it is no sample
  std::optional<Sample> sample;  // without a time
};

// Whether the arguments of an operator of this name are read.
bool is_read(std::string_view operator_name);

// Expects an operator that is_read(). One without types is no sample.
ProfiledWork work_of(const OperatorCall& call);

// Of those that rates are fitted to, by a name in any spelling: "ncclAllReduce", "_allgather_base".
std::optional<SampleKind> collective_named(std::string_view name);

ProfiledWork work_of(const CollectiveCall& call, std::int64_t devices_per_node);

// Of a copy of so many bytes within a GPU's memory.
ProfiledWork work_of_copy(double bytes);

// Of a kernel whose operator is not read, or not recorded, or has no shapes. `operator_name` may be empty.
ProfiledWork work_of(std::string_view kernel_name, std::string_view operator_name);

}  // namespace headroom
