// The tables of `headroom plan`: a strategy a row.
#pragma once

#include <vector>

#include "headroom/report/plan.hpp"

namespace headroom {

// The request of one of the strategies.
Request request_of(const PlanReport& report, const Candidate& candidate);

// The first `most`, numbered; with what a training run takes where tokens are given.
Table candidates_table(const PlanReport& report, const std::vector<Candidate>& candidates, std::size_t most);

// The best plans in base units, for spreadsheets.
Table csv_table(const PlanReport& report);

}  // namespace headroom
