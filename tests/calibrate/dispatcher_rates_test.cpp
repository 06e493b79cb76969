// Rates of DeepEP's kernels against the tables that they were fitted to, within a node, and against those over nodes, which they were
// not fitted to.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "csv_rows.hpp"
#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/time/collective.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

struct DispatcherTable {
  const char* system;
  const char* file;          // under data/microbench/kernels
  double dispatch, combine;  // medians of absolute errors within a node
};

constexpr DispatcherTable dispatcher_tables[] = {
    {"dgx-h100-80g", "h100_sxm_deepep.csv", 0.05, 0.1},   {"dgx-h200-141g", "h200_sxm_deepep.csv", 0.05, 0.1},
    {"dgx-b200-180g", "b200_sxm_deepep.csv", 0.06, 0.08}, {"dgx-b300", "b300_sxm_deepep.csv", 0.06, 0.08},
    {"gb200-nvl72", "gb200_deepep.csv", 0.09, 0.08},      {"gb300-nvl72", "gb300_deepep.csv", 0.09, 0.08},
};

// nodes,gpus,tokens,hidden,top_k,experts,sms,dispatch_us,dispatch_notify_us,combine_us,combine_notify_us
using Row = std::vector<double>;

std::vector<Row> kernel_times_of(const std::string& path) {
  std::vector<Row> rows;
  for (const std::vector<std::string>& cells : tests::csv_rows(path)) {
    Row& row = rows.emplace_back();
    for (const std::string& cell : cells) row.push_back(std::stod(cell));
  }
  return rows;
}

// The relative error of a row's dispatch, in FP8 with a scale for 128 numbers, or of its combine.
double error_of(const Row& row, bool dispatch, const Performance& performance) {
  const auto ranks = static_cast<std::int64_t>(row[1]);
  const double nodes = row[0];
  Bindings letters;
  letters.bind(Symbol::experts, row[5]).bind(Symbol::experts_per_token, row[4]);
  letters.bind(Symbol::expert_groups, 1).bind(Symbol::expert_groups_per_token, 1);
  const double parts = parts_per_token(letters, row[1]);
  const double bytes_of_number = dispatch ? 1 + 4.0 / 128 : 2;
  const DeepEpRates& rates = *performance.rates.collectives.deepep;
  const TokenRoute route{.nodes_of_ranks = parts_per_token(letters, nodes) / parts,
                         .tokens = row[2],
                         .kernel = dispatch ? &rates.dispatch : &rates.combine};
  const Group group{.ranks = ranks, .ranks_in_node = ranks / static_cast<std::int64_t>(nodes)};
  const Seconds predicted =
      routed_time(route, Bytes(row[2] * parts * row[3] * bytes_of_number), group, performance);
  const double measured = dispatch ? row[7] + row[8] : row[9] + row[10];
  return predicted.count() / (1e-6 * measured) - 1;
}

std::vector<double> errors_of(const std::vector<Row>& rows, double nodes, double least_tokens, bool dispatch,
                              const Performance& performance) {
  constexpr double multiprocessors = 20;  // those that Megatron-Core gives them
  std::vector<double> errors;
  for (const Row& row : rows) {
    if (row.at(0) == nodes && row.at(2) >= least_tokens && row.at(6) == multiprocessors)
      errors.push_back(error_of(row, dispatch, performance));
  }
  return errors;
}

double median_absolute(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return quantile(std::move(errors), 0.5);
}

}  // namespace

SHARED_TEST_CASE(
    "dispatchers: DeepEP's kernels within a node are met by a launch, the tokens and the bytes") {
  for (const DispatcherTable& table : dispatcher_tables) {
    CAPTURE(table.system);
    const auto file = tests::shared_file(std::string("data/microbench/kernels/") + table.file);
    if (!file) continue;
    const Performance performance = *read_system(table.system).performance;
    const std::vector<Row> rows = kernel_times_of(file->string());
    CHECK(median_absolute(errors_of(rows, 1, 0, true, performance)) < table.dispatch);
    CHECK(median_absolute(errors_of(rows, 1, 0, false, performance)) < table.combine);
  }
}

SHARED_TEST_CASE("dispatchers: DeepEP's kernels over two and four nodes follow from those within one") {
  const auto file = tests::shared_file("data/microbench/kernels/h100_sxm_deepep.csv");
  if (!file) return;
  const Performance performance = *read_system("dgx-h100-80g").performance;
  const std::vector<Row> rows = kernel_times_of(file->string());
  constexpr double many = 4096;  // a microbatch; fewer tokens take up to half as long again as predicted
  const auto check = [&](double nodes, bool dispatch, double least, double most) {
    CAPTURE(nodes);
    CAPTURE(dispatch);
    const std::vector<double> errors = errors_of(rows, nodes, many, dispatch, performance);
    CHECK(errors.size() >= 3);
    for (const double error : errors) {
      CHECK(error > least);
      CHECK(error < most);
    }
  };
  check(2, false, -0.1, 0.1);
  check(4, false, -0.1, 0.1);
  check(4, true, -0.1, 0.1);
  check(2, true, 0, 0.4);  // of FP8, which is handed on faster than numbers of 16 bits
}

}  // namespace headroom
