#include "cli/service.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/daily_flags.hpp"
#include "cli/help.hpp"
#include "cli/question.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/documentation.hpp"
#include "headroom/io/schema.hpp"
#include "io/strict_json.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::array tools{
    ServiceTool{
        "plan", "plan", "Find the fastest configurations that fit",
        "Searches parallel configurations (TP, PP, CP, EP, DP, sharding, recomputation, microbatch) of a "
        "training "
        "run. Returns the fastest ones that fit in memory, with iteration time, MFU and peak memory."},
    ServiceTool{"estimate", "estimate", "Memory and time of one configuration",
                "Predicts memory of each pipeline rank, whether it fits, and iteration time of one "
                "configuration. Names "
                "changes that would help."},
    ServiceTool{
        "check", "check", "Check a launch script before its job starts",
        "Reads a launch script or configuration (Megatron-LM, NeMo, torchtitan, DeepSpeed, accelerate, "
        "Trainer, "
        "axolotl and others). Says what its launcher refuses, whether it fits, its iteration time, and the "
        "changes that matter most. `text` is the file's content, `name` its name (train.sh, config.yaml)."},
    ServiceTool{"explain", "explain", "What each op of a layer saves",
                "Lists the tensors that each op of a transformer layer saves for the backward pass, as "
                "equations and in "
                "bytes, under a configuration."},
    ServiceTool{"why", "plan", "Why a configuration is not the best plan",
                "Says why a configuration is not among the best plans: a rule that refuses it, memory, or "
                "how much slower "
                "it is and where the time goes. `why` holds flags of estimate, such as '-t 8 -p 8 "
                "--recompute full'."},
    ServiceTool{"compare", "compare", "Two configurations side by side",
                "Compares two configurations, stacks, systems or models part by part: memory and time."},
    ServiceTool{"list", "list", "Names of models, systems and training stacks",
                "Lists known names. `what` is models, systems, software, releases, recipes, sources or "
                "fields."},
};

// Those of a command that an assistant has no use for: they write files, or colour text.
constexpr std::array<std::string_view, 5> of_terminals{"html", "verbose", "launch_dir", "output", "color"};

Json text_property(const char* description) { return {{"type", "string"}, {"description", description}}; }

std::string_view daily_of(const std::string& command) {
  const auto found = std::find_if(daily_flags.begin(), daily_flags.end(),
                                  [&](const DailyFlags& it) { return it.command == "headroom " + command; });
  return found == daily_flags.end() ? std::string_view() : found->flags;
}

// The properties of a command's arguments, of those alone that are of daily use.
OrderedJson daily_properties(const std::string& command) {
  const OrderedJson all = OrderedJson::parse(arguments_schema(text_of_command(command)))["properties"];
  OrderedJson daily = OrderedJson::object();
  if (all.contains("model")) daily["model"] = all["model"];
  for (const std::string_view flag : parts_of(daily_of(command), ' ')) {
    const std::string name = member_of_flag(flag);
    if (all.contains(name) && !contains(of_terminals, std::string_view(name))) daily[name] = all[name];
  }
  return daily;
}

std::string title_of(std::string_view markdown) {
  const std::string_view first = markdown.substr(0, markdown.find('\n'));
  return std::string(first.substr(std::min(first.find_first_not_of("# "), first.size())));
}

constexpr std::string_view docs = "headroom://docs/";
constexpr std::string_view schemas = "headroom://schemas/";
constexpr std::string_view helps = "headroom://help/";

}  // namespace

std::string bad_question(const std::string& field, const std::string& rule) {
  const OrderedJson error{{"field", field}, {"rule", rule}};
  return OrderedJson{{"status", 2}, {"errors", {error}}, {"messages", OrderedJson::array()}}.dump(
      -1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string ask_within(const ServiceLimits& limits, std::string_view question, const AskWatch& watch) {
  OrderedJson root;
  try {
    root = parse_ordered_json(question, "question");
  } catch (const InputError&) {
    return ask(question);  // which says what is wrong
  }
  if (!root.is_object()) return ask(question);
  root["disk"] = false;
  const bool has_arguments = root.contains("arguments") && root["arguments"].is_object();
  const std::string command = root.contains("command") && root["command"].is_string()
                                  ? root["command"].get<std::string>()
                                  : std::string();
  constexpr std::array<std::string_view, 3> on_threads{"plan", "sweep", "sweep plan"};
  if (!command.empty() && !contains(service_commands(), command))
    return bad_question("command", fmt::format("'{}' is not served: these are {}", printable(command),
                                               headroom::joined(service_commands())));
  if (has_arguments && contains(on_threads, std::string_view(command))) root["arguments"]["threads"] = 1;
  const Clock::time_point end = Clock::now() + limits.time;
  return ask(root.dump(),
             [&](const std::string& progress) { return Clock::now() >= end || (watch && watch(progress)); });
}

std::span<const ServiceTool> service_tools() { return tools; }

const ServiceTool* find_tool(std::string_view name) {
  const auto found =
      std::find_if(tools.begin(), tools.end(), [&](const ServiceTool& it) { return it.name == name; });
  return found == tools.end() ? nullptr : &*found;
}

std::string schema_of(const ServiceTool& tool) {
  OrderedJson properties = OrderedJson::object();
  Json required = Json::array();
  if (tool.name == "list") {
    const Json kinds{"models", "systems", "software", "releases", "recipes", "sources", "fields"};
    properties["what"] = {{"type", "string"}, {"enum", kinds}, {"description", "What to list"}};
    properties["model"] = text_property("Recipes of this model only");
    properties["family"] = text_property("Releases of this family only");
    required.push_back("what");
  } else {
    properties = daily_properties(std::string(tool.command));
  }
  if (tool.name == "check") {
    properties["text"] = text_property("Content of the launch script or configuration");
    properties["name"] = text_property("File name; its extension tells the format: train.sh, config.yaml");
    required.push_back("text");
  } else if (tool.name != "list") {
    required.push_back("model");
  }
  if (tool.name == "why") required.push_back("why");
  properties["format"] = {{"type", "string"},
                          {"enum", {"table", "json"}},
                          {"description", "table (default): short; json: every number"}};
  const OrderedJson schema{{"type", "object"}, {"properties", properties}, {"required", required}};
  return schema.dump();
}

std::string question_of(const ServiceTool& tool, const std::string& arguments) {
  OrderedJson given = parse_ordered_json(arguments, "arguments");
  if (!given.is_object()) throw InputError("arguments", "must be an object");
  if (!given.contains("format")) given["format"] = "table";
  OrderedJson question{{"command", tool.command}, {"disk", false}};
  const auto take_text = [&](const char* name, const char* fallback) {
    if (!given.contains(name) && fallback != nullptr) return std::string(fallback);
    if (!given.contains(name) || !given[name].is_string()) throw InputError(name, "must be a text");
    std::string text = given[name].get<std::string>();
    given.erase(name);
    return text;
  };
  if (tool.name == "list") {
    const std::string what = take_text("what", nullptr);
    question["command"] = "list " + what;
  } else if (tool.name == "check") {
    const std::string name = take_text("name", "train.sh");
    question["files"] = {{name, take_text("text", nullptr)}};
    given["files"] = name;
  } else if (tool.name == "why" && !given.contains("why")) {
    throw InputError("why", "is missing: flags of estimate, such as '-t 8 -p 8'");
  }
  question["arguments"] = std::move(given);
  return question.dump();
}

std::string path_of_command(std::string command) {
  std::replace(command.begin(), command.end(), ' ', '-');
  return command;
}

std::vector<std::string> service_commands() {
  return {"plan",          "estimate",     "explain",      "compare",      "frontier",
          "sweep",         "sweep plan",   "check",        "memory",       "import",
          "report",        "validate",     "list models",  "list systems", "list software",
          "list releases", "list recipes", "list sources", "list fields",  "schema"};
}

std::vector<ServiceText> service_texts() {
  std::vector<ServiceText> texts;
  for (const EmbeddedFile& page : documentation_files()) {
    const std::string name(page.path.substr(page.path.rfind('/') + 1));
    texts.push_back(
        {std::string(docs) + name.substr(0, name.rfind('.')), title_of(page.text), "text/markdown"});
  }
  for (const std::string_view name : schema_names())
    texts.push_back({std::string(schemas) + std::string(name), "JSON schema: " + std::string(name),
                     "application/schema+json"});
  for (const std::string& command : service_commands())
    texts.push_back(
        {std::string(helps) + path_of_command(command), "All flags of headroom " + command, "text/plain"});
  return texts;
}

std::string text_at(std::string_view uri) {
  const auto below = [&](std::string_view folder) {
    return uri.starts_with(folder) ? uri.substr(folder.size()) : std::string_view();
  };
  if (const std::string_view name = below(docs); !name.empty()) {
    for (const EmbeddedFile& page : documentation_files()) {
      if (page.path.ends_with("/" + std::string(name) + ".md")) return std::string(page.text);
    }
  }
  if (const std::string_view name = below(schemas); !name.empty() && contains(schema_names(), name))
    return schema(name);
  if (const std::string_view name = below(helps); !name.empty()) {
    for (const std::string& command : service_commands()) {
      constexpr std::size_t columns = 100;
      if (path_of_command(command) == name) return whole_help(text_of_command(command), columns);
    }
  }
  throw InputError("uri", fmt::format("'{}' is not the address of a text", std::string(uri)));
}

std::string openapi() {
  const OrderedJson reply{
      {"description", "Reply: status, and reply or text or errors"},
      {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Reply"}}}}}}}};
  const auto refused = [](const char* why) { return OrderedJson{{"description", why}}; };
  const OrderedJson replies{{"200", reply},
                            {"400", reply},
                            {"403", refused("The request comes from another site")},
                            {"411", refused("Content-Length is missing")},
                            {"413", refused("The question is too large")},
                            {"415", refused("The question is not application/json")},
                            {"500", reply},
                            {"503", reply}};
  const auto posting = [&](const std::string& id, const std::string& summary, const OrderedJson& body) {
    return OrderedJson{
        {"post",
         {{"operationId", id},
          {"summary", summary},
          {"requestBody", {{"required", true}, {"content", {{"application/json", {{"schema", body}}}}}}},
          {"responses", replies}}}};
  };
  OrderedJson paths = OrderedJson::object();
  for (const std::string& command : service_commands()) {
    const CommandText text = text_of_command(command);
    const std::string name = path_of_command(command);
    paths["/v1/" + name] = posting(name, text.help, OrderedJson::parse(arguments_schema(text)));
  }
  paths["/v1/ask"] = posting("ask", "Any command, with files", {{"$ref", "#/components/schemas/Question"}});
  const OrderedJson question{
      {"type", "object"},
      {"required", {"command"}},
      {"properties",
       {{"command", {{"type", "string"}, {"enum", service_commands()}}},
        {"arguments", {{"type", "object"}}},
        {"files", {{"type", "object"}, {"additionalProperties", {{"type", {"string", "object"}}}}}}}}};
  const OrderedJson error{{"type", "object"},
                          {"properties", {{"field", {{"type", "string"}}}, {"rule", {{"type", "string"}}}}}};
  const OrderedJson whole_reply{{"type", "object"},
                                {"required", {"status", "messages"}},
                                {"properties",
                                 {{"status", {{"type", "integer"}, {"enum", {0, 1, 2, 3, 4, 130}}}},
                                  {"reply", {{"type", {"object", "array"}}}},
                                  {"text", {{"type", "string"}}},
                                  {"errors", {{"type", "array"}, {"items", error}}},
                                  {"messages", {{"type", "array"}, {"items", {{"type", "string"}}}}}}}};
  const OrderedJson description{
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Headroom"},
        {"version", "1"},
        {"description",
         "Plans memory and throughput of LLM training runs: the commands of the program, in JSON."}}},
      {"paths", paths},
      {"components", {{"schemas", {{"Question", question}, {"Reply", whole_reply}}}}}};
  return description.dump();
}

}  // namespace headroom::cli
