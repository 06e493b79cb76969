#include "headroom/time/streaming.hpp"

#include <algorithm>

namespace headroom {

Seconds streaming_time(Bytes bytes, const Performance& performance) {
  const KernelRates& kernels = performance.rates.kernels;
  return std::max(kernels.shortest.value, kernels.launch.value + bytes / streaming_bandwidth(performance));
}

Seconds flash_attention_time(FlashPass pass, Flops flops, Bytes bytes, const Performance& performance) {
  constexpr double causal = 0.5;
  constexpr double backward_products = 5.0 / 2.0;
  const Rates& rates = performance.rates;
  const FlashRates& flash = rates.flash_attention;
  const bool forward = pass == FlashPass::forward;
  const double share = (forward ? flash.forward : flash.backward).value * rates.products.sustained.value;
  const Flops computed = flops * causal * (forward ? 1 : backward_products);
  return rates.kernels.launch.value + std::max(computed / (peak_of(performance.device, Dtype::half) * share),
                                               bytes / streaming_bandwidth(performance));
}

}  // namespace headroom
