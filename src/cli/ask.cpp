#include "cli/ask.hpp"

#include <exception>
#include <new>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "cli/program.hpp"
#include "cli/question.hpp"
#include "cli/version.hpp"
#include "core/current.hpp"
#include "headroom/core/error.hpp"
#include "io/command_files.hpp"

namespace headroom::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int stopped_status = 130;  // as a shell has it of a program that Ctrl-C ended

std::string dumped(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// The members of a reply behind its status.
std::string messages_of(const Caller& caller) {
  return ",\"messages\":" + dumped(OrderedJson(caller.messages)) + "}";
}

std::string failed(int status, const std::vector<Problem>& problems, const Caller& caller) {
  OrderedJson errors = OrderedJson::array();
  for (const auto& [where, rule] : problems)
    errors.push_back({{"field", member_of_flag(where)}, {"rule", rule}});
  return "{\"status\":" + std::to_string(status) + ",\"errors\":" + dumped(errors) + messages_of(caller);
}

// What the command printed stands in the reply as it is, so that it has the program's own bytes.
std::string answered(ExitCode code, const Caller& caller) {
  std::string text = caller.text;
  const bool is_json = (text.starts_with('{') || text.starts_with('[')) && OrderedJson::accept(text);
  if (is_json) text.erase(text.find_last_not_of('\n') + 1);
  return "{\"status\":" + std::to_string(static_cast<int>(code)) +
         (is_json ? ",\"reply\":" + text : ",\"text\":" + dumped(text)) + messages_of(caller);
}

std::string reply_to(const JsonQuestion& question, Caller& caller) {
  CommandLine command_line("headroom", "", version());
  ExitCode code = ExitCode::done;
  add_commands(command_line, question.arguments.front(), code);
  std::vector<const char*> words{"headroom"};
  for (const std::string& argument : question.arguments) words.push_back(argument.c_str());
  try {
    command_line.run(static_cast<int>(words.size()), words.data());
    return answered(code, caller);
  } catch (const InputError& error) {
    return failed(static_cast<int>(ExitCode::bad_input), problems_as_typed(error, command_line), caller);
  } catch (const Interrupted&) {
    return failed(stopped_status, {{"", "was stopped before there was an answer"}}, caller);
  }
}

}  // namespace

std::string ask(std::string_view question_text, const AskWatch& watch) {
  Caller caller;
  caller.watch = watch;
  try {
    const JsonQuestion question = read_question(question_text);
    CommandFiles files(question.files, question.disk);
    const Current<CommandFiles> of_question(files);
    Console console{.caller = &caller, .said = {}};
    const Current<Console> of_caller(console);
    return reply_to(question, caller);
  } catch (const InputError& error) {
    return failed(static_cast<int>(ExitCode::bad_input), error.problems(), caller);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return failed(static_cast<int>(ExitCode::internal),
                  {{"", std::string("internal error: ") + error.what()}}, caller);
  }
}

}  // namespace headroom::cli
