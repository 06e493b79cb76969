// The page of figures of runs, and its plots alone.
#include "headroom/report/run_page.hpp"

#include <doctest/doctest.h>

namespace headroom {
namespace {

Comparison page_row(const std::string& group, Measure measure, double predicted, double measured) {
  return {.group = group,
          .name = "a<b",
          .measure = measure,
          .predicted = predicted,
          .measured = measured,
          .error = predicted / measured - 1};
}

ValidateReply page_reply(std::vector<Comparison> rows) {
  ValidateReply reply{.runs = rows.size(), .groups = summarize(rows, {}), .rows = std::move(rows)};
  return reply;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE(
    "the page of runs: the worst group comes first, and every row is in a plot, a strip and the table") {
  const std::string page =
      run_page(page_reply({page_row("good", Measure::iteration_seconds, 1.01, 1),
                           page_row("bad", Measure::iteration_seconds, 2, 1),
                           page_row("bad, memory", Measure::allocated_bytes, 3e10, 2e10)}),
               "a & b");
  CHECK(page.find("</svg>bad</label>") < page.find("</svg>good</label>"));
  CHECK(page.find("a &amp; b") != std::string::npos);
  CHECK(page.find("a<b") == std::string::npos);
  CHECK(occurrences(page, "<td>a&lt;b</td>") == 3);
  CHECK(occurrences(page, "<title>a&lt;b\n") == 6);
  CHECK(occurrences(page, ">Time</text>") == 1);
  CHECK(occurrences(page, ">Peak memory</text>") == 1);
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("nan") == std::string::npos);
}

TEST_CASE("the page of runs: a perfect prediction stands on the diagonal, and ratios are in no plot") {
  const std::string page = run_page(page_reply({page_row("g", Measure::iteration_seconds, 5, 5)}), "t");
  CHECK(page.find("x=\"180.0\" y=\"180.0\"") != std::string::npos);  // of 360
  const std::string ratios = run_page(page_reply({page_row("g", Measure::mfu, 0.5, 0.4)}), "t");
  CHECK(ratios.find("Errors of ratios, in points") != std::string::npos);
  CHECK(occurrences(ratios, "class=\"frame\"") == 0);
}

TEST_CASE("the plots alone have no names of rows") {
  const std::string svg = run_picture(page_reply({page_row("g", Measure::iteration_seconds, 5, 4)}), "t");
  CHECK(svg.starts_with("<svg xmlns="));
  CHECK(svg.find("a&lt;b") == std::string::npos);
  CHECK(occurrences(svg, "<use ") == 1);
}

}  // namespace
}  // namespace headroom
