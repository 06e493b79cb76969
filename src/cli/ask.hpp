// Answers of the program's commands in the process of another program: a question in JSON, a reply in JSON. The C API
// (bindings/c/headroom.h), which describes both, and `headroom serve` stand on it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace headroom::cli {

// Told how far the work is, in JSON, some ten times a second and never twice at once; true ends it with what it has.
using AskWatch = std::function<bool(const std::string& progress)>;

// Returns the reply to a question, which is bad input where it cannot be read. Throws nothing but std::bad_alloc. May be
// called by several threads at once.
std::string ask(std::string_view question, const AskWatch& watch = {});

}  // namespace headroom::cli
