// Primus: Megatron-LM, Megatron-Bridge or torchtitan by the overrides of a module.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/interop/hugging_face.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

bool has_latent_attention(const Transformer& model) {
  return model.architecture.latent_attention.has_value() ||
         std::any_of(model.layer_kinds.begin(), model.layer_kinds.end(),
                     [](const auto& kind) { return kind.architecture.latent_attention.has_value(); });
}

}  // namespace

LaunchedRun read_primus(const TreeFile& file, const LaunchOptions& options) {
  const TreeNode* const modules = member_of(file.root, "modules");
  const TreeNode* trainer = nullptr;
  for (const TreeNode& module : modules->members) {
    if (member_of(module, "framework") != nullptr && trainer == nullptr) trainer = &module;
  }
  if (trainer == nullptr) throw InputError(file.file, "has no module with a framework under modules");
  const TreeNode* const framework = member_of(*trainer, "framework");
  const bool titan = framework->text == "torchtitan";
  const bool bridge = framework->text == "megatron_bridge";
  RunBuilder builder(file.file,
                     fmt::format("Primus on {}", titan    ? "torchtitan"
                                                 : bridge ? "Megatron-Bridge"
                                                          : "Megatron-LM"),
                     titan    ? "torchtitan-2025"
                     : bridge ? "nemo-2025"
                              : "megatron-core-2025");
  const TreeNode* const overrides = member_of(*trainer, "overrides");
  std::vector<Written> written =
      overrides == nullptr ? std::vector<Written>{} : flattened(*overrides, file.file);
  const TreeNode* const model = member_of(*trainer, "model");
  RunScale scale;
  builder.system("mi300x");
  builder.imply("Primus trains on AMD's GPUs: --system names another than mi300x");
  if (model != nullptr) {
    std::string name = model->text.substr(0, model->text.rfind(".yaml"));
    name = name.substr(0, name.rfind(".yml"));
    const Written from{"model", {model->text}, "model: " + model->text, {file.file, model->line}, {}};
    for (const std::string_view end : {"-fp8", "-bf16"}) {
      if (lower_case(name).ends_with(end)) name.resize(name.size() - end.size());
    }
    const std::string ours = model_in(name);
    if (const auto flavor = titan ? titan_flavor(name) : std::nullopt) {
      scale.layers = take_titan_model(flavor->first, flavor->second, &from, file.file, builder);
    } else if (!ours.empty()) {
      builder.name_model(ours, &from);
      const Transformer known = read_any_model(ours);
      scale.layers = known.layers;
      for (const Written& setting : written) {
        if (setting.name == "multi_latent_attention" && !is_on(setting) && has_latent_attention(known))
          builder.leave_out(setting, "attention without latent ranks: the model's own is read");
      }
    } else {
      std::replace(name.begin(), name.end(), '_', '-');
      name_model_of(name, &from, file.file, builder);
    }
  }
  if (titan) {
    TreeRun run(std::move(written), builder);
    take_titan(run, scale);
    take_titan_precision(run);
    settle(scale, builder);
    static constexpr LaunchKey own[] = {{"primus_turbo.*", LaunchUse::unmodelled, "kernels of Primus-Turbo"},
                                        {"*sink_level"}};
    std::vector<LaunchKey> keys(titan_keys().begin(), titan_keys().end());
    keys.insert(keys.end(), std::begin(own), std::end(own));
    run.rest(keys);
    return builder.finish(options);
  }
  TreeRun run(without_groups(std::move(written), bridge ? std::span<const std::string_view>(bridge_groups)
                                                        : std::span<const std::string_view>()),
              builder);
  take_core(run, scale, {.expert_tensor_is_one = bridge});
  if (!run.has("use_distributed_optimizer") && !builder.value("data_sharding")) {
    builder.set("data_sharding", "zero1", nullptr);
    builder.imply("Primus's pre_trainer takes the distributed optimizer where it is not written");
  }
  if (!builder.value("precision")) builder.set("precision", "bf16", run.find("bf16"));
  if (const Written* const peft = run.find("peft");
      peft != nullptr && text_of_values(*peft).find("lora") != std::string::npos) {
    const auto rank = run.count({"peft_dim", "lora_rank", "peft_config.dim"});
    builder.set("lora_rank", std::to_string(rank.value_or(16)), peft);
    if (!rank) builder.imply("an adapter has rank 16 where it is not written", peft);
  }
  if (run.on("lora.enabled")) {
    builder.use_software("nemo-2025");  // Megatron-Bridge has adapters
    take_peft(run, "lora", 16);
  }
  if (run.has("num_layers") && !run.has("hidden_size")) {
    builder.member("layers", run.count("num_layers").value_or(1), run.find("num_layers"));
  }
  static constexpr LaunchKey own[] = {{"wandb*"},
                                      {"log*"},
                                      {"overlap_grad_reduce", LaunchUse::choice, "overlap_grad_reduce"},
                                      {"moe_layer_freq"},
                                      {"hf_path"},
                                      {"recompute_layer_ids"},
                                      {"precision_config"},
                                      {"auto_continue_train"},
                                      {"primus_*"},
                                      {"pp_*"},
                                      {"*"}};
  settle(scale, builder);
  run.rest(with_core_keys(own));
  return builder.finish(options);
}

}  // namespace headroom
