// JSON, read more strictly than nlohmann::json does by itself: UTF-8 without a byte order mark, no key twice
// in an object, a limited nesting, one value and nothing after it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "headroom/core/error.hpp"

namespace headroom {

using Json = nlohmann::json;
using JsonPointer = Json::json_pointer;

inline constexpr std::size_t deepest_nesting = 32;

// The most entries of a list in a file that is no list of rows itself.
inline constexpr std::size_t longest_list = 1000;
// Of any list: the samples of a file.
inline constexpr std::size_t longest_list_of_rows = 200'000;

// Enough to mend a file by; a garbled file of 64 MiB has millions.
inline constexpr std::size_t most_problems_listed = 50;

// The value that the text holds. Throws InputError with "file:line:column" where it stops being JSON; keys
// given twice go to `problems`, since the rest of the file can still be checked. A list that is longer than `longest` is
// refused where it becomes so.
Json parse_json(std::string_view text, const std::string& file, std::vector<Problem>& problems,
                std::size_t longest = longest_list_of_rows);

// The same, with members in the order of the text. Throws InputError with all problems.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& file);

// A value that a user gave as text: a number or a boolean where it reads as one, a count as count_of() reads it ("8k",
// "1,000,000"), else the text.
Json scalar(std::string_view text);

// "models/gpt3.json: /hidden"; of no file the field alone.
std::string field_of_file(const std::string& file, const JsonPointer& field);

}  // namespace headroom
