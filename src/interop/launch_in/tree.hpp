// A configuration file as a tree with lines: what YAML, TOML, JSON and literal Python are read into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/setting.hpp"

namespace headroom {

// A larger text is no configuration, and more nodes come only from aliases that multiply.
inline constexpr std::size_t largest_configuration = std::size_t{4} << 20;
inline constexpr std::size_t most_tree_nodes = 200'000;
inline constexpr std::size_t deepest_tree = 64;
inline constexpr std::size_t most_members = 4000;  // of one map

enum class TreeKind : std::uint8_t { none, scalar, list, map };

struct TreeNode {
  TreeKind kind = TreeKind::none;
  std::string key;   // of a member of a map
  std::string text;  // of a scalar; of a map of Python: what was called ("Trainer.Config")
  bool quoted = false;
  std::int64_t line = 0;
  std::int64_t replaces = 0;      // the line of the same key before, if it has one
  std::string file;               // where it is written, if it is another than the tree's
  std::vector<TreeNode> members;  // of a list or a map
};

// A member of a map, or null.
const TreeNode* member_of(const TreeNode& node, std::string_view key);
TreeNode* member_of(TreeNode& node, std::string_view key);
// By a path with dots; null where there is none.
const TreeNode* at_path(const TreeNode& root, std::string_view path);

// A text from outside, made ready for a parser: without a byte order mark, with "\n" between lines. Throws InputError
// where it is too large or no text.
std::string plain_text(std::string_view text, const std::string& file);

// Each throws InputError with "file:line" where the text stops being one.
TreeNode parse_yaml(std::string_view text, const std::string& file);
TreeNode parse_toml(std::string_view text, const std::string& file);
TreeNode parse_json_tree(std::string_view text, const std::string& file);

// By the name of the file (.toml, .json), else YAML, of which JSON is a part.
TreeNode parse_tree(std::string_view text, const std::string& file);

// Puts in what OmegaConf would: "${a.b}" of the tree, "${.b}" beside it, "${oc.env:NAME,default}" and "${NAME:default}" of the
// environment, "${multiply:4,${a}}". What cannot be known stays as it is written.
void interpolate(TreeNode& root, const std::map<std::string, std::string>& environment);

// Puts a setting in by its path with dots, in the place of what the tree has there.
void override_in(TreeNode& root, const Written& setting);

// Every value of a tree by its path with dots. Null and empty texts are left out, as if they were not written. Items of a
// list are together where all are scalars ("betas"), else one by one ("datasets.0.path").
std::vector<Written> flattened(const TreeNode& root, const std::string& file);

}  // namespace headroom
