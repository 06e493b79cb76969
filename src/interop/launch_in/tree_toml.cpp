// TOML by toml++, whose values know their lines.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#define TOML_HEADER_ONLY 1  // Debian's package has the library without an archive to link in
#define TOML_EXCEPTIONS 1
// Its parser asserts that a key starts as one before it looks, and assumes it where assertions are off, so that a file may
// break the program. Without both it answers with an error.
#define TOML_ASSERT(expr) static_cast<void>(0)
#ifdef NDEBUG
#define HEADROOM_RESTORES_NDEBUG
#undef NDEBUG
#endif
#include <toml++/toml.h>

#ifdef HEADROOM_RESTORES_NDEBUG
#define NDEBUG
#undef HEADROOM_RESTORES_NDEBUG
#endif

#include "interop/launch_in/tree.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// toml++ 3.3 tells the compiler that its test for blanks never meets certain characters of U+00A1 to U+FEFF, such as "é"
// after the end of a line in a string, and what the program does when it does is undefined. So it reads the characters
// from U+0080 to U+FFFF moved to the private plane 16, and what it has read is moved back. Both texts are UTF-8.
constexpr char plane_16 = '\xF4';  // the first byte of its characters, of four

std::string raised_text(std::string_view text) {
  std::string raised;
  raised.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) {
      return static_cast<unsigned>(static_cast<unsigned char>(text[i + k]));
    };
    const std::size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
    if (bytes == 1 || bytes == 4) {
      raised += text.substr(i, bytes);
    } else {
      const unsigned top = bytes == 3 ? byte(0) & 0x0FU : 0U;
      const unsigned middle = bytes == 3 ? byte(1) & 0x3FU : byte(0) & 0x1FU;
      for (const unsigned part : {0xF4U, 0x80U | top, 0x80U | middle, byte(bytes - 1)})
        raised += static_cast<char>(part);
    }
    i += bytes;
  }
  return raised;
}

std::string lowered_text(std::string_view text) {
  std::string lowered;
  lowered.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool in_plane = text[i] == plane_16 && text.size() - i >= 4;
    const unsigned top = in_plane ? static_cast<unsigned char>(text[i + 1]) & 0x0FU : 0U;
    const unsigned middle = in_plane ? static_cast<unsigned char>(text[i + 2]) & 0x3FU : 0U;
    // ASCII and the surrogates of UTF-16 were never raised: these are written as "\U00100041".
    const bool is_ascii = top == 0 && middle < 0x02U;
    const bool is_surrogate = top == 0x0DU && middle >= 0x20U;
    if (!in_plane || is_ascii || is_surrogate) {
      lowered += text[i];
      continue;
    }
    const bool of_two = top == 0 && middle < 0x20U;
    if (!of_two) lowered += static_cast<char>(0xE0U | top);
    lowered += static_cast<char>((of_two ? 0xC0U : 0x80U) | middle);
    lowered += text[i + 3];
    i += 3;
  }
  return lowered;
}

class TomlTree {
 public:
  explicit TomlTree(const std::string& file) : file_(file) {}

  TreeNode of(const toml::node& from, std::size_t depth) {
    const std::int64_t line = from.source().begin.line;
    if (depth > deepest_tree)
      throw InputError(fmt::format("{}:{}", file_, line),
                       fmt::format("is nested deeper than {} levels", deepest_tree));
    TreeNode node;
    node.line = line;
    if (const toml::table* const table = from.as_table()) {
      node.kind = TreeKind::map;
      for (const auto& [key, value] : *table) {
        TreeNode member = of(value, depth + 1);
        member.key = lowered_text(key.str());
        if (member.kind == TreeKind::scalar) member.line = key.source().begin.line;
        node.members.push_back(std::move(member));
      }
    } else if (const toml::array* const array = from.as_array()) {
      node.kind = TreeKind::list;
      for (const toml::node& value : *array) node.members.push_back(of(value, depth + 1));
    } else {
      node.kind = TreeKind::scalar;
      if (const auto* const text = from.as_string()) {
        node.text = lowered_text(text->get());
        node.quoted = true;
      } else if (const auto* const whole = from.as_integer()) {
        node.text = std::to_string(whole->get());
      } else if (const auto* const number = from.as_floating_point()) {
        node.text = fmt::format("{}", number->get());
      } else if (const auto* const truth = from.as_boolean()) {
        node.text = truth->get() ? "true" : "false";
      } else {
        std::ostringstream stream;  // a date or a time
        from.visit([&](const auto& value) { stream << value; });
        node.text = stream.str();
      }
    }
    return node;
  }

 private:
  const std::string& file_;
};

}  // namespace

TreeNode parse_toml(std::string_view text, const std::string& file) {
  const std::string plain = plain_text(text, file);
  if (const std::size_t taken = plain.find(plane_16); taken != std::string::npos) {
    const auto line = 1 + std::count(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(taken), '\n');
    throw InputError(
        fmt::format("{}:{}", file, line),
        "has a character of Unicode's private plane 16, which Headroom does not read in TOML: leave it out");
  }
  const std::string raised = raised_text(plain);
  try {
    const toml::table table = toml::parse(std::string_view(raised), std::string_view(file));
    return TomlTree(file).of(table, 0);
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}", file, error.source().begin.line),
                     "is not TOML: " + printable(lowered_text(error.description()), 200));
  }
}

}  // namespace headroom
