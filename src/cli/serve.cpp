#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <thread>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/http_module.hpp"
#include "cli/mcp.hpp"
#include "cli/question.hpp"
#include "headroom/core/contains.hpp"
#include "io/command_files.hpp"

namespace headroom::cli {
namespace {

struct ServeFlags {
  bool stdio = false;
  FlagText http;
  FlagText time_limit;
  FlagText at_once;
  std::string what_if;
};

struct Address {
  std::string host = "127.0.0.1";
  std::int64_t port = 0;
};

// "127.0.0.1:8080", ":8080", "8080", "[::1]:8080".
Address read_address(const std::string& text, std::vector<Problem>& problems) {
  Address address;
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  if (colon != std::string::npos && colon > 0) address.host = text.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  constexpr std::int64_t most = 65535;
  const std::string rule = headroom::read_count(port, address.port, 0);
  if (!rule.empty() || address.port > most)
    problems.push_back({"--http", "must be a port or HOST:PORT, such as 127.0.0.1:8080, not '" + text + "'"});
  return address;
}

// The module in a folder that is known from the program's own, as both are built and as they are installed.
ServeHttp http_module() {
  std::string reason = "this build has no HTTP server (libcpp-httplib-dev)";
#ifdef HEADROOM_HTTP_MODULES
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::string_view place : parts_of(HEADROOM_HTTP_MODULES, ':')) {
    const std::filesystem::path file = (program.parent_path() / place).lexically_normal();
    if (!std::filesystem::exists(file, error)) continue;
    void* const module = dlopen(file.c_str(), RTLD_NOW);
    void* const symbol = module != nullptr ? dlsym(module, serve_http_name) : nullptr;
    if (symbol != nullptr) return reinterpret_cast<ServeHttp>(symbol);
    reason = dlerror();  // NOLINT(concurrency-mt-unsafe): no other thread runs here
  }
#endif
  throw InputError("--http", "cannot be served: " + reason);
}

std::string question_of_command(const std::string& path, const std::string& arguments) {
  for (const std::string& command : service_commands()) {
    if (path_of_command(command) != path) continue;
    if (arguments.find_first_not_of(" \t\r\n") == std::string::npos)
      return fmt::format(R"({{"command":"{}"}})", command);
    // What is no JSON by itself is no part of a question; it is refused as it stands.
    if (!nlohmann::json::accept(arguments)) return arguments;
    return fmt::format(R"({{"command":"{}","arguments":{}}})", command, arguments);
  }
  return {};
}

std::string text_or_none(const std::string& uri) {
  try {
    return text_at(uri);
  } catch (const InputError&) {
    return {};
  }
}

void serve_http(const ServeFlags& flags, const Address& address, const ServiceLimits& limits) {
  std::atomic<bool> ending = false;
  const HttpService service{
      .host = address.host,
      .port = static_cast<int>(address.port),
      .at_once = limits.at_once,
      .question_bytes = limits.question_bytes,
      .what_if = flags.what_if,
      .ask =
          [&](const std::string& question) {
            return ask_within(limits, question, [&](const std::string&) { return ending.load(); });
          },
      .question_of = question_of_command,
      .text_at = text_or_none,
      .openapi = openapi(),
      .ending = [&] { ending = true; },
      .started =
          [&](int port) {
            const bool v6 = address.host.find(':') != std::string::npos;
            say(fmt::format("serving http://{}:{} (Ctrl-C ends it)",
                            v6 ? "[" + address.host + "]" : address.host, port));
          },
  };
  std::string problem;
  http_module()(service, problem);
  if (!problem.empty()) throw InputError("--http", problem);
}

void serve(const ServeFlags& flags) {
  std::vector<Problem> problems;
  if (console().caller != nullptr) throw InputError("command", "'serve' cannot be asked: run the program");
  if (flags.stdio == flags.http.has_value())
    problems.push_back({"", "serve needs --stdio (Model Context Protocol) or --http ADDRESS"});
  ServiceLimits limits;
  std::int64_t at_once = std::max(1U, std::thread::hardware_concurrency());
  read_count("--at-once", flags.at_once, at_once, problems);
  constexpr std::int64_t most_at_once = 256;
  if (at_once > most_at_once)
    problems.push_back({"--at-once", fmt::format("must be at most {}", most_at_once)});
  if (flags.time_limit) {
    auto seconds = static_cast<double>(limits.time.count());
    read_with_unit("--time-limit", *flags.time_limit, durations, "60s or 2min", seconds, problems);
    constexpr double longest = 86400;
    if (seconds < 1 || seconds > longest) problems.push_back({"--time-limit", "must be from 1 s to 1 day"});
    limits.time = std::chrono::seconds(static_cast<std::int64_t>(std::clamp(seconds, 1.0, longest)));
  }
  Address address;
  if (flags.http) address = read_address(*flags.http, problems);
  if (!flags.what_if.empty() && !flags.http) problems.push_back({"--what-if", "needs --http"});
  if (!flags.what_if.empty() && !is_regular_file(flags.what_if + "/index.html"))
    problems.push_back(
        {"--what-if", "must be a folder that scripts/what-if has built: it has no index.html"});
  if (!problems.empty()) throw InputError(std::move(problems));
  limits.at_once = static_cast<std::size_t>(at_once);
  if (flags.http) return serve_http(flags, address, limits);
  serve_mcp(limits);
}

}  // namespace

void add_serve(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "serve", "Answers other programs: coding assistants (Model Context Protocol), or JSON over HTTP");
  const auto flags = std::make_shared<ServeFlags>();
  command.flag("--stdio", flags->stdio, "Speak the Model Context Protocol on standard input and output");
  command.option(
      "--http", flags->http, "ADDRESS",
      "Answer JSON over HTTP at 127.0.0.1:PORT, without authentication; /openapi.json describes it");
  command.option("--what-if", flags->what_if, "FOLDER",
                 "Also serve the what-if page that scripts/what-if built in this folder");
  command.option("--time-limit", flags->time_limit, "TIME",
                 "End a search after this time with the best found so far (default: 60s)");
  command.option("--at-once", flags->at_once, "N",
                 "Answer at most N questions at the same time (default: one per core)");
  command.examples({"headroom serve --stdio", "headroom serve --http 127.0.0.1:8080"});
  command.footer("Clients cannot reach files on this machine: a question carries the files that it needs.");
  command.on_run([flags, &exit_code] {
    serve(*flags);
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
