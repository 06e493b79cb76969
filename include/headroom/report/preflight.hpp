// Report of `headroom check` on a launch file.
#pragma once

#include <string>

#include "headroom/answer/preflight.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// For readers.
std::string preflight_text(const PreflightReply& reply, const Style& style);

// JSON that follows `headroom schema check`.
std::string preflight_json(const PreflightReply& reply);

// Workflow commands of GitHub Actions, a line each, which annotate the file: "::error file=run.sh,line=14::...".
// What the patch of a reply changes and brings, or why there is none.
std::string patch_note(const PreflightReply& reply);

std::string preflight_annotations(const PreflightReply& reply);

}  // namespace headroom
