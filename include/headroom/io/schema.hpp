// JSON schemas of the files that Headroom reads and of the replies that it prints, by name: "model",
// "estimate".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Returns all names, sorted.
std::vector<std::string_view> schema_names();

// Returns the schema of this name as JSON text, with every schema that it refers to. Members of files come
// from the tables of fields that read the files, strategies from strategy_fields. Throws InputError, with a
// suggested name, if no schema has this name.
std::string schema(std::string_view name);

}  // namespace headroom
