// Which branches a script takes, by what is known of its conditions.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/core/contains.hpp"
#include "interop/shell/characters.hpp"
#include "interop/shell/expansion.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom::shell {

// `echo "$ARGS" | grep -q -- --flag`
std::optional<bool> Interpreter::finds(const Node& node) {
  Node before = node;
  const Node& last = this->node(before.children.back());
  before.children.pop_back();
  if (last.kind != Kind::simple || last.words.empty() || last.words.front().raw.find("grep") == npos)
    return std::nullopt;
  Expansion expansion(*this, Expansion::Mode::fields);
  const auto text = expansion.printed_by(
      scripts_[script_]->script, before.children.size() > 1 ? before : this->node(before.children[0]));
  return text ? grep_finds(fields_of(last.words), *text) : std::nullopt;
}

std::string Interpreter::words_of(std::size_t command) const {
  const Node& node = this->node(command);
  std::string text;
  for (const Word& word : node.words) text += (text.empty() ? "" : " ") + word.raw;
  for (const std::size_t child : node.children) {
    if (node.kind == Kind::pipeline && !text.empty()) text += " | ";
    if (node.kind == Kind::pipeline || node.kind == Kind::sequence) text += words_of(child);
  }
  return text;
}

bool Interpreter::sets_variables(std::size_t index) const {
  const Node& node = this->node(index);
  constexpr std::array<std::string_view, 3> declarations{"export", "declare", "local"};
  if (node.kind == Kind::simple && !node.assignments.empty() &&
      (node.words.empty() || contains(declarations, std::string_view(node.words.front().raw))))
    return true;
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](std::size_t child) { return sets_variables(child); });
}

// A command decides what variables are set to, and only a run knows its outcome.
void Interpreter::mark_condition(std::size_t test, std::size_t branch) {
  const std::string text = words_of(test);
  const bool is_test = text.empty() || text.starts_with("[") || text.starts_with("test ");
  if (status_.certain || !status_.unknowns.empty() || is_test || !sets_variables(branch)) return;
  constexpr std::size_t longest = 60;
  const std::string start = text.substr(0, longest) + (text.size() > longest ? "..." : "");
  status_.unknowns = marks_in(mark(Source::output, "$(" + start + ")"));
}

// Whether a branch ends the script, as one does that complains, or waits without end.
bool Interpreter::leaves(std::size_t index) const {
  const Node& branch = node(index);
  if (branch.kind == Kind::loop_while) {
    const Node& test = node(branch.children[0]);
    const Node& first = test.children.empty() ? test : node(test.children.front());
    return !first.words.empty() && (first.words.front().raw == "true" || first.words.front().raw == ":");
  }
  if (branch.kind == Kind::simple && !branch.words.empty()) {
    const std::string& name = branch.words.front().raw;
    if (name == "exit" || name == "return") return true;
    const auto function = functions_.find(name);
    if (function == functions_.end() || function->second.script != script_) return false;
    const Node& body = node(function->second.node);
    return std::any_of(body.children.begin(), body.children.end(), [&](std::size_t child) {
      const Node& list = node(child);
      return std::any_of(list.children.begin(), list.children.end(), [&](std::size_t command) {
        const Node& one = node(command);
        return one.kind == Kind::simple && !one.words.empty() && one.words.front().raw == "exit";
      });
    });
  }
  if (branch.kind != Kind::sequence && branch.kind != Kind::group) return false;
  return std::any_of(branch.children.begin(), branch.children.end(),
                     [&](std::size_t child) { return child != index && leaves(child); });
}

void Interpreter::note(const Outcome& outcome, bool taken) {
  constexpr std::size_t most = 1000;
  if (outcome.unknowns.empty() || followed_.conditions.size() >= most) return;
  followed_.conditions.push_back({here(), taken, outcome.unknowns});
}

// `value`: what the condition, whose outcome is the status, says of the branch.
bool Interpreter::takes_branch(std::size_t branch, bool value) {
  if (status_.certain) return value;
  const bool taken = value && !leaves(branch);
  note(status_, taken);
  return taken;
}

}  // namespace headroom::shell
