// Members of one event of a Kineto trace, whose types its writers take lightly: what is missing or of another type is nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interop/profile_events.hpp"
#include "io/strict_json.hpp"

namespace headroom {

const Json* member(const Json& object, const char* key);
std::string text_at(const Json& object, const char* key);
std::optional<double> number_at(const Json& object, const char* key);
std::int64_t count_at(const Json& object, const char* key, std::int64_t otherwise);

// Of the arguments of a kernel's event, if it is a collective whose call was recorded.
std::optional<CollectiveCall> collective_call(const Json& args);

// Of the arguments of an operator's event.
OperatorCall operator_call(const std::string& name, const Json& args);

}  // namespace headroom
