// What an answer for readers says of its warnings and assumptions. JSON and pages always have all of them.
#pragma once

#include <string>

#include "headroom/plan/plan.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// Returns whether a warning says how sure a figure is: a rate that is assumed, transferred from another GPU, or
// used beyond what it was fitted on. All others say what to change.
bool is_of_evidence(const Warning& warning);

// Returns a line for each warning that says what to change, and one that counts the other warnings and the
// assumptions. In a verbose style, lists all of them.
std::string caveats_text(const Plan& plan, const Style& style);

}  // namespace headroom
