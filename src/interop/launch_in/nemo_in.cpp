// NeMo 1.x.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// Reads settings of NeMo 1.x. `base`: names the unread configuration that they change, or null.
LaunchedRun read_nemo_settings(std::vector<Written> written, const std::string& file, const Written* base,
                               std::optional<std::int64_t> devices, const LaunchOptions& options) {
  RunBuilder builder(file, "NeMo", "nemo-2025");
  static constexpr std::array<std::string_view, 3> groups{"model.optim.", "model.data.", "model."};
  for (Written& setting : written) {
    if (setting.name == "model.optim.name") setting.name = "optimizer_name";
    if (setting.name == "model.name") setting.name = "model_name";
  }
  TreeRun run(without_groups(std::move(written), groups), builder);
  RunScale scale{.devices = devices};
  scale.devices_per_node = run.count({"trainer.devices", "trainer.gpus"});
  scale.nodes = run.count({"trainer.num_nodes"});
  // [NVIDIA/NeMo-Framework-Launcher, launcher_scripts/conf/training/nemotron/nemotron_340b.yaml: trainer.devices,
  // optim.name]
  constexpr std::int64_t launcher_devices = 8;
  const bool states_devices = run.has("trainer.devices") || run.has("trainer.gpus");
  if (base != nullptr && scale.nodes && !scale.devices && !states_devices) {
    scale.devices_per_node = launcher_devices;
    builder.assume(fmt::format("nodes of {} GPUs, as in the launcher's own configurations", launcher_devices),
                   base);
  }
  take_core(run, scale, {});
  if (base == nullptr) need_equal_stages(run);
  if (const Written* const precision = run.find("trainer.precision"))
    take_core_precision(*precision, builder);
  if (const Written* const fp8 = run.find("fp8"); fp8 != nullptr && is_on(*fp8)) {
    builder.set("precision", "fp8_delayed", fp8);
    builder.imply("fp8 of NeMo 1.x is Transformer Engine's delayed scaling", fp8);
  }
  if (const Written* const params = run.find("fp8_params"); params != nullptr && is_on(*params))
    builder.set("fp8_param_gather", "yes", params);
  const std::string optimizer = run.text({"optimizer_name"});
  if (optimizer == "distributed_fused_adam" || optimizer == "mcore_distributed_optim") {
    builder.set("data_sharding", "zero1", run.find("optimizer_name"));
  } else if (base != nullptr && optimizer.empty()) {
    builder.set("data_sharding", "zero1", nullptr);
    builder.assume("the optimizer is distributed, as in the launcher's own configurations", base);
  } else if (!builder.value("data_sharding")) {
    builder.set("data_sharding", "none", run.find("optimizer_name"));
  }
  if (const Written* const sync = run.find({"overlap_grad_sync"}))
    builder.choose("overlap_grad_reduce", is_on(*sync) ? "true" : "false", sync);
  if (const Written* const sync = run.find({"overlap_param_sync"}))
    builder.choose("overlap_param_gather", is_on(*sync) ? "true" : "false", sync);
  if (const Written* const dtype = run.find({"grad_sync_dtype"}); dtype != nullptr)
    builder.set("gradient_dtype", text_of_values(*dtype).find("bf16") != std::string::npos ? "bf16" : "fp32",
                dtype);
  take_peft(run, "peft", 32);
  const std::string named = run.text({"run.name", "name", "exp_manager.name"}) + ' ' + file;
  const std::string name = model_in(base == nullptr ? named : text_of_values(*base));
  if (run.has("hidden_size") && (base == nullptr || name.empty()))
    take_core_model(run);
  else if (!name.empty())
    take_changed_model(name, run);
  if (base != nullptr)
    builder.unresolved(fmt::format("{} is not at hand: settings that are not written here come from there",
                                   printable(base->as_written)),
                       base->at);
  static constexpr LaunchKey own[] = {
      {"trainer.*"},
      {"exp_manager.*"},
      {"run.*"},
      {"data*"},
      {"hydra*"},
      {"defaults*"},
      {"nsys_profile.*"},
      {"tokenizer.*"},
      {"optimizer_name"},
      {"sched.*"},
      {"restore_from_path"},
      {"resume_from_checkpoint"},
      {"megatron_amp_O2"},
      {"native_amp_*"},
      {"hysteresis"},
      {"pre_process"},
      {"post_process"},
      {"use_cpu_initialization"},
      {"activations_checkpoint_layers_per_pipeline"},
      {"num_micro_batches_*"},
      {"bucket_cap_mb"},
      {"contiguous_grad_bucket"},
      {"overlap_*"},
      {"peft.*"},
      {"answer_only_loss"},
      {"resume_*"},
      {"ub_*"},
      {"reduce_amax"},
      {"use_emha"},
      {"rampup_batch_size*", LaunchUse::unmodelled, "a batch that grows"},
      {"mcore_gpt"},
      {"mcore_*"},
      {"headscale"},
      {"transformer_block_type"},
      {"openai_gelu"},
      {"normalize_attention_scores"},
      {"num_sanity_val_steps"},
      {"fsdp", LaunchUse::unmodelled, "FSDP"},
      {"fsdp_*"},
      {"lm_head*"},
      {"apply_*"},
      {"sync_*"},
      {"layer_type*"},
      {"get_attention_mask_from_fusion"},
      {"multi_query_attention"},
      {"sharp"},
      {"weight_decay"},
      {"betas*"},
      {"bucket_*"},
      {"dist_*"},
      {"inference.*"},
      {"merge_*"},
      {"*"},
  };
  settle(scale, builder);
  run.rest(with_core_keys(own));
  return builder.finish(options);
}

}  // namespace

bool are_nemo_launcher_words(const std::vector<Written>& written) {
  return std::any_of(written.begin(), written.end(), [](const Written& setting) {
    return setting.name.starts_with("training.model.") || setting.name.starts_with("training.trainer.");
  });
}

LaunchedRun read_nemo_launcher_words(std::vector<Written> written, const std::string& file,
                                     std::optional<std::int64_t> devices, const LaunchOptions& options) {
  constexpr std::string_view group = "training.";
  Written base;
  base.name = base.as_written = "training";
  base.at.file = file;
  for (Written& setting : written) {
    if (setting.name == "training") base = setting;
    if (setting.name.starts_with(group)) setting.name.erase(0, group.size());
  }
  std::erase_if(written, [](const Written& setting) { return setting.name == "training"; });
  return read_nemo_settings(std::move(written), file, &base, devices, options);
}

LaunchedRun read_nemo(const TreeFile& file, const LaunchOptions& options) {
  return read_nemo_settings(flattened(file.root, file.file), file.file, nullptr, std::nullopt, options);
}

}  // namespace headroom
