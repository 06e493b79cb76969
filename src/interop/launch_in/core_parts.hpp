// Megatron-Core's settings by the names of its configurations, as NeMo, Megatron-Bridge and Primus have them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/tree_run.hpp"

namespace headroom {

// The rules of the framework where they differ.
struct CoreRules {
  bool expert_tensor_is_one =
      false;  // Bridge since v0.6.0: an unsaid expert tensor-parallel size is 1 with EP
  bool sequence_parallel_needs_tensor = true;
};

void take_core(TreeRun& run, RunScale& scale, const CoreRules& rules);
// RunBuilder::need_equal_stages() of Megatron-Core's names.
void need_equal_stages(TreeRun& run);
void take_core_model(TreeRun& run);
// Names an embedded model whose sizes the file changes: "cfg.model.num_layers = 4" of a recipe's model.
void take_changed_model(const std::string& name, TreeRun& run);
std::span<const LaunchKey> core_keys();

// "bf16_mixed", "bf16_with_fp8_current_scaling_mixed", "bf16-mixed", "fp8_cs".
void take_core_precision(const Written& setting, RunBuilder& builder);

// The same of an override "mixed_precision=NAME": refuses what Megatron-Bridge has no recipe of, and sets what the recipe
// sets beside the precision.
void take_bridge_precision(TreeRun& run);

// Overrides of NeMo-Framework-Launcher, where "training" is a configuration of NeMo 1.x
// [NVIDIA/NeMo-Framework-Launcher, launcher_scripts/conf/training].
bool are_nemo_launcher_words(const std::vector<Written>& written);
LaunchedRun read_nemo_launcher_words(std::vector<Written> written, const std::string& file,
                                     std::optional<std::int64_t> devices, const LaunchOptions& options);

// Rules of Megatron-Bridge that a configuration breaks, of its settings with their groups.
void refuse_bridge(const std::vector<Written>& written, RunBuilder& builder);

// Groups of Megatron-Bridge's and NeMo's configurations, the longest first where one starts with another.
inline constexpr std::array<std::string_view, 16> bridge_groups{"model.config.",
                                                                "trainer.strategy.ddp.",
                                                                "trainer.strategy.",
                                                                "trainer.plugins.",
                                                                "optim.config.",
                                                                "data.",
                                                                "model.",
                                                                "train.",
                                                                "ddp.",
                                                                "optimizer.",
                                                                "mixed_precision.",
                                                                "comm_overlap.",
                                                                "trainer.",
                                                                "dataset.",
                                                                "strategy.ddp.",
                                                                "strategy."};

// Names without the groups that Megatron-Core's settings are in.
std::vector<Written> without_groups(std::vector<Written> written, std::span<const std::string_view> groups);
// "llama3_70b_pretrain_64gpu_h100_bf16_config", "LlamaConfig70B", "MixtralConfig8x22B": the model that is meant, or "".
std::string model_in(const std::string& text);
std::vector<LaunchKey> with_core_keys(std::span<const LaunchKey> own);
void take_peft(TreeRun& run, std::string_view group, std::int64_t rank_default);

}  // namespace headroom
