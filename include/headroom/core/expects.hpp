// EXPECTS(condition): a broken condition is our bug, not the user's. Prints file, line and condition,
// then aborts. In a constant expression a broken condition fails to compile.
#pragma once

namespace headroom {

[[noreturn]] void expectation_failed(const char* file, int line, const char* condition);

}  // namespace headroom

#define EXPECTS(condition) \
  ((condition) ? static_cast<void>(0) : ::headroom::expectation_failed(__FILE__, __LINE__, #condition))
