// A value of the task that a thread works for, in a process that has several tasks: the files of a question, its console.
#pragma once

#include <utility>

namespace headroom {

// While it lives, its value is the current one of its thread. An inner one stands in front of an outer one. A task's own
// threads start with one.
template <class T>
class Current {
 public:
  explicit Current(T& value) : outer_(std::exchange(of_thread(), &value)) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() { of_thread() = outer_; }

  // Returns the current value of this thread, or `otherwise` where there is none.
  static T& or_else(T& otherwise) { return of_thread() != nullptr ? *of_thread() : otherwise; }

 private:
  static T*& of_thread() {
    thread_local T* value = nullptr;
    return value;
  }

  T* outer_;
};

}  // namespace headroom
