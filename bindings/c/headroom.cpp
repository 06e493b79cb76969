#include "headroom.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "cli/ask.hpp"
#include "cli/version.hpp"

int headroom_api(void) { return HEADROOM_API; }

const char* headroom_version(void) {
  static const std::string version = headroom::cli::version();
  return version.c_str();
}

char* headroom_ask(const char* question, std::size_t length, headroom_watch watch, void* context) {
  headroom::cli::AskWatch told;
  if (watch != nullptr)
    told = [=](const std::string& progress) { return watch(context, progress.c_str()) != 0; };
  try {
    const std::string reply = headroom::cli::ask({question, length}, told);
    // Of C's allocator: who frees it may have another C++ library.
    auto* const copy = static_cast<char*>(std::malloc(reply.size() + 1));
    if (copy != nullptr) std::memcpy(copy, reply.c_str(), reply.size() + 1);
    return copy;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void headroom_free(char* reply) { std::free(reply); }
