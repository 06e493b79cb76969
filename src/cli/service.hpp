// What `headroom serve` offers to its clients, whatever they speak: tools with their arguments, documentation, schemas, and
// answers within limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ask.hpp"

namespace headroom::cli {

struct ServiceLimits {
  std::chrono::seconds time{60};                      // of one question
  std::size_t question_bytes = std::size_t{8} << 20;  // the largest
  std::size_t at_once = 1;                            // questions that are answered at the same time
};

// Answers a question on one thread and without files on disk. At the time limit, a long command ends with the best it has.
std::string ask_within(const ServiceLimits& limits, std::string_view question, const AskWatch& watch = {});

// Returns the reply to a question that is wrong.
std::string bad_question(const std::string& field, const std::string& rule);

// A tool of an assistant: a command, or a part of one.
struct ServiceTool {
  std::string_view name;
  std::string_view command;
  std::string_view title;
  std::string_view description;
};
std::span<const ServiceTool> service_tools();
const ServiceTool* find_tool(std::string_view name);

// Returns the JSON schema of a tool's arguments: flags of daily use. Others are taken, too.
std::string schema_of(const ServiceTool& tool);

// Returns the question that a call of a tool asks. `arguments` is the JSON object of the call. Throws InputError.
std::string question_of(const ServiceTool& tool, const std::string& arguments);

// A text for reading: a page of the documentation, the schema of a reply or a file, the help of a command.
struct ServiceText {
  std::string uri;  // "headroom://docs/memory"
  std::string title;
  std::string_view media_type;
};
std::vector<ServiceText> service_texts();

// Returns the text of this address. Throws InputError if there is none.
std::string text_at(std::string_view uri);

// Commands that a client may ask: all that neither write files nor serve, without `trace`, whose replies have no bound.
std::vector<std::string> service_commands();

// "list-models" of "list models", as addresses have it.
std::string path_of_command(std::string command);

// Returns the OpenAPI description of the HTTP service.
std::string openapi();

}  // namespace headroom::cli
