// An optional value on the heap: as std::optional, but what holds it stays small, so that requests and plans fit a small stack.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "headroom/core/expects.hpp"

namespace headroom {

template <class T>
class OnHeap {
 public:
  OnHeap() = default;
  OnHeap(std::nullopt_t) {}                                           // NOLINT(google-explicit-constructor)
  OnHeap(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT(google-explicit-constructor)
  OnHeap(const OnHeap& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  OnHeap(OnHeap&&) noexcept = default;
  OnHeap& operator=(const OnHeap& other) {
    value_ = other ? std::make_unique<T>(*other) : nullptr;
    return *this;
  }
  OnHeap& operator=(OnHeap&&) noexcept = default;
  ~OnHeap() = default;

  [[nodiscard]] bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  void reset() { value_.reset(); }
  T& emplace() { return *(value_ = std::make_unique<T>()); }

  // Expects a value.
  [[nodiscard]] const T& operator*() const {
    EXPECTS(has_value());
    return *value_;
  }
  [[nodiscard]] T& operator*() {
    EXPECTS(has_value());
    return *value_;
  }
  [[nodiscard]] const T* operator->() const { return &**this; }
  [[nodiscard]] T* operator->() { return &**this; }

  friend bool operator==(const OnHeap& x, const OnHeap& y) {
    return x.has_value() == y.has_value() && (!x || *x == *y);
  }

 private:
  std::unique_ptr<T> value_;
};

// A value that may be absent: std::optional's and OnHeap's.
template <class V>
concept Absentable = requires(V value) {
  value.has_value();
  value.emplace();
};

}  // namespace headroom
