// Lines of a launch file, as a patch of it changes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

using Lines = std::vector<std::string>;  // each with its end

std::string text_of(const Lines& lines);

// Returns where a word stands whole, at or after `from`; npos if it does not.
std::size_t find_word(std::string_view line, std::string_view word, std::size_t from = 0);

std::string indent_of(std::string_view line);

// Returns the line end to give to a line beside this one.
std::string_view line_end(std::string_view line);

// Returns whether a shell's command goes on in the next line.
bool is_continued(std::string_view line);

// Takes words out of a line, and the line too if nothing else is in it. Where that line ended a shell's command,
// the line before ends it.
void erase_words(Lines& lines, std::size_t line, std::size_t at, std::size_t size);

// Takes a flag that has no value out of all lines.
void erase_switch(Lines& lines, std::string_view flag);

// Returns the names of variables in a line: "$TP", "${TP:-8}".
std::vector<std::string> variables_in(std::string_view line);

}  // namespace headroom
