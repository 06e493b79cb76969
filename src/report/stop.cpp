#include "headroom/report/stop.hpp"

#include <fmt/format.h>

namespace headroom {

std::string stopped_text(const Stop& stop) {
  if (!stop.after) return "stopped by Ctrl-C";
  const double seconds = stop.after->count();
  return seconds < 1 ? fmt::format("stopped after {:.4g} ms", 1000 * seconds)
                     : fmt::format("stopped after {:.4g} s", seconds);
}

}  // namespace headroom
