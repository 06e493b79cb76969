#include "cli/question.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "cli/program.hpp"
#include "cli/version.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/core/reading.hpp"
#include "io/strict_json.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Overrides, a member of an object each: {"layers": 64} is layers=64.
constexpr std::array<std::string_view, 4> tables{"set", "set_system", "set_software", "vary"};

std::string flag_of_member(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return (name.size() == 1 ? "-" : "--") + name;
}

// Turns the members of `arguments` into words of a command line.
class ArgumentWords {
 public:
  ArgumentWords(const CommandText& command, JsonQuestion& question, std::vector<Problem>& problems)
      : command_(command), question_(question), problems_(problems) {}

  void add(const std::string& name, const OrderedJson& value) {
    if (name.empty() || name.find('\0') != std::string::npos) {
      problems_.push_back({"arguments", "must have names of flags: '" + printable(name) + "' is none"});
      return;
    }
    const OptionText* const positional = positional_called(name);
    if (positional == nullptr) return add_flag(name, value);
    // They stand in the order of the command, and no word of theirs is taken for a flag.
    for (const OrderedJson& one : value.is_array() ? value : OrderedJson::array({value})) {
      const std::string text = text_of(name, one);
      if (text.starts_with('-')) problems_.push_back({name, "must not begin with '-'"});
      words_.push_back(text);
    }
  }

  // The words, those of flags behind the others.
  std::vector<std::string> take() {
    words_.insert(words_.end(), flags_.begin(), flags_.end());
    return std::move(words_);
  }

 private:
  [[nodiscard]] const OptionText* positional_called(const std::string& name) const {
    const auto found =
        std::find_if(command_.options.begin(), command_.options.end(),
                     [&](const OptionText& it) { return it.names.empty() && it.positional == name; });
    return found == command_.options.end() ? nullptr : &*found;
  }

  [[nodiscard]] const OptionText* option_of(const std::string& flag) const {
    const auto found = std::find_if(command_.options.begin(), command_.options.end(),
                                    [&](const OptionText& it) { return contains(it.names, flag); });
    return found == command_.options.end() ? nullptr : &*found;
  }

  void add_flag(const std::string& name, const OrderedJson& value) {
    const std::string flag = flag_of_member(name);
    const OptionText* const option = option_of(flag);
    if (value.is_null() || (value.is_boolean() && !value.get<bool>())) return;
    const bool bare = option == nullptr || option->value.empty() || option->value_optional;
    if (value.is_boolean() && bare) {
      flags_.push_back(flag);
      return;
    }
    if (option != nullptr && option->value.empty() && !option->value_optional) {
      problems_.push_back({name, "must be true or false"});
      return;
    }
    if (value.is_object() && contains(tables, std::string_view(name))) {
      for (const auto& [key, entry] : value.items()) add_word(flag, key + "=" + listed(name, entry));
      return;
    }
    const bool each = value.is_array() && option != nullptr && option->list;
    for (const OrderedJson& one : each ? value : OrderedJson::array({value}))
      add_word(flag, listed(name, one));
  }

  void add_word(const std::string& flag, const std::string& text) {
    if (flag.size() == 2) {
      flags_.push_back(flag);
      flags_.push_back(text);
    } else {
      flags_.push_back(flag + "=" + text);
    }
  }

  // A list as a flag takes it.
  std::string listed(const std::string& name, const OrderedJson& value) {
    if (!value.is_array()) return text_of(name, value);
    std::string text;
    for (const OrderedJson& one : value) text += (text.empty() ? "" : ",") + text_of(name, one);
    return text;
  }

  std::string text_of(const std::string& name, const OrderedJson& value) {
    if (value.is_string()) {
      std::string text = value.get<std::string>();
      // A command line cannot hold it: what stands behind it would be lost.
      if (text.find('\0') != std::string::npos) problems_.push_back({name, "must not hold U+0000"});
      return text;
    }
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_number()) return value.dump();
    if (value.is_object()) return file_of(name, value);
    problems_.push_back({name, "must be a text, a number, true, a list or an object"});
    return {};
  }

  // A file that the question holds in place of its name. A model, a system or a stack of a reply has its name as a member,
  // and not the format of a file.
  std::string file_of(const std::string& name, OrderedJson value) {
    const bool of_reply = !value.contains("format") && value.contains("name") && value["name"].is_string();
    const std::string stem = of_reply ? value["name"].get<std::string>() : name;
    if (of_reply) {
      value.erase("name");
      value["format"] = 1;
    }
    std::string file = stem + ".json";
    for (int i = 2; question_.files.contains(file); ++i) file = fmt::format("{}-{}.json", stem, i);
    question_.files.emplace(file, value.dump());
    return file;
  }

  const CommandText& command_;
  JsonQuestion& question_;
  std::vector<Problem>& problems_;
  std::vector<std::string> words_;
  std::vector<std::string> flags_;
};

std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  for (const std::string_view word : parts_of(command, ' ')) words.emplace_back(word);
  return words;
}

const OrderedJson& member(const OrderedJson& object, const char* name) {
  static const OrderedJson none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

void read_files(const OrderedJson& files, JsonQuestion& question, std::vector<Problem>& problems) {
  if (!files.is_null() && !files.is_object()) problems.push_back({"files", "must be an object"});
  if (!files.is_object()) return;
  for (const auto& [name, content] : files.items()) {
    if (content.is_string() || content.is_object())
      question.files.emplace(name, content.is_string() ? content.get<std::string>() : content.dump());
    else
      problems.push_back({"files/" + name, "must be a text or an object"});
  }
}

void check_members(const OrderedJson& root, std::vector<Problem>& problems) {
  constexpr std::array<std::string_view, 4> known{"command", "arguments", "files", "disk"};
  for (const auto& [name, value] : root.items()) {
    if (!contains(known, std::string_view(name)))
      problems.push_back({name, "is unknown: the members of a question are " + headroom::joined(known)});
  }
  if (!member(root, "command").is_string())
    problems.push_back({"command", "must be a text, such as \"plan\""});
  if (!member(root, "arguments").is_null() && !member(root, "arguments").is_object())
    problems.push_back({"arguments", "must be an object"});
  if (!member(root, "disk").is_null() && !member(root, "disk").is_boolean())
    problems.push_back({"disk", "must be true or false"});
}

const CommandText* command_below(const CommandText& above, std::string_view word) {
  const auto found = std::find_if(above.commands.begin(), above.commands.end(), [&](const CommandText& it) {
    return it.name == above.name + " " + std::string(word);
  });
  return found == above.commands.end() ? nullptr : &*found;
}

std::string commands_of(const CommandText& above) {
  std::vector<std::string> names;
  for (const CommandText& it : above.commands) names.push_back(it.name.substr(above.name.size() + 1));
  return headroom::joined(names, ", ");
}

Json type_of(const OptionText& option) {
  Json types = Json::array();
  if (option.value.empty() || option.value_optional) types.push_back("boolean");
  if (option.value.empty() && !option.value_optional) return types.front();
  types.push_back("string");
  types.push_back("number");
  types.push_back("array");
  types.push_back("object");
  return types;
}

}  // namespace

std::string member_of_flag(std::string_view flag) {
  const bool is_flag = flag.starts_with('-');
  std::string name(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  const std::size_t end = std::min(name.find_first_of(" =:"), name.size());
  if (is_flag) std::replace(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return name;
}

CommandText text_of_command(const std::string& command) {
  const std::vector<std::string> words = words_of(command);
  CommandLine command_line("headroom", "", version());
  ExitCode ignored{};
  add_commands(command_line, words.front(), ignored);
  CommandText text = command_line.program().text();
  for (const std::string& word : words) {
    const CommandText* const below = command_below(text, word);
    if (below == nullptr) {
      throw InputError("command",
                       fmt::format("'{}' is not a command{}", printable(command),
                                   text.commands.empty() ? "" : "; these are: " + commands_of(text)));
    }
    text = CommandText(*below);
  }
  return text;
}

JsonQuestion read_question(std::string_view json) {
  // Members keep their order: of fields that vary, the last is the fastest.
  const OrderedJson root = parse_ordered_json(json, "question");
  std::vector<Problem> problems;
  if (!root.is_object()) throw InputError("question", "must be a JSON object");
  check_members(root, problems);
  if (!problems.empty()) throw InputError(std::move(problems));

  JsonQuestion question{
      .command = root["command"].get<std::string>(), .arguments = words_of(root["command"]), .files = {}};
  question.disk = member(root, "disk").is_null() || root["disk"].get<bool>();
  read_files(member(root, "files"), question, problems);
  const CommandText command = text_of_command(question.command);
  ArgumentWords arguments(command, question, problems);
  bool with_format = false;  // or a part of a result, which has none
  for (const auto& [name, value] : member(root, "arguments").items()) {
    arguments.add(name, value);
    with_format = with_format || name == "format" || name == "shard";
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  std::vector<std::string> words = arguments.take();
  const bool has_format =
      std::any_of(command.options.begin(), command.options.end(),
                  [](const OptionText& it) { return contains(it.names, std::string("--format")); });
  if (has_format && !with_format) words.emplace_back("--format=json");
  question.arguments.insert(question.arguments.end(), words.begin(), words.end());
  return question;
}

std::string arguments_schema(const CommandText& command) {
  OrderedJson properties = OrderedJson::object();
  Json required = Json::array();
  for (const OptionText& option : command.options) {
    const std::string name = option.names.empty() ? option.positional : member_of_flag(option.names.back());
    if (contains(std::array{"help", "help_all"}, name)) continue;
    OrderedJson& property = properties[name];
    property["type"] = type_of(option);
    property["description"] = option.help;
    if (!option.fallback.empty()) property["default"] = option.fallback;
    if (option.required) required.push_back(name);
  }
  OrderedJson schema{{"type", "object"}, {"properties", properties}};
  if (!required.empty()) schema["required"] = required;
  return schema.dump();
}

}  // namespace headroom::cli
