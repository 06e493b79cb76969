// Rates of DeepEP's and HybridEP's kernels against the tables that they were fitted to, and against those over nodes, which they were not
// fitted to.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "csv_rows.hpp"
#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"
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

// A row of HybridEP's table [DeepEP, branch hybrid-ep, docs/README_Hybrid-EP.md]: 4096 tokens of 7168 numbers in BF16, top 8 of 8
// experts a rank, 16 multiprocessors, kernels alone. GB/s count all copies of tokens that a rank receives or sends; over nodes of H100s,
// one for each node of a token's experts.
struct HybridEpRow {
  const char* system;
  std::int64_t ranks;
  double dispatch, combine;
};

constexpr HybridEpRow hybridep_rows[] = {
    {"dgx-b200-180g", 8, 734.95, 673.84}, {"gb200-nvl72", 8, 750.15, 684.27},
    {"gb200-nvl72", 16, 661.93, 600.75},  {"gb200-nvl72", 24, 637.80, 565.53},
    {"gb200-nvl72", 32, 629.79, 547.25},  {"gb200-nvl72", 36, 612.85, 543.27},
    {"dgx-h100-80g", 16, 71.71, 62.95},   {"dgx-h100-80g", 32, 57.69, 57.46},
    {"dgx-h100-80g", 64, 49.97, 49.77},
};

double error_of(const HybridEpRow& row, bool dispatch, const Performance& performance) {
  const std::int64_t in_node = row.system == std::string("gb200-nvl72") ? 72 : 8;
  const Group group{.ranks = row.ranks, .ranks_in_node = std::min(row.ranks, in_node)};
  Bindings letters;
  letters.bind(Symbol::experts, 8.0 * static_cast<double>(row.ranks)).bind(Symbol::experts_per_token, 8);
  letters.bind(Symbol::expert_groups, 1).bind(Symbol::expert_groups_per_token, 1);
  const bool over_nodes = group.ranks > group.ranks_in_node;
  const double copies = parts_per_token(letters, static_cast<double>(row.ranks));
  const double nodes = static_cast<double>(group.ranks) / static_cast<double>(group.ranks_in_node);
  const double of_nodes = parts_per_token(letters, nodes);
  const CollectiveRates& rates = performance.rates.collectives;
  const HybridEpRates& own = over_nodes ? *rates.hybridep_over_nodes : *rates.hybridep;
  const TokenRoute route{
      .nodes_of_ranks = of_nodes / copies,
      .from_others = dispatch ? own.dispatch_bandwidth.value : own.combine_bandwidth.value};
  constexpr double token = 4096.0 * 7168 * 2;
  const Seconds predicted = routed_time(route, Bytes(copies * token), group, performance);
  const double measured =
      (over_nodes ? of_nodes : copies) * token / (1e9 * (dispatch ? row.dispatch : row.combine));
  return predicted.count() / measured - 1;
}

}  // namespace

TEST_CASE("dispatchers: HybridEP's table within a node or a rack, and over nodes, of which two were fitted") {
  for (const HybridEpRow& row : hybridep_rows) {
    CAPTURE(row.system);
    CAPTURE(row.ranks);
    const Performance performance = *read_system(row.system).performance;
    const bool rack = row.system == std::string("gb200-nvl72");
    for (const bool dispatch : {true, false}) {
      CAPTURE(dispatch);
      const double error = error_of(row, dispatch, performance);
      CAPTURE(error);
      if (rack) {
        CHECK(std::abs(error) < 0.1);
      } else if (row.ranks > 16) {
        CHECK(std::abs(error) < 0.06);
      } else {
        CHECK(std::abs(error) < 0.01);
      }
    }
  }
}

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
