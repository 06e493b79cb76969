// Work on several threads whose results are taken in order, a few of them in memory at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/current.hpp"
#include "io/command_files.hpp"

namespace headroom::cli {

// Calls make(thread, i) for 0 <= i < count on that many threads, and take(i, its result) here, i ascending. What either
// throws is thrown here, after all threads have ended.
template <class Result, class Make, class Take>
void in_order(std::int64_t count, std::size_t threads, const Make& make, const Take& take) {
  if (threads <= 1) {
    for (std::int64_t i = 0; i < count; ++i) take(i, make(std::size_t{0}, i));
    return;
  }
  constexpr std::size_t slots_for_a_thread = 16;  // so that a slow one does not keep the others waiting
  std::vector<std::optional<Result>> slots(slots_for_a_thread * threads);
  const auto slot = [&](std::int64_t i) -> std::optional<Result>& {
    return slots[static_cast<std::size_t>(i) % slots.size()];
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t next = 0;
  std::int64_t taken = 0;
  bool stopped = false;
  std::exception_ptr failure;

  CommandFiles& files = command_files();
  const auto work = [&](std::size_t thread) {
    const Current<CommandFiles> of_command(files);
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] {
        return stopped || next == count || next - taken < static_cast<std::int64_t>(slots.size());
      });
      if (stopped || next == count) return;
      const std::int64_t i = next++;
      lock.unlock();
      std::optional<Result> result;
      std::exception_ptr thrown;
      try {
        result = make(thread, i);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      slot(i) = std::move(result);
      if (thrown) {
        failure = thrown;
        stopped = true;
      }
      changed.notify_all();
    }
  };
  const auto take_all = [&] {
    for (std::int64_t i = 0; i < count; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopped || slot(i); });
      if (failure) std::rethrow_exception(failure);
      const Result result = std::move(*slot(i));
      slot(i).reset();
      ++taken;
      lock.unlock();
      changed.notify_all();
      take(i, result);
    }
  };

  std::vector<std::thread> workers;
  const auto join = [&] {
    for (std::thread& worker : workers) worker.join();
  };
  try {
    for (std::size_t thread = 0; thread < threads; ++thread) workers.emplace_back(work, thread);
    take_all();
  } catch (...) {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    changed.notify_all();
    join();
    throw;
  }
  join();
}

}  // namespace headroom::cli
