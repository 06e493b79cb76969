// Translates a strategy into flags of a stack's launcher: sizes, schedule, sharding, recomputation, precision
// and overlap. Reports what the launcher has no flag for. Names are those of:
//   Megatron-LM of 2026-08 (megatron/training/arguments.py, core/transformer/transformer_config.py,
//     core/model_parallel_config.py)
//   Megatron-Bridge (ConfigContainer, training/comm_overlap.py)
//   sail-sg/zero-bubble-pipeline-parallelism (arguments.py, README.md)
//   torchtitan of 2025 (torchtitan/config/job_config.py; schedules:
//     torch/distributed/pipelining/schedules.py, get_schedule_class)
//   DeepSpeed (runtime/config.py, runtime/zero/config.py)
//   transformers on accelerate (TrainingArguments; utils/dataclasses.py, FullyShardedDataParallelPlugin)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/hardware/software.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

struct LaunchFlags {
  Launcher launcher = Launcher::megatron_lm;
  std::vector<std::string> flags;  // with their values: "--tensor-model-parallel-size 8"
  std::vector<std::string> lacks;  // parts of the strategy that the flags do not express, and why
  friend bool operator==(const LaunchFlags&, const LaunchFlags&) = default;
};

// A strategy without what its launcher has no words for, which `lacks` names with the reasons, and with what the
// launcher refuses although it has words.
struct ToldStrategy {
  Strategy strategy;
  std::vector<std::string> lacks;
};
// Expects a stack with a launcher.
ToldStrategy told_part(const Transformer& model, const Strategy& strategy, const Workload& workload,
                       const Software& software);

// Returns the flags of a legal strategy, or nothing if the stack's launcher is not known.
std::optional<LaunchFlags> launch_flags(const Transformer& model, const Strategy& strategy,
                                        const Workload& workload, const Software& software);

}  // namespace headroom
