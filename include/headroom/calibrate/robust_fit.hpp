// Bounded, robust least squares for a few positive parameters (Levenberg-Marquardt).
//
// Parameters are fitted as logarithms, so halving and doubling are equally easy. A residual r costs 2 s^2
// (sqrt(1 + (r/s)^2) - 1): its square while it is small compared with the scale s, and linear beyond. A few
// outliers therefore do not bend the fit. Equal input always gives equal values.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace headroom {

struct Parameter {
  std::string name;
  double start = 1;
  double least = 0;  // above zero
  double most = 0;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

// Computes the residuals for given parameter values.
using Residuals = std::function<void(std::span<const double> values, std::span<double> residuals)>;

struct RobustFit {
  std::vector<double> values;  // in the order of the parameters
  double cost = 0;
  int iterations = 0;
  bool converged = false;
  friend bool operator==(const RobustFit&, const RobustFit&) = default;
};

// Fits the parameters. Expects at least one parameter, each with 0 < least <= start <= most, and no fewer
// residuals than parameters.
RobustFit fit_robustly(const std::vector<Parameter>& parameters, std::size_t residual_count,
                       const Residuals& residuals, double scale);

}  // namespace headroom
