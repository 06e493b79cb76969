// The rates of a device that nobody measured, from those of another: what a data sheet has a figure for follows that figure,
// what it has none for stays.
//
//   arithmetic of products, flash attention    by the peak of their type
//   what products, casts and experts move      by memory bandwidth
//   bandwidths of collectives                  by link bandwidth
//   launches, fills, latencies, shares         as they are
//
// Every rate is assumed, and says of which system it is and what it was scaled by. Types of products that the new device has no
// peak for have none; how far predictions were off on the other device is not told of this one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headroom/hardware/system.hpp"

namespace headroom {

// What a rate is multiplied by, and the figures of the two data sheets that this is the ratio of.
struct RateScale {
  double factor = 1;
  std::string_view figures;
};

// Of a rate by its group and name, as visit_rates() has them. Expects the new device to have a peak for a group of products
// in fewer bits.
RateScale rate_scale(std::string_view group, std::string_view name, const Device& device,
                     const Device& measured);

// How a device with other figures is meant: as one that nobody measured, or as the measured one but for these figures, whose
// other rates stay as they are.
enum class OtherFigures : std::uint8_t { another_device, what_if };

// `of` is the name of the system that the rates are of. Expects both devices to have a peak, a memory and links.
Rates scaled_rates(const Performance& base, const Device& device, const std::string& of,
                   OtherFigures meant = OtherFigures::another_device);

}  // namespace headroom
