// Part files, format 1: the results of one shard of a sweep or a search. `headroom merge` joins them.
//
//   {"format":1,"headroom":"0.1.0","command":"plan","shard":2,"of":3,"digest":"af63dc4c8601ec8c",
//    "arguments":[...],"rows":[
//   {...},
//   {...}
//   ]}
//
// (The first line is wrapped here.) A part is one JSON document (`headroom schema part`) with one row per
// line, so that parts of any length are written and read row by row. The last line shows that the file is
// complete.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headroom/search/search.hpp"

namespace headroom {

inline constexpr std::int64_t most_shards = 1'000'000;

struct PartHead {
  std::string program;  // version of Headroom that wrote the part
  std::string command;
  Shard shard;
  std::string digest;  // of everything that the rows depend on
  std::vector<std::string> arguments;
  friend bool operator==(const PartHead&, const PartHead&) = default;
};

// Returns the 64-bit FNV-1a hash of texts and their lengths, in hexadecimal. It detects changed inputs, not
// forged ones.
std::string digest_of(const std::vector<std::string>& texts);

// Return the text before the first row, of a row, and after the last row.
std::string part_start(const PartHead& head);
std::string part_row(const std::string& row, bool first);
std::string part_end();

// Reads a part row by row. Throws InputError, naming file and field, if the file is not a part or is cut off.
class PartReader {
 public:
  explicit PartReader(const std::string& path);

  [[nodiscard]] const PartHead& head() const { return head_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Return the next row's text (none after the last row), and its place for messages, "a.json: row 2".
  std::optional<std::string> next_row();
  [[nodiscard]] std::string row_name() const { return path_ + ": row " + std::to_string(row_); }

 private:
  std::string line();

  std::string path_;
  std::unique_ptr<std::istream> file_;
  PartHead head_;
  std::int64_t row_ = 0;
  bool goes_on_ = true;  // told by the comma after the previous row
};

// Throws InputError with every reason why the files are not all parts of one command run by this version.
void check_parts(const std::vector<PartHead>& heads, const std::vector<std::string>& paths,
                 const std::string& program);

}  // namespace headroom
