#include "headroom/core/count_text.hpp"

#include <limits>

#include <doctest/doctest.h>

#include "headroom/core/reading.hpp"

namespace headroom {
namespace {

TEST_CASE("counts are read as people write them") {
  CHECK(count_of("65536") == 65536);
  CHECK(count_of("64k") == 65536);
  CHECK(count_of("8K") == 8192);
  CHECK(count_of("1M") == 1048576);
  CHECK(count_of("1,000,000") == 1000000);
  CHECK(count_of("12,345") == 12345);
  CHECK(count_of("-3") == -3);
  CHECK(count_of("99999999999999999999") == std::numeric_limits<std::int64_t>::max());
  CHECK(count_of("9999999999999999k") == std::numeric_limits<std::int64_t>::max());
  CHECK(count_of("-99999999999999999999") == std::numeric_limits<std::int64_t>::min());
  CHECK(count_of("-9999999999999999k") == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("what is no whole number is none") {
  for (const char* const text : {"", "k", "1.5k", "8 k", "8kk", "1,00", "1,0000", ",100", "1,,000",
                                 "1000,000", "1e3", "0x10", "8G", "eight"}) {
    CAPTURE(text);
    CHECK(!count_of(text));
  }
}

TEST_CASE("a global batch is read in sequences, or in tokens that they divide") {
  const auto read = [](std::string_view text, std::int64_t sequence) {
    std::int64_t batch = 0;
    const std::string rule = read_global_batch(text, sequence, batch);
    CHECK(rule == "");
    return batch;
  };
  const auto rule = [](std::string_view text, std::int64_t sequence) {
    std::int64_t batch = 7;
    std::string broken = read_global_batch(text, sequence, batch);
    CHECK(batch == 7);
    return broken;
  };
  CHECK(read("512", 8192) == 512);
  CHECK(read("1,024", 8192) == 1024);
  for (const char* text : {"4M tokens", "4Mtok", "4M tok", "4Mtokens", "4096k tokens", "4,194,304 tokens"})
    CHECK(read(text, 8192) == 512);
  CHECK(read("0.5M tokens", 2048) == 256);
  CHECK(read("8192 tokens", 8192) == 1);
  CHECK(rule("4M", 8192) ==
        "may be 4194304 sequences or as many tokens (512 sequences of 8192): write 4194304 or '4M tokens', "
        "not '4M'");
  CHECK(rule("1k", 8192) ==
        "may be 1024 sequences or as many tokens (about 1 sequence of 8192): write 1024 or 1, not '1k'");
  CHECK(rule("4M", 6000) ==
        "may be 4194304 sequences or as many tokens (about 699 sequences of 6000): write 4194304 or 699, not "
        "'4M'");
  CHECK(rule("4M tokens", 6000) ==
        "must be a multiple of the sequence of 6000 tokens (4194304 / 6000 = 699.05): the nearest is 699 "
        "sequences, "
        "4194000 tokens");
  CHECK(rule("100 tokens", 8192) ==
        "must be a multiple of the sequence of 8192 tokens (100 / 8192 = 0.01): the nearest is 1 sequence, "
        "8192 tokens");
  CHECK(rule("many tokens", 8192) ==
        "must be a whole number of sequences, or of tokens such as '4M tokens', not 'many tokens'");
  CHECK(rule("-4M tokens", 8192).starts_with("must be a whole number of sequences"));
  CHECK(rule("x", 8192) == "must be a whole number, not 'x'");
  CHECK(rule("0", 8192) == "must be between 1 and 2147483647, not '0'");
  CHECK(rule("99999999999999999999M tokens", 1).starts_with("must be a whole number of sequences"));
  CHECK(rule("1000000M tokens", 1).starts_with("must be between 1 and 2147483647"));
}

}  // namespace
}  // namespace headroom
