// Pictures as files: SVG as the program draws it, PNG by way of rsvg-convert.
#pragma once

#include <string>
#include <vector>

namespace headroom::cli {

// How the names of pictures end.
const std::vector<std::string>& picture_endings();

bool is_picture(const std::string& file);

// Returns what keeps a file from being written as the picture that its name says, or nothing: a PNG takes rsvg-convert.
std::string obstacle_to_picture(const std::string& file);

// Throws InputError where the file cannot be written, or rsvg-convert fails.
void write_picture(const std::string& file, const std::string& svg);

}  // namespace headroom::cli
