#include "strict_json.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/count_text.hpp"
#include "text.hpp"

namespace headroom {
namespace {

// "file:line:column" of the byte at a zero-based offset.
std::string position_in(const std::string& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  return fmt::format("{}:{}:{}", file, line, column);
}

// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while parsing
// value - unexpected ']'; expected ..." without what position_in() says already.
std::string syntax_rule(std::string_view message, std::string_view read) {
  if (message.find("out_of_range") != std::string_view::npos) {
    return "number out of range: " + printable(read);
  }
  for (const std::string_view token : {"NaN", "Inf", "nan", "inf"}) {
    const std::string_view start = token.substr(0, 1);
    if (message.find("invalid literal") != std::string_view::npos && read.ends_with(start)) {
      return "is not JSON: NaN and Infinity are not numbers there";
    }
  }
  constexpr std::string_view marker = "syntax error ";
  const std::size_t at = message.find(marker);
  if (at != std::string_view::npos) message.remove_prefix(at + marker.size());
  return (message.find("unexpected end of input") != std::string_view::npos ? "is cut off: "
                                                                            : "is not JSON: ") +
         printable(message, 200);
}

// Builds the value event by event; returning false stops the parser.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& file, std::vector<Problem>& problems, std::size_t longest)
      : text_(text), file_(file), problems_(problems), longest_(longest) {}

  [[nodiscard]] Json take() { return std::move(root_); }

  bool null() override { return place(nullptr) != nullptr; }
  bool boolean(bool value) override { return place(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return place(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return place(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return place(value) != nullptr; }
  bool string(string_t& value) override { return place(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }  // only in the binary formats
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    Level& level = open_.back();
    level.key = key;
    if (level.node->contains(key) && problems_.size() < most_problems_listed) {
      problems_.push_back({field_of_file(file_, here()), "is given twice"});
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& read,
                   const nlohmann::detail::exception& e) override {
    const std::size_t offset = std::min(position == 0 ? 0 : position - 1, text_.size());
    throw InputError(position_in(file_, text_, offset), syntax_rule(e.what(), read));
  }

 private:
  struct Level {
    Json* node;
    std::string key;  // of the member being read, if the node is an object
  };

  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    auto& [node, key] = open_.back();
    if (node->is_array()) {
      if (node->size() == longest_) refuse_list();
      return &node->emplace_back(std::move(value));
    }
    return &((*node)[key] = std::move(value));
  }

  bool open(Json container) {
    if (open_.size() == deepest_nesting) {
      throw InputError(file_, fmt::format("is nested deeper than {} levels", deepest_nesting));
    }
    open_.push_back({place(std::move(container)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // That of the innermost level, which is full.
  [[noreturn]] void refuse_list() const {
    throw InputError(field_of_file(file_, here().parent_pointer()),
                     fmt::format("must be a list of at most {}", longest_));
  }

  [[nodiscard]] JsonPointer here() const {
    JsonPointer pointer;
    for (const auto& [node, key] : open_) {
      pointer.push_back(node->is_object() ? key : std::to_string(node->size() - 1));
    }
    return pointer;
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Problem>& problems_;
  std::size_t longest_;
  Json root_;
  std::vector<Level> open_;
};

}  // namespace

std::string field_of_file(const std::string& file, const JsonPointer& field) {
  const std::string place = printable(field.to_string(), 200);
  return file.empty() || place.empty() ? file + place : file + ": " + place;
}

Json scalar(std::string_view text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_number() || value.is_boolean()) return value;
  if (const std::optional<std::int64_t> count = count_of(text)) return *count;
  return text;
}

Json parse_json(std::string_view text, const std::string& file, std::vector<Problem>& problems,
                std::size_t longest) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    throw InputError(file, "starts with a byte order mark; save it as UTF-8 without one");
  }
  if (const auto offset = first_non_text_byte(text)) {
    throw InputError(file, fmt::format("is not text: byte 0x{:02x} at offset {}",
                                       static_cast<unsigned char>(text[*offset]), *offset));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) throw InputError(file, "is empty");
  Builder builder(text, file, problems, longest);
  Json::sax_parse(text, &builder);
  return builder.take();
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& file) {
  std::vector<Problem> problems;
  parse_json(text, file, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  return nlohmann::ordered_json::parse(text);
}

}  // namespace headroom
