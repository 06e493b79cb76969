#include "sample_checks.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fit_stages.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

// Three samples for each rate that is fitted to them, so that two thirds of them still leave two.
constexpr std::size_t least_products = 24;
constexpr std::size_t least_attention = 24;
constexpr std::size_t least_experts = 18;
constexpr std::size_t least_collectives = 21;
constexpr std::size_t least_streaming = 6;

constexpr double least_variation = 1.05;  // of times: what does not depend on the shape tells nothing of it
constexpr double least_of_peak = 0.45;    // that the best product should reach, if it is this device

// Above these are other units, not other devices. Bytes of a collective are of the whole tensor, of which a rank sends
// up to all but its own part, and switches that add up on the way save half of an all-reduce. Streaming kernels of few
// bytes run in caches, several times as fast as memory.
constexpr double most_of_link = 4;
constexpr double most_of_memory = 10;
constexpr Seconds least_time(1e-9);  // two cycles of a clock
constexpr Seconds most_time(1000);

std::string file_names(const std::vector<SampleSet>& sets) {
  std::string names;
  for (const SampleSet& set : sets) names += (names.empty() ? "" : ", ") + set.file;
  return names;
}

class Checker {
 public:
  explicit Checker(std::string where) : where_(std::move(where)) {}

  void count(const std::vector<Sample>& samples, std::size_t least, const char* what) {
    if (samples.empty() || samples.size() >= least) return;
    report(fmt::format("holds {} {} of different shape, and at least {} are needed", samples.size(), what,
                       least));
  }

  using Size = std::function<double(const Sample&)>;
  void varies(const std::vector<Sample>& samples, const char* what, const char* size_name, std::size_t least,
              const Size& size) {
    if (samples.size() < least) return;  // of which there is a report already
    std::set<double> sizes;
    for (const Sample& sample : samples) sizes.insert(size(sample));
    if (sizes.size() >= 3) return;
    report(fmt::format("has {} of {} {} only: with fewer than 3, nothing tells how time depends on it", what,
                       sizes.size() == 1 ? "one" : "two", size_name));
  }
  void times_vary(const std::vector<Sample>& samples, const char* what, std::size_t least) {
    if (samples.size() < least) return;
    const auto [shortest, longest] = std::minmax_element(
        samples.begin(), samples.end(), [](const Sample& x, const Sample& y) { return x.median < y.median; });
    if (longest->median >= least_variation * shortest->median) return;
    report(fmt::format("has {} that all take the same time, whatever their size", what));
  }
  void report(std::string rule) { problems_.push_back({where_, std::move(rule)}); }
  void finish() const {
    if (!problems_.empty()) throw InputError(problems_);
  }

 private:
  std::string where_;
  std::vector<Problem> problems_;
};

double product_rate(const Sample& sample) { return (flops(sample.product) / sample.median).count(); }
double byte_rate(const Sample& sample) { return (sample.bytes / sample.median).count(); }

// The largest rate of all, with its sample.
template <class Rate>
std::pair<double, const Sample*> fastest_of(const std::vector<Sample>& samples, Rate rate) {
  std::pair<double, const Sample*> best{0, nullptr};
  for (const Sample& sample : samples) best = std::max(best, std::pair(rate(sample), &sample));
  return best;
}

// False, and reported, where a sample computes faster than the device can.
bool check_rate(double rate, const Sample& sample, Dtype dtype, const System& base, Checker& checker) {
  const double peak = peak_of(base.performance->device, dtype).count();
  if (rate <= peak) return true;
  checker.report(
      fmt::format("{}: {:.4g} TFLOP/s is more than the {:.4g} of {}: another device, or times that are "
                  "not in the unit named",
                  sample.where, rate / 1e12, peak / 1e12, base.device));
  return false;
}

void check_peak(const std::vector<Sample>& products, Dtype dtype, bool warns, const System& base,
                Checker& checker, std::vector<std::string>& warnings) {
  const double peak = peak_of(base.performance->device, dtype).count();
  const auto [best, fastest] = fastest_of(products, product_rate);
  if (fastest == nullptr || !check_rate(best, *fastest, dtype, base, checker)) return;
  if (warns && best < least_of_peak * peak) {
    warnings.push_back(fmt::format(
        "the fastest product reaches {:.4g} TFLOP/s, {:.0f}% of what {} can do: is it another device?",
        best / 1e12, 100 * best / peak, base.device));
  }
}

// Before what is made in it, which says nothing of 16 bits.
std::string type_prefix(Dtype dtype) { return is_half(dtype) ? "" : std::string(name_of(dtype)) + " "; }

// Of one type: that they determine the rates of its products, and can be of the device.
void check_products(const std::vector<Sample>& products, const std::vector<Sample>& sustained, Dtype dtype,
                    const System& base, Checker& checker, std::vector<std::string>& warnings) {
  const std::string type = type_prefix(dtype);
  checker.count(products, least_products, (type + "matrix products").c_str());
  const std::string what = type + "products";
  const auto side = [](std::int64_t Gemm::*member) {
    return [member](const Sample& sample) { return static_cast<double>(sample.product.*member); };
  };
  checker.varies(products, what.c_str(), "m", least_products, side(&Gemm::rows));
  checker.varies(products, what.c_str(), "n", least_products, side(&Gemm::columns));
  checker.varies(products, what.c_str(), "k", least_products, side(&Gemm::inner));
  checker.times_vary(products, what.c_str(), least_products);
  if (!has_peak(base.performance->device, dtype)) {
    if (!products.empty() || !sustained.empty())
      checker.report(
          fmt::format("holds products of {}, for which {} gives no peak", name_of(dtype), base.name));
    return;
  }
  // The fastest of a narrow type often turns its factor into it as well.
  check_peak(products, dtype, is_half(dtype), base, checker, warnings);
  check_peak(sustained, dtype, false, base, checker, warnings);
}

// That kernels of attention determine their rates, and can be of the device.
void check_attention(const SortedSamples& samples, const System& base, Checker& checker) {
  checker.count(samples.attention, least_attention, "kernels of attention");
  const auto queries = [](const Sample& sample) { return real(sample.attention.queries); };
  const auto heads = [](const Sample& sample) {
    return real(sample.attention.batch * sample.attention.heads);
  };
  checker.varies(samples.attention, "attention", "sequence", least_attention, queries);
  checker.varies(samples.attention, "attention", "number of heads in a batch", least_attention, heads);
  checker.times_vary(samples.attention, "kernels of attention", least_attention);
  for (const std::vector<Sample>* const some : {&samples.attention, &samples.attention_fp8,
                                                &samples.attention_sustained, &samples.attention_backward}) {
    for (const Sample& sample : *some) {
      const Dtype dtype = sample.attention.dtype;
      if (!has_peak(base.performance->device, dtype)) {
        checker.report(
            fmt::format("holds attention of {}, for which {} gives no peak", name_of(dtype), base.name));
        return;
      }
      const double rate = (attention_flops(sample.attention, sample.attention_pass) / sample.median).count();
      if (!check_rate(rate, sample, dtype, base, checker)) return;
    }
  }
}

// That blocks of experts of one type determine its rates, and can be of the device.
void check_experts(const std::vector<Sample>& samples, Dtype dtype, const System& base, Checker& checker) {
  if (samples.empty()) return;
  const std::string blocks = type_prefix(dtype) + "blocks of experts";
  if (!has_peak(base.performance->device, dtype)) {
    checker.report(fmt::format("holds experts of {}, for which {} gives no peak", name_of(dtype), base.name));
    return;
  }
  checker.count(samples, least_experts, blocks.c_str());
  const auto rows = [](const Sample& sample) { return rows_of_expert(sample.expert_block); };
  const auto widths = [](const Sample& sample) { return real(width_of_expert(sample.expert_block)); };
  const std::string experts = type_prefix(dtype) + "experts";
  checker.varies(samples, experts.c_str(), "number of rows of an expert", least_experts, rows);
  checker.varies(samples, experts.c_str(), "width", least_experts, widths);
  checker.times_vary(samples, blocks.c_str(), least_experts);
  const auto rate = [](const Sample& sample) {
    return (expert_block_flops(sample.expert_block) / sample.median).count();
  };
  const auto [best, fastest] = fastest_of(samples, rate);
  check_rate(best, *fastest, dtype, base, checker);
}

void check_bandwidths(const SortedSamples& samples, const Device& device, Checker& checker) {
  const auto check = [&](const std::vector<Sample>& of, double bandwidth, double most, const char* what) {
    const auto [best, fastest] = fastest_of(of, byte_rate);
    if (best <= most * bandwidth) return;
    checker.report(
        fmt::format("{}: {:.4g} GB/s is more than {:.0f} times the {:.4g} of {}: another device, "
                    "or times that are not in the unit named",
                    fastest->where, best / 1e9, most, bandwidth / 1e9, what));
  };
  for (const auto* collectives : {&samples.collectives, &samples.collectives_in_steps})
    check(*collectives, device.link_bandwidth.count(), most_of_link, "its links");
  for (const auto* streaming : {&samples.streaming, &samples.streaming_in_steps})
    check(*streaming, device.memory_bandwidth.count(), most_of_memory, "its memory");
}

// One sample of each file is named, however many there are.
void check_times(const std::vector<SampleSet>& sets, std::vector<Problem>& problems) {
  for (const SampleSet& set : sets) {
    const auto wrong = std::find_if(set.samples.begin(), set.samples.end(), [](const Sample& sample) {
      return sample.median < least_time || sample.median > most_time;
    });
    if (wrong == set.samples.end()) continue;
    problems.push_back(
        {set.file, fmt::format("{}: {:.3g} s is no time of a kernel, which takes from {:g} to {:g} s",
                               wrong->where, wrong->median.count(), least_time.count(), most_time.count())});
  }
}

// Those that rates are fitted to; null where none are.
std::vector<Sample>* samples_of(SortedSamples& sorted, const RatesOf& rates) {
  SortedSamples::Narrow* const narrow = rates.narrow ? &sorted.narrow[*rates.narrow] : nullptr;
  switch (rates.kind) {
    case RateKind::none: return nullptr;
    case RateKind::products: return narrow != nullptr ? &narrow->products : &sorted.products;
    case RateKind::sustained: return narrow != nullptr ? &narrow->sustained : &sorted.sustained;
    case RateKind::experts: return narrow != nullptr ? &narrow->experts : &sorted.experts;
    case RateKind::attention: return &sorted.attention;
    case RateKind::attention_fp8: return &sorted.attention_fp8;
    case RateKind::attention_sustained: return &sorted.attention_sustained;
    case RateKind::attention_backward: return &sorted.attention_backward;
    case RateKind::collectives: return &sorted.collectives;
    case RateKind::collectives_in_steps: return &sorted.collectives_in_steps;
    case RateKind::streaming: return &sorted.streaming;
    case RateKind::streaming_in_steps: return &sorted.streaming_in_steps;
  }
  EXPECTS(false);
  return nullptr;
}

}  // namespace

SortedSamples sorted(const std::vector<Sample>& samples) {
  SortedSamples result;
  std::set<std::int64_t> ranks;
  for (const Sample& sample : merge_repeated(samples)) {
    std::vector<Sample>* const those = samples_of(result, rates_of(sample));
    if (those == nullptr) continue;
    those->push_back(sample);
    if (those == &result.collectives) ranks.insert(sample.ranks);
    if (const auto narrow = narrow_index(sample.product.dtype)) {
      SortedSamples::Narrow& of_type = result.narrow[*narrow];
      of_type.quantizes = of_type.quantizes || sample.quantizes;
    }
  }
  result.one_rank_count = ranks.size() == 1;
  return result;
}

std::vector<std::string> check_samples(const std::vector<SampleSet>& sets, const System& base) {
  std::vector<std::string> warnings;
  std::vector<Sample> all;
  std::vector<Problem> problems;
  for (const SampleSet& set : sets) {
    all.insert(all.end(), set.samples.begin(), set.samples.end());
    const bool of_steps = std::any_of(set.samples.begin(), set.samples.end(),
                                      [](const Sample& sample) { return sample.load == Load::sustained; });
    if (set.device.empty() && of_steps) {
      warnings.push_back(
          fmt::format("{} does not say of which device it is: taken as of {}", set.file, base.device));
    } else if (!set.device.empty() && !same_device(set.device, base.device)) {
      problems.push_back(
          {set.file, fmt::format("holds samples of '{}', and {} has {}: name a --base of that device",
                                 set.device, base.name, base.device)});
    }
  }
  check_times(sets, problems);
  if (!problems.empty()) throw InputError(problems);

  const std::size_t repeats = all.size() - merge_repeated(all).size();
  if (repeats > 0) {
    warnings.push_back(
        fmt::format("{} of {} samples repeat the shape of another: medians are used", repeats, all.size()));
  }
  const SortedSamples samples = sorted(all);
  Checker checker(file_names(sets));
  const bool narrow =
      std::any_of(samples.narrow.begin(), samples.narrow.end(), [](const SortedSamples::Narrow& of_type) {
        return !of_type.products.empty() || !of_type.sustained.empty() || !of_type.experts.empty();
      });
  if (samples.products.empty() && samples.collectives.empty() && samples.streaming.empty() &&
      samples.sustained.empty() && samples.attention.empty() && samples.attention_fp8.empty() &&
      samples.attention_sustained.empty() && samples.attention_backward.empty() &&
      samples.collectives_in_steps.empty() && samples.streaming_in_steps.empty() && samples.experts.empty() &&
      !narrow) {
    checker.report("holds no samples that rates can be fitted to");
  }
  check_products(samples.products, samples.sustained, Dtype::half, base, checker, warnings);
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    const SortedSamples::Narrow& of_type = samples.narrow[i];
    check_products(of_type.products, of_type.sustained, narrow_types[i].dtype, base, checker, warnings);
    check_experts(of_type.experts, narrow_types[i].dtype, base, checker);
  }
  check_attention(samples, base, checker);
  check_experts(samples.experts, Dtype::half, base, checker);
  checker.count(samples.collectives, least_collectives, "collectives");
  checker.count(samples.streaming, least_streaming, "streaming kernels");
  const auto bytes = [](const Sample& sample) { return sample.bytes.count(); };
  checker.varies(samples.collectives, "collectives", "message size", least_collectives, bytes);
  checker.varies(samples.streaming, "streaming kernels", "number of bytes", least_streaming, bytes);
  checker.times_vary(samples.collectives, "collectives", least_collectives);
  checker.times_vary(samples.streaming, "streaming kernels", least_streaming);
  check_bandwidths(samples, base.performance->device, checker);
  checker.finish();
  if (!samples.collectives.empty() && samples.one_rank_count) {
    warnings.push_back(
        fmt::format("all collectives run over {} ranks: the latency of a step and the copy bandwidth "
                    "stay those of {}",
                    samples.collectives.front().ranks, base.name));
  }
  return warnings;
}

}  // namespace headroom
