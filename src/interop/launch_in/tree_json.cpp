// JSON by nlohmann::json's events, with the line that each stands on: its parser tells no places, so that the iterator
// which it reads from counts.
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "interop/launch_in/tree.hpp"
#include "io/strict_json.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

struct LineCount {
  std::int64_t line = 1;
  bool ended = false;  // the last character read ended a line
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, LineCount* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    count_->ended = *at_ == '\n';
    count_->line += count_->ended ? 1 : 0;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& x, const CountingIterator& y) { return x.at_ == y.at_; }

 private:
  const char* at_;
  LineCount* count_;
};

class JsonTree final : public nlohmann::json_sax<Json> {
 public:
  JsonTree(const std::string& file, const LineCount& count) : file_(file), count_(count) {}

  TreeNode take() { return std::move(root_); }

  bool null() override { return place(leaf(TreeKind::none, "")); }
  bool boolean(bool value) override { return place(leaf(TreeKind::scalar, value ? "true" : "false")); }
  bool number_integer(number_integer_t value) override { return place(number(std::to_string(value))); }
  bool number_unsigned(number_unsigned_t value) override { return place(number(std::to_string(value))); }
  bool number_float(number_float_t, const string_t& text) override { return place(number(text)); }
  bool string(string_t& value) override {
    TreeNode node = leaf(TreeKind::scalar, value);
    node.quoted = true;
    return place(std::move(node));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(TreeKind::map); }
  bool start_array(std::size_t) override { return open(TreeKind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    keys_.back() = {key, count_.line};
    return true;
  }
  bool parse_error(std::size_t, const std::string& read, const nlohmann::detail::exception&) override {
    throw InputError(fmt::format("{}:{}", file_, count_.line),
                     "is not JSON from here on: " + printable(read));
  }

 private:
  struct Key {
    std::string name;
    std::int64_t line = 0;
  };

  [[nodiscard]] TreeNode leaf(TreeKind kind, std::string text) const {
    TreeNode node;
    node.kind = kind;
    node.text = std::move(text);
    node.line = count_.line;
    return node;
  }
  // A number ends with the character behind it.
  [[nodiscard]] TreeNode number(std::string text) const {
    TreeNode node = leaf(TreeKind::scalar, std::move(text));
    node.line -= count_.ended ? 1 : 0;
    return node;
  }

  bool open(TreeKind kind) {
    if (open_.size() == deepest_tree)
      throw InputError(fmt::format("{}:{}", file_, count_.line),
                       fmt::format("is nested deeper than {} levels", deepest_tree));
    open_.push_back(leaf(kind, ""));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    TreeNode node = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return place(std::move(node));
  }

  bool place(TreeNode node) {
    if (++nodes_ > most_tree_nodes)
      throw InputError(fmt::format("{}:{}", file_, count_.line),
                       fmt::format("has more than {} values", most_tree_nodes));
    if (open_.empty()) {
      root_ = std::move(node);
      return true;
    }
    TreeNode& parent = open_.back();
    if (parent.kind == TreeKind::map) {
      node.key = keys_.back().name;
      node.line = keys_.back().line;
      if (TreeNode* const earlier = member_of(parent, node.key)) {
        throw InputError(
            fmt::format("{}:{}", file_, node.line),
            fmt::format("{} is given twice: line {} has it too", printable(node.key), earlier->line));
      }
      if (parent.members.size() == most_members) {
        throw InputError(fmt::format("{}:{}", file_, node.line),
                         fmt::format("has more than {} keys in one map", most_members));
      }
    }
    parent.members.push_back(std::move(node));
    return true;
  }

  const std::string& file_;
  const LineCount& count_;
  TreeNode root_;
  std::vector<TreeNode> open_;
  std::vector<Key> keys_;
  std::size_t nodes_ = 0;
};

}  // namespace

TreeNode parse_json_tree(std::string_view text, const std::string& file) {
  const std::string plain = plain_text(text, file);
  LineCount count;
  JsonTree tree(file, count);
  Json::sax_parse(CountingIterator(plain.data(), &count),
                  CountingIterator(plain.data() + plain.size(), &count), &tree);
  return tree.take();
}

}  // namespace headroom
