// Source and spread files: what they hold, and mistakes in them.
#include <set>

#include <doctest/doctest.h>

#include "headroom/io/catalog.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

const char* const whole_source = R"({
  "format": 1, "label": "Ours", "source": "A report, table 3", "titles": ["A report"],
  "system": "dgx-a100-80g", "software": "megatron-2022",
  "settings": {"vocabulary": 32000, "recompute": "none", "gradient_dtype": "half"},
  "variants": [{"dtype": "bf16", "settings": {"gradient_dtype": "fp32"}}],
  "targets": [{"quantity": "iteration_seconds", "median_percent": 5, "worst_percent": 10}]})";

std::string source_mistake(const std::string& part, const std::string& replacement) {
  return message_of([&] { return parse_source(with(whole_source, part, replacement), "s.json"); });
}

MeasuredRun titled(std::string title) { return {.name = "a", .source = std::move(title)}; }

}  // namespace

TEST_CASE("sources: a file reads as what it says, and reads back what is written") {
  const PublishedSource source = parse_source(whole_source, "ours.json");
  CHECK(source.key == "ours");
  CHECK(source.settings.vocabulary == 32000);
  CHECK(source.variants.at(0).settings.gradient_dtype == Dtype::fp32);
  CHECK(source.targets.at(0).worst == 0.1);
  CHECK(parse_source(write_source(source), "ours.json") == source);
}

TEST_CASE("sources: the embedded ones have labels and titles of their own, and read back") {
  std::set<std::string> labels;
  std::set<std::string> titles;
  const std::vector<PublishedSource> sources = list_sources();
  CHECK(sources.size() == 8);
  for (const PublishedSource& source : sources) {
    CAPTURE(source.key);
    CHECK(labels.insert(source.label).second);
    for (const std::string& title : source.titles) CHECK(titles.insert(title).second);
    CHECK(parse_source(write_source(source), source.key + ".json").titles == source.titles);
    // What was measured on several GPUs is predicted on the system of each, and is held to no target.
    CHECK(source.targets.empty() == !source.system.has_value());
  }
}

TEST_CASE("sources: mistakes are named") {
  CHECK(contains(source_mistake("dgx-a100-80g", "dgx-a100-80"), "did you mean 'dgx-a100-80g'?"));
  CHECK(contains(source_mistake("\"dtype\": \"bf16\", ", ""),
                 "s.json: /variants/0: must give the dtype or the"));
  CHECK(contains(source_mistake("\"median_percent\": 5, \"worst_percent\": 10", "\"median_percent\": null"),
                 "s.json: /targets/0"));
  CHECK(contains(source_mistake("[\"A report\"]", "[3]"), "s.json: /titles/0: must be text"));
  CHECK(contains(source_mistake("\"settings\": {\"vocabulary\"", "\"settings\": {\"vocabulry\""),
                 "did you mean 'vocabulary'?"));
  CHECK_THROWS_AS(read_source("sc22"), InputError);
}

TEST_CASE("sources: keys are taken of whole titles only") {
  const std::string title = read_source("bloom").titles.front();
  std::vector<MeasuredRun> runs{titled(title), titled("our rerun of " + title), titled("BLOOM")};
  CHECK(listed_by_title(runs) == 1);
  const std::vector<SkippedRun> skipped = take_keys_by_title(runs);
  REQUIRE(runs.size() == 1);
  CHECK(runs.front().key == "bloom");
  REQUIRE(skipped.size() == 2);
  CHECK(skipped.front().reasons == std::vector<std::string>{"no published source lists its title"});
}

TEST_CASE("spreads: the embedded ones read, and mistakes are named") {
  CHECK(embedded_spreads().fitted.logarithm < embedded_spreads().kernels.logarithm);
  const std::string text(find_embedded("spread", "development")->text);
  CHECK(parse_spreads(text, "s.json") == embedded_spreads());
  CHECK(contains(message_of([&] { return parse_spreads(with(text, "0.0203", "0"), "s.json"); }),
                 "s.json: /allocated/logarithm: must be a number above zero"));
  CHECK(contains(message_of([&] { return parse_spreads(with(text, "\"kernels\"", "\"kernel\""), "s.json"); }),
                 "s.json: /iteration/kernels: is missing"));
}

}  // namespace headroom
