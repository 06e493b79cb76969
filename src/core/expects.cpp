#include "headroom/core/expects.hpp"

#include <cstdio>
#include <cstdlib>

namespace headroom {

void expectation_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "headroom: internal error at %s:%d: expected %s\n", file, line, condition);
  std::abort();
}

}  // namespace headroom
