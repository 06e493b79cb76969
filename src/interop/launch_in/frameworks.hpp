// Frameworks whose configurations are read, each by a function of its own.
#pragma once

#include "interop/launch_in/tree_run.hpp"

namespace headroom {

LaunchedRun read_torchtitan(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_torchtitan_config(const TreeFile& file,
                                   const LaunchOptions& options);  // of its Python registry
LaunchedRun read_deepspeed(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_accelerate(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_hugging_face(const TreeFile& file, const LaunchOptions& options);

// The flags of a script of the Trainer, and what starts it.
struct TrainerLaunch {
  std::vector<Written> written;         // "per_device_train_batch_size"
  std::vector<Written> accelerate;      // of `accelerate launch`: "deepspeed_config.zero_stage"
  std::optional<Written> global;        // of all data-parallel ranks, where a program states its batch so
  std::optional<std::int64_t> devices;  // as launchers' flags say them
  std::optional<std::int64_t> devices_per_node;
  std::vector<LaunchRemark> remarks;
  std::string open_conditions;   // as RunBuilder::open_conditions() has it
  std::optional<Written> tuner;  // of `swift sft`: lora, full or another way to train
  bool pairs = false;            // as RunScale has it
  bool reference = false;
  bool joined_lengths = false;  // of prompt and answer, by take_grpo()
  bool alone = false;           // a configuration, without what launches it
};
LaunchedRun read_trainer_words(TrainerLaunch launch, const std::string& file, const LaunchOptions& options);

LaunchedRun read_llama_factory(const TreeFile& file, const LaunchOptions& options);
// The same as flags: --finetuning_type lora --cutoff_len 2048.
LaunchedRun read_llama_factory_words(TrainerLaunch launch, const std::string& file,
                                     const LaunchOptions& options);
LaunchedRun read_axolotl(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_nanotron(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_olmo(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_litgpt(const TreeFile& file, const LaunchOptions& options);
// What a command of litgpt trains, where its settings may not tell.
enum class LitgptCommand : std::uint8_t { by_settings, pretrain, full, lora };
// The same of `litgpt finetune_lora FOLDER --train.micro_batch_size 4`, whose last setting of a name holds.
LaunchedRun read_litgpt_words(std::vector<Written> written, LitgptCommand command, const std::string& file,
                              const LaunchOptions& options);
LaunchedRun read_llm_foundry(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_gpt_neox(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_torchtune(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_nemo(const TreeFile& file, const LaunchOptions& options);  // 1.x: trainer, model
LaunchedRun read_nemo_recipe(const TreeFile& file,
                             const LaunchOptions& options);  // 2.0, Megatron-Bridge: Python
LaunchedRun read_megatron_bridge(const TreeFile& file, const LaunchOptions& options);  // overrides in YAML
// Whether the words of a command are Megatron-Bridge's overrides and no flags: some have dots, and others may be without
// ("mixed_precision=bf16_mixed").
bool are_bridge_words(const std::vector<Written>& written);
// The same as words of a command: "model.num_layers=32".
LaunchedRun read_bridge_words(std::vector<Written> written, std::optional<std::int64_t> devices,
                              const std::string& file, const LaunchOptions& options);
LaunchedRun read_megatron_yaml(const TreeFile& file, const LaunchOptions& options);  // MODEL_ARGS
LaunchedRun read_primus(const TreeFile& file, const LaunchOptions& options);
LaunchedRun read_verl(const TreeFile& file, const LaunchOptions& options);
// Programs of verl: the trainer of an actor, and two of SFT, of which the newer one has engines.
enum class VerlTrainer : std::uint8_t { actor, fsdp_sft, sft };
// The same as words of a command: "trainer.nnodes=4". `devices`: as a launcher of an SFT trainer says.
LaunchedRun read_verl_words(std::vector<Written> written, const std::string& file,
                            const LaunchOptions& options, std::optional<std::int64_t> devices = {},
                            VerlTrainer trainer = VerlTrainer::actor);

}  // namespace headroom
