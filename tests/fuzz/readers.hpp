// The readers of all text that comes from outside, by name. A fuzzer runs them on texts that it makes up
// (scripts/fuzz), and corpus_test.cpp in every build on the texts kept in corpus/.
#pragma once

#include <span>
#include <string_view>

namespace headroom::tests {

// `read` answers a text with a value or an InputError, and keeps that to itself. Whatever else escapes is a finding:
// another exception, an abort, or a std::logic_error where a value does not survive being written and read again.
struct FuzzedReader {
  std::string_view name;  // and of its folder in corpus/
  void (*read)(std::string_view text);
};

std::span<const FuzzedReader> fuzzed_readers();

}  // namespace headroom::tests
