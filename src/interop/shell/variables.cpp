#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom::shell {
namespace {

constexpr std::size_t most_items = 1 << 20;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Set wherever a script runs, to what only this place knows.
bool is_of_system(std::string_view name) {
  constexpr std::array<std::string_view, 14> names{
      "PWD", "HOME",   "USER",    "HOSTNAME",     "PATH", "SHELL",   "LOGNAME",
      "UID", "RANDOM", "SECONDS", "EPOCHSECONDS", "PPID", "BASHPID", "OLDPWD"};
  return contains(names, name);
}

// Set by what starts a job's processes (torchrun, Slurm, Kubernetes). A script that sets one itself in some branch leaves it
// to them in the others.
bool is_of_launcher(std::string_view name) {
  constexpr std::array<std::string_view, 7> names{"MASTER_ADDR",
                                                  "MASTER_PORT",
                                                  "WORLD_SIZE",
                                                  "RANK",
                                                  "NODE_RANK",
                                                  "LOCAL_RANK",
                                                  "KUBERNETES_CONTAINER_RESOURCE_GPU"};
  return contains(names, name);
}

Value* find_named(Variable& variable, std::string_view key) {
  const auto found = std::find_if(variable.named.begin(), variable.named.end(),
                                  [&](const auto& item) { return item.first == key; });
  return found == variable.named.end() ? nullptr : &found->second;
}

}  // namespace

std::string Interpreter::mark(Source source, const std::string& text) {
  constexpr std::size_t most_compared = 200;  // the later ones are listed again
  std::vector<Unknown>& all = followed_.unknowns;
  for (std::size_t i = 0; i < std::min(all.size(), most_compared); ++i) {
    if (all[i].text == text) return mark_of(i);
  }
  charge(100);
  all.push_back({source, text, "", here()});
  return mark_of(all.size() - 1);
}

const std::string& Interpreter::meant_by(const std::string& name) const {
  const std::string* result = &name;
  constexpr int longest_chain = 8;  // bash's own limit
  for (int i = 0; i < longest_chain; ++i) {
    const auto found = state_.variables.find(*result);
    if (found == state_.variables.end() || found->second.stands_for.empty()) break;
    result = &found->second.stands_for;
  }
  return *result;
}

Variable* Interpreter::find(const std::string& name) {
  const auto found = state_.variables.find(meant_by(name));
  return found == state_.variables.end() ? nullptr : &found->second;
}

std::optional<Value> Interpreter::value_of(const std::string& name) {
  if (is_number(name)) {
    std::size_t index = 0;
    std::from_chars(name.data(), name.data() + name.size(), index);
    const std::string& file = followed_.files[scripts_.empty() ? 0 : scripts_[script_]->file];
    if (index == 0) return Value(file, here());
    if (index <= state_.arguments.size()) return state_.arguments[index - 1];
    if (given_arguments_) return std::nullopt;
    return Value(mark(Source::argument, "$" + name), here());
  }
  if (name == "#") {
    if (state_.arguments.empty() && !given_arguments_) return Value(mark(Source::argument, "$#"), here());
    return Value(std::to_string(state_.arguments.size()), here());
  }
  if (name == "?") return Value(status_.value ? "0" : "1", here());
  if (name.size() == 1 && std::string_view("$!-").find(name[0]) != std::string_view::npos)
    return Value(mark(Source::output, "$" + name), here());
  if (const Variable* const variable = find(name)) {
    const auto item = variable->items.find(0);
    return item == variable->items.end() ? std::nullopt : std::optional(item->second);
  }
  if (name == "IFS") return Value(" \t\n", here());
  const auto given = given_.environment.find(name);
  if (given != given_.environment.end()) return Value(given->second, here());
  if (std::optional<std::string> of_job = variable_of_job(name)) return Value(std::move(*of_job), here());
  if (name == "BASH_SOURCE") return value_of("0");
  if (name == "LINENO") return Value(std::to_string(line_), here());
  if (is_of_system(name)) return Value(mark(Source::output, "$" + name), here());
  if (is_set_by_script(name) && !is_of_launcher(name)) return std::nullopt;
  return Value(mark(Source::environment, "$" + name), here());
}

std::optional<Value> Interpreter::item_of(const std::string& name, std::string_view index) {
  Variable* const variable = find(name);
  if (variable == nullptr) return name == "BASH_SOURCE" ? value_of("0") : std::nullopt;
  if (variable->is_associative) {
    const Value* const item = find_named(*variable, index);
    return item == nullptr ? std::nullopt : std::optional(*item);
  }
  const Value number = number_of(index);
  if (!is_known(number.text())) return number;
  std::int64_t key = 0;
  std::from_chars(number.text().data(), number.text().data() + number.text().size(), key);
  if (key < 0 && !variable->items.empty()) key += variable->items.rbegin()->first + 1;
  const auto item = variable->items.find(key);
  if (item != variable->items.end()) return item->second;
  if (!variable->is_open) return std::nullopt;
  return Value(mark(Source::output, fmt::format("${{{}[{}]}}", name, index)), here());
}

std::string Interpreter::separators() {
  const std::optional<Value> value = value_of("IFS");
  return value && is_known(value->text()) ? value->text() : " \t\n";
}

std::string Interpreter::size_of_open(const std::string& name, const Variable& list) {
  const auto place =
      list.items.size() == 1 ? only_mark(list.items.begin()->second.text()) : std::optional<std::size_t>();
  if (place) {
    const Unknown& unknown = followed_.unknowns[*place];
    if (unknown.source != Source::output) return mark_of(*place);  // --env gives it
    const bool of_job = unknown.text.find("scontrol show hostname") != std::string::npos &&
                        unknown.text.find('|') == std::string::npos && !unknown.text.ends_with("...)");
    if (const auto nodes = of_job ? variable_of_job("SLURM_NNODES") : std::nullopt) return *nodes;
  }
  return mark(Source::output, fmt::format("${{#{}[@]}}", name));
}

std::vector<Value> Interpreter::items_of(const std::string& name) {
  if (name == "@" || name == "*") return state_.arguments;
  std::vector<Value> values;
  if (const Variable* const variable = find(name)) {
    for (const auto& [key, value] : variable->items) values.push_back(value);
    for (const auto& [key, value] : variable->named) values.push_back(value);
    charge(values.size());
  } else if (!is_set_by_script(name)) {
    values.emplace_back(mark(Source::environment, "${" + name + "[@]}"), here());
  }
  return values;
}

// NAME, or NAME[INDEX] of a list.
void Interpreter::unset(const Value& word) {
  const std::string& text = word.text();
  const std::size_t bracket = text.ends_with(']') ? text.find('[') : std::string::npos;
  if (bracket == std::string::npos || bracket == 0) {
    set_names_.insert(text);
    state_.variables.erase(meant_by(text));
    return;
  }
  Variable* const list = find(text.substr(0, bracket));
  if (list == nullptr) return;
  const std::string index = text_of({text.substr(bracket + 1, text.size() - bracket - 2), line_, 0}).text();
  if (index == "@" || index == "*") {
    list->items.clear();
    list->named.clear();
    list->is_open = false;
    return;
  }
  if (list->is_associative) {
    std::erase_if(list->named, [&](const auto& item) { return item.first == index; });
    return;
  }
  const std::string number = number_of(index).text();
  if (!is_known(number)) {
    list->is_open = true;
    return;
  }
  std::int64_t key = 0;
  std::from_chars(number.data(), number.data() + number.size(), key);
  if (key < 0 && !list->items.empty()) key += list->items.rbegin()->first + 1;
  list->items.erase(key);
}

// Returns what the environment gives in the place of an argument that is absent: NAME=${3:-1}.
std::optional<Value> Interpreter::given_in_place(const std::string& name, std::string_view raw) const {
  if (raw.size() > 1 && raw.front() == '"' && raw.back() == '"') raw = raw.substr(1, raw.size() - 2);
  if (given_arguments_ || !raw.starts_with("${") || end_of_part(raw, 0) != raw.size()) return std::nullopt;
  const std::size_t end = std::min(raw.find_first_not_of("0123456789", 2), raw.size());
  std::size_t index = 0;
  std::from_chars(raw.data() + 2, raw.data() + end, index);
  const std::string_view rest = raw.substr(end);
  const bool has_default = rest.starts_with(":-") || rest.starts_with("-");
  const auto given = given_.environment.find(name);
  if (index <= state_.arguments.size() || !has_default || given == given_.environment.end())
    return std::nullopt;
  return Value(given->second, here());
}

void Interpreter::set(const std::string& name, Value value) {
  charge(value.text().size() + 20);
  if (const auto mark = only_mark(value.text())) {
    Unknown& unknown = followed_.unknowns[*mark];
    // What is not known may be given by the name of the variable that takes it.
    const auto given = given_.environment.find(name);
    if (unknown.source != Source::environment && given != given_.environment.end())
      value = Value(given->second, value.place());
    else if (unknown.name.empty() && unknown.text != "$" + name)
      unknown.name = name;
  }
  const Variable* const before = find(name);
  if (before != nullptr && before->is_number) value = number_of(value.text());
  state_.variables[meant_by(name)].items.insert_or_assign(0, std::move(value));
}

void Interpreter::assign(const Assignment& assignment) {
  if (assignment.is_list) {
    std::vector<Value> items;
    const Variable* const before = find(assignment.name);
    const bool named = before != nullptr && before->is_associative;
    Variable list;
    list.is_list = true;
    list.is_associative = named;
    if (assignment.appends && before != nullptr) list = *before;
    charge(list.items.size());
    std::int64_t next = list.items.empty() ? 0 : list.items.rbegin()->first + 1;
    for (const Word& word : assignment.items) {
      const std::size_t equals = word.raw.starts_with('[') ? word.raw.find("]=") : std::string::npos;
      if (equals != std::string::npos) {
        const std::string key = text_of({word.raw.substr(1, equals - 1), word.line, word.offset + 1}).text();
        Value value = text_of({word.raw.substr(equals + 2), word.line, word.offset + equals + 2});
        if (named) {
          if (Value* const item = find_named(list, key)) {
            *item = std::move(value);
          } else {
            list.named.emplace_back(key, std::move(value));
          }
          continue;
        }
        const std::string number = number_of(key).text();
        std::from_chars(number.data(), number.data() + number.size(), next);
        list.items.insert_or_assign(next++, std::move(value));
        continue;
      }
      for (Value& field : fields_of(word)) {
        list.is_open = list.is_open || is_open(word, field);
        list.items.insert_or_assign(next++, std::move(field));
      }
      if (list.items.size() > most_items) fail("makes a list of more than a million items");
    }
    state_.variables.insert_or_assign(meant_by(assignment.name), std::move(list));
    return;
  }
  Value value = text_of(assignment.value);
  if (assignment.index.empty()) {
    if (std::optional<Value> given = given_in_place(assignment.name, assignment.value.raw))
      return set(assignment.name, std::move(*given));
    if (assignment.appends) {
      Value joined = value_of(assignment.name).value_or(Value());
      const Variable* const before = find(assignment.name);
      if (before != nullptr && before->is_number) joined.append("+", here());
      joined.append(value);
      constexpr std::size_t longest = 1 << 22;
      if (joined.text().size() > longest) fail("makes a text of more than 4 MiB");
      value = std::move(joined);
    }
    return set(assignment.name, std::move(value));
  }
  const std::string key = text_of({assignment.index, line_, 0}).text();
  Variable& variable = state_.variables[meant_by(assignment.name)];
  if (variable.is_associative) {
    if (Value* const item = find_named(variable, key)) {
      *item = std::move(value);
    } else {
      variable.named.emplace_back(key, std::move(value));
    }
    return;
  }
  const std::string number = number_of(key).text();
  std::int64_t index = 0;
  if (is_known(number)) std::from_chars(number.data(), number.data() + number.size(), index);
  if (variable.items.size() > most_items) fail("makes a list of more than a million items");
  state_.variables[meant_by(assignment.name)].items.insert_or_assign(index, std::move(value));
}

}  // namespace headroom::shell
