#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "elements.hpp"
#include "filling.cuh"
#include "layer.cuh"
#include "layers.cuh"

namespace headroom::harness {
namespace {

constexpr std::uint64_t input_seed = 11;
constexpr std::uint64_t gradient_seed = 12;

template <class T>
Values host_values(std::int64_t count, const Filling& filling) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = stored<T>(filling.scale * element(i, filling.seed));
  return values;
}

template <class T>
Values device_values(const T* values, std::size_t count, cudaStream_t stream) {
  std::vector<T> copy(count);
  check(cudaStreamSynchronize(stream));
  check(cudaMemcpy(copy.data(), values, count * sizeof(T), cudaMemcpyDeviceToHost));
  Values result(count);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == sizeof(float)) {
      result[i] = copy[i];
    } else {
      result[i] = HalfTraits<T>::to_float(copy[i]);
    }
  }
  return result;
}

// A wrong index is off by the size of the values themselves; a dozen roundings on the way are not.
template <class T>
void compare(const Values& found, const Values& expected, const std::string& what) {
  constexpr double roundings = 12;
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= roundings * HalfTraits<T>::epsilon * largest)) {
      throw SampleError("the layer's " + what + " is wrong at " + std::to_string(i) + ": " +
                        std::to_string(found[i]) + " where " + std::to_string(expected[i]) + " was expected");
    }
  }
}

template <class T>
void check_of_type(RecomputePolicy recompute, std::int64_t shards, const LayerRank& rank) {
  const std::int64_t heads = shards == 1 ? 4 : shards;
  const LayerSize size{
      .sequence = 40, .micro_batch = 2, .hidden = 16 * heads, .heads = heads, .shards = shards};
  const std::int64_t count = size.tokens() * size.hidden;
  cudaStream_t const stream = rank.stream;
  Pool pool(stream);
  pool.reserve(pool_bytes(size));
  pool.set_careful(true);
  const Library library = make_library();
  Layer<T> layer(size, rank.shard, recompute, pool, library, rank.communicator, stream);

  const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
  const Buffer output_gradient(bytes);
  const Buffer output(bytes);
  const Buffer input_gradient(bytes);
  Tensor input(pool, static_cast<std::int64_t>(bytes));
  fill(input.as<T>(), count, input_seed, stream);
  fill(output_gradient.as<T>(), count, gradient_seed, stream);
  output.poison(stream);
  input_gradient.poison(stream);
  rank.together.agree(0);
  layer.forward(std::move(input), output.as<T>());
  layer.backward(output_gradient.as<const T>(), input_gradient.as<T>());

  std::vector<LayerParameters<Values>> parameters(static_cast<std::size_t>(shards));
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    std::int64_t array = 0;
    parameters[static_cast<std::size_t>(shard)].for_each(size, [&](Values& values, std::int64_t elements) {
      values = host_values<T>(elements, filling_of(size, shard, array++));
    });
  }
  const LayerResult expected = reference_layer(size, host_values<T>(count, {input_seed, 1}), parameters,
                                               host_values<T>(count, {gradient_seed, 1}));
  const auto elements = static_cast<std::size_t>(count);
  compare<T>(device_values(output.as<const T>(), elements, stream), expected.output, "output");
  compare<T>(device_values(input_gradient.as<const T>(), elements, stream), expected.input_gradient,
             "input gradient");

  std::vector<Values> found;
  layer.gradients().for_each(size, [&](const Buffer& buffer, std::int64_t of) {
    found.push_back(device_values(buffer.as<const float>(), static_cast<std::size_t>(of), stream));
  });
  std::size_t array = 0;
  expected.gradients[static_cast<std::size_t>(rank.shard)].for_each(
      size, [&](const Values& values, std::int64_t) {
        compare<T>(found[array], values, "gradient of parameter array " + std::to_string(array));
        ++array;
      });
}

}  // namespace

void check_layer(HalfFormat format, RecomputePolicy recompute, std::int64_t shards, const LayerRank& rank) {
  with_type(format, [&](auto type) { check_of_type<decltype(type)>(recompute, shards, rank); });
}

}  // namespace headroom::harness
