// Answers of the program's commands in the process of another program: a question in JSON, a reply in JSON. The C API
// (bindings/c/headroom.h), which describes both, and `headroom serve` stand on it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace headroom::cli {

// Receives progress in JSON about ten times a second, never twice at once. Returns true to end the work with the best so far.
using AskWatch = std::function<bool(const std::string& progress)>;

// Returns the reply to a question. A question that cannot be read gets a reply with errors. Throws only std::bad_alloc.
// Several threads may call it at once.
std::string ask(std::string_view question, const AskWatch& watch = {});

}  // namespace headroom::cli
