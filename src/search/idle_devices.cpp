#include "headroom/search/idle_devices.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/search/confirm.hpp"
#include "headroom/search/widen.hpp"

namespace headroom {
namespace {

constexpr bool idles_too_many(std::int64_t count, std::int64_t devices) { return 4 * count < 3 * devices; }

// From the most.
std::vector<std::int64_t> rounder_counts(std::int64_t devices) {
  std::vector<std::int64_t> counts;
  for (std::int64_t unit = 2; unit < devices; unit *= 2) {
    const std::int64_t count = devices / unit * unit;
    if (idles_too_many(count, devices)) break;
    if (count < devices && (counts.empty() || count < counts.back())) counts.push_back(count);
  }
  return counts;
}

std::vector<std::int64_t> whole_hosts(std::int64_t devices, std::int64_t host) {
  constexpr std::size_t most = 8;
  std::vector<std::int64_t> counts;
  for (std::int64_t count = (devices - 1) / host * host;
       counts.size() < most && count > 0 && !idles_too_many(count, devices); count -= host)
    counts.push_back(count);
  return counts;
}

// Sequences a second of the first plan; 0 where it does not fit for sure.
double rate(const SearchResult& result, const Request& base) {
  if (result.plans.empty() || result.plans.front().verdict != Verdict::fits) return 0;
  return real(base.workload.global_batch) / result.plans.front().iteration.count();
}

}  // namespace

std::optional<FewerDevices> fewer_devices(const Request& base, const Space& space, SearchResult& with_all,
                                          BatchOf batch, const SearchOptions& options) {
  const std::vector<std::int64_t> counts = rounder_counts(space.devices);
  if (counts.empty() && rate(with_all, base) > 0) return std::nullopt;
  constexpr Shown first{.plans = 1, .pareto = 0};
  confirm(with_all, first, base, space, options.threads);
  std::optional<FewerDevices> best;
  double best_rate = rate(with_all, base);
  const SearchOptions each{.threads = options.threads, .watch = {.stops = options.watch.stops, .tells = {}}};
  const auto consider = [&](std::int64_t count) {
    if (stops(options.watch)) return;
    tell(options.watch, "trying fewer GPUs");
    FewerDevices fewer{.base = base, .space = space, .result = {}};
    fewer.space.devices = count;
    if (batch == BatchOf::devices) fewer.base.workload.global_batch = usual_global_batch(base, count);
    fewer.result = search(fewer.base, fewer.space, each);
    widen(fewer.result, fewer.base, fewer.space, each);
    if (fewer.result.undecided) return;
    confirm(fewer.result, first, fewer.base, fewer.space, options.threads);
    if (const double fewer_rate = rate(fewer.result, fewer.base); fewer_rate > best_rate) {
      best_rate = fewer_rate;
      best = std::move(fewer);
    }
  };
  for (const std::int64_t count : counts) consider(count);
  for (const std::int64_t count : whole_hosts(space.devices, host_size(base.system))) {
    if (best_rate > 0) break;
    consider(count);
  }
  leave_undecided(with_all, options.watch);
  if (with_all.undecided) return std::nullopt;
  return best;
}

}  // namespace headroom
