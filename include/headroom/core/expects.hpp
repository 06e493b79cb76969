// EXPECTS(condition): a broken condition is a bug of Headroom, not a mistake of the user. It prints file,
// line and condition, then aborts. A broken condition in a constant expression fails to compile.
#pragma once

namespace headroom {

[[noreturn]] void expectation_failed(const char* file, int line, const char* condition);

}  // namespace headroom

#define EXPECTS(condition) \
  ((condition) ? static_cast<void>(0) : ::headroom::expectation_failed(__FILE__, __LINE__, #condition))
