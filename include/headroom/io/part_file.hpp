// Part files, format 1: what one shard of a sweep or of a search found, to be joined by `headroom merge`.
//
//   {"format":1,"headroom":"0.1.0","command":"plan","shard":2,"of":3,"digest":"af63dc4c8601ec8c","arguments":[...],"rows":[
//   {...},
//   {...}
//   ]}
//
// One JSON document (`headroom schema part`) with a row on each line, so that parts of any length are written and
// read row by row. The last line says that nothing is missing.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "headroom/search/search.hpp"

namespace headroom {

inline constexpr std::int64_t most_shards = 1'000'000;

struct PartHead {
  std::string program;  // the version that wrote it
  std::string command;
  Shard shard;
  std::string digest;  // of all that the rows depend on
  std::vector<std::string> arguments;
  friend bool operator==(const PartHead&, const PartHead&) = default;
};

// 64 bits of FNV-1a over texts and their lengths, in hexadecimal: tells changed inputs, not forged ones.
std::string digest_of(const std::vector<std::string>& texts);

// The text before the first row, of a row, and after the last.
std::string part_start(const PartHead& head);
std::string part_row(const std::string& row, bool first);
std::string part_end();

// Throws InputError, naming file and field, where it is not a part or is cut off.
class PartReader {
 public:
  explicit PartReader(const std::string& path);

  [[nodiscard]] const PartHead& head() const { return head_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // The next row's text, none behind the last; and where it stands, for messages: "a.json: row 2".
  std::optional<std::string> next_row();
  [[nodiscard]] std::string row_name() const { return path_ + ": row " + std::to_string(row_); }

 private:
  std::string line();

  std::string path_;
  std::ifstream file_;
  PartHead head_;
  std::int64_t row_ = 0;
  bool goes_on_ = true;  // by the comma behind the row before
};

// Throws InputError with all that keeps these from being all parts of one command run by this version.
void check_parts(const std::vector<PartHead>& heads, const std::vector<std::string>& paths,
                 const std::string& program);

}  // namespace headroom
