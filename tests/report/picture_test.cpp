// Pictures of replies: lengths and places that are the reply's numbers, and replies that are no such thing.
#include "headroom/report/picture.hpp"

#include <regex>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "headroom/core/error.hpp"
#include "headroom/core/units.hpp"
#include "report/chart.hpp"
#include "report/page_files.hpp"

namespace headroom {
namespace {

using PictureJson = nlohmann::ordered_json;

bool draws(const std::string& svg, std::string_view text) { return svg.find(text) != std::string::npos; }

PictureJson account_of_two_ranks() {
  const auto rank = [](int number, double weights, double activations, double non_torch, double total) {
    return PictureJson{{"pipeline_rank", number},
                       {"weights_bytes", weights * gibi},
                       {"activation_bytes", activations * gibi},
                       {"non_torch_bytes", non_torch * gibi},
                       {"total_bytes", total * gibi}};
  };
  return {
      {"format", 2},
      {"model", {{"name", "a<b"}}},
      {"system", {{"name", "c&d"}}},
      {"strategy", {{"devices", 16}, {"tensor_parallel", 8}, {"pipeline_parallel", 2}, {"micro_batch", 1}}},
      {"layout", PictureJson::object()},
      {"memory",
       {{"verdict", "fits"},
        {"capacity_bytes", 40 * gibi},
        {"allocator", {{"rank", 1}, {"reserved_bytes", 25 * gibi}}},
        {"ranks", {rank(0, 10, 20, 1, 33), rank(1, 12, 8, 2, 22)}}}},
      {"time",
       {{"iteration_seconds", 4},
        {"breakdown", {{"gemm_seconds", 3}, {"bubble_seconds", 1}, {"optimizer_seconds", 0}}}}}};
}

// Width of the rectangle with this text, in pixels.
double width_of(const std::string& svg, const std::string& text) {
  const std::regex rectangle(R"(width="([0-9.]+)\" height="[0-9.]+" fill="[^"]*"><title>)" + text);
  std::smatch found;
  REQUIRE_MESSAGE(std::regex_search(svg, found, rectangle), text);
  return std::stod(found[1]);
}

}  // namespace

TEST_CASE("picture: bars of ranks are as long as their memory") {
  const std::string svg = picture(account_of_two_ranks().dump(), "reply");
  // 580 pixels for the capacity of 40 GiB.
  CHECK(width_of(svg, "PP rank 0\nweights: 10.00 GiB") == doctest::Approx(145));
  CHECK(width_of(svg, "PP rank 0\nactivations: 20.00 GiB") == doctest::Approx(290));
  CHECK(width_of(svg, "PP rank 0\nbuffers: 2.00 GiB") == doctest::Approx(29));
  CHECK(width_of(svg, "PP rank 1\nnon-torch memory: 2.00 GiB") == doctest::Approx(29));
  CHECK(draws(svg, "<title>capacity: 40.00 GiB</title>"));
  CHECK(draws(svg, "<title>PP rank 1\nheld by PyTorch, with non-torch memory: 27.00 GiB</title>"));
  CHECK_FALSE(draws(svg, "PP rank 1\nbuffers"));
  CHECK_FALSE(draws(svg, "PP rank 0\ngradients"));
}

TEST_CASE("picture: parts of the time with their shares, the largest first; markup in names is text") {
  const std::string svg = picture(account_of_two_ranks().dump(), "reply");
  CHECK(draws(svg, "3.000 s (75.0%)"));
  CHECK(draws(svg, "1.000 s (25.0%)"));
  CHECK(svg.find(">GEMMs<") < svg.find(">bubble<"));
  CHECK_FALSE(draws(svg, ">optimizer<"));
  CHECK(draws(svg, "a&lt;b on c&amp;d"));
  CHECK(draws(svg, "16 GPUs, TP 8, PP 2, MBS 1"));
}

TEST_CASE("picture: between two points of a frontier the time is that of the one that needs less") {
  PictureJson frontier{{"format", 2}, {"policies", PictureJson::array()}, {"points", PictureJson::array()}};
  for (const auto& [peak, seconds] : {std::pair{30.0, 1.0}, std::pair{20.0, 2.0}, std::pair{10.0, 5.0}})
    frontier["points"].push_back({{"peak_bytes", peak * gibi}, {"iteration_seconds", seconds}});
  frontier["budgets"] = {{{"budget_bytes", 25 * gibi}}};
  const std::string svg = picture(frontier.dump(), "reply");
  // 10 to 30 GiB from 76 to 860 pixels, 1 to 5 seconds from 374 up to 34.
  CHECK(draws(svg, "M76.0 34.0H468.0V289.0H860.0V374.0"));
  CHECK(draws(svg, "M664.0 34.0V374.0"));
  // One point alone has a scale too.
  while (frontier["points"].size() > 1) frontier["points"].erase(1);
  CHECK_FALSE(draws(picture(frontier.dump(), "reply"), "nan"));
}

TEST_CASE(
    "picture: a sweep has a line for each combination of the other fields, and rings where it does not fit") {
  PictureJson sweep{{"format", 2}, {"axes", PictureJson::array()}, {"rows", PictureJson::array()}};
  for (const int parallel : {1, 2}) {
    for (const int sequence : {1024, 2048, 4096}) {
      sweep["rows"].push_back({{"point", {{"tensor_parallel", parallel}, {"sequence", sequence}}},
                               {"verdict", sequence / parallel > 2048 ? "does_not_fit" : "fits"},
                               {"iteration_seconds", sequence / 1000.0},
                               {"peak_bytes", sequence / parallel * gibi}});
    }
  }
  sweep["rows"].push_back(
      {{"point", {{"tensor_parallel", 3}, {"sequence", 8192}}}, {"problem", "must divide heads"}});
  const std::string svg = picture(sweep.dump(), "reply");
  CHECK(draws(svg, ">tensor parallel 1<"));
  CHECK(draws(svg, ">tensor parallel 2<"));
  CHECK_FALSE(draws(svg, ">tensor parallel 3<"));
  CHECK(draws(svg, ">does not fit<"));
  const auto rings = [](const std::string& text) {
    const std::regex ring("r=\"3\" stroke=\"#[0-9a-f]+\" fill=\"white\"");
    return std::distance(std::sregex_iterator(text.begin(), text.end(), ring), std::sregex_iterator());
  };
  CHECK(rings(svg) == 2);  // one point, in the plot of time and in that of memory
}

TEST_CASE("picture: more ranks than have room for their names are drawn as thinner bars") {
  PictureJson account = account_of_two_ranks();
  const PictureJson rank = account["memory"]["ranks"][0];
  account["memory"]["ranks"] = PictureJson::array();
  for (int number = 0; number < 512; ++number) {
    account["memory"]["ranks"].push_back(rank);
    account["memory"]["ranks"].back()["pipeline_rank"] = number;
  }
  const std::string svg = picture(account.dump(), "reply");
  CHECK(draws(svg, "PP rank 511\nweights"));
  CHECK_FALSE(draws(svg, ">PP rank 511<"));
}

TEST_CASE("picture: what is no reply, or holds nothing to draw, is refused") {
  PictureJson empty = account_of_two_ranks();
  empty["memory"]["ranks"] = PictureJson::array();
  empty.erase("time");
  PictureJson garbled = account_of_two_ranks();
  garbled["memory"]["ranks"] = {nullptr, "rank", {{"total_bytes", -1}, {"weights_bytes", 1e300}}};
  garbled["time"] = 3;
  CHECK_NOTHROW(picture(garbled.dump(), "reply"));
  for (const std::string& text :
       {std::string("[]"), std::string("{\"format\": 2}"), std::string("{"), empty.dump()})
    CHECK_THROWS_AS(picture(text, "reply"), InputError);
}

TEST_CASE("picture: its colours are those of pages") {
  std::string css;
  for (const EmbeddedFile& file : page_files())
    if (file.path.ends_with("page.css")) css = file.text;
  for (std::size_t i = 0; i < chart::colours.size(); ++i)
    CHECK(draws(css, "--c" + std::to_string(i) + ": " + std::string(chart::colours[i])));
}

}  // namespace headroom
