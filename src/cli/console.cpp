#include "cli/console.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/error.hpp"

namespace headroom::cli {
namespace {

thread_local Console* of_thread = nullptr;

}  // namespace

Console& console() {
  static Console of_program;
  return of_thread != nullptr ? *of_thread : of_program;
}

ConsoleOf::ConsoleOf(Console& console) : outer_(std::exchange(of_thread, &console)) {}

ConsoleOf::~ConsoleOf() { of_thread = outer_; }

void print_result(std::string_view text) {
  if (Caller* const caller = console().caller) {
    caller->text += text;
    return;
  }
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written)
    throw InputError("standard output", "cannot be written: " + std::generic_category().message(errno));
}

void say(const std::string& sentence) {
  if (Caller* const caller = console().caller) {
    caller->messages.push_back(sentence);
    return;
  }
  fmt::print(stderr, "headroom: {}\n", sentence);
}

}  // namespace headroom::cli
