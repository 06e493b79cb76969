// The JSON schemas of the files that Headroom reads and of the replies that it prints, by name: "model", "estimate".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// All names, sorted.
std::vector<std::string_view> schema_names();

// The schema of this name as JSON text, with all that it refers to. What a file may hold comes from the tables of fields that read it,
// and strategies from strategy_fields. Throws InputError that suggests a name where there is none of this one.
std::string schema(std::string_view name);

}  // namespace headroom
