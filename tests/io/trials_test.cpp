// Trials files: what they hold, and mistakes in them.
#include <doctest/doctest.h>

#include "headroom/io/trials_file.hpp"
#include "io/messages.hpp"

namespace headroom {

TEST_CASE("trials: written and read again") {
  const std::vector<TrialRow> rows{{.flags = "-t 4 -p 2", .iteration_seconds = {}},
                                   {.flags = "-t 8", .iteration_seconds = 2.5},
                                   {.flags = "-t 2", .iteration_seconds = {}, .out_of_memory = true}};
  CHECK(parse_trials(trials_text(rows), "t.json") == rows);
}

TEST_CASE("trials: mistakes are named") {
  const auto mistake = [](const char* row) {
    return message_of(
        [&] { return parse_trials(R"({"format": 1, "trials": [)" + std::string(row) + "]}", "t.json"); });
  };
  CHECK(contains(mistake(R"({"iteration_seconds": 2})"), "t.json: /trials/0/flags: is missing"));
  CHECK(contains(mistake(R"({"flags": "-t 4", "iteration_seconds": 0})"), "/trials/0/iteration_seconds"));
  CHECK(contains(mistake(R"({"flags": "-t 4", "iteration_seconds": "2 s"})"), "/trials/0/iteration_seconds"));
  CHECK(contains(mistake(R"({"flags": "-t 4", "seconds": 2})"), "/trials/0/seconds"));
  CHECK(contains(mistake(R"({"flags": "-t 4", "iteration_seconds": 2, "out_of_memory": true})"),
                 "t.json: /trials/0: has a time, although it ran out of memory"));
  CHECK(contains(message_of([] { return parse_trials("{}", "t.json"); }), "t.json: /format: is missing"));
  CHECK(contains(message_of([] { return parse_trials("{", "t.json"); }), "t.json"));
}

TEST_CASE("trials: a list is of runs") {
  CHECK(looks_like_runs(" \n[{}]"));
  CHECK(looks_like_runs("\xEF\xBB\xBF[]"));
  CHECK_FALSE(looks_like_runs("{\"format\": 1}"));
  CHECK_FALSE(looks_like_runs(""));
}

}  // namespace headroom
