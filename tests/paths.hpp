// Where tests find files: the repository's own, and measurements that are not part of it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <doctest/doctest.h>

namespace headroom::tests {

std::filesystem::path source_dir();

// Whether a file was missing that a test case wanted; main() then exits with exit_code_of_skipped.
inline bool& skipped_a_case() {
  static bool skipped = false;
  return skipped;
}
inline constexpr int exit_code_of_skipped = 77;

// A file below the folder of shared measurements: $HEADROOM_SHARED_DIR, or shared/ beside the repository.
// A clone elsewhere has no such folder. Cases that read one are written
//   SHARED_TEST_CASE("published runs: ...") {
//     const auto runs = shared_file("data/measured/runs.json");
//     if (!runs) return;
// and CTest has an entry for each of them, which it shows as skipped where the file is missing.
inline std::optional<std::filesystem::path> shared_file(const std::filesystem::path& name) {
  const char* const set = std::getenv("HEADROOM_SHARED_DIR");
  const auto path = (set != nullptr ? set : source_dir() / ".." / "shared") / name;
  if (std::filesystem::exists(path)) return path;
  MESSAGE("skipped: no " << path.string());
  skipped_a_case() = true;
  return std::nullopt;
}

}  // namespace headroom::tests

// tests/CMakeLists.txt finds these by their name.
#define SHARED_TEST_CASE(name) TEST_CASE(name* doctest::test_suite("shared"))
