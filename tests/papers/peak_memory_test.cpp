// Peaks of allocated memory that others measured under Megatron-Core, against what its stack is said to hold at the
// moment of the peak. No figure of the stack is fitted to them.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/plan/interval.hpp"
#include "papers/functional_tests.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

std::vector<double> without_signs(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

constexpr const char* simumax = "SimuMax v1.2 B200 real measurements (Megatron-LM core 0.14-era)";

// Signed errors of the dense configurations, each once: memory does not depend on how many microbatches there are.
std::vector<double> simumax_errors(const std::string& file, const Software& software) {
  std::vector<MeasuredRun> runs = read_runs(file);
  std::erase_if(runs, [](const MeasuredRun& run) { return run.source != simumax; });
  std::map<std::string, double> errors;
  for (const MeasuredCase& run : cases_of(runs, "dgx-b200-180g", std::nullopt).measurements.cases) {
    for (const Figure& figure : run.figures) {
      if (figure.measure != Measure::allocated_bytes) continue;
      Request request = run.request;
      request.software = software;
      const double predicted = allocated(account(evaluate(request))).count();
      errors[std::to_string(figure.value)] = predicted / figure.value - 1;
    }
  }
  std::vector<double> result;
  for (const auto& [figure, error] : errors) result.push_back(error);
  return result;
}

}  // namespace

SHARED_TEST_CASE("peak memory: SimuMax's dense runs within 0.5%") {
  const auto file = tests::shared_file("data/measured/runs.json");
  if (!file) return;
  Software software = read_software("megatron-core-2025");
  const StackMemory stack = std::exchange(software.memory, {});
  CHECK(median(without_signs(simumax_errors(file->string(), software))) >
        0.02);  // without what is alive at the peak
  software.memory = stack;
  const std::vector<double> errors = simumax_errors(file->string(), software);
  REQUIRE(errors.size() == 4);
  for (const double error : errors) CHECK(std::abs(error) < 0.005);
  CHECK(median(without_signs(errors)) < 0.002);
}

SHARED_TEST_CASE("peak memory: Megatron's own functional tests within 2.5%") {
  const auto file = tests::shared_file("data/measured/megatron_memory.csv");
  if (!file) return;
  std::vector<double> before;
  std::vector<double> errors;
  for (auto& [request, measured] : tests::functional_tests(*file)) {
    errors.push_back(tests::last_rank(request) / measured - 1);
    request.software.memory = {};
    before.push_back(tests::last_rank(request) / measured - 1);
  }
  CHECK(errors.size() == 33);
  CHECK(median(without_signs(before)) > 0.10);
  CHECK(median(without_signs(errors)) < 0.01);
  CHECK(*std::max_element(errors.begin(), errors.end()) < 0.005);
  CHECK(*std::min_element(errors.begin(), errors.end()) > -0.025);
}

// One GPU without a master copy, all in BF16: 8 bytes a parameter, where fp32 state takes 18.
SHARED_TEST_CASE("peak memory: a trainer that keeps BF16 state and no master weights") {
  const auto file = tests::shared_file("data/measured/runs_2026.json");
  if (!file) return;
  double measured = 0;
  for (const nlohmann::json& row : nlohmann::json::parse(std::ifstream(*file))) {
    if (row.at("id") == "kempner-mfu-01-7B-n1-tp1-fsdp1")
      measured = row.at("measured").at("peak_memory_gb").get<double>() * 1e9;
  }
  REQUIRE(measured == 80.7e9);
  Request request{.model = read_model("llama-3-8b"),
                  .system = read_system("dgx-h200-141g"),
                  .software = read_software("megatron-2022"),
                  .strategy = {.micro_batch = 4, .recompute = {.policy = RecomputePolicy::full}},
                  .workload = {.global_batch = 8, .sequence = 4096}};
  request.software.memory.backward_buffers = true;
  const auto predicted = [&] { return allocated(account(evaluate(request))).count(); };
  CHECK(predicted() > 1.9 * measured);
  request.strategy.gradient_dtype = Dtype::half;
  request.strategy.optimizer = {MainParams::none, MomentDtype::bf16, MomentDtype::bf16};
  CHECK(std::abs(predicted() / measured - 1) < 0.03);
}

}  // namespace headroom
