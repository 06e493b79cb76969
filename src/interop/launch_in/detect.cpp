// Which framework a configuration is of, by its keys.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/readers.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// Paths that a configuration has: all of one group at least. "!" in front: it has not.
struct Framework {
  std::string_view name;
  std::string_view looked_for;
  LaunchedRun (*read)(const TreeFile&, const LaunchOptions&);
  std::array<std::string_view, 6> groups;  // "a.b c !d"
};

constexpr std::array<Framework, 17> frameworks{{
    {"Megatron-LM", "MODEL_ARGS", read_megatron_yaml, {"MODEL_ARGS"}},
    {"Primus",
     "modules.pre_trainer",
     read_primus,
     {"modules.pre_trainer", "modules.post_trainer", "modules.sft_trainer", "modules.finetuner"}},
    {"torchtitan",
     "[training] seq_len with [model] flavor",
     read_torchtitan,
     {"model.flavor training", "training.seq_len job", "parallelism.tensor_parallel_degree",
      "training.tensor_parallel_degree", "job.config_file training"}},
    {"nanotron",
     "parallelism.dp, tokens",
     read_nanotron,
     {"parallelism.dp tokens", "parallelism.tp tokens", "model.model_config parallelism"}},
    {"verl",
     "actor_rollout_ref",
     read_verl,
     {"actor_rollout_ref", "actor rollout trainer data", "model.partial_pretrain trainer data"}},
    {"OLMo",
     "model.max_sequence_length, global_train_batch_size",
     read_olmo,
     {"model.max_sequence_length global_train_batch_size",
      "model.d_model fsdp device_train_microbatch_size"}},
    {"litgpt",
     "train.micro_batch_size with checkpoint_dir or model_name",
     read_litgpt,
     {"train.micro_batch_size checkpoint_dir", "train.global_batch_size checkpoint_dir",
      "train.micro_batch_size model_name", "train.micro_batch_size model.n_embd",
      "train.micro_batch_size model_config.n_embd"}},
    {"llm-foundry",
     "global_train_batch_size, device_train_microbatch_size",
     read_llm_foundry,
     {"global_train_batch_size", "device_train_microbatch_size", "parameters.global_train_batch_size",
      "fsdp_config train_loader", "parameters.train_loader"}},
    {"axolotl", "base_model", read_axolotl, {"base_model !finetuning_type"}},
    {"LLaMA-Factory",
     "finetuning_type, cutoff_len",
     read_llama_factory,
     {"finetuning_type", "cutoff_len", "model_name_or_path stage template", "dist_config model",
      "model template train_dataset"}},
    {"GPT-NeoX",
     "pipe_parallel_size, model_parallel_size",
     read_gpt_neox,
     {"pipe-parallel-size", "pipe_parallel_size", "model-parallel-size", "model_parallel_size"}},
    {"torchtune",
     "model._component_",
     read_torchtune,
     {"model._component_", "optimizer._component_", "models.model._component_"}},
    {"accelerate",
     "distributed_type, compute_environment",
     read_accelerate,
     {"compute_environment", "distributed_type", "num_processes mixed_precision",
      "fsdp_config num_processes"}},
    {"Hugging Face Trainer",
     "per_device_train_batch_size",
     read_hugging_face,
     {"per_device_train_batch_size", "model_name_or_path", "gradient_accumulation_steps output_dir",
      "per_device_eval_batch_size"}},
    {"DeepSpeed",
     "zero_optimization, train_micro_batch_size_per_gpu",
     read_deepspeed,
     {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "bf16.enabled",
      "fp16.enabled"}},
    {"NeMo",
     "trainer with model.tensor_model_parallel_size",
     read_nemo,
     {"trainer model.tensor_model_parallel_size", "trainer model.micro_batch_size",
      "trainer model.encoder_seq_length"}},
    {"Megatron-Bridge",
     "model.tensor_model_parallel_size, train.global_batch_size",
     read_megatron_bridge,
     {"model.tensor_model_parallel_size", "train.global_batch_size", "model train ddp",
      "model train optimizer !train.batch_size"}},
}};

bool has_group(const TreeNode& root, std::string_view group) {
  if (group.empty()) return false;
  while (!group.empty()) {
    const std::size_t space = std::min(group.find(' '), group.size());
    std::string_view path = group.substr(0, space);
    group.remove_prefix(std::min(space + 1, group.size()));
    const bool absent = path.starts_with('!');
    if (absent) path.remove_prefix(1);
    if ((at_path(root, path) != nullptr) == absent) return false;
  }
  return true;
}

// llm-foundry's files for its platform have the run under "parameters", those of NeMo-Framework-Launcher
// under "training".
const TreeNode& run_of(const TreeNode& root) {
  const TreeNode* const training = member_of(root, "training");
  if (training != nullptr && member_of(*training, "trainer") != nullptr &&
      member_of(*training, "model") != nullptr)
    return *training;
  const TreeNode* const parameters = member_of(root, "parameters");
  const bool holds = parameters != nullptr && (member_of(*parameters, "global_train_batch_size") != nullptr ||
                                               member_of(*parameters, "train_loader") != nullptr);
  return holds ? *parameters : root;
}

const Framework* framework_of(const TreeNode& root) {
  if (root.kind != TreeKind::map) return nullptr;
  for (const Framework& framework : frameworks) {
    if (std::any_of(framework.groups.begin(), framework.groups.end(),
                    [&](std::string_view group) { return has_group(root, group); }))
      return &framework;
  }
  return nullptr;
}

std::string known_frameworks() {
  std::string text;
  for (const Framework& framework : frameworks)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", framework.name, framework.looked_for);
  return text;
}

void collect_repeats(const TreeNode& node, const std::string& path, const std::string& file,
                     std::vector<LaunchRemark>& remarks) {
  for (const TreeNode& member : node.members) {
    const std::string name = path.empty() ? member.key : path + '.' + member.key;
    if (member.replaces > 0)
      remarks.push_back(
          {LaunchRemarkKind::implied,
           fmt::format("{} takes the place of the same key in line {}", printable(name), member.replaces),
           {file, member.line},
           ""});
    collect_repeats(member, name, file, remarks);
  }
}

}  // namespace

LaunchedRun read_tree_file(std::string_view text, const std::string& file, const LaunchOptions& options,
                           const std::vector<Written>& overrides) {
  TreeNode root = parse_tree(text, file);
  if (overrides.size() > most_members)
    throw InputError(file, fmt::format("is overridden by more than {} flags", most_members));
  for (const Written& setting : overrides) override_in(root, setting);
  interpolate(root, options.environment);
  const Framework* const framework = framework_of(run_of(root));
  if (framework == nullptr)
    throw InputError(file,
                     "does not match any known framework by its keys; looked for " + known_frameworks());
  const TreeFile tree{file, run_of(root)};
  LaunchedRun run = framework->read(tree, options);
  collect_repeats(tree.root, "", file, run.remarks);
  return run;
}

namespace {

struct SourceParts {
  std::string file;
  std::string function;
};
SourceParts parts_of_source(const std::string& source) {
  const std::size_t colons = source.find("::");
  if (colons == std::string::npos) return {source, ""};
  return {source.substr(0, colons), source.substr(colons + 2)};
}

}  // namespace

bool is_tree_launch(const std::string& source) {
  const SourceParts parts = parts_of_source(source);
  if (!is_regular_file(parts.file)) return false;
  const std::string end = lower_case(std::filesystem::path(parts.file).extension().string());
  if (end == ".toml" || end == ".yaml" || end == ".yml" || end == ".py") return true;
  if (end != ".json") return false;
  try {
    const TreeNode root = parse_json_tree(read_file(parts.file), parts.file);
    // A config.json is a model; a file of this program says its format.
    return member_of(root, "format") == nullptr && member_of(root, "model_type") == nullptr &&
           framework_of(root) != nullptr;
  } catch (const InputError&) {
    return false;
  }
}

std::string file_of_launch(const std::string& source) { return parts_of_source(source).file; }

LaunchedRun read_tree_launch(std::string_view text, const std::string& source, const LaunchOptions& options,
                             const std::vector<Written>& overrides) {
  const SourceParts parts = parts_of_source(source);
  if (parts.file.ends_with(".py")) return read_python_config(text, parts.file, parts.function, options);
  return read_tree_file(text, parts.file, options, overrides);
}

}  // namespace headroom
