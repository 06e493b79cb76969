#include "headroom/time/scales.hpp"

#include "headroom/core/counts.hpp"

namespace headroom {

std::optional<Group> scale_group(const Strategy& strategy, std::int64_t devices_per_node) {
  if (strategy.precision != Precision::fp8_delayed) return std::nullopt;
  return stage_group(axis_sizes(strategy), !strategy.tp_only_amax_red, devices_per_node);
}

std::int64_t narrow_linears(const ModelLayers& layers) {
  const KindCounts counts = counts_of(layers);
  std::int64_t linears = 0;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    for (const Op& op : layers.kinds[i].ops.ops()) linears += multiplies_narrow(op) ? counts[i] : 0;
  }
  return linears;
}

ScaleBytes scale_bytes(std::int64_t linears) {
  constexpr double fp32 = size_of(Dtype::fp32);
  constexpr int forward_tensors = 3;
  constexpr int backward_tensors = 2;
  return {.forward = real(linears) * forward_tensors * fp32,
          .backward = real(linears) * backward_tensors * fp32};
}

}  // namespace headroom
