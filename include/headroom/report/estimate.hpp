// The report of `headroom estimate`: memory of every pipeline rank against capacity.
#pragma once

#include <string>
#include <vector>

#include "headroom/plan/capacity.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

struct EstimateReport {
  Evaluation evaluation;
  std::vector<Alternative> alternatives;  // remedies where it does not fit, else improvements
  bool looked_for_alternatives = false;
  Training training;
  bool timeline = false;  // draw the schedule, in the formats for reading
};

// JSON follows schemas/estimate.schema.json; CSV and Markdown hold the table of ranks, in bytes and GiB.
std::string render(const EstimateReport& report, Format format);

}  // namespace headroom
