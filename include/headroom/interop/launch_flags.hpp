// A strategy in the words of the program that launches it on a stack: what to pass for its sizes, schedule, sharding, recomputation,
// precision and overlap. What the launcher has no flag for is said, not left out. The names are those of Megatron-LM
// (megatron/training/arguments.py, core/transformer/transformer_config.py, core/model_parallel_config.py, of 2026-08), Megatron-Bridge
// (ConfigContainer, training/comm_overlap.py), sail-sg/zero-bubble-pipeline-parallelism (arguments.py, README.md), torchtitan of 2025
// (torchtitan/config/job_config.py; schedules: torch/distributed/pipelining/schedules.py, get_schedule_class), DeepSpeed
// (runtime/config.py, runtime/zero/config.py) and transformers on accelerate (TrainingArguments; utils/dataclasses.py, FullyShardedDataParallelPlugin).
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
  std::vector<std::string> lacks;  // what of the strategy they do not say, and why
  friend bool operator==(const LaunchFlags&, const LaunchFlags&) = default;
};

// Of a legal strategy; nothing of a stack whose launcher is not known.
std::optional<LaunchFlags> launch_flags(const Transformer& model, const Strategy& strategy,
                                        const Workload& workload, const Software& software);

}  // namespace headroom
