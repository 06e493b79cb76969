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

bool is_idle(std::string_view name) {
  constexpr std::array<std::string_view, 34> names{
      "cd",    "pushd", "popd",   "mkdir", "rm",   "cp",    "mv",    "ln",         "chmod",
      "touch", "shopt", "ulimit", "trap",  "wait", "sleep", "umask", "hash",       "module",
      "ml",    "conda", "alias",  "pip",   "date", "pwd",   "ls",    "nvidia-smi", "disown",
      "kill",  "jobs",  "which",  "sync",  "find", "tar",   "git"};
  return contains(names, name);
}

// `echo "$ARGS" | grep -q -- --flag`. Nothing that it expands is set behind it.
std::optional<bool> Interpreter::finds(const Node& node) {
  const Node& last = this->node(node.children.back());
  if (last.kind != Kind::simple || last.words.empty() || last.words.front().raw.find("grep") == npos)
    return std::nullopt;
  Node before = node;
  before.children.pop_back();
  const State outside = copy_of_state();
  Expansion expansion(*this, Expansion::Mode::fields);
  const auto text = expansion.printed_by(
      scripts_[script_]->script, before.children.size() > 1 ? before : this->node(before.children[0]));
  std::optional<bool> found;
  if (text) {
    charge(work_of_grep(*text));
    found = grep_finds(fields_of(last.words), *text);
  }
  state_ = outside;
  return found;
}

std::optional<std::size_t> Interpreter::command_of(std::size_t condition) const {
  const Node& node = this->node(condition);
  if (node.kind == Kind::pipeline) return condition;
  if (node.kind == Kind::simple) {
    const std::string first = node.words.empty() ? "[" : node.words.front().raw;
    const bool tells_nothing = first == "[" || first == "test" || is_idle(first);
    return tells_nothing ? std::nullopt : std::optional(condition);
  }
  const bool stands_for_last =
      node.kind == Kind::sequence || node.kind == Kind::group || node.kind == Kind::negation;
  return stands_for_last && !node.children.empty() ? command_of(node.children.back()) : std::nullopt;
}

void Interpreter::add_words(std::size_t command, std::string& text) const {
  constexpr std::size_t enough = 100;
  const Node& node = this->node(command);
  for (std::size_t i = 0; i < node.words.size() && text.size() < enough; ++i)
    text += (i == 0 ? "" : " ") + node.words[i].raw;
  if (node.kind != Kind::pipeline) return;
  for (std::size_t i = 0; i < node.children.size() && text.size() < enough; ++i) {
    if (i > 0) text += " | ";
    add_words(node.children[i], text);
  }
}

bool Interpreter::sets_variables(std::size_t index) {
  constexpr std::array<std::string_view, 9> setters{"export", "declare",   "local", "readonly", "typeset",
                                                    "read",   "readarray", "let",   "mapfile"};
  charge(20);
  const Node& node = this->node(index);
  if (node.kind == Kind::arithmetic) return true;
  if (node.kind == Kind::simple && node.words.empty() && !node.assignments.empty()) return true;
  if (node.kind == Kind::simple && !node.words.empty() &&
      contains(setters, std::string_view(node.words.front().raw)))
    return true;
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](std::size_t child) { return sets_variables(child); });
}

// A command decides what variables are set to, and only a run knows its outcome.
void Interpreter::mark_condition(std::size_t test, const std::vector<std::size_t>& branches) {
  if (status_.certain || !status_.unknowns.empty()) return;
  const std::optional<std::size_t> command = command_of(test);
  const auto sets = [&](std::size_t branch) { return sets_variables(branch); };
  if (!command || !std::any_of(branches.begin(), branches.end(), sets)) return;
  std::string text;
  add_words(*command, text);
  status_.unknowns = marks_in(mark(Source::output, "$(" + shortened(text) + ")"));
}

// Whether a branch ends the script, as one does that complains, or waits without end.
bool Interpreter::leaves(std::size_t index) {
  charge(20);
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
