// What trainers of Hugging Face models have in common: optimizers, adapters, FSDP and DeepSpeed.
#pragma once

#include <string>
#include <string_view>

#include "interop/launch_in/tree_run.hpp"

namespace headroom {

// "adamw_torch_fused", "AdamW", "paged_adamw_8bit".
void take_optimizer(const Written& setting, RunBuilder& builder);

// Linears by the names that peft has.
void take_lora_targets(const Written& setting, RunBuilder& builder);

// Of keys without "fsdp_" in front, of version 1 or 2. Sets what is sharded, and the stack.
void take_fsdp(TreeRun& fsdp, int version, RunScale& scale);

// A configuration of DeepSpeed. Values that are "auto" are the trainer's own. Sets the stack.
void take_deepspeed(TreeRun& run, RunScale& scale);
// Takes the batches of a configuration whose framework asserts batch = microbatch x accumulation x DP (`source`). Expects
// the sizes of a replica to be read, and sets the GPUs if they are not known. `accumulation`: by default.
void take_stated_batches(TreeRun& run, RunScale& scale, std::string_view source,
                         std::optional<std::int64_t> accumulation = {});
constexpr std::string_view batches_of_deepspeed = "DeepSpeed, deepspeed/runtime/config.py, _batch_assertion";
// Refuses a configuration that states neither a batch nor a microbatch.
void refuse_no_batch(TreeRun& run, const FilePlace& at, std::string_view source);
// Marks the microbatch as unresolved if only the batch is stated and the number of GPUs is unknown. Assumes accumulation 1.
// settle() divides.
void need_gpus_for_micro(TreeRun& run, RunScale& scale);
// Settings of DeepSpeed that are read by name in no table: the others of its configuration.
std::span<const LaunchKey> deepspeed_keys();

// The stage without a configuration of DeepSpeed's own.
void take_zero_stage(std::int64_t stage, const Written* from, RunBuilder& builder, bool bf16 = false);

// Sets what DeepSpeed's optimizer of BF16 weights does where ZeRO is off [DeepSpeed, runtime/engine.py,
// get_data_types; runtime/bf16_optimizer.py].
void shard_bf16_states(const Written* from, RunBuilder& builder);

// Returns whether a configuration of DeepSpeed, or GPT-NeoX's, trains BF16 weights.
bool trains_in_bf16(TreeRun& run);

// State on the host. "cpu" or "nvme".
void take_offload(bool parameters, const Written& device, RunBuilder& builder);

// FSDP's sends both.
void offload_all(const Written* from, RunBuilder& builder);

void plain_data_parallel(RunBuilder& builder);

// Refuses sizes of accelerate's parallelism_config that do not multiply to the processes of the job.
void refuse_parallelism(TreeRun& run, const RunScale& scale);

}  // namespace headroom
