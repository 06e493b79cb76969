// Where tests find files: the repository's own, and measurements that are not part of it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <doctest/doctest.h>

namespace headroom::tests {

std::filesystem::path source_dir();

// A file below the folder of shared measurements: $HEADROOM_SHARED_DIR, or shared/ beside the repository.
// A clone elsewhere has no such folder. The tests then pass without it and say what they skipped:
//   const auto runs = shared_file("data/measured/runs.json");
//   if (!runs) return;
inline std::optional<std::filesystem::path> shared_file(const std::filesystem::path& name) {
  const char* const set = std::getenv("HEADROOM_SHARED_DIR");
  const auto path = (set != nullptr ? set : source_dir() / ".." / "shared") / name;
  if (std::filesystem::exists(path)) return path;
  MESSAGE("skipped: no " << path.string());
  return std::nullopt;
}

}  // namespace headroom::tests
