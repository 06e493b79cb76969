#include "cli/interrupt.hpp"

#include <csignal>
#include <initializer_list>

namespace headroom::cli {
namespace {

// A handler may touch nothing else.
volatile std::sig_atomic_t noted = 0;

bool answered = false;  // Ctrl-C; of the thread that writes the answer

extern "C" void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void note_interrupts() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    // What a parent told us to ignore (nohup, a background job) stays ignored.
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

void note_interrupts_to_answer() {
  note_interrupts();
  answered = true;
}

void throw_if_interrupted() {
  const bool waits = answered && noted == SIGINT;
  if (noted != 0 && !waits) throw Interrupted{noted};
}

bool interrupted() { return noted != 0; }

void take_interrupt() {
  if (noted != SIGINT) throw_if_interrupted();
  noted = 0;
  answered = false;
}

void end_as(const Interrupted& interrupted) {
  std::signal(interrupted.signal, SIG_DFL);
  std::raise(interrupted.signal);
}

}  // namespace headroom::cli
