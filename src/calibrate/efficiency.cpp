#include "efficiency.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headroom/core/expects.hpp"
#include "rate_parameters.hpp"

namespace headroom {
namespace {

// Iteration times are predicted within about 5%. A scalar on which they depend by a vector of length x is
// then known within 5% / x. At a length of 0.2 that is a quarter of its value; a less certain scalar is not
// worth changing.
constexpr double least_length = 0.2;

using Row = std::vector<double>;

double dot(const Row& x, const Row& y) { return std::inner_product(x.begin(), x.end(), y.begin(), 0.0); }

// Returns the part of x orthogonal to a direction of length one.
Row without(Row x, const Row& direction) {
  const double along = dot(x, direction);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= along * direction[i];
  return x;
}

}  // namespace

// No efficiency exceeds one, by definition. A value below the lower bound means a fault, another load during
// the run or another configuration.
std::vector<Efficiency> efficiencies() {
  return {{"products.sustained", {"products.sustained"}, 0.5},
          {"streaming.bandwidth_share", {"streaming.bandwidth_share"}, 0.3},
          {"flash_attention.sustained", {"flash_attention.sustained"}, 0.05},
          {"network.nic_efficiency", {"network.nic_efficiency"}, 0.05},
          {"network.shared_nic_efficiency", {"network.shared_nic_efficiency"}, 0.05}};
}

void set_efficiency(Rates& rates, const Efficiency& efficiency, double value, const Rates& base) {
  const double factor = value / rate_value(base, efficiency.rates.front());
  for (const std::string_view rate : efficiency.rates) {
    // Multiplication may exceed the bound by the last bit.
    set_rate(rates, rate, std::min(factor * rate_value(base, rate), efficiency.most));
  }
}

double most_value(const Efficiency& efficiency, const Rates& base) {
  const double first = rate_value(base, efficiency.rates.front());
  double most = efficiency.most;
  for (const std::string_view rate : efficiency.rates) {
    most = std::min(most, efficiency.most * first / rate_value(base, rate));
  }
  return std::max(most, first);
}

double least_value(const Efficiency& efficiency, const Rates& base) {
  return std::min(efficiency.least, rate_value(base, efficiency.rates.front()));
}

Seconds iteration_under(const MeasuredCase& run, const Rates& rates) {
  Request request = run.request;
  request.system.performance->rates = rates;
  return account(evaluate(request)).timing->iteration.total;
}

double dependence(const MeasuredCase& run, const Efficiency& efficiency, const Rates& rates) {
  constexpr double smaller = 1 / 1.05;  // wide enough to see past single waves of tiles
  Rates changed = rates;
  set_efficiency(changed, efficiency, smaller * rate_value(rates, efficiency.rates.front()), rates);
  return std::log(iteration_under(run, changed) / iteration_under(run, rates)) / -std::log(smaller);
}

Dependences dependences_of(const std::vector<MeasuredCase>& runs, const Rates& rates) {
  Dependences all;
  for (const Efficiency& efficiency : efficiencies()) {
    Row& row = all.emplace_back();
    for (const MeasuredCase& run : runs) row.push_back(dependence(run, efficiency, rates));
  }
  return all;
}

std::vector<std::size_t> told_by(const Dependences& dependences, const std::vector<std::size_t>& among,
                                 std::size_t most) {
  std::vector<Row> left;
  for (const Row& all : dependences) {
    Row& row = left.emplace_back();
    for (const std::size_t run : among) row.push_back(all[run]);
  }
  std::vector<std::size_t> told;
  while (told.size() < most) {
    const auto longest = std::max_element(left.begin(), left.end(),
                                          [](const Row& x, const Row& y) { return dot(x, x) < dot(y, y); });
    const double length = std::sqrt(dot(*longest, *longest));
    if (length < least_length) break;
    told.push_back(static_cast<std::size_t>(longest - left.begin()));
    Row direction = *longest;
    for (double& x : direction) x /= length;
    for (Row& row : left) row = without(std::move(row), direction);
  }
  return told;
}

}  // namespace headroom
