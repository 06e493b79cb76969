// torchtitan's settings, for its own files and for those that hand them on (Primus).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "interop/launch_in/tree_run.hpp"

namespace headroom {

// The model of a flavor, which `module` may add: the setting that names it (experimental.custom_import), or null.
// Returns its layers; none: they are not known.
std::optional<std::int64_t> take_titan_model(const std::string& given, const std::string& flavor,
                                             const Written* from, const std::string& file,
                                             RunBuilder& builder, const Written* module = nullptr);
// "deepseek_v3_16b" as a model and its flavor, where torchtitan has them.
std::optional<std::pair<std::string, std::string>> titan_flavor(const std::string& name);
void take_titan(TreeRun& run, RunScale& scale);
// The schedule of a pipeline, and how many layers each stage of it has.
void take_titan_stages(TreeRun& run, const RunScale& scale);
void take_titan_precision(TreeRun& run);
std::span<const LaunchKey> titan_keys();

}  // namespace headroom
