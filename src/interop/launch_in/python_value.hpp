// Values of literal Python, shared by reference as there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {

// object: the result of a call that is not followed, with its arguments as members; text: what was called.
// function: one of a file; `index` of its definitions. unknown: `text` is how it is written.
enum class PythonKind : std::uint8_t { none, boolean, number, text, list, map, object, function, unknown };

struct PythonValue;
using PythonPointer = std::shared_ptr<PythonValue>;

struct PythonValue {
  PythonKind kind = PythonKind::unknown;
  std::string text;
  std::vector<std::pair<std::string, PythonPointer>>
      members;  // of a map or an object; keys of a list are empty
  std::size_t index = 0;
  std::int64_t line = 0;

  PythonValue() = default;
  PythonValue(PythonKind of, std::string written, std::int64_t at)
      : kind(of), text(std::move(written)), line(at) {}
  PythonValue(const PythonValue&) = default;
  PythonValue& operator=(const PythonValue&) = delete;
  // Without recursion: a file may nest values as deeply as it has lines.
  ~PythonValue() {
    std::vector<PythonPointer> held;
    for (auto& [key, value] : members) held.push_back(std::move(value));
    while (!held.empty()) {
      const PythonPointer last = std::move(held.back());
      held.pop_back();
      if (last == nullptr || last.use_count() > 1) continue;
      for (auto& [key, value] : last->members) held.push_back(std::move(value));
      last->members.clear();
    }
  }

  [[nodiscard]] PythonPointer find(std::string_view key) const {
    for (const auto& [name, value] : members) {
      if (name == key) return value;
    }
    return nullptr;
  }
  // A value that would hold itself is left out.
  void put(const std::string& key, PythonPointer value);
};

bool holds_value(const PythonPointer& value, const PythonValue* other);

inline void PythonValue::put(const std::string& key, PythonPointer value) {
  if (holds_value(value, this)) return;
  for (auto& [name, member] : members) {
    if (name == key) {
      member = std::move(value);
      return;
    }
  }
  members.emplace_back(key, std::move(value));
}

inline PythonPointer python_value(PythonKind kind, std::string text, std::int64_t line) {
  return std::make_shared<PythonValue>(kind, std::move(text), line);
}

inline PythonPointer truth_value(bool truth, std::int64_t line) {
  return python_value(PythonKind::boolean, truth ? "True" : "False", line);
}

// Returns a value that only a run knows, with its source text, cut short if it is long.
inline PythonPointer unknown_value(std::string text, std::int64_t line) {
  constexpr std::size_t longest = 200;
  if (text.size() > longest) text.resize(longest);
  return python_value(PythonKind::unknown, std::move(text), line);
}

PythonPointer number_value(double number, std::int64_t line);

// Returns the value as a number, or nothing if it is none.
std::optional<double> number_in(const PythonPointer& value);

// Whether a value holds another, somewhere in it. Of very many values: true.
inline bool holds_value(const PythonPointer& value, const PythonValue* other) {
  constexpr std::size_t most = 1000;
  std::vector<const PythonValue*> open{value.get()};
  for (std::size_t seen = 0; !open.empty(); ++seen) {
    const PythonValue* const last = open.back();
    open.pop_back();
    if (last == other || seen == most) return true;
    for (const auto& [key, member] : last->members) open.push_back(member.get());
  }
  return false;
}

}  // namespace headroom
