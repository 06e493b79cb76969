// Part files: written, read back, and refused.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/part_file.hpp"
#include "headroom/io/search_result.hpp"
#include "headroom/io/system_file.hpp"
#include "io/messages.hpp"
#include "io/scratch_file.hpp"

namespace headroom {
namespace {

PartHead head_of(std::int64_t index, std::int64_t count) {
  return {.program = "0.1.0",
          .command = "sweep",
          .shard = {index, count},
          .digest = "0123456789abcdef",
          .arguments = {"gpt3-175b", "--vary=sequence=1024,2048"}};
}

std::string part_text(const std::vector<std::string>& rows) {
  std::string text = part_start(head_of(2, 3));
  for (std::size_t i = 0; i < rows.size(); ++i) text += part_row(rows[i], i == 0);
  return text + part_end();
}

std::vector<std::string> rows_of(const std::string& text) {
  const ScratchFile file("part.json", text);
  PartReader reader(file.path());
  CHECK(reader.head() == head_of(2, 3));
  std::vector<std::string> rows;
  while (const std::optional<std::string> row = reader.next_row()) rows.push_back(*row);
  return rows;
}

std::string part_message(const std::string& text) {
  const std::string whole = message_of([&] { return rows_of(text); });
  return whole.substr(std::min(whole.size(), whole.find("part.json")));
}

TEST_CASE("rows are read as they were written") {
  for (const auto& rows : {std::vector<std::string>{}, {"{}"}, {"{\"a\":1}", "{\"b\":[1,2]}", "{}"}}) {
    CHECK(rows_of(part_text(rows)) == rows);
  }
  const std::vector<std::string> long_row{"{\"a\":\"" + std::string(10000, 'x') + "\"}", "{}"};
  CHECK(rows_of(part_text(long_row)) == long_row);
}

TEST_CASE("a part cut off anywhere is refused") {
  const std::string text = part_text({"{\"a\":1}", "{\"b\":2}"});
  for (std::size_t length = 0; length < text.size(); ++length) {
    CAPTURE(length);
    CHECK(!part_message(text.substr(0, length)).empty());
  }
  CHECK(part_message(text.substr(0, text.size() - 1)) == "part.json: is cut off");
}

TEST_CASE("what is not a part is refused") {
  const std::string text = part_text({"{}", "{}"});
  CHECK(contains(part_message(""), "is not a part"));
  CHECK(contains(part_message("{\"format\": 1}\n"), "is not a part"));
  CHECK(contains(part_message("[\n1\n]\n"), "is not JSON"));
  CHECK(contains(part_message(with(text, "\"format\":1", "\"format\":2")), "part.json: /format: must be 1"));
  CHECK(contains(part_message(with(text, "\"shard\":2", "\"shard\":4")),
                 "part.json: /shard: must be at most 3"));
  CHECK(
      contains(part_message(with(text, "\"shard\":2", "\"shard\":0")), "/shard: must be an integer from 1"));
  CHECK(contains(part_message(with(text, "\"of\":3", "\"of\":1e300")), "/of: must be an integer from 1"));
  CHECK(contains(part_message(with(text, "\"of\":3", "\"off\":3")), "/off: unknown key"));
  CHECK(contains(part_message(with(text, "\"0.1.0\"", "1")), "/headroom: must be text"));
  CHECK(contains(part_message(with(text, "[\"gpt3", "[1,\"gpt3")), "/arguments: must be a list of texts"));
  CHECK(contains(part_message(with(text, "{},\n", "{}\n")), "row 2: must stand behind a comma"));
  CHECK(contains(part_message(with(text, "{}\n]}", "{},\n]}")), "lacks a row behind row 2"));
  CHECK(contains(part_message(text + "{}\n"), "goes on behind its end"));
  CHECK(contains(message_of([] { return PartReader("/no/such/part").head().command; }), "cannot be read"));
  CHECK(contains(message_of([] { return PartReader("/").head().command; }), "/: is"));
  CHECK(contains(message_of([] { return PartReader("/dev/zero").head().command; }), "too long"));
}

TEST_CASE("parts that do not belong together are named") {
  const auto problem = [](const std::vector<PartHead>& heads) {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < heads.size(); ++i)
      paths.push_back(std::string(1, static_cast<char>('a' + i)));
    return message_of([&] {
      check_parts(heads, paths, "0.1.0");
      return 0;
    });
  };
  CHECK(problem({head_of(1, 1)}).empty());
  CHECK(problem({head_of(3, 3), head_of(1, 3), head_of(2, 3)}).empty());
  CHECK(problem({head_of(1, 3), head_of(3, 3)}) == "part 2 of 3 is missing");
  CHECK(problem({head_of(7, 1'000'000)}) ==
        "parts 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, ... of 1000000 are missing");
  CHECK(problem({head_of(1, 2), head_of(1, 2)}) == "b: /shard: must not be part 1 of 2 again, which is a");
  CHECK(problem({head_of(1, 2), head_of(2, 3)}) == "b: /of: must be 2, as in a (found 3)");
  PartHead other = head_of(2, 2);
  other.digest = "fedcba9876543210";
  CHECK(contains(problem({head_of(1, 2), other}), "b: /digest: must be that of a"));
  other = head_of(2, 2);
  other.arguments = {"gpt2-xl"};
  CHECK(contains(problem({head_of(1, 2), other}), "b: /arguments: must be those of a"));
  other.program = "9.9.9";
  CHECK(problem({head_of(1, 2), other}) == "b: /headroom: must be 0.1.0, as this program is (found 9.9.9)");
}

TEST_CASE("a digest is FNV-1a of texts and where each ends") {
  CHECK(digest_of({}) == "cbf29ce484222325");
  CHECK(digest_of({"a", "bc"}) != digest_of({"ab", "c"}));
  CHECK(digest_of({"a"}) != digest_of({"a", ""}));
  CHECK(digest_of({"a"}) != digest_of({"b"}));
}

TEST_CASE("a search's result is read back to the last bit") {
  Request request{.model = read_model("gpt2-xl"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 16, .sequence = request.model.sequence};
  request.strategy.gradient_dtype = Dtype::half;
  for (const std::int64_t devices : {8, 16}) {
    for (const bool fits : {true, false}) {
      if (!fits) request.system.memory = 4_GiB;
      const SearchResult result = search(request, {.devices = devices, .recompute_window = true});
      REQUIRE((result.feasible > 0) == fits);
      const ScratchFile file("part.json", part_text(write_result(result)));
      PartReader part(file.path());
      CHECK(read_result(part, request.strategy) == result);
    }
    request.system = read_system("dgx-a100-80g");
  }
}

TEST_CASE("any result is read back to the last bit") {
  rc::check("results", [] {
    SearchResult result{.evaluated = *rc::gen::nonNegative<std::int64_t>(), .feasible = 1};
    const auto iteration = *rc::gen::positive<double>();
    const auto mfu = *rc::gen::positive<double>();
    result.plans.push_back({.peak = Bytes(static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1LL << 52))),
                            .peak_rank = 3,
                            .iteration = Seconds(iteration),
                            .mfu = mfu,
                            .place = *rc::gen::nonNegative<std::int64_t>()});
    if (*rc::gen::arbitrary<bool>()) {
      result.plans.front().strategy.recompute = {.policy = RecomputePolicy::ops,
                                                 .ops = {"mla_up_proj", "moe"}};
    }
    result.pareto = result.plans;
    const ScratchFile file("part.json", part_text(write_result(result)));
    PartReader part(file.path());
    RC_ASSERT(read_result(part, Strategy{}) == result);
  });
}

TEST_CASE("a result with a mistake names its row and field") {
  SearchResult result{.evaluated = 1, .feasible = 1};
  result.plans.push_back({.peak = 1_GiB, .iteration = Seconds(1.5), .mfu = 0.5});
  const std::string text = part_text(write_result(result));
  const auto problem = [&](const std::string& changed) {
    const ScratchFile file("part.json", changed);
    PartReader part(file.path());
    const std::string whole = message_of([&] { return read_result(part, Strategy{}); });
    return whole.substr(std::min(whole.size(), whole.find("part.json")));
  };
  CHECK(problem(text).empty());
  CHECK(contains(problem(with(text, "\"mfu\":0.5", "\"mfu\":-1")),
                 "part.json: row 2: /mfu: must be a number above"));
  CHECK(contains(problem(with(text, "\"in\":\"plans\"", "\"in\":\"plan\"")), "row 2: /in: must be plans or"));
  CHECK(contains(problem(with(text, "\"micro_batch\":1", "\"micro_batch\":0")), "row 2: /micro_batch"));
  CHECK(contains(problem(with(text, "\"evaluated\":1", "\"evaluated\":-1")), "row 1: /evaluated"));
  CHECK(problem(part_text({})) == "part.json: lacks the counts of a search");
}

}  // namespace
}  // namespace headroom
