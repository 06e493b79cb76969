// Tokens of a Python file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

enum class PythonTokenKind : std::uint8_t { name, number, text, sign, newline, indent, dedent, end };

struct PythonToken {
  PythonTokenKind kind = PythonTokenKind::end;
  std::string text;        // of a text what it holds
  bool formatted = false;  // f"..."
  std::int64_t line = 0;
};

// Throws InputError where a text or a bracket has no end. The last token is `end`.
std::vector<PythonToken> python_tokens(std::string_view text, const std::string& file);

}  // namespace headroom
