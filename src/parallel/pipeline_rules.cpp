#include "parallel/pipeline_rules.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

// Virtual stages of ranks that hold two each. More ranks than any run has are refused as such.
std::int64_t stages_by_two(const Strategy& strategy) {
  return 2 * std::min(strategy.pipeline_parallel, most_count);
}

void check_virtual_pipeline(Rules& rules, const Strategy& strategy) {
  const std::int64_t m = strategy.virtual_pipeline;
  const ScheduleKind schedule = strategy.schedule;
  if (m < 1 || admits_virtual_pipeline(schedule, m)) return;  // fewer are reported as such
  const std::string name(name_of(schedule));
  if (runs_in_v(schedule)) {
    rules.require(false, "virtual_pipeline",
                  "must be 2 for `schedule` " + name + ", whose ranks hold two stages each");
  } else if (m <= 1) {
    rules.require(false, "virtual_pipeline", "must be at least 2 for `schedule` " + name);
  } else {
    rules.require(false, "schedule", "must be interleaved when `virtual_pipeline` is above 1");
  }
}

// Two directions, each with half of the microbatches, whose ranks are mirror images of each other.
void check_directions(Rules& rules, const Strategy& strategy, std::int64_t n) {
  const std::int64_t p = strategy.pipeline_parallel;
  rules.require(p % 2 == 0, "pipeline_parallel",
                [&] { return "must be even for `schedule` dualpipe, not " + std::to_string(p); });
  const std::int64_t stages = stages_by_two(strategy);
  rules.require(n % 2 == 0 && n >= stages, "global_batch", [&] {
    return "must give an even number of at least " + std::to_string(stages) +
           " microbatches, twice the pipeline ranks, to `schedule` dualpipe, not " + std::to_string(n);
  });
}

void check_groups(Rules& rules, const Strategy& strategy, std::int64_t n) {
  const std::int64_t p = strategy.pipeline_parallel;
  const std::int64_t size = strategy.microbatch_group_size;
  if (strategy.schedule != ScheduleKind::interleaved || p < 1) {
    rules.require(size == 0, "microbatch_group_size", "needs `schedule` interleaved");
  } else if (size == 0) {
    rules.require(n % p == 0, "global_batch", [&] {
      const std::int64_t least = least_group_size(p, n);
      return "must give a multiple of `pipeline_parallel` microbatches to an interleaved schedule (" +
             std::to_string(n) + " microbatches, " + std::to_string(p) + " ranks)" +
             (least > 0 ? ", unless `microbatch_group_size` says otherwise (" + std::to_string(least) + ")"
                        : "");
    });
  } else {
    rules.require(is_group_size(size, p, n), "microbatch_group_size", [&] {
      return "must be between `pipeline_parallel` and the " + std::to_string(n) +
             " microbatches, and leave none of them or at least " + std::to_string(p) +
             " for the last group, not " + std::to_string(n % size) + " (" + std::to_string(size) +
             " in a group)";
    });
  }
}

// A schedule in groups is replayed with the times of the passes that ranks wait for: two directions, 8 bytes each, once more
// for an earlier moment, in slots whose number is a power of two (schedule/interleaved.hpp).
void check_size(Rules& rules, const Strategy& strategy, std::int64_t n) {
  const std::int64_t p = strategy.pipeline_parallel;
  const std::int64_t m = strategy.virtual_pipeline;
  if (p < 1 || m < 2 || p > most_count || m > most_count || n > most_count) return;  // reported as such
  const double passes = std::min(real(n) * real(m), real(m + 1) * real(group_size(strategy)));
  const double bytes = 2 * 2 * 8 * real(p) * std::exp2(std::ceil(std::log2(passes + 1)));
  constexpr double most_bytes = 768.0 * 1024 * 1024;  // of the GiB that an answer may take
  rules.require(bytes <= most_bytes, "virtual_pipeline", [&] {
    constexpr double mebi = 1024 * 1024;
    return std::to_string(m) + " on each of " + std::to_string(p) + " ranks needs " +
           std::to_string(static_cast<std::int64_t>(bytes / mebi)) +
           " MiB to replay the schedule, of at most " +
           std::to_string(static_cast<std::int64_t>(most_bytes / mebi)) +
           ": use fewer virtual stages or ranks";
  });
}

}  // namespace

void check_pipeline(Rules& rules, const Transformer& model, const Strategy& strategy,
                    const Software& software) {
  const std::int64_t p = strategy.pipeline_parallel;
  const std::int64_t m = strategy.virtual_pipeline;
  rules.require(
      m <= 1 || p > 1, "virtual_pipeline",
      "needs `pipeline_parallel` of at least 2: chunks of one rank have nothing to interleave with");
  check_virtual_pipeline(rules, strategy);
  rules.require(!repeats_block(strategy.schedule) || p <= most_block_ranks, "pipeline_parallel", [&] {
    return "must be at most " + std::to_string(most_block_ranks) + " for `schedule` " +
           std::string(name_of(strategy.schedule)) + ", not " + std::to_string(p);
  });
  const bool sizes = p >= 1 && m >= 1;  // reported where they are not
  // Where a rank has other chunks, the one with the embedding or the head may hold nothing else.
  const bool given = !strategy.stage_layers.empty();
  const bool may_bare_ends = m > 1 && (given || goes_round(strategy.schedule));
  const bool bare_ends = may_bare_ends && (given || software.uneven_stages);
  const bool fits = !sizes || p <= (model.layers + (bare_ends ? 2 : 0)) / m;
  rules.require(fits, "pipeline_parallel", [&] {
    const bool of_stack = may_bare_ends && !bare_ends && p <= (model.layers + 2) / m;
    return "times `virtual_pipeline` must not exceed the " + std::to_string(model.layers) + " layers" +
           (bare_ends ? " by more than the 2 stages that hold the embedding or the output layer alone" : "") +
           " (" + std::to_string(p) + " x " + std::to_string(m) + ")" +
           (of_stack ? ": the stack " + software.name +
                           " gives neither the embedding nor the output layer a stage of its own"
                     : "");
  });
  if (strategy.stage_layers.empty() || !sizes || !fits) return;
  const auto stages = static_cast<std::int64_t>(strategy.stage_layers.size());
  rules.require(stages == p * m, "stage_layers", [&] {
    return "must name " + std::to_string(p * m) + " virtual stages, not " + std::to_string(stages);
  });
  std::int64_t sum = 0;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t layers = strategy.stage_layers[static_cast<std::size_t>(stage)];
    if (layers == 0 && bare_ends && (stage == 0 || stage == stages - 1)) continue;
    rules.require(layers >= 1 && layers <= model.layers, "stage_layers", [&] {
      return "must give each virtual stage between 1 and " + std::to_string(model.layers) + " layers, not " +
             std::to_string(layers);
    });
    if (layers >= 1 && layers <= model.layers) sum += layers;
  }
  rules.require(sum == model.layers, "stage_layers", [&] {
    return "must add up to the " + std::to_string(model.layers) + " layers, not " + std::to_string(sum);
  });
}

void check_microbatches(Rules& rules, const Strategy& strategy, std::int64_t n) {
  check_groups(rules, strategy, n);
  check_size(rules, strategy, n);
  if (strategy.pipeline_parallel < 1) return;
  if (strategy.schedule == ScheduleKind::dualpipe) check_directions(rules, strategy, n);
  const std::int64_t stages = stages_by_two(strategy);
  rules.require(strategy.schedule != ScheduleKind::dualpipe_v || n >= stages, "global_batch", [&] {
    return "must give at least " + std::to_string(stages) +
           " microbatches, one for each virtual stage, to `schedule` dualpipe-v, not " + std::to_string(n);
  });
}

}  // namespace headroom
