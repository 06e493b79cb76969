// Calls of literal Python: those that are followed, those whose meaning is known, and argparse's flags.
#include <algorithm>
#include <cmath>
#include <map>

#include "interop/launch_in/python_interpreter.hpp"

namespace headroom {
namespace {

using Copies = std::map<const PythonValue*, PythonPointer>;

PythonPointer deep_copy(const PythonPointer& value, Copies& copies, int depth) {
  constexpr int deepest = 40;
  if (const auto found = copies.find(value.get()); found != copies.end()) return found->second;
  auto copy = std::make_shared<PythonValue>(*value);
  if (depth < deepest) {
    for (auto& [name, member] : copy->members) member = deep_copy(member, copies, depth + 1);
  }
  copies[value.get()] = copy;
  return copy;
}

PythonPointer deep_copy(const PythonPointer& value) {
  Copies copies;
  return deep_copy(value, copies, 0);
}

// max(1, 16 // 4), min(...) and int(3.5), where the numbers are known; null: another call.
PythonPointer known_number(const std::string& name, const Python::Arguments& arguments, std::int64_t line) {
  if ((name != "max" && name != "min" && name != "int") || arguments.empty()) return nullptr;
  std::optional<double> result;
  for (const auto& [key, value] : arguments) {
    const std::optional<double> number = number_in(value);
    if (!key.empty() || !number) return nullptr;
    result = !result || name == "int" ? *number
             : name == "max"          ? std::max(*result, *number)
                                      : std::min(*result, *number);
  }
  return number_value(name == "int" ? std::trunc(*result) : *result, line);
}

// A flag's value, as argparse would turn it: a number, True of a switch, or a text.
PythonPointer of_flag(const std::string& text, std::int64_t line) {
  if (text.empty()) return truth_value(true, line);
  if (text.starts_with("${")) return unknown_value("a flag", line);
  if (text == "True" || text == "true") return truth_value(true, line);
  if (text == "False" || text == "false") return truth_value(false, line);
  auto value = python_value(PythonKind::number, text, line);
  if (!number_in(value)) value->kind = PythonKind::text;
  return value;
}

}  // namespace

Python::Arguments Python::arguments_of(Frame& f, std::int64_t line) {
  Arguments arguments;
  while (!is_sign(f, ")")) {
    if (take(f, "**")) {
      const PythonPointer more = expression(f);
      if (more->kind != PythonKind::map) arguments.emplace_back("**", more);
      for (const auto& [name, value] : more->members) arguments.emplace_back(name, value);
    } else {
      std::string name;
      const bool keyword = token(f).kind == PythonTokenKind::name && f.at + 1 < f.module.tokens.size() &&
                           f.module.tokens[f.at + 1].text == "=" &&
                           f.module.tokens[f.at + 1].kind == PythonTokenKind::sign;
      if (keyword) {
        name = token(f).text;
        f.at += 2;
      }
      arguments.emplace_back(std::move(name), expression(f));
      if (is_word(f, "for")) throw PythonUnreadable{};
    }
    if (arguments.size() > most_members)
      throw InputError(fmt::format("{}:{}", f.module.file, line),
                       fmt::format("has a call with more than {} arguments", most_members));
    if (!take(f, ",")) break;
  }
  expect(f, ")");
  return arguments;
}

PythonPointer Python::call_value(Frame& f, const PythonPointer& callee, const PythonPointer& self,
                                 std::int64_t line) {
  const Arguments arguments = arguments_of(f, line);
  if (callee->kind == PythonKind::function) {
    const int depth = std::exchange(expression_depth_, 0);
    PythonPointer result = call(callee->index, arguments, line);
    expression_depth_ = depth;
    return result;
  }
  if (PythonPointer known = known_call(f, callee->text, self, arguments, line)) return known;
  return kept_call(callee->text, arguments, line);
}

PythonPointer Python::known_call(Frame& f, const std::string& name, const PythonPointer& self,
                                 const Arguments& arguments, std::int64_t line) {
  const std::string last = name.substr(name.rfind('.') + 1);
  const bool given = !arguments.empty() && arguments.front().first.empty();
  PythonPointer first = given ? arguments.front().second : nullptr;
  if (self && self->kind == PythonKind::text && last == "lower") {
    std::string text = self->text;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return python_value(PythonKind::text, std::move(text), line);
  }
  if (self && self->kind == PythonKind::list && last == "append" && first) {
    if (!holds_value(first, self.get())) self->members.emplace_back("", first);
    return python_value(PythonKind::none, "None", line);
  }
  if (self && self->kind == PythonKind::map && (last == "get" || last == "pop") && first) {
    PythonPointer member = self->find(first->text);
    if (member) return member;
    return arguments.size() > 1 ? arguments[1].second : python_value(PythonKind::none, "None", line);
  }
  if (first && (name == "os.getenv" || name == "os.environ.get" || name == "os.environ.setdefault")) {
    PythonPointer value = variable_of(first, arguments.size() > 1 ? arguments[1].second : nullptr, line);
    const bool known = value->kind == PythonKind::text || value->kind == PythonKind::number;
    if (last == "setdefault" && known) environment_.emplace(first->text, value->text);
    return value;
  }
  if (name.starts_with("os.")) return unknown_value(name + "()", line);  // only a run knows
  if (self && last == "update") {
    if (f.locals == nullptr) open_up(*self);
    for (const auto& [key, value] : arguments) {
      if (!key.empty()) self->put(key, value);
      for (const auto& [inner, member] : key.empty() ? value->members : decltype(value->members){})
        self->put(inner, member);
    }
    return python_value(PythonKind::none, "None", line);
  }
  if ((name == "copy.deepcopy" || name == "deepcopy" || name == "copy.copy") && first)
    return deep_copy(first);
  if ((name == "replace" || name == "dataclasses.replace") && first) {
    PythonPointer copy = deep_copy(first);
    for (const auto& [key, value] : arguments) {
      if (!key.empty()) copy->put(key, value);
    }
    return copy;
  }
  if (PythonPointer number = known_number(name, arguments, line)) return number;
  if (name == "int" && arguments.size() > 1) return unknown_value("int()", line);  // in another base
  if ((name == "int" || name == "float") && first && first->kind == PythonKind::text) {
    auto number = python_value(PythonKind::number, first->text, line);
    if (number_in(number)) return number;
  }
  if ((name == "int" || name == "float" || name == "str" || name == "list" || name == "tuple") && first &&
      arguments.size() == 1)
    return first;
  if (name == "setattr" && arguments.size() == 3 && first) {
    first->put(arguments[1].second->text, arguments[2].second);
    return python_value(PythonKind::none, "None", line);
  }
  if (last == "parse_args" || last == "parse_known_args") return parsed_flags(line);
  return nullptr;
}

bool Python::sets_variable(Frame at, const PythonPointer& value) {
  if (!take(at, ".") || token(at).text != "environ") return false;
  ++at.at;
  if (!take(at, "[")) return false;
  const PythonPointer name = expression(at);
  if (name->kind != PythonKind::text || !take(at, "]")) return false;
  const bool known = value->kind == PythonKind::text;
  environment_.insert_or_assign(name->text, known ? value->text : "${}");
  return true;
}

PythonPointer Python::variable_of(const PythonPointer& name, const PythonPointer& otherwise,
                                  std::int64_t line) {
  const auto given = environment_.find(name->text);
  if (given != environment_.end() && given->second.find("${") == std::string::npos)
    return python_value(PythonKind::text, given->second, line);
  // Launchers set these. Any other variable keeps its default unless a script sets it.
  constexpr std::array<std::string_view, 9> of_launchers{
      "WORLD_SIZE", "RANK",   "LOCAL_RANK",     "LOCAL_WORLD_SIZE",    "NODE_RANK",
      "GROUP_RANK", "NNODES", "NPROC_PER_NODE", "CUDA_VISIBLE_DEVICES"};
  const bool of_job = name->text.starts_with("SLURM_") || name->text.starts_with("OMPI_");
  if (given == environment_.end() && otherwise && !of_job &&
      !contains(of_launchers, std::string_view(name->text)))
    return otherwise;
  return unknown_value("os.environ[" + name->text + ']', line);
}

PythonPointer Python::kept_call(const std::string& name, const Arguments& arguments, std::int64_t line) {
  const bool given = !arguments.empty() && arguments.front().first.empty();
  const PythonPointer first = given ? arguments.front().second : nullptr;
  auto result = python_value(name == "dict" ? PythonKind::map : PythonKind::object, name, line);
  // "run.Config(nl.MegatronStrategy, ...)" configures its first argument.
  const bool configures =
      (name == "run.Config" || name == "run.Partial" || name == "Config" || name == "Partial") && first;
  if (configures) result->text = first->text;
  std::size_t position = 0;
  steps_ += arguments.size();
  for (auto argument = arguments.begin() + (configures ? 1 : 0); argument != arguments.end(); ++argument) {
    result->put(argument->first.empty() ? std::to_string(position++) : argument->first, argument->second);
  }
  constexpr std::size_t most_kept = 200'000;  // values, which would otherwise go with their statements
  kept_values_ += result->members.size() + 1;
  if (result->kind == PythonKind::object && kept_values_ < most_kept) calls_.push_back(result);
  return result;
}

PythonPointer Python::parsed_flags(std::int64_t line) {
  constexpr std::size_t most_flags = 1000;
  auto flags = python_value(PythonKind::object, "parse_args", line);
  steps_ += calls_.size();
  for (const PythonPointer& called : calls_) {
    if (!called->text.ends_with("add_argument") || flags->members.size() >= most_flags) continue;
    std::string name;
    std::optional<std::string> told;
    for (const char* const place : {"0", "1", "2"}) {
      const PythonPointer option = called->find(place);
      if (!option || option->kind != PythonKind::text || !option->text.starts_with('-')) continue;
      std::string plain =
          option->text.substr(std::min(option->text.find_first_not_of('-'), option->text.size()));
      std::replace(plain.begin(), plain.end(), '-', '_');
      if (const auto given = flags_.find(plain); given != flags_.end()) told = given->second;
      if (flags_.contains("no_" + plain)) told = "False";  // BooleanOptionalAction
      if (name.empty() || option->text.starts_with("--")) name = plain;
    }
    if (const PythonPointer other = called->find("dest"); other && other->kind == PythonKind::text)
      name = other->text;
    if (name.empty()) continue;
    const PythonPointer usual = called->find("default");
    const PythonPointer action = called->find("action");
    if (told)
      flags->put(name, of_flag(*told, line));
    else if (usual)
      flags->put(name, usual);
    else if (action && action->text.starts_with("store_"))
      flags->put(name, truth_value(action->text == "store_false", line));
    else
      flags->put(name, unknown_value("--" + name, line));
  }
  return flags;
}

}  // namespace headroom
