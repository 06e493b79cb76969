// The A100's rates against the measurements they were fitted on, so that neither can drift.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/time/collective.hpp"
#include "headroom/time/gemm.hpp"
#include "paths.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::performance;

double error_quantile(std::vector<double> errors, double q) {
  std::sort(errors.begin(), errors.end());
  return errors[static_cast<std::size_t>(q * static_cast<double>(errors.size() - 1))];
}

}  // namespace

SHARED_TEST_CASE("rates: matrix products on A100 within 5% median and 15% at the 90th percentile") {
  const auto path = tests::shared_file("data/microbench/a100-sxm-80g_gemm_bf16.csv");
  if (!path) return;
  std::ifstream file(*path);
  std::string header;
  std::getline(file, header);
  REQUIRE(header == "m,n,k,milliseconds");
  std::vector<double> all;
  std::vector<double> large;
  Gemm gemm;
  double milliseconds = 0;
  char comma = 0;
  while (file >> gemm.rows >> comma >> gemm.columns >> comma >> gemm.inner >> comma >> milliseconds) {
    const Seconds time = gemm_time(gemm, performance().device, performance().rates, 1);
    const double error = std::abs(1e3 * time.count() / milliseconds - 1);
    all.push_back(error);
    if (std::min({gemm.rows, gemm.columns, gemm.inner}) >= 1024) large.push_back(error);
    CHECK(within_fit(gemm, performance().rates.products));
  }
  REQUIRE(large.size() > 300);
  CHECK(error_quantile(large, 0.5) < 0.05);
  CHECK(error_quantile(large, 0.9) < 0.15);
  CHECK(error_quantile(all, 0.5) < 0.05);
}

SHARED_TEST_CASE("rates: collectives on A100 within 8% median from 1 MiB and 25% below") {
  const auto path = tests::shared_file("data/microbench/a100-sxm-80g_nccl_fp16.csv");
  if (!path) return;
  std::ifstream file(*path);
  std::string line;
  std::getline(file, line);
  REQUIRE(line == "collective,gpus,message_bytes,milliseconds");
  std::vector<double> large;
  std::vector<double> small;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    std::string name;
    Group group;
    double bytes = 0;
    double milliseconds = 0;
    row >> name >> group.ranks >> bytes >> milliseconds;
    group.ranks_in_node = group.ranks;
    const auto kind = from_name<CollectiveKind>(name);
    if (!kind) continue;  // all-to-all, which dense models do not use
    const Seconds time = collective_time(*kind, Bytes(bytes), group, performance());
    (Bytes(bytes) >= 1_MiB ? large : small).push_back(std::abs(1e3 * time.count() / milliseconds - 1));
    CHECK(within_fit(Bytes(bytes), group, performance().rates.collectives));
  }
  REQUIRE(large.size() > 50);
  CHECK(error_quantile(large, 0.5) < 0.08);
  CHECK(error_quantile(small, 0.5) < 0.25);
}

}  // namespace headroom
