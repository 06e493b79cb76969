// TOML by toml++, whose values know their lines.
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
        member.key = std::string(key.str());
        if (member.kind == TreeKind::scalar) member.line = key.source().begin.line;
        node.members.push_back(std::move(member));
      }
    } else if (const toml::array* const array = from.as_array()) {
      node.kind = TreeKind::list;
      for (const toml::node& value : *array) node.members.push_back(of(value, depth + 1));
    } else {
      node.kind = TreeKind::scalar;
      if (const auto* const text = from.as_string()) {
        node.text = text->get();
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
  try {
    const toml::table table = toml::parse(std::string_view(plain), std::string_view(file));
    return TomlTree(file).of(table, 0);
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}", file, error.source().begin.line),
                     "is not TOML: " + printable(error.description(), 200));
  }
}

}  // namespace headroom
