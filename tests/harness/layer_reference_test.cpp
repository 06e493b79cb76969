#include "harness/layer_reference.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "harness/elements.hpp"

namespace headroom::harness {
namespace {

Values filled(std::int64_t count, const Filling& filling) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(filling.scale * element(i, filling.seed));
  return values;
}

struct Problem {
  LayerSize size;
  Values input, output_gradient;
  std::vector<LayerParameters<Values>> shards;

  [[nodiscard]] LayerResult result() const { return reference_layer(size, input, shards, output_gradient); }
  // What the gradients are those of.
  [[nodiscard]] double loss() const {
    const Values output = result().output;
    double sum = 0;
    for (std::size_t i = 0; i < output.size(); ++i) sum += output[i] * output_gradient[i];
    return sum;
  }
};

Problem problem_of(const LayerSize& size) {
  const std::int64_t count = size.tokens() * size.hidden;
  Problem problem{.size = size, .input = filled(count, {1, 1}), .output_gradient = filled(count, {2, 1})};
  problem.shards.resize(static_cast<std::size_t>(size.shards));
  for (std::int64_t shard = 0; shard < size.shards; ++shard) {
    std::int64_t array = 0;
    problem.shards[static_cast<std::size_t>(shard)].for_each(
        size, [&](Values& values, std::int64_t elements) {
          values = filled(elements, filling_of(size, shard, array++));
        });
  }
  return problem;
}

// The loss's slope along one number, by differences to both sides.
double slope(Problem& problem, double& number) {
  constexpr double step = 1e-5;
  const double kept = number;
  number = kept + step;
  const double above = problem.loss();
  number = kept - step;
  const double below = problem.loss();
  number = kept;
  return (above - below) / (2 * step);
}

std::vector<Values*> arrays_of(const LayerSize& size, LayerParameters<Values>& parameters) {
  std::vector<Values*> arrays;
  parameters.for_each(size, [&](Values& values, std::int64_t) { arrays.push_back(&values); });
  return arrays;
}

constexpr LayerSize one_shard{.sequence = 5, .micro_batch = 2, .hidden = 8, .heads = 4, .shards = 1};
constexpr LayerSize two_shards{.sequence = 5, .micro_batch = 2, .hidden = 8, .heads = 4, .shards = 2};

}  // namespace

TEST_CASE("layer reference: gradients are slopes of the output") {
  for (const LayerSize& size : {one_shard, two_shards}) {
    Problem problem = problem_of(size);
    LayerResult result = problem.result();
    for (std::size_t i = 0; i < problem.input.size(); i += 7)
      CHECK(result.input_gradient[i] == doctest::Approx(slope(problem, problem.input[i])).epsilon(1e-5));
    for (std::size_t shard = 0; shard < problem.shards.size(); ++shard) {
      const auto parameters = arrays_of(size, problem.shards[shard]);
      const auto gradients = arrays_of(size, result.gradients[shard]);
      for (std::size_t array = 0; array < parameters.size(); ++array) {
        // What all shards share is read from the first.
        const bool shared =
            filling_of(size, 0, std::int64_t(array)).seed == filling_of(size, 1, std::int64_t(array)).seed;
        if (shared && shard > 0) continue;
        REQUIRE(parameters[array]->size() == gradients[array]->size());
        for (std::size_t i = 0; i < parameters[array]->size(); i += 1 + parameters[array]->size() / 5) {
          CAPTURE(shard);
          CAPTURE(array);
          CAPTURE(i);
          CHECK((*gradients[array])[i] ==
                doctest::Approx(slope(problem, (*parameters[array])[i])).epsilon(1e-5));
        }
      }
    }
  }
}

TEST_CASE("layer reference: shards of one layer add up to it") {
  Problem split = problem_of(two_shards);
  Problem whole = problem_of(one_shard);
  const std::int64_t h = two_shards.hidden;
  const std::int64_t f = two_shards.feedforward();
  const auto at = [](Values& values, std::int64_t i) -> double& {
    return values[static_cast<std::size_t>(i)];
  };
  LayerParameters<Values>& one = whole.shards[0];
  for (std::int64_t shard = 0; shard < 2; ++shard) {
    LayerParameters<Values>& part = split.shards[static_cast<std::size_t>(shard)];
    // Each shard draws masks of its own for attention, which therefore adds nothing here.
    std::fill(part.projection.begin(), part.projection.end(), 0);
    for (std::int64_t row = 0; row < f; ++row) {
      for (std::int64_t i = 0; i < h; ++i) at(one.up, (shard * f + row) * h + i) = at(part.up, row * h + i);
      at(one.up_bias, shard * f + row) = at(part.up_bias, row);
      for (std::int64_t i = 0; i < h; ++i)
        at(one.down, i * 2 * f + shard * f + row) = at(part.down, i * f + row);
    }
  }
  std::fill(one.projection.begin(), one.projection.end(), 0);
  const Values of_split = split.result().output;
  const Values of_whole = whole.result().output;
  for (std::size_t i = 0; i < of_split.size(); ++i)
    CHECK(of_split[i] == doctest::Approx(of_whole[i]).epsilon(1e-12));
}

TEST_CASE("layer reference: no token sees a later one") {
  const LayerSize size{.sequence = 6, .micro_batch = 2, .hidden = 8, .heads = 2, .shards = 1};
  Problem problem = problem_of(size);
  const Values before = problem.result().output;
  const auto last = static_cast<std::size_t>((size.sequence - 1) * size.micro_batch * size.hidden);
  for (std::size_t i = last; i < problem.input.size(); ++i)
    problem.input[i] += 1 + static_cast<double>(i % 3);
  const Values after = problem.result().output;
  for (std::size_t i = 0; i < last; ++i) CHECK(after[i] == before[i]);
  CHECK(after[last] != before[last]);
}

TEST_CASE("elements: even in [-1, 1), and dropout keeps nine of ten") {
  double sum = 0;
  double squares = 0;
  int kept = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double x = static_cast<double>(element(static_cast<std::uint64_t>(i), 3));
    REQUIRE(x >= -1);
    REQUIRE(x < 1);
    sum += x;
    squares += x * x;
    kept += keeps(static_cast<std::uint64_t>(i), 5) ? 1 : 0;
  }
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(squares / count == doctest::Approx(1.0 / 3).epsilon(0.01));
  CHECK(kept / double(count) == doctest::Approx(0.9).epsilon(0.01));
}

}  // namespace headroom::harness
