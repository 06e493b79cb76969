// Questions about measurements and about what there is by name have the answers that the program prints, as those of
// answers_test.cpp do.
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <unistd.h>

#include "answer/printed_by.hpp"
#include "headroom/answer/calibrate.hpp"
#include "headroom/answer/list.hpp"
#include "headroom/answer/validate.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/report/calibration.hpp"
#include "headroom/report/listing.hpp"
#include "headroom/report/run_calibration.hpp"
#include "headroom/report/validation.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

// A file of products whose times are 4 us and 8 ps for each multiply-add, for as long as it is in scope.
class ProductsFile {
 public:
  ProductsFile() {
    std::ofstream file(path_);
    file << "m,n,k,milliseconds\n";
    for (const double m : {256, 1024, 4096})
      for (const double n : {256, 1024, 4096})
        for (const double k : {256, 1024, 4096})
          file << m << ',' << n << ',' << k << ',' << 0.004 + m * n * k * 8e-12 << '\n';
  }
  ProductsFile(const ProductsFile&) = delete;
  ProductsFile& operator=(const ProductsFile&) = delete;
  ~ProductsFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("headroom-products-" + std::to_string(getpid()) + ".csv"))
          .string();
};

}  // namespace

TEST_CASE("answers: list") {
  const std::array<std::pair<const char*, Listed>, 5> lists{{{"models", Listed::models},
                                                             {"systems", Listed::systems},
                                                             {"software", Listed::software},
                                                             {"sources", Listed::sources},
                                                             {"fields", Listed::fields}}};
  for (const auto& [name, listed] : lists) {
    const ListReply reply = answer(ListQuestion{listed});
    const std::string arguments = std::string("list ") + name;
    CHECK(render(reply, Format::table) == printed_by(arguments));
    CHECK(render(reply, Format::json) == printed_by(arguments + " --format json"));
  }
  const auto models = std::get<std::vector<ListedModel>>(answer(ListQuestion{Listed::models}).entries);
  const Json json = json_of("list models")["models"];
  REQUIRE(json.size() == models.size());
  CHECK(json.back()["name"] == models.back().model.name);
  CHECK(json.back()["parameters"] == models.back().parameters.all);
  CHECK(json.back()["active_parameters"] == models.back().parameters.active);
  CHECK(json.back()["active_parameters_without_embedding"] ==
        models.back().parameters.active_without_embedding);
}

TEST_CASE("answers: calibrate, and the samples that were fitted under what was fitted") {
  const ProductsFile file;
  const SampleSet set = read_samples(file.path());
  const CalibrateReply reply = answer(CalibrateQuestion{.sets = {set}, .base = read_system("dgx-a100-80g")});
  CHECK(render(reply, Format::json) == printed_by("calibrate " + file.path() + " --format json"));
  CHECK(render(reply, Format::table) == printed_by("calibrate " + file.path()));

  const ValidateSamplesReply base =
      answer(ValidateSamplesQuestion{.sets = {set}, .system = read_system("dgx-a100-80g")});
  const std::string arguments = "validate --system dgx-a100-80g --samples " + file.path();
  CHECK(render(base, Format::json) == printed_by(arguments + " --format json"));
  CHECK(render(base, Format::table) == printed_by(arguments));
  const Json json = json_of(arguments);
  CHECK(json["samples"].size() == base.replay.rows.size());
  std::size_t covered = 0;
  for (const Json& sample : json["samples"]) {
    if (sample["in_interval"] == true) ++covered;
  }
  CHECK(covered == base.covered);
  CHECK(base.intervals > 0);

  const ValidateSamplesReply fitted =
      answer(ValidateSamplesQuestion{.sets = {set}, .system = reply.calibration.system});
  CHECK(fitted.replay.groups.front().median_absolute < base.replay.groups.front().median_absolute);
}

TEST_CASE("answers: samples of another device, and none that can be predicted") {
  ValidateSamplesQuestion question{
      .sets = {{.file = "h200.json", .device = "NVIDIA H200"}, {.file = "v100.json", .device = "Tesla V100"}},
      .system = read_system("dgx-a100-80g")};
  CHECK(problems_of(question).size() == 2);
  CHECK_THROWS_WITH_AS(answer(question),
                       "h200.json: holds samples of 'NVIDIA H200', and dgx-a100-80g has A100-SXM4-80GB\n"
                       "v100.json: holds samples of 'Tesla V100', and dgx-a100-80g has A100-SXM4-80GB",
                       InputError);
  question.sets.clear();
  CHECK_THROWS_WITH_AS(answer(question), "samples: holds none that the time model has an equation for",
                       InputError);
}

TEST_CASE("answers: calibrate to runs") {
  const std::string file = (tests::source_dir() / "examples" / "cluster-runs.json").string();
  CalibrateToRunsQuestion question{.runs = choose_runs(read_runs(file), {}, "dgx-a100-80g", {}),
                                   .base = read_system("dgx-a100-80g"),
                                   .files = file};
  const CalibrateToRunsReply reply = answer(question);
  CHECK(render(reply, Format::json) == printed_by("calibrate --format json --from-runs " + file));
  CHECK(render(reply, Format::table) == printed_by("calibrate --from-runs " + file));
  const Json errors = json_of("calibrate --from-runs " + file)["errors"];
  CHECK(reply.fitted_after.runs == 3);
  CHECK(errors["fitted_after"]["worst_absolute_error_percent"] == 100 * reply.fitted_after.worst_absolute);
  CHECK(errors["held_out_before"]["runs"] == reply.held_out_before.runs);

  question.runs.skipped = {{"", "first", {"it is of a toaster"}}, {"", "second", {"it is of a kettle"}}};
  question.runs.fitted.clear();
  CHECK_THROWS_WITH_AS(
      answer(question),
      (file + ": none of its 3 runs can be fitted: 'first', for one, is skipped: it is of a toaster").c_str(),
      InputError);
}

TEST_CASE("answers: validate") {
  const ValidateReply reply =
      answer(ValidateQuestion{.measurements = embedded_measurements(), .skipped = {}});
  CHECK(render(reply, Format::json) == printed_by("validate --format json"));
  const Json json = json_of("validate");
  CHECK(json["met"] == met(reply));
  CHECK(json["rows"].size() == reply.rows.size());
}

}  // namespace headroom
