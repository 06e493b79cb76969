// Ctrl-C during a long command, or the end of its terminal: it ends between two steps, so that half-written files are removed.
#pragma once

namespace headroom::cli {

struct Interrupted {
  int signal;
};

// From now on the first SIGHUP, SIGINT or SIGTERM is only noted; a second ends the program at once.
void note_interrupts();

// Throws Interrupted when one was noted.
void throw_if_interrupted();

// Ends the program as the signal would have done.
void end_as(const Interrupted& interrupted);

}  // namespace headroom::cli
