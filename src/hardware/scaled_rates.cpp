#include "headroom/hardware/scaled_rates.hpp"

#include <algorithm>
#include <array>

namespace headroom {
namespace {

constexpr std::array<std::string_view, 2> by_peak{"tile_peak", "power_cap"};
constexpr std::array<std::string_view, 5> by_memory{"result_bandwidth", "memory_bandwidth", "split_bandwidth",
                                                    "row_bandwidth", "bandwidth"};
constexpr std::array<std::string_view, 7> by_links{
    "low_latency_bandwidth", "ring_bandwidth",     "local_bandwidth",  "switch_bandwidth",
    "receive_bandwidth",     "dispatch_bandwidth", "combine_bandwidth"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Dtype dtype_of_group(std::string_view group) {
  for (const auto& type : narrow_types) {
    if (group == type.products || group == type.grouped) return type.dtype;
  }
  return Dtype::half;
}

}  // namespace

RateScale rate_scale(std::string_view group, std::string_view name, const Device& device,
                     const Device& measured) {
  if (is_one_of(by_peak, name)) {
    const Dtype dtype = dtype_of_group(group);
    return {peak_of(device, dtype) / peak_of(measured, dtype), "peaks"};
  }
  if (is_one_of(by_memory, name)) {
    return {device.memory_bandwidth / measured.memory_bandwidth, "memory bandwidths"};
  }
  if (is_one_of(by_links, name)) return {device.link_bandwidth / measured.link_bandwidth, "link bandwidths"};
  return {};
}

Rates scaled_rates(const Performance& base, const Device& device, const std::string& of, OtherFigures meant) {
  Rates rates = base.rates;
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    auto& own = rates.products_by_dtype[i];
    if (!has_peak(device, narrow_types[i].dtype)) {
      own.reset();
      rates.quantization_by_dtype[i].reset();
    }
    if (own) own->products.held_out_ratios.reset();
    if (own && own->grouped) own->grouped->held_out_ratios.reset();
  }
  rates.products.held_out_ratios.reset();
  if (rates.grouped_products) rates.grouped_products->held_out_ratios.reset();
  rates.flash_attention.held_out_ratios.reset();
  rates.streaming.held_out_ratios.reset();
  rates.collectives.held_out_ratios.reset();
  visit_rates(rates, [&](std::string_view group, std::string_view name, auto& rate) {
    const RateScale scale = rate_scale(group, name, device, base.device);
    if (scale.factor == 1 && meant == OtherFigures::what_if) return;
    std::string origin = "That of " + of;
    if (scale.factor != 1)
      origin += " times the ratio of " + std::string(scale.figures) + " in the two data sheets";
    rate = {scale.factor * rate.value, Origin::assumed,
            origin + ": not measured on this device. There: " + rate.source};
  });
  return rates;
}

}  // namespace headroom
