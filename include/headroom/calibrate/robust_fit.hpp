// Bounded, robust least squares of a few positive parameters, by Levenberg and Marquardt's method.
//
// Parameters are fitted as logarithms, so that each is as easily halved as doubled. A residual r counts as
// 2 s^2 (sqrt(1 + (r/s)^2) - 1): as its square while small beside the scale s, linearly beyond, so that a few outliers
// do not bend the fit. The same input gives the same values, always.
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

// Fills the residuals at some values of the parameters.
using Residuals = std::function<void(std::span<const double> values, std::span<double> residuals)>;

struct RobustFit {
  std::vector<double> values;  // in the order of the parameters
  double cost = 0;
  int iterations = 0;
  bool converged = false;
  friend bool operator==(const RobustFit&, const RobustFit&) = default;
};

// Expects at least one parameter, each with 0 < least <= start <= most, and no fewer residuals than parameters.
RobustFit fit_robustly(const std::vector<Parameter>& parameters, std::size_t residual_count,
                       const Residuals& residuals, double scale);

}  // namespace headroom
