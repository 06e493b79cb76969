#include "cli/terminal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/console.hpp"

namespace headroom::cli {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return value != nullptr ? value : "";
}

std::optional<std::size_t> screen_columns() {
  if (console().caller != nullptr) return std::nullopt;
  constexpr std::size_t most = 10000;
  std::size_t columns = 0;
  const std::string_view told = environment("COLUMNS");
  std::from_chars(told.data(), told.data() + told.size(), columns);
  if (winsize size{}; columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns == 0) return std::nullopt;
  return std::clamp(columns, least_columns, most);
}

}  // namespace headroom::cli
