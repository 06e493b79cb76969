// The rates of a device that nobody measured, from those of another: what a data sheet has a figure for follows that figure,
// what it has none for stays.
//
//   arithmetic of products, flash attention    by the peak of their type
//   what products and casts read and write     by memory bandwidth
//   bandwidths of collectives                  by link bandwidth
//   launches, fills, latencies, shares         as they are
//
// Every rate is assumed, and says of which system it is and what it was scaled by. Types of products that the new device has no
// peak for have none; how far predictions were off on the other device is not told of this one.
#pragma once

#include <string>
#include <string_view>

#include "headroom/hardware/system.hpp"

namespace headroom {

namespace detail {

template <int B, int F, int S>
void scale(Sourced<Quantity<B, F, S>>& rate, double factor, std::string_view by, const std::string& of) {
  rate.source = factor == 1
                    ? "That of " + of + ": not measured on this device. There: " + rate.source
                    : "That of " + of + " times the ratio of " + std::string(by) +
                          " in the two data sheets: not measured on this device. There: " + rate.source;
  rate.origin = Origin::assumed;
  rate.value = factor * rate.value;
}

inline void scale_products(MatrixProductRates& rates, double peak, double memory, const std::string& of) {
  scale(rates.tile_peak, peak, "peaks", of);
  scale(rates.power_cap, peak, "peaks", of);
  scale(rates.result_bandwidth, memory, "memory bandwidths", of);
  scale(rates.memory_bandwidth, memory, "memory bandwidths", of);
  scale(rates.split_bandwidth, memory, "memory bandwidths", of);
  rates.held_out_ratios.reset();
}

}  // namespace detail

// `of` is the system that the rates are of. Expects both devices to have a peak, a memory and links.
inline Rates scaled_rates(const Performance& base, const Device& device, const std::string& of) {
  const Device& other = base.device;
  Rates rates = base.rates;
  const double peak = device.half_peak / other.half_peak;
  const double memory = device.memory_bandwidth / other.memory_bandwidth;
  const double links = device.link_bandwidth / other.link_bandwidth;
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    auto& own = rates.products_by_dtype[i];
    if (!own) continue;
    if (!has_peak(device, narrow_types[i].dtype)) {
      own.reset();
      continue;
    }
    detail::scale_products(own->products,
                           peak_of(device, narrow_types[i].dtype) / peak_of(other, narrow_types[i].dtype),
                           memory, of);
    detail::scale(own->quantization.bandwidth, memory, "memory bandwidths", of);
  }
  detail::scale_products(rates.products, peak, memory, of);
  detail::scale(rates.flash_attention.tile_peak, peak, "peaks", of);
  detail::scale(rates.flash_attention.power_cap, peak, "peaks", of);
  detail::scale(rates.collectives.low_latency_bandwidth, links, "link bandwidths", of);
  detail::scale(rates.collectives.ring_bandwidth, links, "link bandwidths", of);
  detail::scale(rates.collectives.local_bandwidth, links, "link bandwidths", of);
  rates.flash_attention.held_out_ratios.reset();
  rates.streaming.held_out_ratios.reset();
  rates.collectives.held_out_ratios.reset();
  visit_rates(rates, [&](std::string_view, std::string_view, auto& rate) {
    if (rate.source.starts_with("That of " + of)) return;
    rate.origin = Origin::assumed;
    rate.source = "That of " + of + ": not measured on this device. There: " + rate.source;
  });
  return rates;
}

}  // namespace headroom
