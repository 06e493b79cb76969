#include "cli/mcp.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/version.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "io/strict_json.hpp"

namespace headroom::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The newest first, which is offered to a client that asks for another.
constexpr std::array<std::string_view, 3> protocol_versions{"2025-11-25", "2025-06-18", "2024-11-05"};

// Codes of JSON-RPC 2.0, and of the protocol for a resource.
constexpr int parse_failed = -32700;
constexpr int invalid_request = -32600;
constexpr int unknown_method = -32601;
constexpr int invalid_parameters = -32602;
constexpr int unknown_resource = -32002;
constexpr int busy = -32000;

constexpr std::size_t longest_queue = 10'000;  // calls of tools
constexpr auto between_progress = std::chrono::seconds(1);

constexpr std::string_view instructions =
    "Headroom predicts memory, iteration time and the best parallel configuration of training runs of large "
    "transformers. Use plan to choose a configuration, estimate for one configuration, check for a launch "
    "script, why and "
    "explain for reasons. Call list for names of models and systems. Give figures with their units, and say "
    "when a "
    "verdict is marginal. Pages and flags are resources: headroom://docs/..., headroom://help/....";

std::string line_of(const OrderedJson& message) {
  return message.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

struct Call {
  OrderedJson id;
  OrderedJson parameters;
  std::atomic<bool> cancelled = false;
};

class Session {
 public:
  explicit Session(const ServiceLimits& limits) : limits_(limits) {
    for (std::size_t i = 0; i < std::max<std::size_t>(1, limits.at_once); ++i)
      workers_.emplace_back([this] { work(); });
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {  // what is asked is answered first
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void take(const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    OrderedJson message;
    try {
      message = parse_ordered_json(line, "message");
    } catch (const InputError& error) {
      return fail(nullptr, parse_failed, "the message " + error.problems().front().rule);
    }
    if (!message.is_object())
      return fail(nullptr, invalid_request, "the message must be an object: one message a line");
    const bool has_method = message.contains("method") && message["method"].is_string();
    const OrderedJson id = message.contains("id") ? message["id"] : OrderedJson();
    if (!id.is_null() && !id.is_string() && !id.is_number())
      return fail(nullptr, invalid_request, "`id` must be a text or a number");
    if (!has_method) {
      // A reply to a request of ours, of which there are none.
      if (message.contains("result") || message.contains("error")) return;
      return fail(id, invalid_request, "`method` is missing");
    }
    OrderedJson parameters = OrderedJson::object();
    if (message.contains("params")) parameters = message["params"];
    if (!parameters.is_object()) return fail(id, invalid_parameters, "`params` must be an object");
    if (id.is_null()) return note(message["method"], parameters);
    request(id, message["method"], std::move(parameters));
  }

  void refuse_long_line() { fail(nullptr, invalid_request, "the message is too long"); }

 private:
  void send(const OrderedJson& message) {
    const std::string line = line_of(message);
    const std::lock_guard lock(output_);
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }

  void reply(const OrderedJson& id, OrderedJson result) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
  }

  void fail(const OrderedJson& id, int code, const std::string& message) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}});
  }

  void note(const std::string& method, const OrderedJson& parameters) {
    if (method != "notifications/cancelled" || !parameters.contains("requestId")) return;
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(parameters["requestId"].dump());
    if (found != calls_.end()) found->second->cancelled = true;
  }

  void request(const OrderedJson& id, const std::string& method, OrderedJson parameters) {
    if (method == "tools/call") return queue(id, std::move(parameters));
    if (method == "initialize") return reply(id, greeting(parameters));
    if (method == "ping") return reply(id, OrderedJson::object());
    if (method == "tools/list") return reply(id, {{"tools", tools()}});
    if (method == "resources/list") return reply(id, {{"resources", resources()}});
    if (method == "resources/templates/list") return reply(id, {{"resourceTemplates", OrderedJson::array()}});
    if (method == "resources/read") return read_resource(id, parameters);
    fail(id, unknown_method, "unknown method '" + method + "'");
  }

  static OrderedJson greeting(const OrderedJson& parameters) {
    const bool named = parameters.contains("protocolVersion") && parameters["protocolVersion"].is_string();
    const std::string asked = named ? parameters["protocolVersion"].get<std::string>() : std::string();
    const bool known = contains(protocol_versions, std::string_view(asked));
    return {{"protocolVersion", known ? asked : std::string(protocol_versions.front())},
            {"capabilities", {{"tools", OrderedJson::object()}, {"resources", OrderedJson::object()}}},
            {"serverInfo", {{"name", "headroom"}, {"title", "Headroom"}, {"version", version()}}},
            {"instructions", instructions}};
  }

  static OrderedJson tools() {
    OrderedJson list = OrderedJson::array();
    for (const ServiceTool& tool : service_tools()) {
      list.push_back({{"name", tool.name},
                      {"title", tool.title},
                      {"description", tool.description},
                      {"inputSchema", OrderedJson::parse(schema_of(tool))},
                      {"annotations",
                       {{"title", tool.title},
                        {"readOnlyHint", true},
                        {"destructiveHint", false},
                        {"idempotentHint", true},
                        {"openWorldHint", false}}}});
    }
    return list;
  }

  static OrderedJson resources() {
    OrderedJson list = OrderedJson::array();
    for (const ServiceText& text : service_texts())
      list.push_back({{"uri", text.uri},
                      {"name", text.uri.substr(text.uri.rfind('/') + 1)},
                      {"title", text.title},
                      {"mimeType", text.media_type}});
    return list;
  }

  void read_resource(const OrderedJson& id, const OrderedJson& parameters) {
    if (!parameters.contains("uri") || !parameters["uri"].is_string())
      return fail(id, invalid_parameters, "`uri` is missing");
    const std::string uri = parameters["uri"];
    try {
      const std::string text = text_at(uri);
      const std::vector<ServiceText> all = service_texts();
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const ServiceText& it) { return it.uri == uri; });
      reply(id, {{"contents", {{{"uri", uri}, {"mimeType", found->media_type}, {"text", text}}}}});
    } catch (const InputError& error) {
      fail(id, unknown_resource, error.problems().front().rule);
    }
  }

  void queue(const OrderedJson& id, OrderedJson parameters) {
    const bool named = parameters.contains("name") && parameters["name"].is_string();
    if (!named || find_tool(parameters["name"].get<std::string>()) == nullptr)
      return fail(id, invalid_parameters, "`name` must be a tool of tools/list");
    auto call = std::make_shared<Call>();
    call->id = id;
    call->parameters = std::move(parameters);
    {
      const std::lock_guard lock(mutex_);
      if (calls_.contains(id.dump())) return fail(id, invalid_request, "`id` is that of a call which runs");
      if (waiting_.size() < longest_queue) {
        calls_[id.dump()] = call;
        waiting_.push_back(std::move(call));
        changed_.notify_one();
        return;
      }
    }
    fail(id, busy, "too many calls wait: ask again later");
  }

  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::shared_ptr<Call> call = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      std::optional<OrderedJson> result;
      if (!call->cancelled) result = result_of(*call);
      lock.lock();
      calls_.erase(call->id.dump());
      lock.unlock();
      if (result && !call->cancelled) reply(call->id, std::move(*result));
    }
  }

  OrderedJson result_of(const Call& call) {
    const ServiceTool& tool = *find_tool(call.parameters["name"].get<std::string>());
    const OrderedJson arguments =
        call.parameters.contains("arguments") ? call.parameters["arguments"] : OrderedJson::object();
    try {
      const std::string question = question_of(tool, arguments.dump());
      return result_of(OrderedJson::parse(ask_within(limits_, question, watch_of(call))));
    } catch (const InputError& error) {
      std::string text;
      for (const auto& [where, rule] : error.problems()) text += where + ": " + rule + "\n";
      return result_of(text, true);
    } catch (const std::exception& error) {
      return result_of(std::string("internal error: ") + error.what(), true);
    }
  }

  static OrderedJson result_of(const std::string& text, bool failed) {
    return {{"content", {{{"type", "text"}, {"text", text}}}}, {"isError", failed}};
  }

  // The text of a reply for an assistant: what was printed, and what was said beside it.
  static OrderedJson result_of(const OrderedJson& reply) {
    std::string text;
    if (reply.contains("errors")) {
      for (const OrderedJson& error : reply["errors"]) {
        const std::string field = error["field"];
        text += field + (field.empty() ? "" : ": ") + error["rule"].get<std::string>() + "\n";
      }
    }
    if (reply.contains("text")) text += reply["text"].get<std::string>();
    if (reply.contains("reply")) text += reply["reply"].dump();
    for (const OrderedJson& message : reply["messages"]) text += "\n" + message.get<std::string>();
    OrderedJson result = result_of(text, reply.contains("errors"));
    if (reply.contains("reply") && reply["reply"].is_object()) result["structuredContent"] = reply["reply"];
    return result;
  }

  AskWatch watch_of(const Call& call) {
    OrderedJson token;
    if (call.parameters.contains("_meta") && call.parameters["_meta"].is_object() &&
        call.parameters["_meta"].contains("progressToken"))
      token = call.parameters["_meta"]["progressToken"];
    return [this, &call, token, count = 0,
            told = std::chrono::steady_clock::now()](const std::string& progress) mutable {
      const auto now = std::chrono::steady_clock::now();
      if (!token.is_null() && now - told >= between_progress && !call.cancelled) {
        told = now;
        send({{"jsonrpc", "2.0"},
              {"method", "notifications/progress"},
              {"params", {{"progressToken", token}, {"progress", ++count}, {"message", progress}}}});
      }
      return call.cancelled.load();
    };
  }

  ServiceLimits limits_;
  std::mutex output_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool ended_ = false;
  std::deque<std::shared_ptr<Call>> waiting_;
  std::map<std::string, std::shared_ptr<Call>> calls_;  // that wait or run, by id
  std::vector<std::thread> workers_;
};

}  // namespace

void serve_mcp(const ServiceLimits& limits) {
  Session session(limits);
  std::string line;
  bool too_long = false;
  const auto end_line = [&] {
    if (too_long) session.refuse_long_line();
    if (!too_long) session.take(line);
    line.clear();
    too_long = false;
  };
  // Character by character: a text may hold U+0000, and a line may have no end.
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n') {
      end_line();
    } else if (line.size() < limits.question_bytes) {
      line += static_cast<char>(c);
    } else {
      too_long = true;
    }
  }
  if (!line.empty()) end_line();
}

}  // namespace headroom::cli
