// What trainers of Hugging Face models share: batches, lengths, adapters, checkpoints and how the model is sharded.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/trainer_parts.hpp"

namespace headroom {

// Batches, lengths, dtypes and adapters, under the names of each trainer.
struct TrainerNames {
  std::initializer_list<std::string_view> model;
  std::initializer_list<std::string_view> micro;
  std::initializer_list<std::string_view> sequence;
  std::int64_t micro_default;
  std::int64_t sequence_default;  // 0: the model's
  std::initializer_list<std::string_view> optimizer;
  std::initializer_list<std::string_view> lora_rank;
  std::initializer_list<std::string_view> lora_targets;
};

// Names that scripts have for the length of a sequence.
inline const std::initializer_list<std::string_view> trainer_lengths{
    "max_seq_length", "max_length", "model_max_length", "block_size", "max_seq_len", "seq_length"};

// Doubles MBS and GBS, which count pairs, so that they count sequences. `micro`: the setting of the microbatch.
void count_pairs(RunScale& scale, const Written* micro, RunBuilder& builder);

// Adds the frozen reference model. With adapters, it is the model without them [trl/trainer/dpo_trainer.py].
void take_reference(bool adapter, RunBuilder& builder);

std::vector<Written> without_prefix(std::vector<Written> written, std::string_view prefix);
void take_deepspeed_tree(std::vector<Written> written, RunScale& scale, RunBuilder& builder);
void take_deepspeed_of(TreeRun& run, std::string_view name, RunScale& scale);
void take_common(TreeRun& run, const TrainerNames& names, RunScale& scale);
void take_adapter(TreeRun& run, const TrainerNames& names, bool adapter, const Written* from,
                  std::int64_t rank_default);
// The dropout of adapters where the launch writes none, for frameworks that then drop 5% of the inputs.
void default_lora_dropout(TreeRun& run, const Written* from);
void take_quantization(TreeRun& run, const TrainerNames& names, bool adapter);
void take_fsdp_words(TreeRun& run, RunScale& scale, const std::string& config_name);
bool has_fsdp(const TreeRun& run, const std::string& config_name);
bool has_deepspeed(const TreeRun& run);
// The name of a setting whose value names a configuration of accelerate that is not at hand.
inline const std::string absent_configuration = "absent_configuration";
// "zero3" of names as trainers ship them: "zero3_bf16.json", "ds_z2_offload_config.json". Empty: none.
std::string stage_in_name(std::string_view name);
// GPUs, sharding and precision of a configuration of accelerate, and what else it has.
void take_accelerate(TreeRun& run, RunScale& scale);
void take_sharding(TreeRun& run, RunScale& scale);
// The optimizer steps weights of 16 bits, and its moments are as wide.
void step_loaded_weights(const Written* from, RunBuilder& builder);
void take_loaded_dtype(TreeRun& run);
// verl's dtype of the weights that FSDP shards [verl/trainer/fsdp_sft_trainer.py, _build_model_optimizer].
void take_model_dtype(TreeRun& run, std::string_view name);
void take_checkpointing(TreeRun& run, const Written* setting);
LaunchedRun hf_like(TreeRun& run, const TrainerNames& names, bool adapter, const Written* adapter_at,
                    std::int64_t rank_default, const Written* checkpointing, std::span<const LaunchKey> table,
                    const LaunchOptions& options, RunScale scale);

}  // namespace headroom
