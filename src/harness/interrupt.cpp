#include "interrupt.hpp"

#include <csignal>

namespace headroom::harness {
namespace {

volatile std::sig_atomic_t stop = 0;

void on_signal(int signal) {
  stop = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void watch_for_interrupt() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return stop != 0; }

}  // namespace headroom::harness
