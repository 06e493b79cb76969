// What a reader says about bad input: the lines of its InputError, or nothing when there was none.
#pragma once

#include <string>

#include "headroom/core/error.hpp"

namespace headroom {

template <class F>
std::string message_of(F read) {
  try {
    static_cast<void>(read());
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The text with the one occurrence of a part replaced.
inline std::string with(std::string text, const std::string& part, const std::string& replacement) {
  return text.replace(text.find(part), part.size(), replacement);
}

}  // namespace headroom
