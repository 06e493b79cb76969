// The HTTP server, which is a module of its own: what it is linked with takes 3 to 5 ms to load, where the
// program starts in 10 to 16 ms, and only `headroom serve --http` needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace headroom::cli {

struct HttpService {
  std::string host;
  int port = 0;  // 0: any that is free
  std::size_t at_once = 1;
  std::size_t question_bytes = 0;  // the largest
  std::string what_if;             // folder of the what-if page; empty: none
  std::function<std::string(const std::string& question)> ask;
  std::function<std::string(const std::string& command, const std::string& arguments)> question_of;
  std::function<std::string(const std::string& uri)> text_at;  // empty: there is none
  std::string openapi;
  std::function<void()> ending;  // told once it is to end, so that searches end too
  std::function<void(int port)> started;
};

// Serves until SIGINT or SIGTERM. Leaves what went wrong in `problem`.
using ServeHttp = void (*)(const HttpService&, std::string& problem);
inline constexpr const char* serve_http_name = "headroom_serve_http";

}  // namespace headroom::cli
