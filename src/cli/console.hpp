// Where a command prints, what it is told of its reader, and who may stop it: the program's streams and signals, or a
// caller in the same process.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::cli {

// A caller in the same process, who takes texts and asks no terminal.
struct Caller {
  std::string text;                   // what the command prints
  std::vector<std::string> messages;  // what it says beside that, without "headroom: "
  // Told how far the work is, in JSON, some ten times a second and never twice at once; true ends it with what it has.
  std::function<bool(const std::string& progress)> watch;
  std::atomic<bool> stop = false;
};

struct Console {
  Caller* caller = nullptr;    // null: the program's own streams
  std::set<std::string> said;  // of what is said once
  // Whether the command answers a wish to stop with what it has, and so does not end there.
  std::atomic<bool> answers_stop = false;
};

// Returns the console of the command that this thread runs: the innermost Current<Console>, or the program's. A command's own
// threads take a reference to it.
Console& console();

// Prints the command's result, or a part of it. Throws InputError where that cannot be written.
void print_result(std::string_view text);

// Says a sentence beside the result, on stderr behind "headroom: ".
void say(const std::string& sentence);

}  // namespace headroom::cli
