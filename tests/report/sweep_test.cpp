// Rows of a sweep: printed in every format, and read back.
#include "headroom/report/sweep.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "io/messages.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

SweepHead head_of(SweepKind kind) {
  return {
      .kind = kind, .arguments = {"gpt3-175b"}, .grid = read_grid({"sequence=1024,2048", "sp=yes,no"}, {})};
}

std::string printed(const SweepHead& head, const std::vector<SweepRow>& rows, Format format) {
  SweepPrinter printer(head, format);
  std::string text = printer.start();
  for (std::size_t i = 0; i < rows.size(); ++i) text += printer.row(static_cast<std::int64_t>(i), rows[i]);
  return text + printer.end();
}

TEST_CASE("without performance figures a row has no times") {
  const SweepRow row = row_of(evaluate(gpt3_on_a100()));
  CHECK(row.verdict);
  CHECK(!row.figures.iteration_seconds);
  CHECK(printed(head_of(SweepKind::estimate), {row}, Format::csv).find(",,,,,\n") != std::string::npos);
}

TEST_CASE("a mistake is a row with all its problems") {
  const SweepRow row{.verdict = {},
                     .strategy = {},
                     .figures = {},
                     .problems = {{"--tensor-parallel", "must divide"}, {"", "no"}}};
  CHECK(problem_text(row) == "--tensor-parallel: must divide; no");
  CHECK(printed(head_of(SweepKind::estimate), {row}, Format::csv) ==
        "sequence,sp,verdict,devices,peak_rank,peak_bytes,headroom_bytes,iteration_seconds,"
        "low_iteration_seconds,high_iteration_seconds,mfu,hfu,tokens_per_second,tokens_per_second_per_device,"
        "problem\n"
        "1024,yes,,,,,,,,,,,,,--tensor-parallel: must divide; no\n");
}

TEST_CASE("a varied figure has one column") {
  const SweepHead head{.grid = read_grid({"devices=8"}, {})};
  CHECK(printed(head, {}, Format::csv).starts_with("devices,verdict,peak_rank,"));
}

TEST_CASE("a printed row is read back to the last bit") {
  rc::check("rows", [] {
    SweepRow row{.verdict = *rc::gen::element(Verdict::fits, Verdict::marginal, Verdict::does_not_fit),
                 .strategy = edits_of({.tensor_parallel = *rc::gen::inRange<std::int64_t>(1, 9),
                                       .sequence_parallel = *rc::gen::arbitrary<bool>(),
                                       .recompute = {.policy = RecomputePolicy::full, .layers = 2},
                                       .stage_layers = {5, 7}}),
                 .figures = {.devices = 64,
                             .peak_bytes = *rc::gen::positive<double>(),
                             .headroom_bytes = *rc::gen::arbitrary<double>(),
                             .mfu = *rc::gen::positive<double>()},
                 .problems = {}};
    const SweepHead head = head_of(SweepKind::plan);
    RC_ASSERT(parse_row(head, 2, json_line(head, 2, row), "here") == row);
  });
}

TEST_CASE("a row that is not one is refused") {
  const SweepHead head = head_of(SweepKind::estimate);
  const std::string text = json_line(head, 1, row_of(evaluate(gpt3_timed())));
  const auto problem = [&](const std::string& changed, std::int64_t point = 1) {
    return message_of([&] { return parse_row(head, point, changed, "a.json: row 7"); });
  };
  CHECK(problem(text).empty());
  CHECK(problem(text, 2) == "a.json: row 7: /point: must hold the values of point 2, which belongs here");
  CHECK(problem("[]") == "a.json: row 7: must be an object");
  CHECK(contains(problem(text.substr(0, 40)), "a.json: row 7:1:"));
  CHECK(contains(problem("{}"), "/point: must hold"));
  CHECK(contains(problem(with(text, "\"mfu\":", "\"mfi\":")), "row 7: /mfi: unknown key"));
  CHECK(contains(problem(with(text, "\"devices\":64", "\"devices\":\"64\"")),
                 "row 7: /devices: must be a number"));
  CHECK(contains(problem(with(text, "\"does_not_fit\"", "\"fit\"")), "row 7: /verdict: must be fits"));
  const auto with_strategy = [&](const char* flags) {
    return problem(with(text, "\"mfu\":", "\"strategy\":\"" + std::string(flags) + "\",\"mfu\":"));
  };
  CHECK(with_strategy("-t 8 --sp").empty());
  CHECK(contains(with_strategy("-t"), "row 7: /strategy: must be flags of a strategy"));
  CHECK(contains(with_strategy("8 -t"), "row 7: /strategy: must be flags of a strategy"));
  CHECK(contains(with_strategy("-t 0"), "row 7: /strategy: --tensor-parallel must be between 1"));
  CHECK(
      contains(problem(with(text, "\"verdict\":\"does_not_fit\",", "")), "must have a verdict or a problem"));
}

TEST_CASE("JSON is one document with a row on each line") {
  const SweepHead head = head_of(SweepKind::estimate);
  const SweepRow row{.verdict = {}, .strategy = {}, .figures = {}, .problems = {{"--x", "no"}}};
  CHECK(printed(head, {row, row}, Format::json).ends_with(R"(
  "points": 4,
  "rows": [
    {"point":{"sequence":1024,"sp":"yes"},"problem":"--x: no"},
    {"point":{"sequence":1024,"sp":"no"},"problem":"--x: no"}
  ]
}
)"));
}

TEST_CASE("Markdown is printed row by row and a table whole") {
  const SweepHead head = head_of(SweepKind::estimate);
  const SweepRow row = row_of(evaluate(gpt3_timed()));
  SweepPrinter markdown(head, Format::markdown);
  CHECK(markdown.start().starts_with("| sequence | sp | verdict |"));
  CHECK(markdown.row(0, row).starts_with("| 1024 | yes | "));
  CHECK(markdown.end().empty());
  SweepPrinter table(head, Style(Format::table, 200));
  CHECK(table.start().empty());
  CHECK(table.row(0, row).empty());
  CHECK(table.end().starts_with("sequence  sp   verdict"));
}

}  // namespace
}  // namespace headroom
