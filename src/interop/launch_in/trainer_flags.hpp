// Flags of programs that train as the Trainer does, under other names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/frameworks.hpp"

namespace headroom {

// Written of a setting whose value is a program's default: "swift's default of lora_rank".
constexpr std::string_view default_of = "'s default of ";

// Of a program with DeepSpeed's engine.
void rename_for_trainer(std::vector<Written>& written);

// Of `swift sft` and its program of Python, as accelerate starts it.
bool are_swift_words(std::string_view program, const std::vector<Written>& written);
void rename_of_swift(TrainerLaunch& launch);
// Refuses ways to train that ms-swift does not have, and tells of those that are read as others.
void take_tuner(const Written& tuner, RunBuilder& builder);

// Of TRL's program, and of scripts and files with settings that only its trainers have.
bool are_trl_words(std::string_view program, const std::vector<Written>& written);
// Layers are checkpointed, and sequences are of 1,024 tokens, unless the script says otherwise [trl/trainer/base_config.py,
// gradient_checkpointing; sft_config.py and dpo_config.py, max_length].
void defaults_of_trl(TrainerLaunch& launch, const FilePlace& at);

// Returns whether the settings are of a GRPO trainer (TRL or ms-swift).
bool are_grpo_words(const std::vector<Written>& written);
// Sets the sequence to prompt plus answer, and counts a reference model if beta is not 0. Does nothing twice.
void take_grpo(TrainerLaunch& launch);

// Of LLaMA-Factory's program and its older scripts: --finetuning_type, --cutoff_len.
bool are_factory_words(std::string_view program, const std::vector<Written>& written);

// Of OpenRLHF's trainers: --pretrain, --micro_train_batch_size, --zero_stage.
bool are_openrlhf_words(const std::vector<Written>& written);
void rename_of_openrlhf(TrainerLaunch& launch, bool on_pairs);

// Training on preferences, as RunScale has it.
struct Preferences {
  bool pairs = false;      // DPO, ORPO, reward models and their like
  bool reference = false;  // DPO, KTO
};
Preferences preferences_of(std::string_view program, const std::vector<Written>& written);

// Returns whether flags are of one of the three steps of DeepSpeed-Chat.
bool are_deepspeed_chat_words(const std::vector<Written>& written);
// Of these steps, and of programs that take the stage of ZeRO as a flag.
void rename_of_deepspeed_chat(TrainerLaunch& launch);

// `megatron sft` of ms-swift: a model by its name, and Megatron-Core's flags.
LaunchedRun read_swift_megatron(TrainerLaunch launch, const std::string& file, const LaunchOptions& options);

}  // namespace headroom
