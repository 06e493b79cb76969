// Follows the statements of literal Python; python_expressions.cpp has its expressions.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/python.hpp"
#include "interop/launch_in/python_tokens.hpp"
#include "interop/launch_in/python_value.hpp"

namespace headroom {

// Gives the text of a module beside the file ("common" of "from .common import f"); none: it is not there.
using PythonModules = std::function<std::optional<std::string>(const std::string& name)>;

inline constexpr std::size_t most_python_steps = 200'000;  // statements
inline constexpr int deepest_python_call = 24;
inline constexpr int deepest_python_statement = 400;
inline constexpr int deepest_python_expression = 60;

struct PythonModule;

struct PythonParameter {
  std::string name;
  PythonPointer value;  // by default; null: it must be given
  int stars = 0;
};

struct PythonDefinition {
  std::string name;
  std::vector<PythonParameter> parameters;
  std::size_t body = 0;  // of the module's tokens, behind the colon
  PythonModule* module = nullptr;
};

using PythonNames = std::map<std::string, PythonPointer, std::less<>>;

struct PythonModule {
  std::string file;
  std::vector<PythonToken> tokens;
  PythonNames names;
  std::map<std::string, std::string, std::less<>> imports;  // name -> the module that it is of
  std::map<std::string, std::string, std::less<>> aliases;  // "nr" of "import nemo_run as nr" -> "run"
  PythonNames tables;  // what the module mentions and does not make, which it may put entries into
};

// A statement that cannot be read: it is passed over.
struct PythonUnreadable {};

class Python {
 public:
  using Arguments = std::vector<std::pair<std::string, PythonPointer>>;  // names are empty by position

  explicit Python(const PythonModules& modules, PythonFlags flags = {}, PythonEnvironment environment = {})
      : modules_(modules), flags_(std::move(flags)), environment_(std::move(environment)) {}

  // `runs`: as the program that is started, not as a module that one imports.
  PythonModule& load(std::string_view text, const std::string& file, bool runs = false) {
    PythonModule& module = *loaded_.emplace_back(std::make_unique<PythonModule>());
    module.file = file;
    if (runs) module.names["__name__"] = python_value(PythonKind::text, "__main__", 0);
    module.tokens = python_tokens(plain_text(text, file), file);
    Frame frame{module, nullptr, 0, nullptr, false};
    run_block(frame, PythonTokenKind::end);
    return module;
  }

  const std::vector<PythonDefinition>& definitions() const { return definitions_; }
  // The results of calls that are not followed: objects whose members are the arguments.
  const std::vector<PythonPointer>& calls() const { return calls_; }
  std::vector<PythonRemark> take_remarks() { return std::move(remarks_); }

  PythonPointer call(std::size_t index, const std::vector<std::pair<std::string, PythonPointer>>& arguments,
                     std::int64_t line) {
    const PythonDefinition definition = definitions_[index];
    if (++depth_ > deepest_python_call)
      throw InputError(fmt::format("{}:{}", definition.module->file, line),
                       "functions call each other too deeply");
    PythonNames locals;
    std::size_t position = 0;
    auto rest = python_value(PythonKind::map, "", line);
    const auto is_parameter = [&](const std::string& name) {
      return std::any_of(definition.parameters.begin(), definition.parameters.end(),
                         [&](const PythonParameter& p) { return p.name == name && p.stars == 0; });
    };
    for (const auto& [name, value] : arguments) {
      if (name.empty()) {
        if (position < definition.parameters.size() && definition.parameters[position].stars == 0)
          locals[definition.parameters[position++].name] = value;
      } else if (is_parameter(name)) {
        locals[name] = value;
      } else {
        rest->put(name, value);
      }
    }
    for (const PythonParameter& parameter : definition.parameters) {
      if (locals.contains(parameter.name)) continue;
      if (parameter.stars == 2)
        locals[parameter.name] = rest;
      else
        locals[parameter.name] =
            parameter.value ? parameter.value : python_value(PythonKind::unknown, parameter.name, line);
    }
    Frame frame{*definition.module, &locals, definition.body, nullptr, false};
    run_body(frame);
    --depth_;
    return frame.result ? frame.result : python_value(PythonKind::none, "None", line);
  }

 private:
  struct Frame {
    PythonModule& module;
    PythonNames* locals;  // null: of the module itself
    std::size_t at;
    PythonPointer result;
    bool done;
  };

  // Tokens.
  static const PythonToken& token(const Frame& f) {
    return f.module.tokens[std::min(f.at, f.module.tokens.size() - 1)];
  }
  static bool is_sign(const Frame& f, std::string_view sign) {
    return token(f).kind == PythonTokenKind::sign && token(f).text == sign;
  }
  static bool is_word(const Frame& f, std::string_view word) {
    return token(f).kind == PythonTokenKind::name && token(f).text == word;
  }
  static bool take(Frame& f, std::string_view sign) {
    if (!is_sign(f, sign)) return false;
    ++f.at;
    return true;
  }
  static bool take_word(Frame& f, std::string_view word) {
    if (!is_word(f, word)) return false;
    ++f.at;
    return true;
  }
  static void expect(Frame& f, std::string_view sign) {
    if (!take(f, sign)) throw PythonUnreadable{};
  }

  // Statements.
  void run_block(Frame& f, PythonTokenKind end) {
    while (token(f).kind != end && token(f).kind != PythonTokenKind::end && !f.done) statement(f);
  }

  // What follows a colon: a block, or statements on the same line.
  void run_body(Frame& f) {
    if (token(f).kind != PythonTokenKind::newline) return statement(f);
    ++f.at;
    if (token(f).kind != PythonTokenKind::indent) return;
    ++f.at;
    run_block(f, PythonTokenKind::dedent);
    if (!f.done) ++f.at;
  }

  static void skip_line(Frame& f) {
    while (token(f).kind != PythonTokenKind::newline && token(f).kind != PythonTokenKind::end) ++f.at;
    if (token(f).kind == PythonTokenKind::newline) ++f.at;
  }

  static void skip_body(Frame& f) {
    if (token(f).kind != PythonTokenKind::newline) return skip_line(f);
    ++f.at;
    if (token(f).kind != PythonTokenKind::indent) return;
    int open = 0;
    do {
      if (token(f).kind == PythonTokenKind::indent) ++open;
      if (token(f).kind == PythonTokenKind::dedent) --open;
      ++f.at;
    } while (open > 0 && token(f).kind != PythonTokenKind::end);
  }

  // To the colon that ends the head of a compound statement.
  static void skip_head(Frame& f) {
    int open = 0;
    while (token(f).kind != PythonTokenKind::end && token(f).kind != PythonTokenKind::newline) {
      if (is_sign(f, "(") || is_sign(f, "[") || is_sign(f, "{")) ++open;
      if (is_sign(f, ")") || is_sign(f, "]") || is_sign(f, "}")) --open;
      const bool ends = open == 0 && is_sign(f, ":");
      ++f.at;
      if (ends) return;
    }
  }

  void statement(Frame& f) {
    if (++statement_depth_ > deepest_python_statement)
      throw InputError(fmt::format("{}:{}", f.module.file, token(f).line),
                       "has blocks that are nested too deeply");
    one_statement(f);
    --statement_depth_;
  }

  void one_statement(Frame& f) {
    if (++steps_ > most_python_steps)
      throw InputError(fmt::format("{}:{}", f.module.file, token(f).line), "takes too many steps to read");
    const PythonToken& first = token(f);
    if (first.kind == PythonTokenKind::newline || first.kind == PythonTokenKind::indent ||
        first.kind == PythonTokenKind::dedent) {
      ++f.at;
      return;
    }
    if (take_word(f, "def")) return define(f);
    if (take_word(f, "async")) return;
    if (is_sign(f, "@")) return skip_line(f);
    if (take_word(f, "from") || take_word(f, "import")) return import(f, first.text == "from");
    if (take_word(f, "if")) return branch(f);
    for (const std::string_view word : {"class", "for", "while"}) {
      if (!take_word(f, word)) continue;
      if (word != "class" && f.locals != nullptr)
        remarks_.push_back({fmt::format("a loop ({}) is not followed", word), first.line});
      skip_head(f);
      skip_body(f);
      if (take_word(f, "else")) {
        skip_head(f);
        skip_body(f);
      }
      return;
    }
    for (const std::string_view word : {"with", "try"}) {
      if (!take_word(f, word)) continue;
      skip_head(f);
      run_body(f);
      while (!f.done && (is_word(f, "except") || is_word(f, "finally") || is_word(f, "else"))) {
        skip_head(f);
        skip_body(f);
      }
      return;
    }
    const std::size_t start = f.at;
    try {
      if (take_word(f, "return")) {
        f.result = token(f).kind == PythonTokenKind::newline
                       ? python_value(PythonKind::none, "None", first.line)
                       : expression(f);
        f.done = true;
        return;
      }
      if (is_word(f, "raise") && f.locals != nullptr) {
        f.done = true;
        return;
      }
      simple(f);
    } catch (const PythonUnreadable&) {
      f.at = start;
      expression_depth_ = 0;
    }
    while (token(f).kind != PythonTokenKind::newline && token(f).kind != PythonTokenKind::end &&
           !is_sign(f, ";"))
      ++f.at;
    if (token(f).kind == PythonTokenKind::newline || is_sign(f, ";")) ++f.at;
  }

  void simple(Frame& f) {
    for (const std::string_view word :
         {"pass", "assert", "del", "global", "nonlocal", "break", "continue", "raise", "yield", "await"}) {
      if (is_word(f, word)) return;
    }
    const std::size_t start = f.at;
    PythonPointer value = expression(f);
    if (is_sign(f, ",")) return assign_all(f, start);
    if (take(f, ":")) {
      expression(f);  // a type
      if (!is_sign(f, "=")) return;
    }
    static constexpr std::array<std::string_view, 7> sums{"+=", "|=", "*=", "-=", "/=", "//=", "%="};
    const bool adds =
        token(f).kind == PythonTokenKind::sign && contains(sums, std::string_view(token(f).text));
    if (adds) {
      const std::string sign = token(f).text.substr(0, token(f).text.size() - 1);
      ++f.at;
      const PythonPointer right = expression(f);
      const PythonPointer sum = operate(sign, value, right, token(f).line);
      steps_ += size_of(*sum);
      assign_at(f, start, sum);
      return;
    }
    std::vector<std::size_t> targets{start};
    while (take(f, "=")) {
      targets.push_back(f.at);
      value = expression(f);
    }
    targets.pop_back();
    for (const std::size_t target : targets) assign_at(f, target, value);
  }

  // a, b = value. If the value is not a list of as many parts, each name gets the whole value.
  void assign_all(Frame& f, std::size_t start) {
    std::vector<std::size_t> targets{start};
    while (take(f, ",")) {
      targets.push_back(f.at);
      expression(f);
    }
    if (!take(f, "=")) return;
    const PythonPointer value = expression(f);
    const bool parts = value->kind == PythonKind::list && value->members.size() == targets.size();
    for (std::size_t i = 0; i < targets.size(); ++i)
      assign_at(f, targets[i], parts ? value->members[i].second : value);
  }

  // a.b["c"].d = value. Members in between are made where they are not there.
  void assign_at(Frame& f, std::size_t start, PythonPointer value) {
    Frame at{f.module, f.locals, start, nullptr, false};
    if (token(at).kind != PythonTokenKind::name) return;
    const std::string name = token(at).text;
    ++at.at;
    if (!is_sign(at, ".") && !is_sign(at, "[")) {
      (f.locals != nullptr ? *f.locals : f.module.names)[name] = std::move(value);
      return;
    }
    if (name == "os" && sets_variable(at, value)) return;
    PythonPointer holder = look_up(f, name, token(at).line);
    // An attribute of what is not known changes nothing that is read here: "torch.backends.cuda.x = True".
    if (holder->kind == PythonKind::unknown && is_sign(at, "."))
      holder = std::make_shared<PythonValue>(*holder);
    for (;;) {
      std::string key;
      if (take(at, ".")) {
        key = token(at).text;
        ++at.at;
      } else if (take(at, "[")) {
        const PythonPointer index = expression(at);
        expect(at, "]");
        if (index->kind != PythonKind::text && index->kind != PythonKind::number) return;
        key = index->text;
      } else {
        return;
      }
      if (!is_sign(at, ".") && !is_sign(at, "[")) {
        open_up(*holder);
        if (holder->members.size() >= most_members)
          throw InputError(fmt::format("{}:{}", f.module.file, token(f).line),
                           fmt::format("has a dictionary with more than {} members", most_members));
        holder->put(key, std::move(value));
        return;
      }
      PythonPointer next = holder->find(key);
      if (!next || (next->kind != PythonKind::map && next->kind != PythonKind::object)) {
        next = python_value(PythonKind::object, "", token(at).line);
        open_up(*holder);
        holder->put(key, next);
      }
      holder = next;
    }
  }

  static void open_up(PythonValue& value) {
    if (value.kind == PythonKind::unknown || value.kind == PythonKind::none) value.kind = PythonKind::object;
  }

  void define(Frame& f) {
    PythonDefinition definition;
    definition.name = token(f).text;
    definition.module = &f.module;
    const std::int64_t line = token(f).line;
    ++f.at;
    try {
      expect(f, "(");
      while (!is_sign(f, ")")) {
        if (take(f, "/")) {
          take(f, ",");
          continue;
        }
        PythonParameter parameter;
        parameter.stars = take(f, "**") ? 2 : take(f, "*") ? 1 : 0;
        if (token(f).kind == PythonTokenKind::name) {
          parameter.name = token(f).text;
          ++f.at;
          if (take(f, ":")) expression(f);
          if (take(f, "=")) parameter.value = expression(f);
          definition.parameters.push_back(std::move(parameter));
        }
        if (!take(f, ",") && !is_sign(f, ")")) throw PythonUnreadable{};
      }
    } catch (const PythonUnreadable&) {
      expression_depth_ = 0;
      return skip_line(f);
    }
    skip_head(f);
    definition.body = f.at;
    skip_body(f);
    auto value = python_value(PythonKind::function, definition.name, line);
    value->index = definitions_.size();
    (f.locals != nullptr ? *f.locals : f.module.names)[definition.name] = std::move(value);
    definitions_.push_back(std::move(definition));
  }

  void import(Frame& f, bool from);

  // 1: true, 0: false, -1: only a run knows.
  int condition(Frame& f) {
    try {
      const std::optional<bool> holds = truth(expression(f));
      expect(f, ":");
      return holds ? static_cast<int>(*holds) : -1;
    } catch (const PythonUnreadable&) {
      expression_depth_ = 0;
      skip_head(f);
      return -1;
    }
  }

  void branch(Frame& f) {
    bool taken = false;
    do {
      if (taken) {
        skip_head(f);
        skip_body(f);
        continue;
      }
      const std::int64_t line = token(f).line;
      const int holds = condition(f);
      if (holds < 0) remarks_.push_back({"a condition that only a run knows is taken as false", line});
      taken = holds == 1;
      if (taken)
        run_body(f);
      else
        skip_body(f);
    } while (!f.done && take_word(f, "elif"));
    if (f.done || !take_word(f, "else")) return;
    take(f, ":");
    if (taken)
      skip_body(f);
    else
      run_body(f);
  }

  // Returns the steps that an operator's result costs, by its size.
  static std::size_t size_of(const PythonValue& value) {
    constexpr std::size_t bytes_a_step = 64;
    return value.members.size() + value.text.size() / bytes_a_step;
  }

  // Expressions.
  PythonPointer expression(Frame& f);
  PythonPointer binary(Frame& f, int level);
  PythonPointer unary(Frame& f);
  PythonPointer signed_value(Frame& f, std::int64_t line);
  PythonPointer postfix(Frame& f);
  PythonPointer atom(Frame& f);
  Arguments arguments_of(Frame& f, std::int64_t line);
  PythonPointer call_value(Frame& f, const PythonPointer& callee, const PythonPointer& self,
                           std::int64_t line);
  // Returns the value of a call whose meaning is known, or null.
  PythonPointer known_call(Frame& f, const std::string& name, const PythonPointer& self,
                           const Arguments& arguments, std::int64_t line);
  PythonPointer kept_call(const std::string& name, const Arguments& arguments, std::int64_t line);
  PythonPointer look_up(Frame& f, std::string_view name, std::int64_t line);
  static PythonPointer operate(const std::string& sign, const PythonPointer& left, const PythonPointer& right,
                               std::int64_t line);
  static std::optional<bool> truth(const PythonPointer& value);
  static PythonPointer compared(const std::string& sign, const PythonPointer& left,
                                const PythonPointer& right, std::int64_t line);
  // A variable of os.environ; `otherwise`: where it is not set, may be null.
  PythonPointer variable_of(const PythonPointer& name, const PythonPointer& otherwise, std::int64_t line);
  bool sets_variable(Frame at, const PythonPointer& value);  // environ[NAME] = value, behind "os"
  // Flags of argparse with their defaults.
  PythonPointer parsed_flags(std::int64_t line);
  static PythonPointer formatted(Frame& f, const PythonToken& text, Python& python);

  const PythonModules& modules_;
  PythonFlags flags_;
  PythonEnvironment environment_;
  std::vector<std::unique_ptr<PythonModule>> loaded_;
  std::map<std::string, PythonModule*> by_name_;
  std::vector<PythonDefinition> definitions_;
  std::vector<PythonRemark> remarks_;
  std::vector<PythonPointer> calls_;
  std::size_t kept_values_ = 0;
  std::size_t steps_ = 0;
  int depth_ = 0;
  int statement_depth_ = 0;
  int expression_depth_ = 0;
};

}  // namespace headroom
