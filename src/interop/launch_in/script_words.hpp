// The words of a started program as settings, in the words of the script.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/setting.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom {

FilePlace file_place(const shell::Followed& script, shell::Place at);

// The text with the names of what is not known: "$NNODES".
std::string shown(const shell::Followed& script, std::string_view text);

// What stands for a value that is not known, by its name and the text before it.
using ShowUnknown = std::function<std::string(std::string_view name, std::string_view before)>;
std::string shown(const shell::Followed& script, std::string_view text, const ShowUnknown& show);

// What would make a text known: "needs $3 (BATCH_SIZE): give it after --".
std::string needs(const shell::Followed& script, std::string_view text);

// Flags with the words behind them, and NAME=VALUE. `extra`: variables that may hold further arguments.
std::vector<Written> written_in(const shell::Followed& script, const std::vector<shell::Value>& words,
                                std::vector<shell::Value>& extra);

}  // namespace headroom
