// Sustained efficiencies that iteration times can determine, and those that given configurations do
// determine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/comparison.hpp"

namespace headroom {

// A factor on some rates of a system, each a fraction of one.
struct Efficiency {
  std::string_view name;
  std::vector<std::string_view> rates;
  double least = 0;  // of the first rate
  double most = 1;   // of each
  friend bool operator==(const Efficiency&, const Efficiency&) = default;
};

std::vector<Efficiency> efficiencies();

// Sets the first rate to `value` and scales the others with it, as the base has them.
void set_efficiency(Rates& rates, const Efficiency& efficiency, double value, const Rates& base);

// Returns the largest value of the first rate that leaves all rates within their bounds, or the base's value
// if that is larger.
double most_value(const Efficiency& efficiency, const Rates& base);
double least_value(const Efficiency& efficiency, const Rates& base);

Seconds iteration_under(const MeasuredCase& run, const Rates& rates);

// Returns the fraction by which a run's time falls per small fraction of growth in an efficiency: its share
// of the critical path.
double dependence(const MeasuredCase& run, const Efficiency& efficiency, const Rates& rates);

// Dependences by efficiency and run: dependences[efficiency][run].
using Dependences = std::vector<std::vector<double>>;
Dependences dependences_of(const std::vector<MeasuredCase>& runs, const Rates& rates);

// Returns the efficiencies that the runs `among` determine, clearest first, up to `most`, as indices into
// efficiencies(). An efficiency is determined if the part of its dependence (a vector over the runs) that
// earlier ones do not share is long enough.
std::vector<std::size_t> told_by(const Dependences& dependences, const std::vector<std::size_t>& among,
                                 std::size_t most);

}  // namespace headroom
