#include "cli/http_module.hpp"

#include <algorithm>
#include <csignal>
#include <semaphore>
#include <string_view>
#include <thread>

#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace headroom::cli {
namespace {

constexpr const char* json = "application/json";

// As many connections at once as the system gives one process.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// By its number: a name that begins with 127. may be anybody's.
bool is_loopback(std::string_view host) {
  const bool number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || host == "[::1]" || (number && host.starts_with("127."));
}

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
  return host.substr(0, host.find(':'));
}

// A page of another site may not ask through the user's browser: neither from its own address, nor by a name that it has
// given to this machine's.
bool is_foreign(const httplib::Request& request, bool of_loopback) {
  const std::string host = request.get_header_value("Host");
  if (of_loopback && !is_loopback(without_port(host))) return true;
  const std::string origin = request.get_header_value("Origin");
  return !origin.empty() && origin != "http://" + host;
}

void answer(httplib::Response& response, int status, const std::string& field, const std::string& rule) {
  std::string text = rule;
  std::replace(text.begin(), text.end(), '"', '\'');
  response.status = status;
  response.set_content(R"({"status":)" + std::string(status == 500 ? "1" : "2") + R"(,"errors":[{"field":")" +
                           field + R"(","rule":")" + text + R"("}],"messages":[]})",
                       json);
}

// The HTTP status of a reply, which begins with {"status":N.
int status_of(std::string_view reply) {
  constexpr std::string_view begin = "{\"status\":";
  const std::string_view status = reply.substr(begin.size(), reply.find_first_of(",}") - begin.size());
  if (status == "2") return 400;
  if (status == "1") return 500;
  return status == "130" ? 503 : 200;
}

using Turns = std::counting_semaphore<>;

template <class Ask>
std::string in_turn(Turns& turns, const Ask& ask) {
  struct Turn {
    explicit Turn(Turns& all) : of(all) { of.acquire(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { of.release(); }
    Turns& of;
  };
  const Turn mine(turns);
  return ask();
}

// `turns`: of questions that are answered at the same time.
void add_routes(httplib::Server& server, const HttpService& service, Turns& turns) {
  server.Get("/health", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(R"({"status":"ok"})", json);
  });
  server.Get("/openapi.json", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(service.openapi, json);
  });
  const auto text = [&](const char* kind, const char* type) {
    server.Get(std::string("/") + kind + "/([A-Za-z0-9_-]+)",
               [&service, kind, type](const httplib::Request& request, httplib::Response& response) {
                 const std::string found =
                     service.text_at(std::string("headroom://") + kind + "/" + request.matches[1].str());
                 if (found.empty()) return answer(response, 404, "path", "is not the address of a text");
                 response.set_content(found, type);
               });
  };
  text("docs", "text/markdown; charset=utf-8");
  text("schemas", "application/schema+json");
  text("help", "text/plain; charset=utf-8");
  server.Post("/v1/([a-z-]+)", [&](const httplib::Request& request, httplib::Response& response) {
    const std::string type = request.get_header_value("Content-Type");
    if (type.substr(0, type.find(';')) != json)
      return answer(response, 415, "Content-Type", "must be application/json");
    const std::string command = request.matches[1].str();
    const std::string question = command == "ask" ? request.body : service.question_of(command, request.body);
    if (command != "ask" && question.empty())
      return answer(response, 404, "path", "is not a command: see /openapi.json");
    const std::string reply = in_turn(turns, [&] { return service.ask(question); });
    response.status = status_of(reply);
    response.set_content(reply, json);
  });
  if (service.what_if.empty()) return;
  server.set_file_extension_and_mimetype_mapping("mjs", "text/javascript");
  server.set_file_extension_and_mimetype_mapping("wasm", "application/wasm");
  server.set_mount_point("/what-if", service.what_if);
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_redirect("/what-if/index.html");
  });
}

}  // namespace
}  // namespace headroom::cli

extern "C" void headroom_serve_http(const headroom::cli::HttpService& service, std::string& problem) {
  using namespace headroom::cli;
  raise_file_limit();
  httplib::Server server;
  // Clients that connect and say nothing keep others waiting for a while, but not those who compute.
  constexpr std::size_t connections_at_once = 64;
  Turns turns(static_cast<std::ptrdiff_t>(service.at_once));
  server.new_task_queue = [&] { return new httplib::ThreadPool(connections_at_once + service.at_once); };
  server.set_payload_max_length(service.question_bytes);
  // A connection that waits for its next request would keep a thread from the others.
  server.set_keep_alive_max_count(1);
  int listener = -1;
  server.set_socket_options([&](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    listener = socket;
  });
  const bool of_loopback = is_loopback(service.host);
  server.set_pre_routing_handler([=](const httplib::Request& request, httplib::Response& response) {
    if (is_foreign(request, of_loopback)) {
      answer(response, 403, "Origin", "must be this server's own address");
    } else if (request.has_header(
                   "Transfer-Encoding")) {  // the limit of a body's size is of its length as told
      answer(response, 411, "Content-Length", "is missing: send the question whole");
    } else {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.set_header("Connection", "close");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty())
      answer(response, response.status, "",
             response.status == 413   ? "the question is too large"
             : response.status == 404 ? "is not an address of this server: see /openapi.json"
                                      : "the request cannot be read");
  });
  server.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
        answer(response, 500, "", "internal error");
      });
  add_routes(server, service, turns);
  const int port = service.port == 0 ? server.bind_to_any_port(service.host)
                                     : (server.bind_to_port(service.host, service.port) ? service.port : -1);
  if (port < 0) {
    problem = "cannot be bound: the address is in use, or is not this machine's";
    return;
  }
  // Many may ask in the same moment: the library's own queue of five connections makes the others wait for seconds.
  constexpr int waiting_connections = 4096;
  listen(listener, waiting_connections);
  // Signals reach the thread that waits for them alone.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&ends, &signal);
    service.ending();
    server.stop();
  });
  service.started(port);
  const bool served = server.listen_after_bind();
  if (!served) kill(getpid(), SIGTERM);  // for the waiter alone: every thread blocks it
  waiter.join();
  if (!served) problem = "cannot be listened on";
}
