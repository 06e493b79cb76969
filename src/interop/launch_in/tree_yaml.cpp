// YAML by yaml-cpp's events: its nodes share what aliases name, so that a few lines make a tree of billions.
#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "interop/launch_in/tree.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

std::string place_in(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? file : fmt::format("{}:{}", file, mark.line + 1);
}

std::size_t nodes_of(const TreeNode& node) {
  std::size_t count = 1;
  for (const TreeNode& member : node.members) count += nodes_of(member);
  return count;
}

class YamlBuilder final : public YAML::EventHandler {
 public:
  explicit YamlBuilder(const std::string& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place(leaf(TreeKind::none, mark), mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    TreeNode node = leaf(TreeKind::scalar, mark);
    node.quoted = tag == "!";
    node.text = value;
    const bool null =
        !node.quoted && (value == "null" || value == "~" || value == "Null" || value == "NULL" ||
                         value == "None");  // of YAML that Python programs print or take as none
    if (null) node = leaf(TreeKind::none, mark);
    place(std::move(node), mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end())
      throw InputError(place_in(file_, mark), "is an alias of a node that contains it");
    count(nodes_of(found->second) - 1, mark);
    place(found->second, mark, YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(TreeKind::list, mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(TreeKind::map, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  TreeNode take() { return std::move(root_); }
  [[nodiscard]] bool empty() const { return root_.kind == TreeKind::none; }

 private:
  struct Level {
    TreeNode node;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    TreeNode key;
    bool has_key = false;
  };

  static TreeNode leaf(TreeKind kind, const YAML::Mark& mark) {
    TreeNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    return node;
  }

  void count(std::size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > most_tree_nodes)
      throw InputError(place_in(file_, mark),
                       fmt::format("has more than {} values, aliases written out", most_tree_nodes));
  }

  void open(TreeKind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() == deepest_tree)
      throw InputError(place_in(file_, mark), fmt::format("is nested deeper than {} levels", deepest_tree));
    open_.push_back({leaf(kind, mark), mark, anchor, {}, false});
  }

  void close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    if (level.node.kind == TreeKind::map) merge(level.node, level.mark);
    place(std::move(level.node), level.mark, level.anchor);
  }

  // "<<: *base": members of the base that the map has not itself.
  void merge(TreeNode& map, const YAML::Mark& mark) {
    const auto key = std::find_if(map.members.begin(), map.members.end(),
                                  [](const TreeNode& member) { return member.key == "<<"; });
    if (key == map.members.end()) return;
    const TreeNode base = std::move(*key);
    map.members.erase(key);
    const auto add = [&](const TreeNode& from) {
      for (const TreeNode& member : from.members) {
        if (member_of(map, member.key) == nullptr) map.members.push_back(member);
      }
    };
    if (base.kind == TreeKind::map) {
      add(base);
    } else if (base.kind == TreeKind::list) {
      std::for_each(base.members.begin(), base.members.end(), add);
    } else {
      throw InputError(place_in(file_, mark), "<< must be an alias of a map");
    }
  }

  void place(TreeNode node, const YAML::Mark& mark, YAML::anchor_t anchor) {
    count(1, mark);
    if (anchor != YAML::NullAnchor) anchored_.insert_or_assign(anchor, node);
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = open_.back();
    if (level.node.kind == TreeKind::list) {
      level.node.members.push_back(std::move(node));
      return;
    }
    if (!level.has_key) {
      if (node.kind == TreeKind::list || node.kind == TreeKind::map)
        throw InputError(place_in(file_, mark), "a key must be a text");
      level.key = std::move(node);
      level.has_key = true;
      return;
    }
    node.key = level.key.text;
    if (node.kind == TreeKind::none || node.kind == TreeKind::scalar) node.line = level.key.line;
    level.has_key = false;
    if (TreeNode* const earlier = member_of(level.node, node.key)) {
      node.replaces = earlier->kind == TreeKind::none ? 0 : earlier->line;
      *earlier = std::move(node);
    } else if (level.node.members.size() == most_members) {
      throw InputError(place_in(file_, mark), fmt::format("has more than {} keys in one map", most_members));
    } else {
      level.node.members.push_back(std::move(node));
    }
  }

  const std::string& file_;
  TreeNode root_;
  std::vector<Level> open_;
  std::map<YAML::anchor_t, TreeNode> anchored_;
  std::size_t nodes_ = 0;
};

}  // namespace

TreeNode parse_yaml(std::string_view text, const std::string& file) {
  std::istringstream stream(plain_text(text, file));
  YamlBuilder builder(file);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw InputError(file, "is empty");
    YamlBuilder next(file);
    if (parser.HandleNextDocument(next) && !next.empty())
      throw InputError(fmt::format("{}:{}", file, next.take().line),
                       "has a second document: one file holds one run");
  } catch (const YAML::Exception& error) {
    throw InputError(place_in(file, error.mark), "is not YAML: " + printable(error.msg, 200));
  }
  return builder.take();
}

}  // namespace headroom
