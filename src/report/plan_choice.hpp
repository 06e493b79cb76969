// How a plan was chosen among those that predictions cannot tell apart, and the trials that would tell more.
#pragma once

#include <string>

#include "headroom/report/plan.hpp"
#include "report/json.hpp"

namespace headroom {

// Lines about the first plan: those equal to it within noise, and a faster one that it was preferred to. Empty if
// nothing was chosen. `shown`: plans in the table.
std::string preference_text(const PlanReply& report, std::size_t shown);

// The strategies to measure, as a table with a heading. Empty if none was asked for.
std::string proposed_trials_text(const PlanReply& report, const PlanWords& asked, const Style& style);

// Expects a reply with a choice.
OrderedJson choice_json(const PlanReply& report, const PlanWords& asked);

// "38%", "below 1%"
std::string odds_text(double odds);

}  // namespace headroom
