// The tables of `headroom plan`: a strategy a row.
#pragma once

#include <vector>

#include "headroom/report/plan.hpp"

namespace headroom {

// The first `most`, numbered; with what a training run takes of each, where that is known.
Table candidates_table(const PlanReply& report, const std::vector<Candidate>& candidates,
                       const std::vector<Outlook>& outlooks, std::size_t most,
                       const std::vector<PlanBelief>& beliefs = {});

// Returns the flags of a candidate, for its system and stack.
std::string flags_of(const PlanReply& report, const Candidate& candidate);

// Returns the command that estimates a candidate.
std::string command_of(const PlanReply& report, const PlanWords& asked, const Candidate& candidate);

// Returns the best plans in base units, for spreadsheets.
Table csv_table(const PlanReply& report);

}  // namespace headroom
