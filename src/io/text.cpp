#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "command_files.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/reading.hpp"

namespace headroom {
namespace {

std::string too_large() { return fmt::format("is larger than {} MiB", largest_file_bytes >> 20); }

// Bytes of the UTF-8 character at the front of a non-empty text, 0 if ill-formed [Unicode 15, table 3-7].
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if ((byte(i) & 0xC0U) != 0x80U) return false;
    }
    return true;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80U) return 1;
  if (lead >= 0xC2U && lead <= 0xDFU) return continues(1, 2) ? 2 : 0;
  if (lead >= 0xE0U && lead <= 0xEFU) {
    const bool overlong = lead == 0xE0U && byte(1) < 0xA0U;
    const bool surrogate = lead == 0xEDU && byte(1) > 0x9FU;
    return continues(1, 3) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0U && lead <= 0xF4U) {
    const bool overlong = lead == 0xF0U && byte(1) < 0x90U;
    const bool beyond = lead == 0xF4U && byte(1) > 0x8FU;
    return continues(1, 4) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

// C0 and C1 controls and delete: a terminal obeys them instead of showing them.
bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead < 0x20U || lead == 0x7FU;
  return lead == 0xC2U && static_cast<unsigned char>(character[1]) < 0xA0U;
}

}  // namespace

namespace {

std::string read_whole(const std::string& path) {
  std::error_code error;
  if (kind_of_file(path) == FileKind::folder) throw InputError(path, "is a directory, not a file");
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > largest_file_bytes) throw InputError(path, too_large());

  const OpenFile file = open_file(path);
  const auto unreadable = [&] {
    return InputError(path, "cannot be read: " + std::generic_category().message(errno));
  };
  if (!file) throw unreadable();

  std::string text;
  char block[1 << 16];
  while (const std::size_t count = std::fread(block, 1, sizeof block, file.get())) {
    text.append(block, count);
    if (text.size() > largest_file_bytes) throw InputError(path, too_large());
  }
  if (std::ferror(file.get()) != 0) throw unreadable();
  return text;
}

}  // namespace

std::string read_file(const std::string& path) {
  if (const std::string* const text = command_files().given(path)) {
    if (text->size() > largest_file_bytes) throw InputError(path, too_large());
    return *text;
  }
  will_read(path);
  if (kind_of_file(path) != FileKind::other) return read_whole(path);
  return command_files().once(path, [&] { return read_whole(path); });
}

std::optional<std::size_t> first_non_text_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text.substr(i));
    if (length == 0) return i;
    const char c = text[i];
    if (length == 1 && is_control(text.substr(i, 1)) && c != '\t' && c != '\n' && c != '\r') return i;
    i += length;
  }
  return std::nullopt;
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    if (shown.size() >= longest) return shown + "...";
    const std::size_t length = character_length(text.substr(i));
    const std::string_view character = text.substr(i, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(character)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(character.back()));
    } else {
      shown += character;
    }
    i += character.size();
  }
  return shown;
}

bool has_words(std::string_view text, std::string_view words) {
  const std::vector<std::string_view> parts = parts_of(words, ' ');
  return std::all_of(parts.begin(), parts.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace headroom
