#include "interop/launch_in/tree.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "headroom/core/reading.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t longest_interpolated = 4096;

bool is_null(const TreeNode& node) {
  if (node.kind == TreeKind::none) return true;
  if (node.kind == TreeKind::scalar) return node.text.empty();
  return node.members.empty() && node.text.empty();
}

bool is_variable(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Returns what a value needs that is a variable of the environment and nothing else: ${NAME}, ${oc.env:NAME}.
std::string need_of(std::string_view text) {
  if (!text.starts_with("${") || !text.ends_with('}')) return {};
  std::string_view name = text.substr(2, text.size() - 3);
  for (const std::string_view function : {"oc.env:", "env:"}) {
    if (name.starts_with(function)) name.remove_prefix(function.size());
  }
  return is_variable(name) ? fmt::format("needs ${}: give it with --env NAME=VALUE", name) : std::string();
}

class Flattener {
 public:
  explicit Flattener(const std::string& file) : file_(file) {}

  void add(const TreeNode& node, const std::string& path) {
    if (is_null(node)) return;
    if (node.kind == TreeKind::scalar) {
      put(path, {node.text}, node);
      return;
    }
    const auto scalar = [](const TreeNode& item) { return item.kind == TreeKind::scalar; };
    if (node.kind == TreeKind::list && std::all_of(node.members.begin(), node.members.end(), scalar)) {
      std::vector<std::string> items;
      items.reserve(node.members.size());
      for (const TreeNode& item : node.members) items.push_back(item.text);
      put(path, std::move(items), node);
      return;
    }
    if (node.kind == TreeKind::map && !node.text.empty()) put(path + ".()", {node.text}, node);
    std::size_t index = 0;
    for (const TreeNode& member : node.members) {
      const std::string key = node.kind == TreeKind::list ? std::to_string(index++) : member.key;
      add(member, path.empty() ? key : path + '.' + key);
    }
  }

  std::vector<Written> take() { return std::move(written_); }

 private:
  void put(const std::string& path, std::vector<std::string> values, const TreeNode& node) {
    std::string as_written =
        fmt::format("{}: {}", path, printable(fmt::format("{}", fmt::join(values, ", "))));
    std::string name = path;
    std::replace(name.begin(), name.end(), '-', '_');
    std::string unknown = values.size() == 1 ? need_of(values.front()) : std::string();
    written_.push_back({std::move(name),
                        std::move(values),
                        std::move(as_written),
                        {node.file.empty() ? file_ : node.file, node.line},
                        std::move(unknown)});
  }

  const std::string& file_;
  std::vector<Written> written_;
};

class Interpolator {
 public:
  Interpolator(TreeNode& root, const std::map<std::string, std::string>& environment)
      : root_(root), environment_(environment), is_primus_(member_of(root, "modules") != nullptr) {}

  void run(TreeNode& node, const std::string& path) {
    if (node.kind == TreeKind::scalar && node.text.find("${") != std::string::npos) {
      node.text = resolved(node.text, path, 0);
    }
    std::size_t index = 0;
    for (TreeNode& member : node.members) {
      const std::string key = node.kind == TreeKind::list ? std::to_string(index++) : member.key;
      run(member, path.empty() ? key : path + '.' + key);
    }
  }

 private:
  static constexpr int deepest = 8;

  std::string resolved(const std::string& text, const std::string& path, int depth) {
    std::string result;
    std::size_t from = 0;
    while (from < text.size()) {
      const std::size_t start = text.find("${", from);
      result.append(text, from, start == std::string::npos ? start : start - from);
      if (start == std::string::npos) break;
      const std::size_t end = closing(text, start + 2);
      if (end == std::string::npos || depth == deepest || result.size() > longest_interpolated) return text;
      const std::string inside = resolved(text.substr(start + 2, end - start - 2), path, depth + 1);
      std::optional<std::string> value = value_of(inside, path, depth);
      result += value ? *value : text.substr(start, end + 1 - start);
      from = end + 1;
    }
    return result.size() > longest_interpolated ? text : result;
  }

  static std::size_t closing(const std::string& text, std::size_t from) {
    int open = 1;
    for (std::size_t i = from; i < text.size(); ++i) {
      if (text[i] == '{') ++open;
      if (text[i] == '}' && --open == 0) return i;
    }
    return std::string::npos;
  }

  std::optional<std::string> value_of(const std::string& inside, const std::string& path, int depth) {
    if (inside.find("${") != std::string::npos) return std::nullopt;
    const std::size_t colon = inside.find(':');
    if (colon != std::string::npos) return of_function(inside.substr(0, colon), inside.substr(colon + 1));
    std::string full = inside;
    if (inside.starts_with('.')) {
      const std::size_t dots = std::min(inside.find_first_not_of('.'), inside.size());
      std::string above = path;
      for (std::size_t i = 0; i < dots; ++i) {
        const std::size_t dot = above.rfind('.');
        above = dot == std::string::npos ? "" : above.substr(0, dot);
      }
      full = (above.empty() ? "" : above + '.') + inside.substr(dots);
    }
    if (const TreeNode* const node = at_path(root_, full); node != nullptr && node->kind == TreeKind::scalar)
      return resolved(node->text, full, depth + 1);
    const auto variable = environment_.find(inside);
    if (variable != environment_.end()) return variable->second;
    return std::nullopt;
  }

  std::optional<std::string> of_function(const std::string& name, std::string arguments) {
    std::string variable = name;
    if (name == "oc.env" || name == "env") {
      const std::size_t comma = arguments.find(',');
      variable = std::string(trimmed(arguments.substr(0, comma)));
      if (comma == std::string::npos) return of_environment(variable, std::nullopt);
      arguments = std::string(trimmed(arguments.substr(comma + 1)));
    } else if (name == "multiply" || name == "int_multiply") {
      std::int64_t product = 1;
      for (const std::string_view part : parts_of(arguments)) {
        const std::string_view word = trimmed(part);
        std::int64_t factor = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), factor);
        if (error != std::errc() || end != word.data() + word.size() || factor < 0 || factor > 1'000'000)
          return std::nullopt;
        product *= factor;
        if (product > most_count) return std::nullopt;
      }
      return std::to_string(product);
    } else if (arguments.starts_with('-') && !is_primus_) {
      if (!is_variable(name)) return std::nullopt;
      arguments.erase(0, 1);  // ${NAME:-2}, as a shell has it
    } else if (!is_variable(name) ||
               std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; })) {
      return std::nullopt;
    }
    return of_environment(variable, arguments);
  }

  std::optional<std::string> of_environment(const std::string& name, std::optional<std::string> otherwise) {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::move(otherwise) : found->second;
  }

  static std::string_view trimmed(std::string_view text) {
    const std::size_t from = std::min(text.find_first_not_of(" '\""), text.size());
    const std::size_t to = text.find_last_not_of(" '\"");
    return from == text.size() ? std::string_view() : text.substr(from, to + 1 - from);
  }

  TreeNode& root_;
  const std::map<std::string, std::string>& environment_;
  bool is_primus_;  // whose ${NAME:-1} is -1 by default
};

}  // namespace

const TreeNode* member_of(const TreeNode& node, std::string_view key) {
  if (node.kind != TreeKind::map) return nullptr;
  const auto found = std::find_if(node.members.begin(), node.members.end(),
                                  [&](const TreeNode& member) { return member.key == key; });
  return found == node.members.end() ? nullptr : &*found;
}

TreeNode* member_of(TreeNode& node, std::string_view key) {
  return const_cast<TreeNode*>(member_of(std::as_const(node), key));
}

const TreeNode* at_path(const TreeNode& root, std::string_view path) {
  const TreeNode* node = &root;
  for (const std::string_view part : parts_of(path, '.')) {
    if (node == nullptr) return nullptr;
    node = member_of(*node, part);
  }
  return node;
}

std::string plain_text(std::string_view text, const std::string& file) {
  if (text.size() > largest_configuration)
    throw InputError(file, fmt::format("is larger than {} MiB: no configuration of a run is",
                                       largest_configuration >> 20));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      plain += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      plain += '\n';
    }
  }
  if (const auto bad = first_non_text_byte(plain)) {
    const auto line = std::count(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(*bad), '\n') + 1;
    throw InputError(fmt::format("{}:{}", file, line), "is not UTF-8 text");
  }
  return plain;
}

TreeNode parse_tree(std::string_view text, const std::string& file) {
  if (file.ends_with(".toml")) return parse_toml(text, file);
  if (file.ends_with(".json")) return parse_json_tree(text, file);
  return parse_yaml(text, file);
}

void interpolate(TreeNode& root, const std::map<std::string, std::string>& environment) {
  Interpolator(root, environment).run(root, "");
}

void override_in(TreeNode& root, const Written& setting) {
  TreeNode* node = &root;
  const std::vector<std::string_view> parts = parts_of(setting.name, '.');
  if (parts.size() > deepest_tree)
    throw InputError(text_of(setting.at),
                     fmt::format("names a key within more than {} others", deepest_tree));
  for (const std::string_view part : parts) {
    if (node->kind != TreeKind::map) *node = TreeNode{.kind = TreeKind::map, .key = node->key};
    // Keys have dashes or underscores: a flag has either.
    const auto same = [&](const TreeNode& member) {
      return std::equal(member.key.begin(), member.key.end(), part.begin(), part.end(),
                        [](char x, char y) { return (x == '-' ? '_' : x) == (y == '-' ? '_' : y); });
    };
    const auto found = std::find_if(node->members.begin(), node->members.end(), same);
    if (found != node->members.end()) {
      node = &*found;
    } else {
      node = &node->members.emplace_back(TreeNode{.key = std::string(part)});
    }
  }
  *node = TreeNode{.kind = TreeKind::scalar,
                   .key = node->key,
                   .text = setting.values.empty() ? "true" : setting.values.front(),
                   .line = setting.at.line,
                   .file = setting.at.file};
}

std::vector<Written> flattened(const TreeNode& root, const std::string& file) {
  Flattener flattener(file);
  flattener.add(root, "");
  return flattener.take();
}

}  // namespace headroom
