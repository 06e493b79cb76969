#include <cstdio>
#include <string_view>

#include <headroom/core/error.hpp>
#include <headroom/core/units.hpp>
#include <headroom/io/catalog.hpp>
#include <headroom/model/transformer.hpp>

// Needs a header-only part, a compiled part and an embedded file.
int main() {
  using namespace headroom::literals;
  static_assert(1_GiB / 2.0 == 512_MiB);
  if (headroom::nearest("selectiv", {"none", "selective", "full"}) != "selective") return 1;
  if (headroom::padded_vocabulary({.vocabulary = 1000, .vocabulary_multiple = 128}, 2) != 1024) return 2;
  for (const headroom::EmbeddedFile& file : headroom::embedded_files()) {
    if (file.path == "models/gpt3-175b.json") return 0;
  }
  std::puts("models/gpt3-175b.json is not embedded");
  return 3;
}
