// Rates of a device that was not measured, scaled from a measured device's. A rate follows the data-sheet
// figure that governs it; a rate without such a figure stays the same.
//
//   FLOP rates of GEMMs and flash attention        scaled by the peak of their dtype
//   bandwidths of GEMMs, casts and experts         scaled by memory bandwidth
//   bandwidths of collectives                      scaled by link bandwidth
//   launches, fills, latencies, shares             unchanged
//
// Every rate is marked as assumed, and its source names the measured system and the figures that scale it.
// Dtypes that the new device has no peak for get no GEMM rates. Held-out errors are dropped, since they
// describe the measured device only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headroom/hardware/system.hpp"

namespace headroom {

// Factor on a rate: the ratio of two data-sheet figures, which `figures` names.
struct RateScale {
  double factor = 1;
  std::string_view figures;
};

// Returns the scale of a rate, which its group and name identify as in visit_rates(). Expects the new device
// to have a peak for a group of GEMMs in fewer than 16 bits.
RateScale rate_scale(std::string_view group, std::string_view name, const Device& device,
                     const Device& measured);

// Meaning of a device with other figures.
// another_device: a device that was not measured.
// what_if: the measured device with these figures changed; all other rates stay the same.
enum class OtherFigures : std::uint8_t { another_device, what_if };

// Returns the rates of `base`, scaled to `device`. `of` names the measured system. Expects both devices to
// have a peak, memory bandwidth and links.
Rates scaled_rates(const Performance& base, const Device& device, const std::string& of,
                   OtherFigures meant = OtherFigures::another_device);

}  // namespace headroom
