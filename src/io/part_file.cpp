#include "headroom/io/part_file.hpp"

#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "command_files.hpp"
#include "object_reader.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr const char* no_part = "is not a part, as headroom writes them with --shard";

// The members of a first line.
class HeadReader {
 public:
  HeadReader(const std::string& path, const std::string& text) : path_(path) {
    json_ = parse_json(text, path, problems_);
    if (!json_.is_object() || !json_.contains("headroom") || !json_.contains("rows")) {
      throw InputError(path, no_part);
    }
  }

  std::string text(const char* key) {
    const Json json = take(key);
    if (!json.is_string()) problems_.push_back({field(key), "must be text"});
    return json.is_string() ? json.get<std::string>() : std::string();
  }

  std::int64_t count(const char* key) {
    const Json json = take(key);
    if (json.is_number_unsigned() && json >= 1U && json <= static_cast<std::uint64_t>(most_shards)) {
      return json.get<std::int64_t>();
    }
    problems_.push_back({field(key), fmt::format("must be an integer from 1 to {}", most_shards)});
    return 1;
  }

  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> list;
    const Json json = take(key);
    for (const Json& entry : json) {
      if (json.is_array() && entry.is_string()) list.push_back(entry.get<std::string>());
    }
    if (!json.is_array() || list.size() != json.size()) {
      problems_.push_back({field(key), "must be a list of texts"});
    }
    return list;
  }

  void finish() {
    json_.erase("rows");
    for (const auto& [key, value] : json_.items()) problems_.push_back({field(key), "unknown key"});
    if (!problems_.empty()) throw InputError(problems_);
  }

 private:
  [[nodiscard]] std::string field(const std::string& key) const {
    return field_of_file(path_, JsonPointer() / key);
  }

  Json take(const char* key) {
    const auto member = json_.find(key);
    if (member == json_.end()) return nullptr;
    Json value = std::move(*member);
    json_.erase(member);
    return value;
  }

  const std::string& path_;
  std::vector<Problem> problems_;
  Json json_;
};

}  // namespace

std::string digest_of(const std::vector<std::string>& texts) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](char byte) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  };
  for (const std::string& text : texts) {
    for (const char byte : std::to_string(text.size()) + ":" + text) add(byte);
  }
  return fmt::format("{:016x}", hash);
}

std::string part_start(const PartHead& head) {
  const nlohmann::ordered_json json{{"format", 1},
                                    {"headroom", head.program},
                                    {"command", head.command},
                                    {"shard", head.shard.index},
                                    {"of", head.shard.count},
                                    {"digest", head.digest},
                                    {"arguments", head.arguments}};
  std::string text = json.dump();
  text.pop_back();
  return text + ",\"rows\":[";
}

std::string part_row(const std::string& row, bool first) { return (first ? "\n" : ",\n") + row; }

std::string part_end() { return "\n]}\n"; }

PartReader::PartReader(const std::string& path) : path_(path) {
  will_read(path);
  if (const std::string* const text = command_files().given(path))
    file_ = std::make_unique<std::istringstream>(*text);
  else
    file_ = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file_) throw InputError(path, "cannot be read: " + std::generic_category().message(errno));
  const std::string first = line();
  if (!first.ends_with('[')) throw InputError(path, no_part);
  HeadReader reader(path_, first + "]}");
  if (reader.count("format") != 1) throw InputError(path_ + ": /format", "must be 1, the only format known");
  head_.program = reader.text("headroom");
  head_.command = reader.text("command");
  head_.shard.index = reader.count("shard");
  head_.shard.count = reader.count("of");
  head_.digest = reader.text("digest");
  head_.arguments = reader.texts("arguments");
  reader.finish();
  if (head_.shard.index > head_.shard.count) {
    throw InputError(path_ + ": /shard", fmt::format("must be at most {}, their number", head_.shard.count));
  }
}

// The next line without its end. Read in blocks, so that an endless one is refused.
std::string PartReader::line() {
  std::string text;
  char block[4096];
  for (;;) {
    file_->getline(block, sizeof block);
    if (file_->eof() || file_->gcount() == 0)
      throw InputError(path_, head_.program.empty() ? no_part : "is cut off");
    const bool whole = !file_->fail();  // else the block is full
    text.append(block, static_cast<std::size_t>(file_->gcount()) - (whole ? 1 : 0));
    if (whole) return text;
    file_->clear();
    if (text.size() > largest_file_bytes) throw InputError(path_, "has a line too long to be a part's");
  }
}

std::optional<std::string> PartReader::next_row() {
  std::string text = line();
  if (text == "]}") {
    if (goes_on_ && row_ > 0) throw InputError(path_, "lacks a row behind row " + std::to_string(row_));
    if (file_->peek() != std::istream::traits_type::eof()) throw InputError(path_, "goes on behind its end");
    return std::nullopt;
  }
  ++row_;
  if (!goes_on_) throw InputError(row_name(), "must stand behind a comma");
  goes_on_ = text.ends_with(',');
  if (goes_on_) text.pop_back();
  return text;
}

void check_parts(const std::vector<PartHead>& heads, const std::vector<std::string>& paths,
                 const std::string& program) {
  std::vector<Problem> problems;
  std::map<std::int64_t, std::string> seen;
  const PartHead& first = heads.front();
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const PartHead& head = heads[i];
    const auto report = [&](const char* field, const std::string& rule) {
      problems.push_back({paths[i] + ": /" + field, rule});
    };
    if (head.program != program) {
      report("headroom",
             fmt::format("must be {}, as this program is (found {})", program, printable(head.program)));
    } else if (head.command != first.command || head.arguments != first.arguments) {
      report("arguments",
             fmt::format("must be those of {}: only parts of one command can be joined", paths[0]));
    } else if (head.shard.count != first.shard.count) {
      report("of",
             fmt::format("must be {}, as in {} (found {})", first.shard.count, paths[0], head.shard.count));
    } else if (head.digest != first.digest) {
      report("digest", fmt::format("must be that of {}: a model, system or software file was changed between "
                                   "the two",
                                   paths[0]));
    } else if (const auto [other, added] = seen.emplace(head.shard.index, paths[i]); !added) {
      report("shard", fmt::format("must not be part {} of {} again, which is {}", head.shard.index,
                                  head.shard.count, other->second));
    }
  }
  if (problems.empty()) {
    constexpr std::size_t most_named = 10;
    std::vector<std::string> missing;
    for (std::int64_t i = 1; i <= first.shard.count && missing.size() <= most_named; ++i) {
      if (!seen.contains(i)) missing.push_back(std::to_string(i));
    }
    if (missing.size() > most_named) missing.back() = "...";
    if (!missing.empty()) {
      problems.push_back(
          {"", fmt::format("{} {} of {} {} missing", missing.size() == 1 ? "part" : "parts",
                           fmt::join(missing, ", "), first.shard.count, missing.size() == 1 ? "is" : "are")});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace headroom
