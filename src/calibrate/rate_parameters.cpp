#include "rate_parameters.hpp"

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

double base_units(double value) { return value; }
template <int B, int F, int S>
double base_units(Quantity<B, F, S> value) {
  return value.count();
}

// Calls action(rate) for the rate of a name.
template <class R, class Action>
void at(R& rates, std::string_view wanted, Action action) {
  bool found = false;
  visit_rates(rates, [&](std::string_view group, std::string_view name, auto& rate) {
    const bool same = wanted.size() == group.size() + 1 + name.size() && wanted.starts_with(group) &&
                      wanted.ends_with(name) && wanted[group.size()] == '.';
    if (!same) return;
    found = true;
    action(rate);
  });
  EXPECTS(found);
}

double with_digits(double value, int digits, bool down = false) {
  const double unit = std::pow(10, digits - 1 - std::floor(std::log10(value)));
  constexpr double of_rounding = 1e-6;  // what is below a number by so little is that number
  return (down ? std::floor(value * unit + of_rounding) : std::round(value * unit)) / unit;
}

constexpr int digits_kept = 4;

// As io/quantity.hpp reads it, a number over its units, or times its unit: with as many digits as also print so.
double rounded(double value, double units_per_base) {
  for (int digits = digits_kept; digits > 1; --digits) {
    const double number = with_digits(value * units_per_base, digits);
    if (number / units_per_base * units_per_base == number) return number / units_per_base;
  }
  return value;
}
double rounded_to(double value, double unit, bool down) {
  for (int digits = digits_kept; digits > 1; --digits) {
    const double number = with_digits(value / unit, digits, down);
    if (number * unit / unit == number) return number * unit;
  }
  return value;
}

NarrowProductRates rates_by_peak(const Performance& performance, Dtype dtype) {
  const Rates& rates = performance.rates;
  const double speed = peak_of(performance.device, dtype) / peak_of(performance.device, Dtype::half);
  NarrowProductRates scaled{.products = rates.products};
  scaled.products.tile_peak.value = speed * rates.products.tile_peak.value;
  scaled.products.power_cap.value = speed * rates.products.power_cap.value;
  scaled.products.held_out_ratios = std::nullopt;
  scaled.quantization.launch.value = rates.kernels.launch.value;
  scaled.quantization.bandwidth.value =
      rates.streaming.bandwidth_share.value * performance.device.memory_bandwidth;
  const auto assume = [](std::string_view, std::string_view, auto& rate) {
    rate.origin = Origin::assumed;
    rate.source =
        "That of 16 bits, arithmetic scaled by the ratio of peaks, or of streaming kernels: not measured for "
        "this type";
  };
  visit_products("", scaled.products, assume);
  visit_quantization("", scaled.quantization, assume);
  return scaled;
}

}  // namespace

// Times: from a tenth of what launches take today to far more than any. Rates of arithmetic and of memory end at the
// device's peak. Effective rates with no peak of their own (stores that nothing hides, copies in caches) may be many
// times the memory's.
std::vector<Parameter> product_parameters(const Device& device) {
  const double peak = device.half_peak.count();
  const double memory = device.memory_bandwidth.count();
  return {{"kernels.launch", 1.5e-6, 0.1e-6, 50e-6},
          {"products.wave_fill", 1.5e-6, 10e-9, 50e-6},
          {"products.result_bandwidth", 0.9 * memory, 0.02 * memory, 50 * memory},
          {"products.tile_feed", 40, 1, 500},
          {"products.tile_peak", 0.95 * peak, 0.02 * peak, peak},
          {"products.power_cap", 0.8 * peak, 0.02 * peak, peak},
          {"products.memory_bandwidth", 0.6 * memory, 0.02 * memory, memory},
          {"products.split_bandwidth", memory, 0.02 * memory, 50 * memory}};
}

std::vector<Parameter> sustained_parameters() { return {{"products.sustained", 0.95, 0.2, 1}}; }

std::vector<Parameter> narrow_product_parameters(const Device& device, std::size_t narrow, bool quantizes) {
  Device scaled = device;
  scaled.half_peak = peak_of(device, narrow_types[narrow].dtype);
  std::vector<Parameter> parameters;
  for (Parameter parameter : product_parameters(scaled)) {
    if (!parameter.name.starts_with("products.")) continue;
    parameter.name =
        std::string(narrow_types[narrow].products) + parameter.name.substr(std::string("products").size());
    parameters.push_back(parameter);
  }
  if (!quantizes) return parameters;
  const std::string group(narrow_types[narrow].quantization);
  const double memory = device.memory_bandwidth.count();
  parameters.push_back({group + ".launch", 5e-6, 0.1e-6, 100e-6});
  parameters.push_back({group + ".bandwidth", 0.6 * memory, 0.02 * memory, 50 * memory});
  return parameters;
}

std::vector<Parameter> narrow_sustained_parameters(std::size_t narrow) {
  return {{std::string(narrow_types[narrow].products) + ".sustained", 0.95, 0.2, 1}};
}

std::vector<Parameter> attention_parameters(const Device& device, const std::vector<Sample>& samples) {
  const double peak = device.half_peak.count();
  std::vector<Parameter> parameters{{"flash_attention.launch", 8e-6, 0.1e-6, 100e-6},
                                    {"flash_attention.tile_fill", 1e-6, 10e-9, 50e-6},
                                    {"flash_attention.tile_peak", 0.9 * peak, 0.02 * peak, peak},
                                    {"flash_attention.last_tile", 0.3, 0.01, 1},
                                    {"flash_attention.power_cap", 0.6 * peak, 0.02 * peak, peak}};
  std::set<std::int64_t> sizes;
  for (const Sample& sample : samples) {
    sizes.insert(sample.attention.head_size + sample.attention.value_size);
  }
  if (sizes.size() >= 3) {
    parameters.push_back({"flash_attention.softmax_width", 128, 4, 1000});
    parameters.push_back({"flash_attention.overlap_order", 3, 1, 20});
  }
  return parameters;
}

std::vector<Parameter> attention_fp8_parameters() { return {{"flash_attention.fp8_speed", 1.5, 0.5, 4}}; }

std::vector<Parameter> attention_sustained_parameters() {
  return {{"flash_attention.sustained", 0.95, 0.2, 1}};
}

std::vector<Parameter> attention_backward_parameters() {
  return {{"flash_attention.backward", 0.85, 0.1, 1}};
}

std::vector<Parameter> expert_parameters(const Device& device, Dtype dtype) {
  const auto narrow = narrow_index(dtype);
  const std::string group(narrow ? narrow_types[*narrow].grouped : "grouped_products");
  const double peak = has_peak(device, dtype) ? peak_of(device, dtype).count() : 1;
  const double memory = device.memory_bandwidth.count();
  return {{group + ".launch", 20e-6, 1e-6, 200e-6},
          {group + ".expert", 100e-9, 1e-9, 20e-6},
          {group + ".tile_peak", 0.9 * peak, 0.02 * peak, peak},
          {group + ".result_bandwidth", 0.5 * memory, 0.02 * memory, 50 * memory},
          {group + ".memory_bandwidth", 0.8 * memory, 0.02 * memory, memory},
          {group + ".row_bandwidth", 0.7 * memory, 0.02 * memory, memory}};
}

namespace {

// Rates of experts that a base has none of begin where a fit does.
void start_experts(Performance& base, Dtype dtype) {
  for (const Parameter& parameter : expert_parameters(base.device, dtype))
    set_rate(base.rates, parameter.name, parameter.start);
}

}  // namespace

Performance with_rates_of(const SortedSamples& samples, Performance base) {
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    const SortedSamples::Narrow& of_type = samples.narrow[i];
    const bool sampled = !of_type.products.empty() || !of_type.sustained.empty() || !of_type.experts.empty();
    auto& own = base.rates.products_by_dtype[i];
    if (sampled && !own) own = rates_by_peak(base, narrow_types[i].dtype);
    if (!of_type.experts.empty() && !own->grouped) {
      own->grouped.emplace();
      start_experts(base, narrow_types[i].dtype);
    }
  }
  if (!samples.experts.empty() && !base.rates.grouped_products) {
    base.rates.grouped_products.emplace();
    start_experts(base, Dtype::half);
  }
  return base;
}

std::vector<Parameter> bandwidth_share_parameters() { return {{"streaming.bandwidth_share", 0.8, 0.02, 1}}; }

std::vector<Parameter> streaming_parameters() {
  std::vector<Parameter> parameters = bandwidth_share_parameters();
  parameters.push_back({"kernels.shortest", 4e-6, 0.2e-6, 100e-6});
  return parameters;
}

std::vector<Parameter> ring_bandwidth_parameters(const Device& device) {
  const double link = device.link_bandwidth.count();
  return {{"collectives.ring_bandwidth", 0.75 * link, 0.02 * link, link}};
}

Parameter switch_bandwidth_parameter(const Device& device) {
  const double link = device.link_bandwidth.count();
  return {"collectives.nvls.switch_bandwidth", 0.7 * link, 0.02 * link, link};
}

std::vector<Parameter> collective_parameters(const Device& device, bool one_rank_count, bool nvls) {
  const double link = device.link_bandwidth.count();
  std::vector<Parameter> parameters{
      {"collectives.low_latency_launch", 9e-6, 0.2e-6, 500e-6},
      {"collectives.low_latency_bandwidth", 0.3 * link, 0.005 * link, link},
      {"collectives.ring_launch", 25e-6, 0.2e-6, 1e-3},
      ring_bandwidth_parameters(device).front(),
  };
  if (nvls) {
    parameters.push_back({"collectives.nvls.launch", 60e-6, 0.2e-6, 1e-3});
    parameters.push_back(switch_bandwidth_parameter(device));
  }
  if (one_rank_count) return parameters;
  parameters.push_back({"collectives.low_latency_step", 1e-6, 10e-9, 100e-6});
  parameters.push_back({"collectives.ring_step", 2e-6, 10e-9, 100e-6});
  parameters.push_back({"collectives.local_bandwidth", 1.6 * link, 0.02 * link, 50 * link});
  return parameters;
}

bool on_bound(const Parameter& parameter, double value) {
  constexpr double close = 1e-3;  // rounding moves a value off its bound
  return value <= parameter.least * (1 + close) || value >= parameter.most * (1 - close);
}

double rate_value(const Rates& rates, std::string_view name) {
  double value = 0;
  at(rates, name, [&](const auto& rate) { value = base_units(rate.value); });
  return value;
}

void set_rate(Rates& rates, std::string_view name, double value) {
  at(rates, name, [&](auto& rate) { rate.value = std::remove_cvref_t<decltype(rate.value)>(value); });
}

void set_fitted(Rates& rates, std::string_view name, bool bound, const std::string& source) {
  at(rates, name, [&](auto& rate) {
    rate.origin = bound ? Origin::assumed : Origin::calibrated;
    rate.source = bound ? "At a bound, so not told by what it was fitted to. " + source : source;
  });
}

void round_rate(Rates& rates, std::string_view name, bool down) {
  at(rates, name, [down](auto& rate) {
    using T = std::remove_cvref_t<decltype(rate.value)>;
    const double value = base_units(rate.value);
    if constexpr (std::is_same_v<T, Seconds>) {
      rate.value = T(rounded(value, value < 1e-6 ? 1e9 : 1e6));
    } else if constexpr (std::is_same_v<T, double>) {
      rate.value = with_digits(value, digits_kept);
    } else {
      rate.value = T(rounded_to(value, std::is_same_v<T, FlopsPerSecond> ? 1e12 : 1e9, down));
    }
  });
}

}  // namespace headroom
