// Text from outside: reading it, telling it from binary data, and quoting it safely in a message.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// A larger file is not one of ours.
inline constexpr std::size_t largest_file_bytes = std::size_t{64} << 20;

// The bytes of a file. Throws InputError when it is a directory, cannot be opened or is too large; never
// reads more than largest_file_bytes + 1, so that an endless device is refused too. What is no regular file, such as a pipe
// under /dev/fd, is read once, and its text is kept for whoever asks for it again, since it would be empty then.
std::string read_file(const std::string& path);

// The offset of the first byte that cannot be in UTF-8 text: ill-formed, or a control other than tab and
// newline.
std::optional<std::size_t> first_non_text_byte(std::string_view text);

// The text as it may stand in a message: controls escaped, ill-formed bytes replaced, cut after `longest`
// bytes.
std::string printable(std::string_view text, std::size_t longest = 60);

// Whether a text has all words of another, which spaces part.
bool has_words(std::string_view text, std::string_view words);

}  // namespace headroom
