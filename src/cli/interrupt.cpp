#include "cli/interrupt.hpp"

#include <csignal>
#include <initializer_list>

namespace headroom::cli {
namespace {

// A handler may touch nothing else.
volatile std::sig_atomic_t noted = 0;

extern "C" void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

// The signal, if there was one. A caller's wish to stop counts as Ctrl-C.
int noted_by(const Console& console) {
  if (console.caller == nullptr) return noted;
  return console.caller->stop ? SIGINT : 0;
}

}  // namespace

void note_interrupts() {
  if (console().caller != nullptr) return;  // the process has handlers of its own
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    // What a parent told us to ignore (nohup, a background job) stays ignored.
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

void note_interrupts_to_answer() {
  note_interrupts();
  console().answers_stop = true;
}

void throw_if_interrupted() {
  const int signal = noted_by(console());
  const bool waits = console().answers_stop && signal == SIGINT;
  if (signal != 0 && !waits) throw Interrupted{signal};
}

bool interrupted(const Console& console) { return noted_by(console) != 0; }

void take_interrupt() {
  if (noted_by(console()) != SIGINT) throw_if_interrupted();
  if (Caller* const caller = console().caller)
    caller->stop = false;
  else
    noted = 0;
  console().answers_stop = false;
}

void end_as(const Interrupted& interrupted) {
  std::signal(interrupted.signal, SIG_DFL);
  std::raise(interrupted.signal);
}

}  // namespace headroom::cli
