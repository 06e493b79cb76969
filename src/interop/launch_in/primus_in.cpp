// Primus: Megatron-LM, Megatron-Bridge or torchtitan by the overrides of a module.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "headroom/interop/hugging_face.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

bool has_latent_attention(const Transformer& model) {
  return model.architecture.latent_attention.has_value() ||
         std::any_of(model.layer_kinds.begin(), model.layer_kinds.end(),
                     [](const auto& kind) { return kind.architecture.latent_attention.has_value(); });
}

// The configuration of a model by its name: beside the file, or in a checkout of Primus that the file lies in.
std::optional<std::string> model_file(const std::string& name, const std::string& file) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(file).parent_path();
  if (const fs::path beside = folder / name; is_regular_file(beside.string())) return beside.string();
  constexpr int most_above = 6;
  for (int i = 0; i < most_above; ++i) {
    const fs::path place = folder / "primus" / "configs" / "models" / "megatron" / name;
    if (is_regular_file(place.string())) return place.lexically_normal().string();
    folder /= "..";
  }
  return std::nullopt;
}

// Adds the settings of a configuration and of its bases, which it overrides. `count`: files read so far.
void add_model_file(const std::string& path, std::vector<Written>& all, RunBuilder& builder, int& count) {
  constexpr int most = 32;
  if (++count > most) throw InputError(path, "is based on itself, or on too many others");
  const TreeNode root = parse_yaml(read_file(path), path);
  for (const std::string_view key : {"bases", "extends"}) {
    const TreeNode* const bases = member_of(root, key);
    if (bases == nullptr) continue;
    const std::vector<TreeNode> alone(bases->kind == TreeKind::scalar ? 1 : 0, *bases);
    for (const TreeNode& base : alone.empty() ? bases->members : alone) {
      const std::string other =
          (std::filesystem::path(path).parent_path() / base.text).lexically_normal().string();
      if (is_regular_file(other))
        add_model_file(other, all, builder, count);
      else
        builder.unresolved(fmt::format("{} is not beside {}: what it sets is not known", printable(base.text),
                                       printable(path)),
                           {path, base.line});
    }
  }
  for (Written& setting : flattened(root, path)) {
    if (setting.name == "bases" || setting.name == "extends") continue;
    std::erase_if(all, [&](const Written& it) { return it.name == setting.name; });
    all.push_back(std::move(setting));
  }
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
  bool sizes_in_file = false;
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
      const std::string in_primus = model->text.ends_with(".yaml") ? model->text : model->text + ".yaml";
      if (const auto own = titan ? std::nullopt : model_file(in_primus, file.file)) {
        std::vector<Written> of_model;
        int count = 0;
        add_model_file(*own, of_model, builder, count);
        for (const Written& setting : written)
          std::erase_if(of_model, [&](const Written& it) { return it.name == setting.name; });
        written.insert(written.begin(), of_model.begin(), of_model.end());
        sizes_in_file = true;
      } else {
        std::replace(name.begin(), name.end(), '_', '-');
        name_model_of(name, &from, file.file, builder);
      }
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
  if (!bridge) need_equal_stages(run);
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
  if (sizes_in_file) {
    take_core_model(run);
  } else if (run.has("num_layers") && !run.has("hidden_size")) {
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
