// Prices of the delta rule's kernels against the tables that their two constants were fitted to.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "csv_rows.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/parts/delta_rule.hpp"
#include "headroom/model/parts/gated_delta_net.hpp"
#include "headroom/time/scan.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

struct DeltaTable {
  const char* system;
  const char* file;    // under data/microbench/kernels
  double least, most;  // of the median error
};

constexpr DeltaTable delta_tables[] = {{"dgx-h100-80g", "h100_sxm_gated_delta_net.csv", -0.2, -0.1},
                                       {"dgx-b200-180g", "b200_sxm_gated_delta_net.csv", 0, 0.12},
                                       {"dgx-b300", "b300_sxm_gated_delta_net.csv", -0.05, 0.05},
                                       {"gb200-nvl72", "gb200_gated_delta_net.csv", -0.07, 0.05},
                                       {"gb300-nvl72", "gb300_gated_delta_net.csv", -0.05, 0.07}};

constexpr std::int64_t rule_kernels = 6;  // of chunk_gated_delta_rule; the others make decays and betas

}  // namespace

SHARED_TEST_CASE("delta rule: the median error over measured forward kernels of each GPU is as stated") {
  for (const DeltaTable& table : delta_tables) {
    CAPTURE(table.file);
    const auto file = tests::shared_file(std::string("data/microbench/kernels/") + table.file);
    if (!file) continue;
    const Performance performance = *read_system(table.system).performance;
    std::vector<double> errors;
    // kernel,batch,sequence,width,conv,key_heads,key_head_size,value_heads,value_head_size,milliseconds
    for (const std::vector<std::string>& row : tests::csv_rows(file->string())) {
      const auto number = [&](std::size_t column) { return std::stod(row[column]); };
      if (row[0] != "chunk_gated_delta_rule" || number(2) < 1024) continue;
      ScanWork work = gated_delta_forward({.tokens = number(1) * number(2),
                                           .sequence = number(2),
                                           .heads = number(7),
                                           .head_size = number(8),
                                           .groups = number(5),
                                           .state_size = number(6),
                                           .chunk_size = delta_chunk});
      work.convolved_bytes = 0;
      work.kernels = rule_kernels;
      errors.push_back(scan_time(work, performance).count() / (1e-3 * number(9)) - 1);
    }
    REQUIRE(errors.size() > 100);
    std::nth_element(errors.begin(), errors.begin() + std::ssize(errors) / 2, errors.end());
    const double median = errors[errors.size() / 2];
    CHECK(median > table.least);
    CHECK(median < table.most);
  }
}

}  // namespace headroom
