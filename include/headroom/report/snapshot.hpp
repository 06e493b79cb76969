// Report of a run's memory snapshot.
#pragma once

#include <string>

#include "headroom/answer/snapshot_use.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// JSON lists all groups of blocks; tables list those that take most, unless verbose.
std::string render(const SnapshotReply& reply, const Style& style);

}  // namespace headroom
