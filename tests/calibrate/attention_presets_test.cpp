// The presets' rates of flash attention against the tables that they were fitted to: fitted again, they come out the same, and
// held-out thirds are met.
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "csv_rows.hpp"
#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/system_file.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

struct AttentionTable {
  const char* system;
  const char* file;              // under data/microbench/kernels
  double bandwidth;              // of memory
  double write_share;            // of it that the write of keys and values into a cache reaches
  double runs;                   // of a kernel, one after another
  double median, percentile_90;  // held out, of kernels that fill the device
};

// The targets are 6 and 15%. B300, whose kernels are another program's, misses the second.
constexpr AttentionTable attention_tables[] = {
    {"dgx-a100-80g", "a100_sxm_attention.csv", 2.039e12, 0.8, 26, 0.02, 0.05},
    {"dgx-h100-80g", "h100_sxm_attention.csv", 3.35e12, 0.8, 26, 0.045, 0.10},
    {"dgx-h200-141g", "h200_sxm_attention.csv", 4.8e12, 0.8, 26, 0.055, 0.14},
    {"dgx-b200-180g", "b200_sxm_attention.csv", 8e12, 0.8, 26, 0.04, 0.135},
    {"dgx-b300", "b300_sxm_attention.csv", 8e12, 0.5, 12, 0.057, 0.175},
    {"gb200-nvl72", "gb200_attention.csv", 8e12, 0.8, 26, 0.045, 0.135},
    {"gb300-nvl72", "gb300_attention.csv", 8e12, 0.8, 26, 0.035, 0.105},
};

// Samples of 16 bits from 1024 tokens on, without the write of keys and values (8 bytes for each pair of elements), and
// without heads of 192, which were measured with a cache of one token a page only. What ran for 0.2 s and longer was under
// sustained load.
SampleSet attention_samples_of(const AttentionTable& table, const std::string& path) {
  std::string text = "head_size,query_heads,kv_heads,batch,sequence,window,load,milliseconds\n";
  for (const std::vector<std::string>& cells : tests::csv_rows(path)) {
    const auto number = [&](std::size_t i) { return std::stod(cells.at(i)); };
    const double head = number(1);
    const double sequence = number(5);
    if (cells[0] != "bf16" || head == 192 || sequence < 1024) continue;
    const double measured = number(8);
    const double written =
        8 * number(4) * sequence * number(3) * head / (table.write_share * table.bandwidth);
    const double kernel = measured - 1e3 * written;
    if (kernel <= 0) continue;
    const bool sustained = table.runs * measured >= 200;
    text += fmt::format("{},{},{},{},{},{},{},{:.6g}\n", cells[1], cells[2], cells[3], cells[4], cells[5],
                        cells[7], sustained ? "sustained" : "burst", kernel);
  }
  return parse_samples(text, table.file);
}

}  // namespace

SHARED_TEST_CASE(
    "presets: held-out kernels of attention are met within the targets, and the fit is the preset") {
  for (const AttentionTable& table : attention_tables) {
    CAPTURE(table.system);
    const auto file = tests::shared_file(std::string("data/microbench/kernels/") + table.file);
    if (!file) continue;
    const System system = read_system(table.system);
    const Calibration fit = calibrate({attention_samples_of(table, file->string())}, system);
    bool found = false;
    for (const ErrorGroup& group : fit.held_out) {
      if (group.name != "attention, forward, device filled") continue;
      found = true;
      CHECK(group.median_absolute <= table.median);
      CHECK(group.percentile_90_absolute <= table.percentile_90);
    }
    CHECK(found);
    for (const FittedRate& rate : fit.fitted) {
      CAPTURE(rate.name);
      CHECK(rate.before == doctest::Approx(rate.value).epsilon(0.01));
    }
  }
}

}  // namespace headroom
