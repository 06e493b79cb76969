// Ctrl-C during a long command, or the end of its terminal: it ends between two steps, so that half-written files are removed.
#pragma once

#include "cli/console.hpp"

namespace headroom::cli {

struct Interrupted {
  int signal;
};

// From now on the first SIGHUP, SIGINT or SIGTERM is only noted; a second ends the program at once.
void note_interrupts();

// The same, for a command that answers Ctrl-C with what it has: until take_interrupt(), it throws nothing.
void note_interrupts_to_answer();

// Throws Interrupted when one was noted.
void throw_if_interrupted();

// Whether one was noted; from any thread.
bool interrupted(const Console& console);

// Forgets a noted Ctrl-C, whose answer follows. Throws Interrupted for another signal.
void take_interrupt();

// Ends the program as the signal would have done.
void end_as(const Interrupted& interrupted);

}  // namespace headroom::cli
