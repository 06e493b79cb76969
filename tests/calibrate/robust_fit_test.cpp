#include "headroom/calibrate/robust_fit.hpp"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

namespace headroom {
namespace {

// log((a + b x) / y): two parameters of different size, as latency and bandwidth are.
Residuals line(const std::vector<double>& x, const std::vector<double>& y) {
  return [&x, &y](std::span<const double> values, std::span<double> residuals) {
    for (std::size_t i = 0; i < x.size(); ++i) residuals[i] = std::log((values[0] + values[1] * x[i]) / y[i]);
  };
}

struct Data {
  std::vector<double> x, y;
};
Data exact_line() {
  Data data;
  for (int i = 0; i < 40; ++i) {
    data.x.push_back(std::pow(2, i % 20));
    data.y.push_back(3e-6 + 7e-9 * data.x.back());
  }
  return data;
}

const std::vector<Parameter> free_parameters{{"a", 1e-6, 1e-9, 1}, {"b", 1e-7, 1e-12, 1}};

}  // namespace

TEST_CASE("fit: an exact line is found from far away") {
  const Data data = exact_line();
  const RobustFit fit = fit_robustly(free_parameters, data.x.size(), line(data.x, data.y), 0.05);
  CHECK(fit.converged);
  CHECK(fit.values[0] == doctest::Approx(3e-6).epsilon(1e-3).scale(0));
  CHECK(fit.values[1] == doctest::Approx(7e-9).epsilon(1e-3).scale(0));
}

TEST_CASE("fit: a tenth of outliers, twenty times too slow, moves it little") {
  Data data = exact_line();
  for (std::size_t i = 3; i < data.y.size(); i += 10) data.y[i] *= 20;
  const RobustFit fit = fit_robustly(free_parameters, data.x.size(), line(data.x, data.y), 0.05);
  CHECK(fit.values[0] == doctest::Approx(3e-6).epsilon(0.05).scale(0));
  CHECK(fit.values[1] == doctest::Approx(7e-9).epsilon(0.05).scale(0));
}

TEST_CASE("fit: bounds hold, and the other parameter makes the best of them") {
  const Data data = exact_line();
  const std::vector<Parameter> bounded{{"a", 1e-6, 1e-9, 2e-6}, {"b", 1e-7, 1e-12, 1}};
  const RobustFit fit = fit_robustly(bounded, data.x.size(), line(data.x, data.y), 0.05);
  CHECK(fit.values[0] == doctest::Approx(2e-6).epsilon(1e-6).scale(0));
  CHECK(fit.values[1] > 6e-9);
  CHECK(fit.values[1] < 2e-8);
}

TEST_CASE("fit: a parameter that nothing depends on stays where it is") {
  const Data data = exact_line();
  std::vector<Parameter> parameters = free_parameters;
  parameters.push_back({"idle", 5, 1, 10});
  const RobustFit fit = fit_robustly(parameters, data.x.size(), line(data.x, data.y), 0.05);
  CHECK(fit.values[2] == doctest::Approx(5));
  CHECK(fit.values[1] == doctest::Approx(7e-9).epsilon(1e-3).scale(0));
}

TEST_CASE("fit: the same input gives the same values") {
  const Data data = exact_line();
  const auto fit = [&] { return fit_robustly(free_parameters, data.x.size(), line(data.x, data.y), 0.05); };
  CHECK(fit() == fit());
}

}  // namespace headroom
