#include "cli/arguments.hpp"

#include <algorithm>

#include "headroom/core/error.hpp"
#include "io/text.hpp"

namespace headroom::cli {

std::string flag_of(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  return names.empty() ? std::string() : "--" + names.back();
}

std::vector<std::string> arguments_of(const CLI::App& command, const std::vector<std::string_view>& except) {
  std::vector<std::string> arguments;
  std::vector<Problem> problems;
  for (const CLI::Option* const option : command.get_options()) {
    const std::string flag = flag_of(*option);
    if (std::find(except.begin(), except.end(), flag) != except.end()) continue;
    for (const std::string& value : option->results()) {
      arguments.push_back(flag.empty() ? value : flag + "=" + value);
      if (first_non_text_byte(value)) {
        problems.push_back({flag.empty() ? option->get_name() : flag,
                            "must be text without control characters, not '" + printable(value) + "'"});
      }
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return arguments;
}

void parse(CLI::App& parser, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string flag = argument.substr(0, equals);
    const CLI::Option* const option = flag.starts_with("--") ? parser.get_option_no_throw(flag) : nullptr;
    if (option == nullptr || option->get_expected_min() > 0) continue;
    const std::string value = argument.substr(std::min(equals + 1, argument.size()));
    if (value != "yes" && value != "no" && value != "true") {
      throw InputError(flag, "must be yes or no, not '" + printable(value) + "'");
    }
  }
  try {
    parser.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw InputError("", error.what());
  }
}

}  // namespace headroom::cli
