// The texts that fuzzing starts from, and those that it found mistakes with, through their readers.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "fuzz/readers.hpp"
#include "headroom/io/part_file.hpp"
#include "headroom/io/search_result.hpp"
#include "paths.hpp"

namespace headroom::tests {

TEST_CASE("corpus: every text is answered by a value or by a mistake that is named") {
  for (const FuzzedReader& reader : fuzzed_readers()) {
    const auto folder = source_dir() / "tests/fuzz/corpus" / reader.name;
    int texts = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string file = entry.path().string();
      CAPTURE(file);
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      CHECK_NOTHROW(reader.read(text));
      ++texts;
    }
    CAPTURE(folder.string());
    CHECK(texts > 0);
  }
}

TEST_CASE("corpus: the part in it is read to its end") {
  PartReader part((source_dir() / "tests/fuzz/corpus/part/search.json").string());
  const SearchResult result = read_result(part, Strategy{});
  CHECK(result.evaluated == 27);
  CHECK(result.plans.size() == 3);
  CHECK(result.pareto.size() == 5);
}

}  // namespace headroom::tests
