// The sustained efficiencies that iteration times can tell, and which of them some configurations do tell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/comparison.hpp"

namespace headroom {

// A factor on some rates of a system, each a part of one.
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

// The largest value of the first rate that leaves all rates within their bounds; that of the base, where it is larger.
double most_value(const Efficiency& efficiency, const Rates& base);
double least_value(const Efficiency& efficiency, const Rates& base);

Seconds iteration_under(const MeasuredCase& run, const Rates& rates);

// By what part a run's time falls when an efficiency grows by a (small) part: its share of the critical path.
double dependence(const MeasuredCase& run, const Efficiency& efficiency, const Rates& rates);

// Of efficiencies and runs: dependences[efficiency][run].
using Dependences = std::vector<std::vector<double>>;
Dependences dependences_of(const std::vector<MeasuredCase>& runs, const Rates& rates);

// Those that the runs `among` tell, most telling first, up to `most`: indices into efficiencies(). One is told when
// the part of its dependence that those before it do not share is long enough (as a vector over the runs).
std::vector<std::size_t> told_by(const Dependences& dependences, const std::vector<std::size_t>& among,
                                 std::size_t most);

}  // namespace headroom
