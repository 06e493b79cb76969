// The rates that calibration fits, group by group: where a fit starts, and the bounds of what is physically possible.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/robust_fit.hpp"
#include "headroom/hardware/system.hpp"
#include "sample_checks.hpp"

namespace headroom {

// Names are "group.name", as visit_rates has them. Starts and bounds are set by the device's data sheet alone, so that
// a fit does not depend on earlier rates.
std::vector<Parameter> product_parameters(const Device& device);
std::vector<Parameter> sustained_parameters();
// Of a type of narrow_types, by its place there; the launch is that of products of 16 bits.
std::vector<Parameter> narrow_product_parameters(const Device& device, std::size_t narrow, bool quantizes);
std::vector<Parameter> narrow_sustained_parameters(std::size_t narrow);
// Of forward kernels of 16 bits: how products and exponentials overlap where samples have heads of
// three sizes or more, which one or two do not tell.
std::vector<Parameter> attention_parameters(const Device& device, const std::vector<Sample>& samples);
std::vector<Parameter> attention_fp8_parameters();
std::vector<Parameter> attention_sustained_parameters();
std::vector<Parameter> attention_backward_parameters();
// Of grouped products of a type, and what stands around them.
std::vector<Parameter> expert_parameters(const Device& device, Dtype dtype);
std::vector<Parameter> streaming_parameters();
// Of kernels of training steps, whose times leave out the gaps between launches.
std::vector<Parameter> bandwidth_share_parameters();
std::vector<Parameter> ring_bandwidth_parameters(const Device& device);
Parameter switch_bandwidth_parameter(const Device& device);
// Ranks and steps are told apart by samples of different numbers of ranks only. With one number, steps and copies are
// not fitted.
// `nvls`: whether switches sum, and samples tell how fast.
std::vector<Parameter> collective_parameters(const Device& device, bool one_rank_count, bool nvls);

// Whether a fitted value stands on a bound of its parameter.
bool on_bound(const Parameter& parameter, double value);

// The base with rates for every narrow type that there are samples of, which a fit replaces. Until then they are those of
// 16 bits, with arithmetic scaled by the ratio of peaks, every one assumed.
Performance with_rates_of(const SortedSamples& samples, Performance base);

double rate_value(const Rates& rates, std::string_view name);  // in base units
void set_rate(Rates& rates, std::string_view name, double value);
// Says where a fitted rate is from. One that stands on a bound is assumed: it is not what was measured that set it.
void set_fitted(Rates& rates, std::string_view name, bool bound, const std::string& source);

// The rate with four digits, in the unit that it is written in.
// `down`: FLOP/s and bandwidths to no more than the value, which a peak may bound.
void round_rate(Rates& rates, std::string_view name, bool down = false);

}  // namespace headroom
