// Lists and ranges of values.
#include "headroom/answer/values.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/core/error.hpp"

namespace headroom {
namespace {

using Values = std::vector<std::string>;

Values read(std::string_view text) { return values_of("vary x", text); }

// What is wrong with a text.
std::string rule(std::string_view text) {
  try {
    read(text);
  } catch (const InputError& error) {
    REQUIRE(error.problems().size() == 1);
    CHECK(error.problems().front().where == "vary x");
    return error.problems().front().rule;
  }
  return "none";
}

TEST_CASE("a list is its parts") {
  CHECK(read("8") == Values{"8"});
  CHECK(read("1,2,4") == Values{"1", "2", "4"});
  CHECK(read("gpt3-22b,my models/a.json") == Values{"gpt3-22b", "my models/a.json"});
  CHECK(read("80 GiB,96 GiB") == Values{"80 GiB", "96 GiB"});
}

TEST_CASE("suffixes are counted unless they are kept") {
  CHECK(read("1k,2k") == Values{"1024", "2048"});
  CHECK(values_of("vary global_batch", "1M tokens:4M tokens:x2", Suffixes::kept) ==
        Values{"1M tokens", "2M tokens", "4M tokens"});
  CHECK(values_of("vary global_batch", "4M", Suffixes::kept) == Values{"4M"});
  CHECK(values_of("vary global_batch", "1,024;2,048", Suffixes::kept) == Values{"1024", "2048"});
}

TEST_CASE("semicolons separate values that hold commas") {
  CHECK(read("norm_1,activation;norm_1") == Values{"norm_1,activation", "norm_1"});
}

TEST_CASE("a range holds its last value where a step meets it") {
  CHECK(read("8:32:8") == Values{"8", "16", "24", "32"});
  CHECK(read("8:31:8") == Values{"8", "16", "24"});
  CHECK(read("5:5:1") == Values{"5"});
  CHECK(read("0:2:1") == Values{"0", "1", "2"});
  CHECK(read("1024:8192:x2") == Values{"1024", "2048", "4096", "8192"});
  CHECK(read("1024:8191:x2") == Values{"1024", "2048", "4096"});
  CHECK(read("8:27:x1.5") == Values{"8", "12", "18", "27"});
}

TEST_CASE("ranges and values mix") { CHECK(read("1,4:12:4,100") == Values{"1", "4", "8", "12", "100"}); }

TEST_CASE("fractions are counted with exactly") {
  // In doubles 0.1 + 0.1 + 0.1 is more than 0.3.
  CHECK(read("0.1:0.3:0.1") == Values{"0.1", "0.2", "0.3"});
  CHECK(read("0.5:2:0.25") == Values{"0.5", "0.75", "1", "1.25", "1.5", "1.75", "2"});
  CHECK(read("0.001:1:x10") == Values{"0.001", "0.01", "0.1", "1"});
}

TEST_CASE("a unit is carried along") {
  CHECK(read("40 GiB:160 GiB:x2") == Values{"40 GiB", "80 GiB", "160 GiB"});
  CHECK(read("1us:3us:1us") == Values{"1us", "2us", "3us"});
  CHECK(read("1us:3us:1") == Values{"1us", "2us", "3us"});
}

TEST_CASE("ranges that never end or mean nothing are refused") {
  CHECK(rule("1:64:x1") == "the range must have a factor above one, not '1:64:x1'");
  CHECK(rule("1:64:x0").find("factor above one") != std::string::npos);
  CHECK(rule("1:64:x0.5").find("factor above one") != std::string::npos);
  CHECK(rule("1:64:x").find("numbers above zero") != std::string::npos);
  CHECK(rule("1:64:x-2").find("numbers above zero") != std::string::npos);
  CHECK(rule("1:64:-1").find("numbers above zero") != std::string::npos);
  CHECK(rule("64:1:-1").find("numbers above zero") != std::string::npos);
  CHECK(rule("-4:4:1").find("numbers above zero") != std::string::npos);
  CHECK(rule("1:64:0") == "the range must have a step above zero, not '1:64:0'");
  CHECK(rule("64:1:1") == "the range must not end below its start, not '64:1:1'");
  CHECK(rule("0:64:x2") == "the range must start above zero to grow by a factor, not '0:64:x2'");
  CHECK(rule("nan:inf:x2").find("numbers above zero") != std::string::npos);
  CHECK(rule("1:64") == "the range must be FIRST:LAST:STEP or FIRST:LAST:xFACTOR, not '1:64'");
  CHECK(rule("1:2:3:4").find("FIRST:LAST:STEP") != std::string::npos);
  CHECK(rule(":::").find("FIRST:LAST:STEP") != std::string::npos);
  CHECK(rule("::").find("numbers above zero") != std::string::npos);
  CHECK(rule("1 GiB:4 GB:x2").find("same unit") != std::string::npos);
  CHECK(rule("1 GiB:4 GiB:x2 GiB").find("same unit") != std::string::npos);
}

TEST_CASE("ranges too long or too fine to count with are refused") {
  CHECK(rule("1:1000000000000:1") == "the range must have at most 1000000 values, not '1:1000000000000:1'");
  CHECK(read("1:1000000:1").size() == 1'000'000);
  CHECK(rule("1:1000000:1,1") == "must have at most 1000000 values");
  CHECK(rule("99999999999999999999:999999999999999999999:1").find("15 digits") != std::string::npos);
  CHECK(rule("0.000000000000001:999999999999999:1").find("15 digits") != std::string::npos);
  CHECK(rule("1:100:x1.00000000000001").find("more than 15 digits on its way") != std::string::npos);
}

TEST_CASE("empty values are refused") {
  for (const char* text : {"", ",", "1,,2", "1,", ";", " ", "1, ,2"}) {
    CAPTURE(text);
    CHECK(rule(text) == "has an empty value");
  }
}

TEST_CASE("an even range is an arithmetic sequence") {
  rc::check("an even range", [] {
    const auto first = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
    const auto step = *rc::gen::inRange<std::int64_t>(1, 1000);
    const auto count = *rc::gen::inRange<std::int64_t>(1, 200);
    const auto beyond = *rc::gen::inRange<std::int64_t>(0, step);  // too little for one more
    const std::int64_t last = first + (count - 1) * step + beyond;
    const Values values =
        read(std::to_string(first) + ":" + std::to_string(last) + ":" + std::to_string(step));
    RC_ASSERT(static_cast<std::int64_t>(values.size()) == count);
    for (std::int64_t i = 0; i < count; ++i) {
      RC_ASSERT(values[static_cast<std::size_t>(i)] == std::to_string(first + i * step));
    }
  });
}

TEST_CASE("any text is read or refused") {
  rc::check("hostile text", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0129.:x,; -eG")));
    try {
      for (const std::string& value : read(text)) RC_ASSERT(!value.empty());
    } catch (const InputError&) {
    }
  });
}

}  // namespace
}  // namespace headroom
