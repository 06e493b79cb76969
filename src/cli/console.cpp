#include "cli/console.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>

#include "core/current.hpp"
#include "headroom/core/error.hpp"

namespace headroom::cli {

Console& console() {
  static Console of_program;
  return Current<Console>::or_else(of_program);
}

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
