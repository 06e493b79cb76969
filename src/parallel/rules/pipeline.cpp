// Rules of pipelines: virtual stages, schedules, and the microbatches that a schedule can run.
#include <algorithm>
#include <array>
#include <cmath>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/model/transformer.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

// If a rank has other chunks, the one with the embedding or the head may have no layers.
bool may_bare_ends(const Strategy& strategy) {
  return strategy.virtual_pipeline > 1 && (!strategy.stage_layers.empty() || goes_round(strategy.schedule));
}
bool bares_ends(const RuleCase& it) {
  return may_bare_ends(it.strategy) && (!it.strategy.stage_layers.empty() || it.software.uneven_stages);
}

bool fits_layers(const RuleCase& it) {
  const std::int64_t p = it.strategy.pipeline_parallel;
  const std::int64_t m = it.strategy.virtual_pipeline;
  return p < 1 || m < 1 || p <= (it.model.layers + (bares_ends(it) ? 2 : 0)) / m;
}

// Returns whether the schedule refuses the virtual stages of a rank. Another rule refuses fewer than one.
bool refuses_stages(const Strategy& strategy) {
  return strategy.virtual_pipeline >= 1 &&
         !admits_virtual_pipeline(strategy.schedule, strategy.virtual_pipeline);
}

// Names the schedules that run a rank's virtual stages: those of the stack, if it lists any, or else all.
std::string schedules_for_stages(const RuleCase& it) {
  std::vector<ScheduleKind> all;
  std::vector<ScheduleKind> of_stack;
  for (const auto& [kind, name] : spellings<ScheduleKind>) {
    if (!admits_virtual_pipeline(kind, it.strategy.virtual_pipeline)) continue;
    all.push_back(kind);
    if (contains(it.software.schedules, kind)) of_stack.push_back(kind);
  }
  return joined(of_stack.empty() ? all : of_stack, " or ");
}

constexpr std::array pipeline_rows{
    Rule{"virtual_pipeline",
         [](const RuleCase& it) {
           return it.strategy.virtual_pipeline <= 1 || it.strategy.pipeline_parallel > 1;
         },
         "needs `pipeline_parallel` of at least 2: one pipeline rank has nothing to interleave",
         "Megatron-LM, training/arguments.py: interleaving needs more than one pipeline rank"},
    Rule{"virtual_pipeline",
         [](const RuleCase& it) { return !refuses_stages(it.strategy) || !runs_in_v(it.strategy.schedule); },
         "must be 2 for `schedule` {}: each rank holds two stages",
         "arXiv:2405.15362 and DeepSeek's DualPipe: stages go down the ranks and come back",
         [](const RuleCase& it) { return shown(it.strategy.schedule); }},
    Rule{"virtual_pipeline",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return !refuses_stages(strategy) || runs_in_v(strategy.schedule) || strategy.virtual_pipeline > 1;
         },
         "must be at least 2 for `schedule` {}", "arXiv:2104.04473, section 2.2.2",
         [](const RuleCase& it) { return shown(it.strategy.schedule); }},
    Rule{"schedule",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           return !refuses_stages(strategy) || runs_in_v(strategy.schedule) || strategy.virtual_pipeline <= 1;
         },
         "must be {} when `virtual_pipeline` is {}, not {}", "arXiv:2104.04473, section 2.2.2",
         [](const RuleCase& it) {
           return shown(schedules_for_stages(it), it.strategy.virtual_pipeline, it.strategy.schedule);
         }},
    Rule{"pipeline_parallel",
         [](const RuleCase& it) {
           return !repeats_block(it.strategy.schedule) || it.strategy.pipeline_parallel <= most_block_ranks;
         },
         "must be at most {} for `schedule` {}, not {}", "Building blocks are laid out on all ranks together",
         [](const RuleCase& it) {
           return shown(most_block_ranks, it.strategy.schedule, it.strategy.pipeline_parallel);
         }},
    Rule{"pipeline_parallel", fits_layers,
         "times `virtual_pipeline` must not exceed the {} layers{} ({} x {}){}",
         "Megatron-LM, core/transformer/transformer_block.py, get_num_layers_to_build",
         [](const RuleCase& it) {
           const std::int64_t p = it.strategy.pipeline_parallel;
           const std::int64_t m = it.strategy.virtual_pipeline;
           const bool bare = bares_ends(it);
           const bool of_stack = may_bare_ends(it.strategy) && !bare && p <= (it.model.layers + 2) / m;
           return shown(it.model.layers,
                        bare ? " plus 2 stages that hold only the embedding or the output layer" : "", p, m,
                        of_stack ? ": the stack " + it.software.name +
                                       " gives neither the embedding nor the output layer a stage of its own"
                                 : std::string());
         }}};

// Visits listed stages whose sizes the model has layers for.
bool lists_stages(const RuleCase& it) {
  const Strategy& strategy = it.strategy;
  return !strategy.stage_layers.empty() && strategy.pipeline_parallel >= 1 &&
         strategy.virtual_pipeline >= 1 && fits_layers(it);
}

void once_listed(const RuleCase& it, VisitCase visit) {
  if (lists_stages(it)) visit(it);
}

constexpr std::string_view of_stage_list = "Each layer of a model is on one virtual stage";
constexpr std::array stage_count_rows{
    Rule{"stage_layers",
         [](const RuleCase& it) {
           return std::ssize(it.strategy.stage_layers) ==
                  it.strategy.pipeline_parallel * it.strategy.virtual_pipeline;
         },
         "needs one entry per virtual stage: {}, not {}", of_stage_list,
         [](const RuleCase& it) {
           return shown(it.strategy.pipeline_parallel * it.strategy.virtual_pipeline,
                        it.strategy.stage_layers.size());
         }}};

bool is_stage(const RuleCase& it, std::int64_t layers) { return layers >= 1 && layers <= it.model.layers; }

// Visits each stage that is a bare end and may not be one.
void each_stage(const RuleCase& it, VisitCase visit) {
  if (!lists_stages(it)) return;
  RuleCase of = it;
  const bool bare = bares_ends(it);
  const std::vector<std::int64_t>& stages = it.strategy.stage_layers;
  for (of.place = 0; of.place < stages.size(); ++of.place) {
    of.size = stages[of.place];
    const bool end = of.place == 0 || of.place == stages.size() - 1;
    if (of.size != 0 || !bare || !end) visit(of);
  }
}

constexpr std::array stage_size_rows{
    Rule{"stage_layers", [](const RuleCase& it) { return is_stage(it, it.size); },
         "must give each virtual stage between 1 and {} layers, not {}", of_stage_list,
         [](const RuleCase& it) { return shown(it.model.layers, it.size); }}};

// Visits the strategy with the layers of all stages, if their sizes are possible.
void once_added_up(const RuleCase& it, VisitCase visit) {
  if (!lists_stages(it)) return;
  RuleCase of = it;
  for (const std::int64_t layers : it.strategy.stage_layers) of.size += is_stage(it, layers) ? layers : 0;
  visit(of);
}

constexpr std::array stage_sum_rows{Rule{"stage_layers",
                                         [](const RuleCase& it) { return it.size == it.model.layers; },
                                         "must add up to the {} layers, not {}", of_stage_list,
                                         [](const RuleCase& it) { return shown(it.model.layers, it.size); }}};

// Returns b d, or 0 if it exceeds 64 bits.
std::int64_t sequences_per_round(const Strategy& strategy) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(strategy.micro_batch, strategy.data_parallel, &product) ? 0 : product;
}

bool has_batch(const RuleCase& it) {
  return it.strategy.micro_batch >= 1 && it.strategy.data_parallel >= 1 && it.workload.global_batch >= 1;
}

bool divides_batch(const RuleCase& it) {
  const std::int64_t round = sequences_per_round(it.strategy);
  return round > 0 && it.workload.global_batch % round == 0;
}

void once_with_batch(const RuleCase& it, VisitCase visit) {
  if (has_batch(it)) visit(it);
}

constexpr std::array batch_rows{
    Rule{"global_batch", divides_batch,
         "must be a multiple of `micro_batch` times `data_parallel` ({} is not a multiple of {} x {})",
         "Megatron-LM, core/num_microbatches_calculator.py", [](const RuleCase& it) {
           return shown(it.workload.global_batch, it.strategy.micro_batch, it.strategy.data_parallel);
         }}};

// Visits the strategy with the n microbatches of a pipeline.
void once_with_microbatches(const RuleCase& it, VisitCase visit) {
  if (!has_batch(it) || !divides_batch(it)) return;
  RuleCase of = it;
  of.size = it.workload.global_batch / sequences_per_round(it.strategy);
  visit(of);
}

bool has_groups(const Strategy& strategy) {
  return strategy.schedule == ScheduleKind::interleaved && strategy.pipeline_parallel >= 1;
}

// Returns the virtual stages of ranks that hold two each. Another rule refuses too many ranks.
std::int64_t stages_by_two(const Strategy& strategy) {
  return 2 * std::min(strategy.pipeline_parallel, most_count);
}

// A schedule in groups is replayed with the times of the passes that ranks wait for: two directions, 8 bytes
// each, once more for an earlier moment, in slots whose number is a power of two (schedule/interleaved.hpp).
double replay_bytes(const Strategy& strategy, std::int64_t n) {
  const std::int64_t p = strategy.pipeline_parallel;
  const std::int64_t m = strategy.virtual_pipeline;
  if (p < 1 || m < 2 || p > most_count || m > most_count || n > most_count) return 0;  // reported as such
  const double passes = std::min(real(n) * real(m), real(m + 1) * real(group_size(strategy)));
  return 2 * 2 * 8 * real(p) * std::exp2(std::ceil(std::log2(passes + 1)));
}
constexpr double mebi = 1024 * 1024;
constexpr double most_replay_bytes = 768 * mebi;  // of the GiB that an answer may take

bool is_dualpipe(const Strategy& strategy) {
  return strategy.schedule == ScheduleKind::dualpipe && strategy.pipeline_parallel >= 1;
}

constexpr std::string_view of_groups =
    "Megatron-Core, core/pipeline_parallel/schedules.py, microbatch_group_size_per_vp_stage";
constexpr std::string_view of_dualpipe = "DeepSeek's DualPipe: two directions, mirror images of each other";
constexpr std::array microbatch_rows{
    Rule{"global_batch", [](const RuleCase& it) { return it.size <= most_microbatches; },
         "must give each pipeline at most {} microbatches, not {}", "A replay visits each of them",
         [](const RuleCase& it) { return shown(most_microbatches, it.size); }},
    Rule{"microbatch_group_size",
         [](const RuleCase& it) { return has_groups(it.strategy) || it.strategy.microbatch_group_size == 0; },
         "needs `schedule` interleaved", of_groups},
    Rule{"global_batch",
         [](const RuleCase& it) {
           return !has_groups(it.strategy) || it.strategy.microbatch_group_size != 0 ||
                  it.size % it.strategy.pipeline_parallel == 0;
         },
         "must give the interleaved schedule a multiple of `pipeline_parallel` microbatches ({} "
         "microbatches, {} ranks){}",
         of_groups,
         [](const RuleCase& it) {
           const std::int64_t p = it.strategy.pipeline_parallel;
           const std::int64_t least = least_group_size(p, it.size);
           return shown(
               it.size, p,
               least > 0 ? "; or set `microbatch_group_size` " + std::to_string(least) : std::string());
         }},
    Rule{"microbatch_group_size",
         [](const RuleCase& it) {
           const std::int64_t size = it.strategy.microbatch_group_size;
           return !has_groups(it.strategy) || size == 0 ||
                  is_group_size(size, it.strategy.pipeline_parallel, it.size);
         },
         "must be between `pipeline_parallel` and the {} microbatches, and leave 0 or at least {} "
         "microbatches for the last group, not {} ({} per group)",
         of_groups,
         [](const RuleCase& it) {
           const std::int64_t size = it.strategy.microbatch_group_size;
           return shown(it.size, it.strategy.pipeline_parallel, it.size % size, size);
         }},
    Rule{"virtual_pipeline",
         [](const RuleCase& it) { return replay_bytes(it.strategy, it.size) <= most_replay_bytes; },
         "{} on each of {} ranks needs {} MiB to replay the schedule, above the limit of {}: use fewer "
         "virtual stages or ranks",
         "An answer takes a GiB at most",
         [](const RuleCase& it) {
           return shown(it.strategy.virtual_pipeline, it.strategy.pipeline_parallel,
                        static_cast<std::int64_t>(replay_bytes(it.strategy, it.size) / mebi),
                        static_cast<std::int64_t>(most_replay_bytes / mebi));
         }},
    Rule{"pipeline_parallel",
         [](const RuleCase& it) {
           return !is_dualpipe(it.strategy) || it.strategy.pipeline_parallel % 2 == 0;
         },
         "must be even for `schedule` dualpipe, not {}", of_dualpipe,
         [](const RuleCase& it) { return shown(it.strategy.pipeline_parallel); }},
    Rule{"global_batch",
         [](const RuleCase& it) {
           return !is_dualpipe(it.strategy) || (it.size % 2 == 0 && it.size >= stages_by_two(it.strategy));
         },
         "must give `schedule` dualpipe an even number of microbatches, at least {} (twice the pipeline "
         "ranks), not {}",
         of_dualpipe, [](const RuleCase& it) { return shown(stages_by_two(it.strategy), it.size); }},
    Rule{"global_batch",
         [](const RuleCase& it) {
           return it.strategy.schedule != ScheduleKind::dualpipe_v || it.size >= stages_by_two(it.strategy);
         },
         "must give `schedule` dualpipe-v at least {} microbatches (one per virtual stage), not {}",
         "DeepSeek's DualPipeV, dualpipev.py",
         [](const RuleCase& it) { return shown(stages_by_two(it.strategy), it.size); }}};

constexpr std::array pipeline_topics{
    Topic{"pipelines", Whose::mechanism, Reads::layout, once, pipeline_rows},
    Topic{"stages listed", Whose::mechanism, Reads::layout, once_listed, stage_count_rows},
    Topic{"layers of a stage", Whose::mechanism, Reads::layout, each_stage, stage_size_rows},
    Topic{"layers of all stages", Whose::mechanism, Reads::layout, once_added_up, stage_sum_rows},
    Topic{"the batch", Whose::mechanism, Reads::layout, once_with_batch, batch_rows},
    Topic{"microbatches", Whose::mechanism, Reads::layout, once_with_microbatches, microbatch_rows}};

}  // namespace

std::span<const Topic> of_pipeline() { return pipeline_topics; }

}  // namespace headroom::rules
