// What libFuzzer calls. The reader is chosen by --reader=NAME; --readers prints their names.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/readers.hpp"

namespace {

const headroom::tests::FuzzedReader* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view flag = "--reader=";
  const auto readers = headroom::tests::fuzzed_readers();
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument == "--readers") {
      for (const auto& reader : readers) std::puts(reader.name.data());
      std::exit(0);
    }
    if (!argument.starts_with(flag)) continue;
    const auto found = std::find_if(readers.begin(), readers.end(), [&](const auto& reader) {
      return reader.name == argument.substr(flag.size());
    });
    if (found != readers.end()) chosen = &*found;
  }
  if (chosen != nullptr) return 0;
  std::fputs("give --reader=NAME, one of those that --readers prints\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
