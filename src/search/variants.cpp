#include "headroom/search/variants.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>
#include <tuple>
#include <utility>

#include "headroom/search/widen.hpp"

namespace headroom {
namespace {

// A candidate with the figures that it is compared by.
struct Merit {
  Candidate candidate;
  Variant variant;
  double time = 0;                // of a sequence, or of an iteration where all batches are alike
  std::optional<double> expense;  // of a sequence
};

bool beats(const Merit& x, const Merit& y) {
  if (x.variant.offer == y.variant.offer) {
    return x.time <= y.time && x.candidate.peak <= y.candidate.peak && x.variant.devices <= y.variant.devices;
  }
  return x.expense && y.expense && x.time <= y.time && *x.expense <= *y.expense;
}

}  // namespace

std::vector<Variant> variants_of(const Compared& comparison) {
  std::vector<Variant> variants;
  for (std::size_t offer = 0; offer < comparison.offers.size(); ++offer) {
    for (const std::int64_t devices : comparison.device_counts) {
      for (const std::int64_t batch : comparison.global_batches) variants.push_back({offer, devices, batch});
    }
  }
  return variants;
}

Request request_of(const Request& base, const Compared& comparison, const Variant& variant) {
  Request request = base;
  request.system = comparison.offers[variant.offer].system;
  request.software = comparison.offers[variant.offer].software;
  request.model = with_attention(std::move(request.model), request.software.attention_kernel);
  request.strategy = comparison.offers[variant.offer].strategy.value_or(base.strategy);
  request.workload.global_batch = variant.global_batch;
  return request;
}

Space space_of(const Space& space, const Compared& comparison, const Variant& variant) {
  Space part = space;
  part.devices = variant.devices;
  part.layouts = comparison.offers[variant.offer].layouts;
  return part;
}

double seconds_per_sequence(const Candidate& candidate, const Variant& variant) {
  return candidate.iteration.count() / static_cast<double>(variant.global_batch);
}

SearchResult compared_variants(const Compared& comparison, std::vector<SearchResult> results) {
  const std::vector<Variant> variants = variants_of(comparison);
  EXPECTS(results.size() == variants.size());
  // Quotients are rounded: with equal batches, iteration times decide.
  const bool by_sequence = comparison.global_batches.size() > 1;
  const auto merit_of = [&](Candidate candidate, std::size_t i) {
    candidate.variant = i;
    const Variant& variant = variants[i];
    Merit merit{.candidate = std::move(candidate), .variant = variant};
    merit.time =
        by_sequence ? seconds_per_sequence(merit.candidate, variant) : merit.candidate.iteration.count();
    if (const std::optional<double>& price = comparison.offers[variant.offer].price_per_device_hour) {
      merit.expense = merit.time * static_cast<double>(variant.devices) * *price;
    }
    return merit;
  };
  SearchResult all;
  double decided = 0;
  std::vector<Merit> best;
  std::vector<Merit> fronts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    SearchResult& result = results[i];
    add_counts(all, result);
    if (result.undecided) {
      all.undecided =
          Undecided{.decided = (all.undecided ? all.undecided->decided : 0) + result.undecided->decided};
    } else {
      ++decided;
    }
    if (!result.plans.empty()) best.push_back(merit_of(std::move(result.plans.front()), i));
    // A point dominated within its own variant is dominated overall.
    for (Candidate& candidate : result.pareto) fronts.push_back(merit_of(std::move(candidate), i));
    if (result.nearest) {
      result.nearest->variant = i;
      const auto missing = [&](const Candidate& candidate) {
        return candidate.peak - comparison.offers[variants[candidate.variant].offer].system.memory;
      };
      if (!all.nearest || missing(*result.nearest) < missing(*all.nearest)) {
        all.nearest = std::move(result.nearest);
      }
    }
  }
  if (all.undecided)
    all.undecided->decided = (all.undecided->decided + decided) / static_cast<double>(results.size());
  if (all.feasible > 0) all.nearest.reset();
  const auto order = [](const Merit& x) {
    return std::tuple(x.time, x.candidate.peak, x.variant.devices, x.candidate.variant);
  };
  const auto earlier = [&](const Merit& x, const Merit& y) { return order(x) < order(y); };
  std::sort(best.begin(), best.end(), [&](const Merit& x, const Merit& y) {
    return x.candidate.verdict != y.candidate.verdict ? x.candidate.verdict < y.candidate.verdict
                                                      : earlier(x, y);
  });
  for (Merit& merit : best) all.plans.push_back(std::move(merit.candidate));
  std::sort(fronts.begin(), fronts.end(), earlier);
  // Whatever dominates a point is at least as fast, and so comes before it.
  std::vector<Merit> front;
  for (Merit& merit : fronts) {
    const bool beaten =
        std::any_of(front.begin(), front.end(), [&](const Merit& member) { return beats(member, merit); });
    if (!beaten) front.push_back(std::move(merit));
  }
  for (Merit& merit : front) all.pareto.push_back(std::move(merit.candidate));
  return all;
}

SearchResult search_variants(const Request& base, const Space& space, const Compared& comparison,
                             const SearchOptions& options) {
  const std::vector<Variant> variants = variants_of(comparison);
  std::vector<SearchResult> results(variants.size());
  // Few variants are searched one by one, each on all threads. With many, each thread searches its own.
  const bool many = variants.size() / 2 >= options.threads;
  SearchOptions each = options;
  each.effort = nullptr;
  each.progress = nullptr;
  each.watch.tells = nullptr;
  each.bounds = false;
  if (many) each.threads = 1;
  std::atomic<std::size_t> next = 0;
  const auto work = [&](bool tells) {
    for (std::size_t i = next++; i < variants.size(); i = next++) {
      if (stops(options.watch)) {
        results[i].undecided = Undecided{};
        continue;
      }
      if (tells)
        tell(options.watch, "searches", static_cast<std::int64_t>(i),
             static_cast<std::int64_t>(variants.size()));
      const Request request = request_of(base, comparison, variants[i]);
      const Space part = space_of(space, comparison, variants[i]);
      results[i] = search(request, part, each);
      widen(results[i], request, part, each);
    }
  };
  std::vector<std::future<void>> others;
  try {
    for (unsigned i = 1; many && i < options.threads; ++i) {
      others.push_back(std::async(std::launch::async, work, false));
    }
  } catch (const std::system_error&) {
    // The machine has no more threads. Those that started do all the work.
  }
  work(true);
  for (std::future<void>& other : others) other.get();
  return compared_variants(comparison, std::move(results));
}

}  // namespace headroom
