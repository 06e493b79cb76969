#include "layer_reference.hpp"

#include <algorithm>
#include <cmath>

#include "elements.hpp"

namespace headroom::harness {
namespace {

using Index = std::int64_t;

double& at(Values& values, Index i) { return values[static_cast<std::size_t>(i)]; }
double at(const Values& values, Index i) { return values[static_cast<std::size_t>(i)]; }
Values zeros(Index count) { return Values(static_cast<std::size_t>(count)); }

void add_to(Values& sum, const Values& values) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

// Y[rows x out] = X[rows x in] W' + bias.
Values linear(const Values& x, const Values& w, const Values* bias, Index rows, Index in, Index out) {
  Values y = zeros(rows * out);
  for (Index r = 0; r < rows; ++r) {
    for (Index o = 0; o < out; ++o) {
      double sum = bias == nullptr ? 0 : at(*bias, o);
      for (Index i = 0; i < in; ++i) sum += at(x, r * in + i) * at(w, o * in + i);
      at(y, r * out + o) = sum;
    }
  }
  return y;
}

// dX = dY W.
Values data_gradient(const Values& dy, const Values& w, Index rows, Index in, Index out) {
  Values dx = zeros(rows * in);
  for (Index r = 0; r < rows; ++r) {
    for (Index o = 0; o < out; ++o) {
      for (Index i = 0; i < in; ++i) at(dx, r * in + i) += at(dy, r * out + o) * at(w, o * in + i);
    }
  }
  return dx;
}

// dW = dY' X.
Values weight_gradient(const Values& dy, const Values& x, Index rows, Index in, Index out) {
  Values dw = zeros(out * in);
  for (Index r = 0; r < rows; ++r) {
    for (Index o = 0; o < out; ++o) {
      for (Index i = 0; i < in; ++i) at(dw, o * in + i) += at(dy, r * out + o) * at(x, r * in + i);
    }
  }
  return dw;
}

Values column_sums(const Values& x, Index rows, Index columns) {
  Values sums = zeros(columns);
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) at(sums, c) += at(x, r * columns + c);
  }
  return sums;
}

struct Normalized {
  Values unit;       // before scale and shift
  Values deviation;  // reciprocal, of each row
  Values output;
};

Normalized norm(const Values& x, const Values& scale, const Values& shift, Index rows, Index h) {
  Normalized result{zeros(rows * h), zeros(rows), zeros(rows * h)};
  for (Index r = 0; r < rows; ++r) {
    double mean = 0;
    double variance = 0;
    for (Index i = 0; i < h; ++i) mean += at(x, r * h + i) / static_cast<double>(h);
    for (Index i = 0; i < h; ++i) variance += std::pow(at(x, r * h + i) - mean, 2) / static_cast<double>(h);
    at(result.deviation, r) = 1 / std::sqrt(variance + static_cast<double>(norm_epsilon));
    for (Index i = 0; i < h; ++i) {
      const double unit = (at(x, r * h + i) - mean) * at(result.deviation, r);
      at(result.unit, r * h + i) = unit;
      at(result.output, r * h + i) = unit * at(scale, i) + at(shift, i);
    }
  }
  return result;
}

Values norm_gradient(const Values& dy, const Normalized& forward, const Values& scale, Values& dscale,
                     Values& dshift, Index rows, Index h) {
  Values dx = zeros(rows * h);
  dscale = zeros(h);
  dshift = zeros(h);
  for (Index r = 0; r < rows; ++r) {
    double sum = 0;
    double with_unit = 0;
    for (Index i = 0; i < h; ++i) {
      const double unit = at(forward.unit, r * h + i);
      const double g = at(dy, r * h + i) * at(scale, i);
      sum += g / static_cast<double>(h);
      with_unit += g * unit / static_cast<double>(h);
      at(dscale, i) += at(dy, r * h + i) * unit;
      at(dshift, i) += at(dy, r * h + i);
    }
    for (Index i = 0; i < h; ++i) {
      const double g = at(dy, r * h + i) * at(scale, i);
      at(dx, r * h + i) = at(forward.deviation, r) * (g - sum - at(forward.unit, r * h + i) * with_unit);
    }
  }
  return dx;
}

// Elementwise, and its own gradient: what is kept is divided by its part.
Values dropout(const Values& x, std::uint64_t seed) {
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = keeps(i, seed) ? x[i] / static_cast<double>(kept_part) : 0;
  return y;
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(gelu_c * (x + gelu_d * x * x * x))); }
double gelu_slope(double x) {
  const double tanh = std::tanh(gelu_c * (x + gelu_d * x * x * x));
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * gelu_c * (1 + 3 * gelu_d * x * x);
}

// Core attention of one shard.
struct Attention {
  Values weights;  // [micro_batch][head][query][key], after softmax
  Values dropped;
  Values context;  // [tokens][head][width]
};

// Where part 0, 1 or 2 (q, k, v) of a head begins in a QKV row of token (position, sequence of the microbatch).
Index qkv_place(const LayerSize& size, Index position, Index sequence, Index head, Index part) {
  const Index token = position * size.micro_batch + sequence;
  return (token * size.shard_heads() + head) * 3 * size.head_width() + part * size.head_width();
}
Index context_place(const LayerSize& size, Index position, Index sequence, Index head) {
  const Index token = position * size.micro_batch + sequence;
  return (token * size.shard_heads() + head) * size.head_width();
}

template <class F>
void for_each_query(const LayerSize& size, F f) {
  for (Index sequence = 0; sequence < size.micro_batch; ++sequence) {
    for (Index head = 0; head < size.shard_heads(); ++head) {
      for (Index query = 0; query < size.sequence; ++query) {
        const Index row = ((sequence * size.shard_heads() + head) * size.sequence + query) * size.sequence;
        f(sequence, head, query, row);
      }
    }
  }
}

Attention attention(const LayerSize& size, const Values& qkv, Index shard) {
  const Index width = size.head_width();
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  Attention result{zeros(size.scores()), {}, zeros(size.tokens() * size.shard_width())};
  for_each_query(size, [&](Index sequence, Index head, Index query, Index row) {
    double sum = 0;
    for (Index key = 0; key <= query; ++key) {
      double score = 0;
      for (Index i = 0; i < width; ++i) {
        score += at(qkv, qkv_place(size, query, sequence, head, 0) + i) *
                 at(qkv, qkv_place(size, key, sequence, head, 1) + i);
      }
      sum += at(result.weights, row + key) = std::exp(score * scale);
    }
    for (Index key = 0; key <= query; ++key) at(result.weights, row + key) /= sum;
  });
  result.dropped = dropout(result.weights, attention_seed(shard));
  for_each_query(size, [&](Index sequence, Index head, Index query, Index row) {
    for (Index key = 0; key <= query; ++key) {
      for (Index i = 0; i < width; ++i) {
        at(result.context, context_place(size, query, sequence, head) + i) +=
            at(result.dropped, row + key) * at(qkv, qkv_place(size, key, sequence, head, 2) + i);
      }
    }
  });
  return result;
}

Values attention_gradient(const LayerSize& size, const Values& qkv, const Attention& forward,
                          const Values& dcontext, Index shard) {
  const Index width = size.head_width();
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  Values dqkv = zeros(3 * size.tokens() * size.shard_width());
  Values dweights = zeros(size.scores());
  for_each_query(size, [&](Index sequence, Index head, Index query, Index row) {
    for (Index key = 0; key <= query; ++key) {
      for (Index i = 0; i < width; ++i) {
        const double d = at(dcontext, context_place(size, query, sequence, head) + i);
        const Index v = qkv_place(size, key, sequence, head, 2) + i;
        at(dweights, row + key) += d * at(qkv, v);
        at(dqkv, v) += d * at(forward.dropped, row + key);
      }
    }
  });
  dweights = dropout(dweights, attention_seed(shard));
  for_each_query(size, [&](Index sequence, Index head, Index query, Index row) {
    double sum = 0;
    for (Index key = 0; key <= query; ++key) sum += at(dweights, row + key) * at(forward.weights, row + key);
    for (Index key = 0; key <= query; ++key) {
      const double dscore = at(forward.weights, row + key) * (at(dweights, row + key) - sum) * scale;
      for (Index i = 0; i < width; ++i) {
        const Index q = qkv_place(size, query, sequence, head, 0) + i;
        const Index k = qkv_place(size, key, sequence, head, 1) + i;
        at(dqkv, q) += dscore * at(qkv, k);
        at(dqkv, k) += dscore * at(qkv, q);
      }
    }
  });
  return dqkv;
}

}  // namespace

Filling filling_of(const LayerSize& size, std::int64_t shard, std::int64_t array) {
  const bool matrix = array == 2 || array == 4 || array == 8 || array == 10;
  const bool split = matrix || array == 3 || array == 9;
  const auto seed = static_cast<std::uint64_t>(1000 + array + (split ? 100 * shard : 0));
  const double width = matrix ? static_cast<double>(size.hidden) : 3;
  return {seed, static_cast<float>(std::sqrt(3 / width))};
}

LayerResult reference_layer(const LayerSize& size, const Values& input,
                            const std::vector<LayerParameters<Values>>& shards,
                            const Values& output_gradient) {
  const Index rows = size.tokens();
  const Index h = size.hidden;
  const Index w = size.shard_width();
  const Index f = size.feedforward();
  const LayerParameters<Values>& same = shards.front();

  // Forward; sums over shards are the all-reduces.
  struct Kept {
    Values qkv, up, activated;
    Attention attention;
  };
  std::vector<Kept> kept(shards.size());
  const Normalized norm_1 = norm(input, same.norm_1_scale, same.norm_1_shift, rows, h);
  Values projected = zeros(rows * h);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    kept[i].qkv = linear(norm_1.output, shards[i].qkv, &shards[i].qkv_bias, rows, h, 3 * w);
    kept[i].attention = attention(size, kept[i].qkv, static_cast<Index>(i));
    add_to(projected, linear(kept[i].attention.context, shards[i].projection, nullptr, rows, w, h));
  }
  const auto with_bias = [&](Values x, const Values& bias) {
    for (Index i = 0; i < rows * h; ++i) at(x, i) += at(bias, i % h);
    return x;
  };
  Values middle = dropout(with_bias(projected, same.projection_bias), residual_1_seed);
  add_to(middle, input);
  const Normalized norm_2 = norm(middle, same.norm_2_scale, same.norm_2_shift, rows, h);
  Values lowered = zeros(rows * h);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    kept[i].up = linear(norm_2.output, shards[i].up, &shards[i].up_bias, rows, h, f);
    kept[i].activated = kept[i].up;
    for (double& x : kept[i].activated) x = gelu(x);
    add_to(lowered, linear(kept[i].activated, shards[i].down, nullptr, rows, f, h));
  }
  LayerResult result;
  result.output = dropout(with_bias(lowered, same.down_bias), residual_2_seed);
  add_to(result.output, middle);

  // Backward.
  result.gradients.resize(shards.size());
  LayerParameters<Values> shared;
  const Values dlowered = dropout(output_gradient, residual_2_seed);
  Values dnorm_2 = zeros(rows * h);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    LayerParameters<Values>& gradients = result.gradients[i];
    Values dup = data_gradient(dlowered, shards[i].down, rows, f, h);
    gradients.down = weight_gradient(dlowered, kept[i].activated, rows, f, h);
    gradients.down_bias = column_sums(dlowered, rows, h);
    for (std::size_t j = 0; j < dup.size(); ++j) dup[j] *= gelu_slope(kept[i].up[j]);
    gradients.up = weight_gradient(dup, norm_2.output, rows, h, f);
    gradients.up_bias = column_sums(dup, rows, f);
    add_to(dnorm_2, data_gradient(dup, shards[i].up, rows, h, f));
  }
  Values dmiddle =
      norm_gradient(dnorm_2, norm_2, same.norm_2_scale, shared.norm_2_scale, shared.norm_2_shift, rows, h);
  add_to(dmiddle, output_gradient);
  const Values dprojected = dropout(dmiddle, residual_1_seed);
  Values dnorm_1 = zeros(rows * h);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    LayerParameters<Values>& gradients = result.gradients[i];
    const Values dcontext = data_gradient(dprojected, shards[i].projection, rows, w, h);
    gradients.projection = weight_gradient(dprojected, kept[i].attention.context, rows, w, h);
    gradients.projection_bias = column_sums(dprojected, rows, h);
    const Values dqkv =
        attention_gradient(size, kept[i].qkv, kept[i].attention, dcontext, static_cast<Index>(i));
    gradients.qkv = weight_gradient(dqkv, norm_1.output, rows, h, 3 * w);
    gradients.qkv_bias = column_sums(dqkv, rows, 3 * w);
    add_to(dnorm_1, data_gradient(dqkv, shards[i].qkv, rows, h, 3 * w));
  }
  result.input_gradient =
      norm_gradient(dnorm_1, norm_1, same.norm_1_scale, shared.norm_1_scale, shared.norm_1_shift, rows, h);
  add_to(result.input_gradient, dmiddle);
  for (LayerParameters<Values>& gradients : result.gradients) {
    gradients.norm_1_scale = shared.norm_1_scale;
    gradients.norm_1_shift = shared.norm_1_shift;
    gradients.norm_2_scale = shared.norm_2_scale;
    gradients.norm_2_shift = shared.norm_2_shift;
  }
  return result;
}

}  // namespace headroom::harness
