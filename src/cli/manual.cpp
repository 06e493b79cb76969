#include "cli/manual.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "headroom/answer/values.hpp"

namespace headroom::cli {
namespace {

// Text as it is: roff takes a backslash for its own, a minus for a hyphen, and a point or a quote at the start of a line
// for a request.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string paragraph_of(const OptionText& option) {
  std::string heading;
  for (const std::string& name : option.names)
    heading += (heading.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
  if (!option.value.empty()) heading += (heading.empty() ? "\\fI" : " \\fI") + roff(option.value) + "\\fR";
  std::string text = roff(option.help);
  if (!option.fallback.empty()) text += fmt::format(" (default {})", roff(option.fallback));
  return ".TP\n" + heading + '\n' + text + '\n';
}

std::string section_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

// A paragraph for each line.
std::string notes_of(const std::string& footer) {
  std::string text = ".SH NOTES\n";
  for (const std::string& line : split(footer, '\n')) text += ".PP\n" + roff(line) + '\n';
  return text;
}

}  // namespace

std::string page_name(const CommandText& command) {
  std::string name = command.name;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string manual_page(const CommandText& command, const std::string& version) {
  std::string text = fmt::format(".TH {} 1 \"\" \"headroom {}\" \"Headroom\"\n.SH NAME\n{} \\- {}\n",
                                 roff(section_name(page_name(command))), version, roff(page_name(command)),
                                 roff(command.help));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [\\fIOPTIONS\\fR]", roff(command.name));
  for (const OptionText& option : command.options) {
    if (option.names.empty()) text += fmt::format(" \\fI{}\\fR", roff(option.value));
  }
  text += command.commands.empty() ? "\n" : " [\\fISUBCOMMAND\\fR]\n";
  for (const OptionGroup& group : grouped(command)) {
    text += fmt::format(".SH {}\n", roff(section_name(group.title)));
    for (const OptionText* const option : group.options) text += paragraph_of(*option);
  }
  if (!command.commands.empty()) text += ".SH SUBCOMMANDS\n";
  for (const CommandText& below : command.commands) {
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(below)), roff(below.help));
  }
  if (!command.examples.empty()) text += ".SH EXAMPLES\n.nf\n";
  for (const std::string& example : command.examples) text += roff(example) + '\n';
  if (!command.examples.empty()) text += ".fi\n";
  if (!command.footer.empty()) text += notes_of(command.footer);
  if (command.name.find(' ') != std::string::npos) text += ".SH SEE ALSO\n\\fBheadroom\\fR(1)\n";
  return text;
}

}  // namespace headroom::cli
