// NeMo 2.0 and Megatron-Bridge.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/io/catalog.hpp"
#include "interop/launch_in/bridge_recipe.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/flags.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {

namespace {

// Names of the parameters of NeMo's recipes, of which a call of another file's function has no more.
void rename_recipe_arguments(std::vector<Written>& written) {
  constexpr std::array<std::array<std::string_view, 2>, 8> names{{
      {"tensor_parallelism", "tensor_model_parallel_size"},
      {"pipeline_parallelism", "pipeline_model_parallel_size"},
      {"virtual_pipeline_parallelism", "virtual_pipeline_model_parallel_size"},
      {"context_parallelism", "context_parallel_size"},
      {"expert_parallelism", "expert_model_parallel_size"},
      {"sequence_parallelism", "sequence_parallel"},
      {"num_gpus_per_node", "devices"},
      {"train.micro_batch", "micro_batch_size"},
  }};
  for (Written& setting : written) {
    for (const auto& [theirs, ours] : names) {
      if (setting.name == theirs) setting.name = std::string(ours);
    }
  }
}

// What is set upon the result of a call takes the place of the call's argument, which stands before it.
void keep_last(std::vector<Written>& written) {
  std::vector<Written> kept;
  kept.reserve(written.size());
  for (Written& setting : written) {
    const auto earlier = std::find_if(kept.begin(), kept.end(),
                                      [&](const Written& other) { return other.name == setting.name; });
    const bool later = earlier != kept.end() && setting.at.line >= earlier->at.line;
    if (earlier == kept.end())
      kept.push_back(std::move(setting));
    else if (later)
      *earlier = std::move(setting);
  }
  written = std::move(kept);
}

// Words of NeMo 1.x among those of Megatron-Bridge [NeMo, core/optim/distributed_adam.py].
void take_nemo_words(TreeRun& run) {
  if (const Written* const precision = run.find({"trainer.precision", "precision"}))
    take_core_precision(*precision, run.builder());
  const Written* const optimizer = run.find("optim.name");
  const std::string name = optimizer == nullptr ? "" : text_of_values(*optimizer);
  if (name == "distributed_fused_adam" || name == "mcore_distributed_optim")
    run.builder().set("data_sharding", "zero1", optimizer);
}

// Removes settings of a recipe that the file sets to None: they are off.
void drop_nones(TreeRun& run, Edits& settings) {
  const auto is_none = [&](std::string_view name) {
    return run.has(name) && !run.is_open({name}) && run.find(name) == nullptr;
  };
  const bool one_stage = is_none("virtual_pipeline_model_parallel_size");
  const bool keeps_all = is_none("recompute_granularity");
  std::erase_if(settings, [&](const Edit& edit) {
    return (one_stage && edit.field == "virtual_pipeline") ||
           (keeps_all && edit.field.starts_with("recompute"));
  });
}

// Fills unset settings from the recipe that a command starts from, if Headroom has it.
void take_started_recipe(const RecipeWords& words, const FilePlace& place, RunScale& scale, TreeRun& run) {
  RunBuilder& builder = run.builder();
  if (!words.gpu.empty()) builder.system(words.gpu);
  if (std::optional<Recipe> recipe = recipe_of(words)) {
    drop_nones(run, recipe->settings);
    fill_from_recipe(*recipe, scale, builder);
    builder.imply(fmt::format("settings that the command leaves out come from the recipe {}@{}", recipe->name,
                              recipe->releases.back()));
  } else {
    builder.unresolved(
        fmt::format(
            "starts from the recipe {}, which is not at hand: settings that are not written here come "
            "from there",
            printable(words.name)),
        place);
  }
}

LaunchedRun read_bridge(std::vector<Written> written, const FilePlace& place, const LaunchOptions& options,
                        const std::string& framework, bool recipe, RunScale scale = {}) {
  RunBuilder builder(place.file, framework, "nemo-2025");
  const std::optional<RecipeWords> started = recipe ? std::nullopt : take_recipe_words(written);
  if (started && started->devices && !scale.devices) scale.devices = started->devices;
  // "_with_global_batch_size(recipe(), 1024)" changes that alone.
  std::string base;
  std::string function;
  std::string classes;
  for (Written& setting : written) {
    if (setting.name == "::function") function = setting.values.front();
    if (setting.name == ".()" || setting.name == "()") base = setting.values.front();
    if (setting.name.ends_with(".()")) classes += setting.values.front() + ' ';
  }
  if (base == "_with_global_batch_size") {
    for (Written& setting : written) {
      if (setting.name.starts_with("0."))
        setting.name.erase(0, 2);
      else if (setting.name == "1")
        setting.name = "global";
    }
    std::erase_if(written, [](const Written& setting) { return setting.name == "train.global_batch_size"; });
    for (Written& setting : written) {
      if (setting.name == "global") setting.name = "train.global_batch_size";
      if (setting.name == "()") base = setting.values.front();
    }
  }
  // "mixed_precision = _perf_precision("fp8_cs")" or bf16_mixed().
  for (Written& setting : written) {
    if (setting.name == "mixed_precision.0") setting.name = "mixed_precision";
    if (setting.name == "mixed_precision.()")
      setting.name =
          setting.values.front().find("precision") != std::string::npos ? "called" : "mixed_precision";
    if (setting.name == "trainer.plugins.precision") setting.name = "mixed_precision";
    if (setting.name == "trainer.plugins.()" || setting.name == "trainer.plugins.0.()")
      setting.name = setting.values.front().find("16") != std::string::npos ||
                             setting.values.front().find("fp8") != std::string::npos
                         ? "mixed_precision"
                         : "called";
    if (setting.name == "tokenizer.vocab_size") setting.name = "tokenizer_vocab_size";
    if (setting.name == "model.config.()" || setting.name == "model.()") setting.name = "called";
  }
  if (!recipe) refuse_bridge(written, builder);
  std::vector<Written> plain = without_groups(std::move(written), bridge_groups);
  // A call of another file's function stands behind what is set upon its result.
  rename_recipe_arguments(plain);
  if (recipe) {
    std::erase_if(plain, [](const Written& setting) {
      return setting.name == "called" || setting.name == "::function" || setting.name == "()" ||
             setting.name.ends_with(".()");
    });
    keep_last(plain);
  }
  TreeRun run(std::move(plain), builder);
  if (!scale.devices) {
    scale.devices_per_node = run.count({"devices"});
    scale.nodes = run.count({"num_nodes"});
    run.find({"num_gpus", "gpus"}, "data_parallel");
  }
  // "..._64gpu_..." of a name.
  if (const std::size_t at = function.find("gpu_"); at != std::string::npos && at > 0) {
    const std::size_t start = function.rfind('_', at);
    if (const auto count = whole_count(std::string_view(function).substr(start + 1, at - start - 1));
        count && *count > 0) {
      scale.devices = count;
      builder.imply(fmt::format("{} GPUs by the name of {}", *count, function));
    }
  }
  take_core(run, scale, {.expert_tensor_is_one = true});
  if (!recipe) take_bridge_precision(run);
  take_nemo_words(run);
  const std::string said = function + ' ' + base + ' ' + classes + ' ' + (started ? started->name : "") +
                           ' ' +
                           run.text({"recipe", "hf_path", "pretrained_checkpoint",
                                     "checkpoint.pretrained_checkpoint", "restore_from_path"});
  std::string name = model_in(said);
  if (name.empty())
    name = model_in(said + ' ' + (recipe ? place.file.substr(place.file.rfind('/') + 1) : place.file));
  const bool of_other_file = base.find("_config") != std::string::npos || base.ends_with("_recipe");
  const bool starts_from_model = of_other_file && find_embedded("model", name) != nullptr;
  if (run.has("hidden_size") && run.has("num_layers") && !starts_from_model)
    take_core_model(run);
  else if (!name.empty())
    take_changed_model(name, run);
  const bool performance = function.find("gpu_") != std::string::npos;
  const bool sums_known = builder.value("gradient_dtype").has_value();
  if (performance && !sums_known) {
    builder.set("gradient_dtype", "bf16", nullptr);
    builder.imply("performance recipes of Megatron-Bridge reduce gradients in bf16");
  }
  if (started) take_started_recipe(*started, place, scale, run);
  std::optional<Edits> defaults = defaults_of_nemo(base);
  if (defaults) {
    drop_nones(run, *defaults);
    fill_unset(*defaults, scale, builder);
    builder.imply(fmt::format("settings that are not written here are the defaults of {}", printable(base)));
  }
  const bool grid =
      builder.count("tensor_parallel").value_or(1) > 1 && builder.count("expert_parallel").value_or(1) > 1;
  if (recipe && grid && !builder.value("sequence_parallel")) {
    builder.set("sequence_parallel", "yes", nullptr);
    builder.imply("sequence parallelism is on, as in the base recipe: experts with TP need it");
  }
  // Built from Megatron-Core's defaults [Megatron-Bridge, recipes/gpt/vanilla_gpt.py].
  const bool vanilla = base.find("vanilla_gpt") != std::string::npos;
  if ((recipe || started) && !vanilla && !builder.value("data_sharding")) {
    builder.set("data_sharding", "zero1", nullptr);
    builder.imply("recipes take the distributed optimizer where it is not written");
  }
  if (recipe && !builder.value("sequence") && !performance && !base.empty())
    builder.assume("the base recipe is not in this file: its other settings are unknown");
  if (recipe && of_other_file && !defaults)
    builder.unresolved(
        fmt::format(
            "starts from {}, which is not in this file: settings that are not written here come from there",
            base),
        place);
  if (const Written* const optimizer = run.find({"optimizer"}); optimizer != nullptr && !is_null(*optimizer))
    take_optimizer(*optimizer, builder);
  if (run.has("peft_scheme")) run.find("peft_scheme");
  take_peft(run, "peft", 32);
  const bool names_adapter =
      function.find("_lora_") != std::string::npos || function.find("_peft_") != std::string::npos;
  if (!builder.value("lora_rank") && (names_adapter || (started && started->adapter))) {
    builder.set("lora_rank", "32", nullptr);
    builder.imply("an adapter has rank 32 where it is not written");
  }
  static constexpr LaunchKey own[] = {
      {"::function"},
      {"()"},
      {"called"},
      {"*.()"},
      // Of the programs that start recipes.
      {"account"},
      {"partition"},
      {"time_limit"},
      {"container_image"},
      {"custom_*"},
      {"hf_token"},
      {"wandb_*"},
      {"log_dir"},
      {"gpus_per_node"},
      {"domain"},
      {"packager"},
      {"dryrun"},
      {"detach"},
      {"offline"},
      {"source"},
      {"use_recipes"},
      {"step_func"},
      {"tokenizer*"},
      {"checkpoint.*"},
      {"logger.*"},
      {"log.*"},
      {"resume.*"},
      {"scheduler.*"},
      {"rng.*"},
      {"dist.*"},
      {"profiling.*"},
      {"rerun_state_machine.*"},
      {"callbacks.*"},
      {"plugins.*"},
      {"devices"},
      {"num_nodes"},
      {"peft.*"},
      {"optim.*"},
      {"accelerator"},
      {"recipe"},
      {"packed_sequence*"},
      {"data.train_ds.*"},
      {"data.validation_ds.*"},
      {"data.test_ds.*"},
      {"exp_manager.*"},
      {"cluster_type"},
      {"answer_only_loss"},
      {"megatron_amp_O2"},
      {"restore_from_path"},
      {"sft.*"},
      {"dataset_kwargs.*"},
      {"hf_path"},
      {"limit_*"},
      {"use_distributed_sampler"},
      {"validation.*"},
      {"env_vars.*"},
      {"straggler.*"},
      {"ft.*"},
      {"inprocess_restart.*"},
      {"nvrx_*"},
      {"tensor_inspect.*"},
      {"config_logger*"},
      {"blend*"},
      {"mock"},
      {"reset_*"},
      {"path_to_cache"},
      {"skip_getting_attention_mask_from_dataset"},
      {"seq_length"},
      {"sequence_length"},
      {"_target_"},
      {"pretrain"},
      {"fn"},
      {"accumulate_grad_batches"},
      {"max_steps"},
      {"val_check_interval"},
      {"callbacks"},
      {"vp_*"},
      {"*_fn"},
      {"hidden_size"},
  };
  settle(scale, builder);
  std::vector<LaunchKey> keys = with_core_keys(own);
  run.rest(keys);
  return builder.finish(options);
}

// Fine-tuning of NeMo 1 and NeMo-Aligner takes batches and lengths from the training data, over the model's own [NeMo,
// megatron_gpt_finetuning.py; NeMo-Aligner, train_gpt_sft.py].
void take_training_data(std::vector<Written>& written) {
  constexpr std::array<std::array<std::string_view, 2>, 3> names{{
      {"model.data.train_ds.micro_batch_size", "model.micro_batch_size"},
      {"model.data.train_ds.global_batch_size", "model.global_batch_size"},
      {"model.data.train_ds.max_seq_length", "model.encoder_seq_length"},
  }};
  for (const auto& name : names) {
    const Written* const of_data = flag_of(written, name.front());
    if (of_data == nullptr || is_null(*of_data)) continue;
    Written setting = *of_data;
    setting.name = std::string(name.back());
    std::erase_if(written, [&](const Written& it) { return contains(name, std::string_view(it.name)); });
    written.push_back(std::move(setting));
  }
}

// Adds the settings of None that drop_nones() looks for, which flattened() leaves out.
void add_nones(const TreeNode& node, const std::string& path, const std::string& file,
               std::vector<Written>& written) {
  for (const TreeNode& member : node.members) {
    const std::string name = path.empty() ? member.key : path + '.' + member.key;
    const bool counts = member.key == "virtual_pipeline_model_parallel_size" ||
                        member.key == "virtual_pipeline_parallelism" || member.key == "recompute_granularity";
    if (counts && member.kind == TreeKind::none)
      written.push_back({name, {"None"}, member.key + "=None", {file, member.line}, ""});
    add_nones(member, name, file, written);
  }
}

}  // namespace

LaunchedRun read_nemo_recipe(const TreeFile& file, const LaunchOptions& options) {
  const bool bridge = file.file.find("bridge") != std::string::npos ||
                      member_of(file.root, "train") != nullptr ||
                      member_of(file.root, "mixed_precision") != nullptr;
  std::vector<Written> written = flattened(file.root, file.file);
  add_nones(file.root, "", file.file, written);
  return read_bridge(std::move(written), {file.file, file.root.line}, options,
                     bridge ? "Megatron-Bridge" : "NeMo", true);
}

LaunchedRun read_megatron_bridge(const TreeFile& file, const LaunchOptions& options) {
  return read_bridge(flattened(file.root, file.file), {file.file, file.root.line}, options, "Megatron-Bridge",
                     false);
}

LaunchedRun read_bridge_words(std::vector<Written> written, std::optional<std::int64_t> devices,
                              const std::string& file, const LaunchOptions& options) {
  written = last_of_each(std::move(written));
  if (are_nemo_launcher_words(written))
    return read_nemo_launcher_words(std::move(written), file, devices, options);
  take_training_data(written);
  for (Written& setting : written) {  // "model.recompute_modules=[moe_act,mlp]"
    const std::string text = text_of_values(setting);
    const bool modules = setting.name.ends_with("_modules") || setting.name.ends_with("_scope");
    if (!modules || text.size() < 2 || text.front() != '[' || text.back() != ']') continue;
    setting.values.clear();
    for (const std::string_view part : parts_of(std::string_view(text).substr(1, text.size() - 2)))
      setting.values.emplace_back(part);
  }
  return read_bridge(std::move(written), {file, 1}, options, "Megatron-Bridge", false, {.devices = devices});
}

}  // namespace headroom
