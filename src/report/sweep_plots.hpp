// Plots of a sweep: iteration time and peak memory against the field with the most numbers, a line for each combination
// of the others. Where no field is a number, a bar for each point.
#pragma once

#include <vector>

#include "report/chart.hpp"
#include "report/json.hpp"

namespace headroom {

// `sweep`: the reply in JSON.
void add_sweep_plots(const OrderedJson& sweep, std::vector<chart::Chart>& charts);

}  // namespace headroom
