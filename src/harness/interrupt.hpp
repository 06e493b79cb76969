// Ctrl-C, and the SIGTERM of a batch system whose time is up: measuring ends soon, and what was measured is kept. A
// second one ends the program at once.
#pragma once

namespace headroom::harness {

void watch_for_interrupt();
bool interrupted();

}  // namespace headroom::harness
