// A transformer layer, forward and backward, in double precision and plain loops: what the device's layer is compared
// with. Its own gradients are compared with finite differences in tests/harness.
//
// Arrays lie as on the device: tokens are [sequence][micro_batch], token rows hold `hidden` elements; a QKV row holds
// [head][q, k, v][width of a head]; weights are [out][in].
#pragma once

#include <cstdint>
#include <vector>

namespace headroom::harness {

struct LayerSize {
  std::int64_t sequence, micro_batch, hidden, heads;
  std::int64_t shards;  // tensor-parallel ranks

  [[nodiscard]] std::int64_t tokens() const { return sequence * micro_batch; }
  [[nodiscard]] std::int64_t head_width() const { return hidden / heads; }
  // Of one shard.
  [[nodiscard]] std::int64_t shard_heads() const { return heads / shards; }
  [[nodiscard]] std::int64_t shard_width() const { return hidden / shards; }  // of q, of k, of v
  [[nodiscard]] std::int64_t feedforward() const { return 4 * hidden / shards; }
  [[nodiscard]] std::int64_t scores() const { return micro_batch * shard_heads() * sequence * sequence; }
};

// Of one shard; norms and the biases of projection and down are the same on all. Also the gradients of all these.
template <class Array>
struct LayerParameters {
  Array norm_1_scale, norm_1_shift;   // [h]
  Array qkv, qkv_bias;                // [3 h/t][h], [3 h/t]
  Array projection, projection_bias;  // [h][h/t], [h]
  Array norm_2_scale, norm_2_shift;   // [h]
  Array up, up_bias;                  // [4 h/t][h], [4 h/t]
  Array down, down_bias;              // [h][4 h/t], [h]

  // Calls f(array, elements) for each, in the order above.
  template <class F>
  void for_each(const LayerSize& size, F f) {
    each(*this, size, f);
  }
  template <class F>
  void for_each(const LayerSize& size, F f) const {
    each(*this, size, f);
  }

 private:
  template <class Self, class F>
  static void each(Self& self, const LayerSize& size, F& f) {
    const std::int64_t h = size.hidden;
    const std::int64_t w = size.shard_width();
    const std::int64_t m = size.feedforward();
    f(self.norm_1_scale, h), f(self.norm_1_shift, h);
    f(self.qkv, 3 * w * h), f(self.qkv_bias, 3 * w);
    f(self.projection, h * w), f(self.projection_bias, h);
    f(self.norm_2_scale, h), f(self.norm_2_shift, h);
    f(self.up, m * h), f(self.up_bias, m);
    f(self.down, h * m), f(self.down_bias, h);
  }
};

// Seeds of the dropout masks: of attention another on each shard, of the residuals the same on all.
constexpr std::uint64_t attention_seed(std::int64_t shard) { return 100 + static_cast<std::uint64_t>(shard); }
inline constexpr std::uint64_t residual_1_seed = 98;
inline constexpr std::uint64_t residual_2_seed = 99;

// How array `array` of for_each() is filled: `scale` times elements of a seed, which differs from shard to shard where
// the arrays do. Products keep about the size of their inputs.
struct Filling {
  std::uint64_t seed;
  float scale;
};
Filling filling_of(const LayerSize& size, std::int64_t shard, std::int64_t array);

using Values = std::vector<double>;

struct LayerResult {
  Values output;                                   // [tokens][h]
  Values input_gradient;                           // [tokens][h]
  std::vector<LayerParameters<Values>> gradients;  // of each shard
};

LayerResult reference_layer(const LayerSize& size, const Values& input,
                            const std::vector<LayerParameters<Values>>& shards,
                            const Values& output_gradient);

}  // namespace headroom::harness
