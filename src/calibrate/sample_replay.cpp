#include "headroom/calibrate/sample_replay.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "headroom/calibrate/layer_replay.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/time/attention.hpp"
#include "headroom/time/collective.hpp"
#include "headroom/time/expert_block.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

CollectiveKind collective_kind(SampleKind kind) {
  switch (kind) {
    case SampleKind::all_reduce: return CollectiveKind::all_reduce;
    case SampleKind::all_gather: return CollectiveKind::all_gather;
    case SampleKind::reduce_scatter: return CollectiveKind::reduce_scatter;
    case SampleKind::all_to_all: return CollectiveKind::all_to_all;
    case SampleKind::send_receive: return CollectiveKind::send_receive;
    default: return CollectiveKind::none;
  }
}

Group group_of(const Sample& sample) {
  return {.ranks = sample.ranks, .ranks_in_node = sample.ranks / sample.nodes};
}

// Groups, as they are read: products by their shortest side, those of narrow types after them (narrow_group), then what
// runs between devices, then the rest.
constexpr std::string_view group_names[] = {
    "products, m n k >= 1024",
    "products, shortest side 512 to 1023",
    "products, shortest side 128 to 511",
    "products, shortest side below 128",
    "products, batched",
    "products, sustained load",
    "attention, forward, device filled",
    "attention, forward, few tiles",
    "attention, fp8, device filled",
    "attention, fp8, few tiles",
    "attention, sustained load",
    "attention, backward",
    "experts, 0.2 ms and longer",
    "experts, shorter",
    "collectives, from 1 MiB",
    "collectives, below 1 MiB",
    "all_reduce, from 1 MiB",
    "all_gather, from 1 MiB",
    "reduce_scatter, from 1 MiB",
    "streaming, from 1 MiB",
    "streaming, below 1 MiB",
    "collectives, in training steps, from 16 MiB",
    "collectives, in training steps, below",
    "streaming, in training steps, from 64 MiB",
    "streaming, in training steps, below",
    "empty kernels",
    "all_to_all, from 1 MiB",
    "all_to_all, below 1 MiB",
    "send_receive",
    "collectives, over several nodes",
    "layers, forward",
    "layers, backward",
};

constexpr std::size_t groups_before_narrow = 6;
constexpr std::string_view narrow_parts[] = {"m n k >= 1024", "shortest side below 1024", "sustained load"};

std::string narrow_group(Dtype dtype, std::string_view part) {
  return "products, " + std::string(name_of(dtype)) + ", " + std::string(part);
}

std::vector<std::string> all_groups() {
  std::vector<std::string> names(std::begin(group_names), std::begin(group_names) + groups_before_narrow);
  for (const NarrowType& type : narrow_types) {
    for (const std::string_view part : narrow_parts) names.push_back(narrow_group(type.dtype, part));
  }
  names.insert(names.end(), std::begin(group_names) + groups_before_narrow, std::end(group_names));
  for (const NarrowType& type : narrow_types) {
    for (const std::string_view part : {"0.2 ms and longer", "shorter"})
      names.push_back(fmt::format("experts, {}, {}", name_of(type.dtype), part));
  }
  return names;
}

std::string product_group(const Sample& sample) {
  const std::int64_t side = std::min({sample.product.rows, sample.product.columns, sample.product.inner});
  const bool sustained = sample.load == Load::sustained;
  if (is_narrow(sample.dtype))
    return narrow_group(sample.dtype, narrow_parts[sustained ? 2 : side >= 1024 ? 0 : 1]);
  if (sustained) return std::string(group_names[5]);
  if (sample.product.batch > 1) return std::string(group_names[4]);
  return std::string(group_names[side >= 1024 ? 0 : side >= 512 ? 1 : side >= 128 ? 2 : 3]);
}

// Heads and tokens from which on the tiles of queries fill any current GPU several times.
constexpr std::int64_t many_queries = std::int64_t{1} << 18;

std::string_view attention_group(const Sample& sample) {
  const Attention& attention = sample.attention;
  if (sample.attention_pass == AttentionPass::backward) return "attention, backward";
  if (sample.load == Load::sustained) return "attention, sustained load";
  const bool filled = attention.batch * attention.heads * attention.queries >= many_queries;
  if (is_narrow(attention.dtype))
    return filled ? "attention, fp8, device filled" : "attention, fp8, few tiles";
  return filled ? "attention, forward, device filled" : "attention, forward, few tiles";
}

// Expert blocks faster than this take about as long as their launches.
constexpr Seconds long_block(0.2e-3);

std::string expert_group(const Sample& sample) {
  const std::string type =
      is_narrow(sample.dtype) ? ", " + std::string(name_of(sample.dtype)) : std::string();
  return "experts" + type + (sample.median >= long_block ? ", 0.2 ms and longer" : ", shorter");
}

bool belongs(const Sample& sample, std::string_view group) {
  const bool large = sample.bytes >= 1_MiB;
  if (sample.kind == SampleKind::matrix_product) return product_group(sample) == group;
  if (sample.kind == SampleKind::attention) return attention_group(sample) == group;
  if (sample.kind == SampleKind::streaming && sample.load == Load::sustained)
    return group == (tells_bandwidth(sample) ? "streaming, in training steps, from 64 MiB"
                                             : "streaming, in training steps, below");
  if (sample.kind == SampleKind::expert_block) return expert_group(sample) == group;
  if (sample.kind == SampleKind::streaming)
    return group == (large ? "streaming, from 1 MiB" : "streaming, below 1 MiB");
  if (sample.kind == SampleKind::empty_kernel) return group == "empty kernels";
  if (sample.kind == SampleKind::all_to_all)
    return group == (large ? "all_to_all, from 1 MiB" : "all_to_all, below 1 MiB");
  if (sample.kind == SampleKind::send_receive) return group == "send_receive";
  if (sample.kind == SampleKind::transformer_layer)
    return group == (sample.layer.pass == LayerPass::forward ? "layers, forward" : "layers, backward");
  if (!is_collective(sample.kind)) return false;
  if (sample.nodes > 1) return group == "collectives, over several nodes";
  if (sample.load == Load::sustained)
    return group == (tells_bandwidth(sample) ? "collectives, in training steps, from 16 MiB"
                                             : "collectives, in training steps, below");
  const bool of_kind = large && group.starts_with(name_of(sample.kind)) && group.ends_with("from 1 MiB");
  return of_kind || group == (large ? "collectives, from 1 MiB" : "collectives, below 1 MiB");
}

Seconds time_of_attention(const Sample& sample, const Performance& performance) {
  const double clock = sample.load == Load::burst ? 1 : performance.rates.flash_attention.sustained.value;
  return attention_time(sample.attention, sample.attention_pass,
                        attention_bytes(sample.attention, sample.attention_pass), performance, clock);
}

Seconds product_time(const Sample& sample, const Performance& performance) {
  const Rates& rates = performance.rates;
  const double clock =
      sample.load == Load::burst ? 1 : product_rates(rates, sample.product.dtype).sustained.value;
  const Seconds time = gemm_time(sample.product, performance.device, rates, clock);
  if (!sample.quantizes) return time;
  const double elements = static_cast<double>(sample.product.batch * sample.product.rows) *
                          static_cast<double>(sample.product.inner);
  return time + quantization_time(elements, sample.product.dtype, performance.device, rates);
}

}  // namespace

std::optional<Seconds> predicted_time(const Sample& sample, const Performance& performance) {
  const Rates& rates = performance.rates;
  switch (sample.kind) {
    case SampleKind::matrix_product:
      if (!has_peak(performance.device, sample.product.dtype)) return std::nullopt;
      return product_time(sample, performance);
    case SampleKind::attention:
      if (!has_peak(performance.device, sample.attention.dtype)) return std::nullopt;
      return time_of_attention(sample, performance);
    case SampleKind::expert_block:
      if (const GroupedProductRates* grouped = grouped_rates(rates, sample.dtype))
        return expert_block_time(sample.expert_block, performance.device, *grouped);
      return std::nullopt;
    case SampleKind::streaming: return streaming_time(sample.bytes, performance);
    case SampleKind::empty_kernel: return rates.kernels.shortest.value;
    case SampleKind::all_reduce:
    case SampleKind::all_gather:
    case SampleKind::reduce_scatter:
    case SampleKind::all_to_all:
    case SampleKind::send_receive:
      return collective_time(collective_kind(sample.kind), sample.bytes, group_of(sample), performance);
    case SampleKind::transformer_layer: return layer_time(sample.layer, sample.ranks, performance);
  }
  return std::nullopt;
}

bool within_fit(const Sample& sample, const Rates& rates) {
  if (sample.kind == SampleKind::matrix_product)
    return within_fit(sample.product, product_rates(rates, sample.product.dtype));
  if (sample.kind == SampleKind::attention) return within_fit(sample.attention, rates.flash_attention);
  if (sample.kind == SampleKind::expert_block) {
    const GroupedProductRates* grouped = grouped_rates(rates, sample.dtype);
    return grouped != nullptr && within_fit(sample.expert_block, *grouped);
  }
  if (is_collective(sample.kind) || is_exchange(sample.kind))
    return within_fit(sample.bytes, group_of(sample), rates.collectives);
  return true;
}

HeldOutRatios held_out_ratios(const Sample& sample, const Rates& rates) {
  switch (sample.kind) {
    case SampleKind::matrix_product: return product_rates(rates, sample.product.dtype).held_out_ratios;
    case SampleKind::attention: return rates.flash_attention.held_out_ratios;
    case SampleKind::expert_block:
      if (const GroupedProductRates* grouped = grouped_rates(rates, sample.dtype))
        return grouped->held_out_ratios;
      break;
    case SampleKind::streaming:
    case SampleKind::empty_kernel: return rates.streaming.held_out_ratios;
    case SampleKind::all_reduce:
    case SampleKind::all_gather:
    case SampleKind::reduce_scatter: return rates.collectives.held_out_ratios;
    case SampleKind::all_to_all:
    case SampleKind::send_receive:
    case SampleKind::transformer_layer: break;
  }
  return std::nullopt;
}

SampleReplay replay(const std::vector<Sample>& samples, const Performance& performance) {
  SampleReplay result;
  for (const Sample& sample : samples) {
    EXPECTS(sample.median > Seconds(0));
    const std::optional<Seconds> predicted = predicted_time(sample, performance);
    if (!predicted) {
      ++result.unmodelled[sample.kind];
      continue;
    }
    result.rows.push_back({.sample = sample,
                           .predicted = *predicted,
                           .error = *predicted / sample.median - 1,
                           .extrapolated = !within_fit(sample, performance.rates)});
    // What was held out was measured within a node and in bursts, and of attention forward and in 16 bits.
    const bool other_attention =
        sample.kind == SampleKind::attention &&
        (sample.attention_pass == AttentionPass::backward || is_narrow(sample.attention.dtype));
    if (sample.nodes > 1 || sample.load == Load::sustained || other_attention) continue;
    if (const HeldOutRatios ratios = held_out_ratios(sample, performance.rates)) {
      result.rows.back().in_interval = holds(*ratios, sample.median / *predicted);
    }
  }
  result.groups = error_groups(result.rows);
  return result;
}

std::vector<ErrorGroup> error_groups(const std::vector<ReplayedSample>& rows) {
  std::vector<ErrorGroup> groups;
  for (const std::string& name : all_groups()) {
    std::vector<double> errors;
    std::size_t intervals = 0;
    std::size_t covered = 0;
    for (const ReplayedSample& row : rows) {
      if (!belongs(row.sample, name)) continue;
      errors.push_back(row.error);
      if (row.in_interval) ++intervals;
      if (row.in_interval.value_or(false)) ++covered;
    }
    if (errors.empty()) continue;
    std::vector<double> absolute = errors;
    for (double& error : absolute) error = std::abs(error);
    groups.push_back({.name = name,
                      .count = errors.size(),
                      .median_absolute = quantile(absolute, 0.5),
                      .percentile_90_absolute = quantile(absolute, 0.9),
                      .worst_absolute = quantile(absolute, 1),
                      .bias = quantile(errors, 0.5),
                      .percentile_10 = quantile(errors, 0.1),
                      .percentile_90 = quantile(errors, 0.9),
                      .intervals = intervals,
                      .covered = covered});
  }
  return groups;
}

double quantile(std::vector<double> values, double q) {
  EXPECTS(!values.empty());
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace headroom
