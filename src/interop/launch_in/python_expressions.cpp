#include <cmath>

#include "headroom/core/decimal.hpp"
#include "interop/launch_in/python_interpreter.hpp"
#include "io/text.hpp"

namespace headroom {

std::optional<double> number_in(const PythonPointer& value) {
  double number = 0;
  if (value->kind != PythonKind::number) return std::nullopt;
  const std::string& text = value->text;
  const auto [end, error] = decimal_from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

PythonPointer number_value(double number, std::int64_t line) {
  constexpr double largest = 9e15;
  if (!std::isfinite(number)) return python_value(PythonKind::unknown, "a number", line);
  const bool whole = number == std::floor(number) && std::abs(number) < largest;
  return python_value(PythonKind::number,
                      whole ? std::to_string(static_cast<std::int64_t>(number)) : fmt::format("{}", number),
                      line);
}

namespace {

bool same(const PythonPointer& left, const PythonPointer& right) {
  const auto x = number_in(left);
  const auto y = number_in(right);
  return x && y ? *x == *y : left->kind == right->kind && left->text == right->text;
}

struct Signs {
  std::array<std::string_view, 4> signs;
};
// Binary operators of numbers and texts, the loosest first.
constexpr std::array<Signs, 5> levels{
    {{{"|"}}, {{"&", "^"}}, {{"<<", ">>"}}, {{"+", "-"}}, {{"*", "/", "//", "%"}}}};

}  // namespace

std::optional<bool> Python::truth(const PythonPointer& value) {
  switch (value->kind) {
    case PythonKind::none: return false;
    case PythonKind::boolean: return value->text == "True";
    case PythonKind::number: return number_in(value).value_or(1) != 0;
    case PythonKind::text: return !value->text.empty();
    case PythonKind::list:
    case PythonKind::map: return !value->members.empty();
    case PythonKind::object:
      if (value->text.empty() || value->members.empty()) return std::nullopt;  // a call that only a run makes
      return true;
    case PythonKind::function: return true;
    case PythonKind::unknown: break;
  }
  return std::nullopt;
}

PythonPointer Python::operate(const std::string& sign, const PythonPointer& left, const PythonPointer& right,
                              std::int64_t line) {
  const auto x = number_in(left);
  const auto y = number_in(right);
  if (x && y) {
    if (sign == "+") return number_value(*x + *y, line);
    if (sign == "-") return number_value(*x - *y, line);
    if (sign == "*") return number_value(*x * *y, line);
    if (*y != 0 && sign == "/") return number_value(*x / *y, line);
    if (*y != 0 && sign == "//") return number_value(std::floor(*x / *y), line);
    if (*y != 0 && sign == "%") return number_value(*x - *y * std::floor(*x / *y), line);
    if (sign == "**") return number_value(std::pow(*x, *y), line);
  }
  if (sign == "|" && left->kind == PythonKind::map && right->kind == PythonKind::map) {
    auto both = std::make_shared<PythonValue>(*left);
    for (const auto& [key, member] : right->members) both->put(key, member);
    return both;
  }
  constexpr std::size_t longest = 20'000;
  if (sign == "+" && left->kind == PythonKind::text && right->kind == PythonKind::text &&
      left->text.size() + right->text.size() < longest)
    return python_value(PythonKind::text, left->text + right->text, line);
  if (sign == "+" && left->kind == PythonKind::list && right->kind == PythonKind::list &&
      left->members.size() + right->members.size() < longest) {
    auto sum = std::make_shared<PythonValue>(*left);
    sum->members.insert(sum->members.end(), right->members.begin(), right->members.end());
    return sum;
  }
  return unknown_value(left->text + ' ' + sign + ' ' + right->text, line);
}

PythonPointer Python::compared(const std::string& sign, const PythonPointer& left, const PythonPointer& right,
                               std::int64_t line) {
  const bool open = left->kind == PythonKind::unknown || right->kind == PythonKind::unknown ||
                    (left->kind == PythonKind::object && left->text.empty());
  if (open) return unknown_value(left->text + ' ' + sign + ' ' + right->text, line);
  if (sign == "==" || sign == "is") return truth_value(same(left, right), line);
  if (sign == "!=" || sign == "is not") return truth_value(!same(left, right), line);
  if (sign == "in" || sign == "not in") {
    bool found = std::any_of(right->members.begin(), right->members.end(), [&](const auto& member) {
      return right->kind == PythonKind::list ? same(left, member.second) : member.first == left->text;
    });
    if (right->kind == PythonKind::text) found = right->text.find(left->text) != std::string::npos;
    return truth_value(found == (sign == "in"), line);
  }
  const auto x = number_in(left);
  const auto y = number_in(right);
  if (!x || !y) return unknown_value(left->text + ' ' + sign + ' ' + right->text, line);
  if (sign == "<") return truth_value(*x < *y, line);
  if (sign == ">") return truth_value(*x > *y, line);
  if (sign == "<=") return truth_value(*x <= *y, line);
  return truth_value(*x >= *y, line);
}

PythonPointer Python::expression(Frame& f) {
  if (++expression_depth_ > deepest_python_expression)
    throw InputError(fmt::format("{}:{}", f.module.file, token(f).line),
                     "has an expression that is nested too deeply");
  const std::int64_t line = token(f).line;
  PythonPointer value;
  if (is_word(f, "lambda")) {
    int open = 0;
    for (; token(f).kind != PythonTokenKind::newline && token(f).kind != PythonTokenKind::end; ++f.at) {
      if (is_sign(f, "(") || is_sign(f, "[") || is_sign(f, "{")) ++open;
      const bool closes = is_sign(f, ")") || is_sign(f, "]") || is_sign(f, "}");
      if (open == 0 && (closes || is_sign(f, ","))) break;
      if (closes) --open;
    }
    value = unknown_value("lambda", line);
  } else {
    value = binary(f, -4);
    if (take(f, ":=")) value = expression(f);
    if (take_word(f, "if")) {
      const std::optional<bool> holds = truth(binary(f, -4));
      if (!take_word(f, "else")) throw PythonUnreadable{};
      const PythonPointer otherwise = expression(f);
      if (!holds)
        value = unknown_value(value->text + " or " + otherwise->text, line);
      else if (!*holds)
        value = otherwise;
    }
    // "a, b": a tuple, which has no use here.
  }
  --expression_depth_;
  return value;
}

// Levels: -4 or, -3 and, -2 not, -1 comparisons, 0.. of `levels`.
PythonPointer Python::binary(Frame& f, int level) {
  if (level == static_cast<int>(levels.size())) return unary(f);
  if (level == -2) {
    if (!is_word(f, "not")) return binary(f, -1);
    const std::int64_t line = token(f).line;
    bool negates = false;
    for (; take_word(f, "not");) negates = !negates;
    const PythonPointer value = binary(f, -1);
    const std::optional<bool> holds = truth(value);
    if (holds && !negates) return truth_value(*holds, line);
    return holds ? truth_value(!*holds, line) : unknown_value("not", line);
  }
  PythonPointer left = binary(f, level + 1);
  for (;;) {
    const std::int64_t line = token(f).line;
    if (level == -4 || level == -3) {
      const bool either = level == -4;
      if (!take_word(f, either ? "or" : "and")) return left;
      const PythonPointer right = binary(f, level + 1);
      const std::optional<bool> holds = truth(left);
      if (!holds)
        left = truth(right) == either ? right : unknown_value(left->text, line);
      else if (*holds != either)
        left = right;
      continue;
    }
    if (level == -1) {
      std::string sign;
      for (const std::string_view known : {"==", "!=", "<=", ">=", "<", ">"}) {
        if (sign.empty() && take(f, known)) sign = known;
      }
      if (sign.empty() && take_word(f, "in")) sign = "in";
      if (sign.empty() && take_word(f, "is")) sign = take_word(f, "not") ? "is not" : "is";
      if (sign.empty() && is_word(f, "not")) {
        ++f.at;
        if (!take_word(f, "in")) throw PythonUnreadable{};
        sign = "not in";
      }
      if (sign.empty()) return left;
      left = compared(sign, left, binary(f, 0), line);
      continue;
    }
    const auto& signs = levels[static_cast<std::size_t>(level)].signs;
    const bool known = token(f).kind == PythonTokenKind::sign && !token(f).text.empty() &&
                       contains(signs, std::string_view(token(f).text));
    if (!known) return left;
    const std::string sign = token(f).text;
    ++f.at;
    left = operate(sign, left, binary(f, level + 1), line);
    steps_ += size_of(*left);
  }
}

PythonPointer Python::unary(Frame& f) {
  const std::int64_t line = token(f).line;
  if (++expression_depth_ > deepest_python_expression)
    throw InputError(fmt::format("{}:{}", f.module.file, line),
                     "has an expression that is nested too deeply");
  PythonPointer value = signed_value(f, line);
  --expression_depth_;
  return value;
}

PythonPointer Python::signed_value(Frame& f, std::int64_t line) {
  if (take(f, "-")) {
    const PythonPointer value = unary(f);
    const auto number = number_in(value);
    return number ? number_value(-*number, line) : unknown_value("-" + value->text, line);
  }
  if (take(f, "+")) return unary(f);
  take_word(f, "await");
  if (take(f, "*") || take(f, "**")) return unary(f);
  const PythonPointer base = postfix(f);
  // Tighter than a sign before it, and from the right: -2**2, 2**3**2.
  return take(f, "**") ? operate("**", base, unary(f), line) : base;
}

PythonPointer Python::postfix(Frame& f) {
  PythonPointer value = atom(f);
  PythonPointer self;
  for (;;) {
    const std::int64_t line = token(f).line;
    if (take(f, ".")) {
      const std::string name = token(f).text;
      if (token(f).kind != PythonTokenKind::name) throw PythonUnreadable{};
      ++f.at;
      self = value;
      PythonPointer member = value->find(name);
      if (!member) {
        const bool holder = value->kind == PythonKind::object && !is_sign(f, "(");
        member = holder ? python_value(PythonKind::object, "", line)
                        : unknown_value((value->kind == PythonKind::unknown ? value->text + '.' : "") + name,
                                        line);
        if (holder) value->put(name, member);  // what is changed through another name is changed here
      }
      value = member;
    } else if (take(f, "(")) {
      value = call_value(f, value, self, line);
      self = nullptr;
    } else if (take(f, "[")) {
      if (is_sign(f, ":")) throw PythonUnreadable{};
      const PythonPointer index = expression(f);
      while (take(f, ",") || take(f, ":")) {
        if (!is_sign(f, "]")) expression(f);
      }
      expect(f, "]");
      PythonPointer member = index->kind == PythonKind::text ? value->find(index->text) : nullptr;
      const auto number = number_in(index);
      if (value->kind == PythonKind::list && number && *number >= 0 &&
          *number < static_cast<double>(value->members.size()))
        member = value->members[static_cast<std::size_t>(*number)].second;
      const bool of_environment = value->kind == PythonKind::unknown && value->text == "os.environ";
      value = member           ? member
              : of_environment ? variable_of(index, nullptr, line)
                               : unknown_value(value->text + "[]", line);
    } else {
      return value;
    }
  }
}

PythonPointer Python::atom(Frame& f) {
  const PythonToken& first = token(f);
  const std::int64_t line = first.line;
  if (first.kind == PythonTokenKind::number) {
    ++f.at;
    return python_value(PythonKind::number, first.text, line);
  }
  if (first.kind == PythonTokenKind::text) {
    PythonPointer value = python_value(PythonKind::text, "", line);
    for (; token(f).kind == PythonTokenKind::text; ++f.at) {
      const PythonPointer part = token(f).formatted ? formatted(f, token(f), *this)
                                                    : python_value(PythonKind::text, token(f).text, line);
      value = operate("+", value, part, line);
      steps_ += size_of(*value);
    }
    return value;
  }
  if (first.kind == PythonTokenKind::name) {
    ++f.at;
    return look_up(f, first.text, line);
  }
  const bool list = take(f, "[");
  if (list || take(f, "(")) {
    const std::string_view end = list ? "]" : ")";
    auto items = python_value(PythonKind::list, "", line);
    bool tuple = list;
    while (!is_sign(f, end)) {
      items->members.emplace_back("", expression(f));
      if (is_word(f, "for") || is_word(f, "async")) throw PythonUnreadable{};
      if (!take(f, ",")) break;
      tuple = true;
    }
    expect(f, end);
    return tuple || items->members.empty() ? items : items->members.front().second;
  }
  if (take(f, "{")) {
    auto map = python_value(PythonKind::map, "", line);
    while (!is_sign(f, "}")) {
      if (take(f, "**")) {
        const PythonPointer base = expression(f);
        for (const auto& [name, value] : base->members) map->put(name, value);
      } else {
        const PythonPointer key = expression(f);
        if (take(f, ":")) {
          map->put(key->text, expression(f));
        } else {
          map->kind = PythonKind::list;
          map->members.emplace_back("", key);
        }
      }
      if (is_word(f, "for")) throw PythonUnreadable{};
      if (map->kind == PythonKind::map && map->members.size() > most_members)
        throw InputError(fmt::format("{}:{}", f.module.file, line),
                         fmt::format("has a dictionary with more than {} members", most_members));
      if (!take(f, ",")) break;
    }
    expect(f, "}");
    return map;
  }
  if (take(f, "...")) return unknown_value("...", line);
  throw PythonUnreadable{};
}

PythonPointer Python::formatted(Frame& f, const PythonToken& text, Python& python) {
  std::string result;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    if (text.text[i] != '{') {
      result += text.text[i];
      continue;
    }
    const std::size_t end = text.text.find('}', i);
    if (end == std::string::npos) return unknown_value(text.text, text.line);
    const PythonPointer value = python.look_up(f, text.text.substr(i + 1, end - i - 1), text.line);
    const bool known = value->kind == PythonKind::text || value->kind == PythonKind::number ||
                       value->kind == PythonKind::boolean;
    if (!known) return unknown_value(text.text, text.line);
    result += value->text;
    i = end;
  }
  return python_value(PythonKind::text, result, text.line);
}

void Python::import(Frame& f, bool from) {
  const auto is_name = [&] { return token(f).kind == PythonTokenKind::name; };
  const auto path = [&] {  // "megatron/bridge" of megatron.bridge
    std::string names;
    while (is_name() ? !is_word(f, "import") && !is_word(f, "as") : is_sign(f, ".") || is_sign(f, "...")) {
      if (is_name()) names += (names.empty() ? "" : "/") + token(f).text;
      ++f.at;
    }
    return names;
  };
  const std::string module = from ? path() : "";
  if (from && !take_word(f, "import")) return skip_line(f);
  while (token(f).kind != PythonTokenKind::newline && token(f).kind != PythonTokenKind::end) {
    if (!is_name()) {
      ++f.at;
      continue;
    }
    const std::string whole = from ? token(f).text : path();
    if (whole.empty()) {  // "import" or "as" in the place of a name
      ++f.at;
      continue;
    }
    const std::string own = whole.substr(whole.rfind('/') + 1);
    if (from) ++f.at;
    // Calls of nemo_run are matched as run.NAME, the alias that NeMo's own programs use.
    const std::string known = own == "nemo_run" ? "run" : own;
    std::string alias = own;
    if (take_word(f, "as") && is_name()) alias = f.module.tokens[f.at++].text;
    if (from) f.module.imports[alias] = module;
    if (alias != known) f.module.aliases[alias] = known;
  }
  skip_line(f);
}

PythonPointer Python::look_up(Frame& f, std::string_view name, std::int64_t line) {
  if (name == "True" || name == "False") return python_value(PythonKind::boolean, std::string(name), line);
  if (name == "None") return python_value(PythonKind::none, "None", line);
  if (f.locals != nullptr) {
    if (const auto found = f.locals->find(name); found != f.locals->end()) return found->second;
  }
  if (const auto found = f.module.names.find(name); found != f.module.names.end()) return found->second;
  const auto alias = f.module.aliases.find(name);
  const std::string known = alias != f.module.aliases.end() ? alias->second : std::string(name);
  const auto imported = f.module.imports.find(name);
  if (imported != f.module.imports.end() && f.locals != nullptr) {
    PythonModule*& module = by_name_[imported->second];
    if (module == nullptr && loaded_.size() < 8) {
      if (const std::optional<std::string> text = modules_(imported->second)) {
        module = &load(*text, imported->second + ".py");
      }
    }
    if (module != nullptr) {
      if (const auto found = module->names.find(known); found != module->names.end()) return found->second;
    }
  }
  if (f.locals != nullptr) return unknown_value(known, line);
  // What a module puts into an imported table is kept: table["mine"] = ..., table.update(...).
  PythonPointer& table = f.module.tables[std::string(name)];
  if (table == nullptr) table = unknown_value(known, line);
  return table;
}

}  // namespace headroom
