#include "headroom/report/table.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace headroom {
namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result(1);
  for (const char c : text) {
    if (c == '\n') {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  if (result.back().empty()) result.pop_back();
  return result;
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  for (const std::string& line : lines(text)) width = std::max(width, line.size());
  return width;
}

const Table table{.columns = {{"case", Align::left},
                              {"verdict", Align::left},
                              {"peak GiB", Align::right},
                              {"tokens per second", Align::right, 1},
                              {"HFU", Align::right, 2},
                              {"problem", Align::left}},
                  .rows = {{"one", "fits", "12.00", "9000", "50.0%", ""},
                           {"another of these", "does_not_fit", "130.00", "12000", "51.0%",
                            "the weights of a layer and their gradients take more than there is"}}};

TEST_CASE("a table on a wide screen has every column on one line") {
  CHECK(to_aligned(table, 200) ==
        "case              verdict       peak GiB  tokens per second    HFU  problem\n"
        "one               fits             12.00               9000  50.0%\n"
        "another of these  does_not_fit    130.00              12000  51.0%  "
        "the weights of a layer and their gradients take more than there is\n");
}

TEST_CASE("headings wrap first, then texts, and then columns are left out and named") {
  CHECK(to_aligned(table, 90) ==
        "                                        tokens\n"
        "                                  peak     per\n"
        "case              verdict          GiB  second    HFU  problem\n"
        "one               fits           12.00    9000  50.0%\n"
        "another of these  does_not_fit  130.00   12000  51.0%  the weights of a layer and their\n"
        "                                                       gradients take more than there is\n");
}

TEST_CASE("no line is wider than the screen, and columns that are never left out are there") {
  for (std::size_t screen = 58; screen < 200; ++screen) {
    const std::string text = to_aligned(table, screen);
    CAPTURE(screen);
    CAPTURE(text);
    CHECK(widest(text) <= screen);
    for (const char* const word : {"case", "verdict", "peak", "problem", "130.00", "gradients"}) {
      CHECK(text.find(word) != std::string::npos);
    }
    const bool all =
        text.find("tokens") < text.find("Hidden columns") && text.find("HFU") < text.find("Hidden columns");
    CHECK(all == (text.find("Hidden columns") == std::string::npos));
  }
}

TEST_CASE("a table is turned on its side where no column can be hidden any more") {
  const Table narrow{.columns = {{"case", Align::left}, {"seconds"}, {"", Align::left}},
                     .rows = {{"the first one", "12.00", "slow"}, {"other", "", "fast"}}};
  CHECK(to_aligned(narrow, 19) == "case: the first one\n  seconds: 12.00\n  slow\ncase: other\n  fast\n");
}

TEST_CASE("the columns that the note asks for are enough") {
  const std::string text = to_aligned(table, 58);
  const std::string before = "(--columns ";
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  const auto enough = static_cast<std::size_t>(std::stoi(text.substr(at + before.size())));
  CHECK(to_aligned(table, enough).find("Hidden columns") == std::string::npos);
  CHECK(to_aligned(table, enough - 1).find("Hidden columns") != std::string::npos);
}

TEST_CASE("a column without text is not shown, and colours take no room") {
  CHECK(to_aligned({.columns = {{"a"}, {"b", Align::left}, {"c"}},
                    .rows = {{"1", "", "22"}, {"3", "", "4"}}}) == "a   c\n1  22\n3   4\n");
  CHECK(to_aligned(
            {.columns = {{"a", Align::left}, {"b"}}, .rows = {{"\x1b[31mno\x1b[0m", "1"}, {"yes", "2"}}}) ==
        "a    b\n\x1b[31mno\x1b[0m   1\nyes  2\n");
}

TEST_CASE("long lines go on below themselves, commands behind a backslash") {
  CHECK(in_lines("short\n\n- a b c d\n", 7) == "short\n\n- a b c\n  d\n");
  CHECK(in_lines("  headroom plan -t 8 -p 4\n", 20) == "  headroom plan \\\n    -t 8 -p 4\n");
  // A command is copied with its quotes whole.
  CHECK(in_lines("  headroom plan --why '-t 8 -p 8'\n", 24) == "  headroom plan \\\n    --why '-t 8 -p 8'\n");
  CHECK(in_lines("  --flag    what it does", 16, 10) == "  --flag    what\n            it\n            does");
}

}  // namespace
}  // namespace headroom
