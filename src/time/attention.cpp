#include "headroom/time/attention.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/counts.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

constexpr double tile_keys = 128;

// Returns the summed extents of a score's GEMMs: q with k and weights with v; in the backward pass, those of
// all gradients.
double extents(double head, double value, AttentionPass pass) {
  return pass == AttentionPass::forward ? head + value : 3 * head + 2 * value;
}

// Returns the value size that kernels compute. Backward kernels pad values to the size of keys: heads of 192
// and 128 take as long as heads of 192 and 192 (measured by SimuMax on A100 and B200).
std::int64_t value_size_computed(const Attention& attention, AttentionPass pass) {
  return pass == AttentionPass::forward ? attention.value_size
                                        : std::max(attention.value_size, attention.head_size);
}

// Return the steps of the mean tile and of the longest tile. A step that the mask cuts is computed whole.
double mean_steps(const Attention& attention, double tile_queries) {
  const double whole = attention.keys / tile_keys;
  const double diagonal = tile_queries / tile_keys;
  switch (attention.mask) {
    case Mask::none: return std::ceil(whole);
    case Mask::causal: return std::min((whole + diagonal) / 2, std::ceil(whole));
    case Mask::window: return whole / 2 + diagonal;
  }
  EXPECTS(!"unknown mask");
  return 0;
}
double most_steps(const Attention& attention, double tile_queries) {
  return attention.mask == Mask::window ? mean_steps(attention, tile_queries)
                                        : std::ceil(attention.keys / tile_keys);
}

}  // namespace

Flops attention_flops(const Attention& attention, AttentionPass pass) {
  const double unmasked = attention.mask == Mask::none ? 1 : 0.5;
  const double scores =
      real(attention.batch * attention.heads) * real(attention.queries) * attention.keys * unmasked;
  return Flops(2 * scores * extents(real(attention.head_size), real(attention.value_size), pass));
}

Bytes attention_bytes(const Attention& attention, AttentionPass pass) {
  const double sizes = real(attention.head_size + attention.value_size);
  const double tokens = real(attention.batch * attention.queries);
  const double read = real(bits_of(attention.dtype)) / 8 *
                      (real(attention.heads * attention.head_size) + real(attention.kv_heads) * sizes);
  const double written = real(size_of(Dtype::half) * attention.heads * attention.value_size);
  return Bytes(tokens * (read + written) * (pass == AttentionPass::forward ? 1 : 2));
}

Seconds attention_time(const Attention& attention, AttentionPass pass, Bytes bytes,
                       const Performance& performance, double clock) {
  const FlashRates& rates = performance.rates.flash_attention;
  const double multiprocessors = real(performance.device.multiprocessors);
  const double speed = (is_half(attention.dtype) ? 1 : rates.fp8_speed.value) *
                       (pass == AttentionPass::forward ? 1 : rates.backward.value);
  const double order = rates.overlap_order.value;
  const double products =
      extents(real(attention.head_size), real(value_size_computed(attention, pass)), pass) / speed;
  const double softmax = rates.softmax_width.value;
  const double longer = std::max(products, softmax);
  const double score =
      longer * std::pow(1 + std::pow(std::min(products, softmax) / longer, order), 1 / order);

  const double tile_queries = rates.tile_queries.value;
  const Seconds step =
      Flops(2 * tile_queries * tile_keys * score) / (rates.tile_peak.value / multiprocessors);
  const auto tile_of = [&](double steps) { return steps * step + rates.tile_fill.value; };
  const double tiles =
      real(attention.batch * attention.heads) * std::ceil(real(attention.queries) / tile_queries);
  const Seconds longest = tile_of(most_steps(attention, tile_queries));
  const Seconds work =
      std::max(longest, (tiles / multiprocessors) * tile_of(mean_steps(attention, tile_queries)) +
                            rates.last_tile.value * longest);
  const Seconds memory = bytes / streaming_bandwidth(performance);
  const Seconds power = attention_flops(attention, pass) / (speed * rates.power_cap.value);
  return rates.launch.value + std::max(memory, std::max(work, power) / clock);
}

bool within_fit(const Attention& attention, const FlashRates& rates) {
  return holds(rates.fitted_queries, real(attention.queries)) &&
         holds(rates.fitted_head_sizes, real(attention.head_size));
}

double attention_clock(const Performance& performance, const Software& software, AttentionPass pass) {
  const FlashRates& rates = performance.rates.flash_attention;
  if (software.attention_kernels == AttentionKernels::fitted) return rates.sustained.value;
  const double pytorch = rates.sustained.value * rates.pytorch_speed.value;
  if (software.attention_kernels == AttentionKernels::pytorch) return pytorch;
  // FlashAttention 2 is about 1.3 to 1.5 times as fast as the Triton kernels in the forward pass and about
  // twice as fast in the backward pass [arXiv:2307.08691, 4.1, on an A100].
  return pytorch / (pass == AttentionPass::forward ? 1.4 : 2.0);
}

}  // namespace headroom
