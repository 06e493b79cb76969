#include "interop/launch_in/bridge_recipe.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/reading.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// [Megatron-Bridge, scripts/performance/argument_parser.py and scripts/training/run_recipe.py]
constexpr std::array<std::array<std::string_view, 2>, 20> short_flags{{
    {"-m", "--model_family_name"},
    {"-s", "--model_size"},
    {"-mr", "--model_recipe_name"},
    {"-g", "--gpu"},
    {"-c", "--compute_dtype"},
    {"-fr", "--fp8_recipe"},
    {"-cv", "--config_variant"},
    {"-ng", "--num_gpus"},
    {"-gn", "--gpus_per_node"},
    {"-d", "--domain"},
    {"-tp", "--tensor_model_parallel_size"},
    {"-pp", "--pipeline_model_parallel_size"},
    {"-cp", "--context_parallel_size"},
    {"-vp", "--virtual_pipeline_model_parallel_size"},
    {"-ep", "--expert_model_parallel_size"},
    {"-et", "--expert_tensor_parallel_size"},
    {"-mb", "--micro_batch_size"},
    {"-gb", "--global_batch_size"},
    {"-sl", "--seq_length"},
    {"-hf", "--hf_token"},
}};

std::string without_joints(std::string_view text) {
  std::string plain = lower_case(text);
  std::erase_if(plain, [](char c) { return c == '_' || c == '-'; });
  return plain;
}

bool names_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Takes a flag's value out of the settings. Empty: it is not given, or only a run knows it.
std::string take_word(std::vector<Written>& written, std::initializer_list<std::string_view> names) {
  std::string value;
  std::erase_if(written, [&](const Written& it) {
    if (!it.as_written.starts_with("--") || !contains(names, std::string_view(it.name))) return false;
    if (it.unknown.empty()) value = text_of_values(it);
    return it.unknown.empty();
  });
  return value;
}

// Reads "llama3_70b_pretrain_64gpu_h100_bf16_config", a function of perf_recipes.
void take_function(const std::string& name, RecipeWords& words) {
  words.name = name;
  words.model = model_in(name);
  const std::size_t at = name.find("gpu_");
  const std::size_t end = name.rfind("_config");
  if (at == std::string::npos || end == std::string::npos || end < at + 4) return;
  const std::size_t start = name.rfind('_', at) + 1;
  words.devices = whole_count(std::string_view(name).substr(start, at - start));
  const std::string rest = name.substr(at + 4, end - at - 4);  // "h100_bf16"
  words.gpu = rest.substr(0, rest.find('_'));
  words.dtype = rest.substr(std::min(rest.size(), words.gpu.size() + 1));
}

}  // namespace

bool runs_bridge_recipe(std::string_view program) {
  constexpr std::array<std::string_view, 3> programs{"run_recipe.py", "setup_experiment.py",
                                                     "run_performance_workload.py"};
  return contains(programs, program);
}

std::string full_bridge_flag(const std::string& word) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const auto row = std::find_if(short_flags.begin(), short_flags.end(), [&](const auto& it) {
    return it.front() == std::string_view(word).substr(0, equals);
  });
  return row == short_flags.end() ? word : std::string(row->back()) + word.substr(equals);
}

std::optional<RecipeWords> take_recipe_words(std::vector<Written>& written) {
  RecipeWords words;
  const std::string function = take_word(written, {"recipe"});
  const std::string family = take_word(written, {"model_family_name", "model_name", "family"});
  const std::string size = take_word(written, {"model_size"});
  const std::string model = take_word(written, {"model_recipe_name", "model"});
  words.gpu = lower_case(take_word(written, {"gpu"}));
  words.dtype = lower_case(take_word(written, {"compute_dtype"}));
  words.variant = lower_case(take_word(written, {"config_variant"}));
  if (const std::string recipe = take_word(written, {"fp8_recipe"}); words.dtype == "fp8")
    words.dtype += '_' + recipe;
  words.devices = whole_count(take_word(written, {"num_gpus", "gpus"}));
  if (!function.empty()) {
    take_function(function, words);
  } else if (!model.empty() || !family.empty()) {
    words.name = !model.empty() ? model : family + (size.empty() ? "" : ' ' + size);
    words.model = model_in(words.name);
  } else {
    return std::nullopt;
  }
  const std::string task = lower_case(take_word(written, {"task"})) + ' ' + lower_case(function);
  words.adapter = names_any(task, {"lora", "peft", "dora"});
  words.tunes = words.adapter || names_any(task, {"sft", "finetune"});
  if (words.dtype.empty()) words.dtype = "bf16";
  if (words.variant == "v1") words.variant.clear();
  return words;
}

std::optional<Recipe> recipe_of(const RecipeWords& words) {
  std::optional<Recipe> best;
  if (words.tunes) return best;
  const auto distance = [&](const Recipe& recipe) {
    const double wanted = words.devices ? static_cast<double>(*words.devices) : 1;
    return words.devices ? std::abs(std::log2(static_cast<double>(recipe.devices) / wanted)) : 0.0;
  };
  for (const Recipe& recipe : list_recipes()) {
    if (recipe.family != "megatron-bridge" || recipe.model != words.model || recipe.devices < 1) continue;
    const std::string middle = fmt::format("-{}-{}-", words.gpu, recipe.devices);
    const std::size_t at = recipe.name.find(middle);
    if (at == std::string::npos) continue;
    const std::string rest = recipe.name.substr(at + middle.size());
    if (without_joints(rest) != without_joints(words.dtype + words.variant)) continue;
    if (!best || distance(recipe) <= distance(*best))
      best = recipe;  // releases are in the order of their dates
  }
  return best;
}

void fill_unset(const Edits& settings, RunScale& scale, RunBuilder& builder) {
  const auto is_set = [&](std::string_view field) { return builder.value(field).has_value(); };
  const bool recomputes = is_set("recompute") || is_set("recompute_ops");
  const bool stages = is_set("pipeline_parallel") || is_set("virtual_pipeline");
  for (const Edit& edit : settings) {
    if (is_set(edit.field)) continue;
    if (recomputes && edit.field.starts_with("recompute")) continue;
    if (stages && edit.field == "stage_layers") continue;  // of the recipe's own stages
    builder.set(edit.field, edit.value, nullptr);
  }
  if (builder.count("tensor_parallel").value_or(1) == 1) builder.drop("sequence_parallel");
  if (builder.count("pipeline_parallel").value_or(1) == 1) builder.drop("virtual_pipeline");
  const auto size = [&](std::string_view field) { return builder.count(field).value_or(1); };
  scale.tensor = size("tensor_parallel");
  scale.pipeline = size("pipeline_parallel");
  scale.context = size("context_parallel");
  if (!scale.micro) scale.micro = builder.count("micro_batch");
  if (!scale.global) scale.global = builder.count("global_batch");
}

void fill_from_recipe(const Recipe& recipe, RunScale& scale, RunBuilder& builder) {
  if (!scale.devices) scale.devices = recipe.devices;
  Edits settings = recipe.settings;
  for (Edit& edit : settings) {
    if (edit.field != "global_batch" || scale.global || *scale.devices == recipe.devices) continue;
    const std::optional<std::int64_t> stated = whole_count(edit.value);
    const std::optional<std::int64_t> grown = stated ? product_of(*stated, *scale.devices) : std::nullopt;
    if (!grown || *grown < recipe.devices) continue;
    edit.value = std::to_string(*grown / recipe.devices);
    builder.imply(fmt::format("the recipe's global batch grows with the GPUs: {} x {} / {} = {}", *stated,
                              *scale.devices, recipe.devices, edit.value));
  }
  fill_unset(settings, scale, builder);
  for (const std::string& choice : recipe.software) {
    const std::size_t equals = choice.find('=');
    if (!builder.chosen(choice.substr(0, equals)))
      builder.choose(choice.substr(0, equals), choice.substr(equals + 1), nullptr);
  }
}

std::optional<Edits> defaults_of_nemo(std::string_view recipe) {
  struct Defaults {
    std::string_view name;
    std::string_view settings;
  };
  // [NVIDIA/NeMo, nemo/collections/llm/recipes, one file each: trainer() and pretrain_recipe()]
  static constexpr std::array<Defaults, 13> known{{
      {"llama3_8b", "context_parallel=2 micro_batch=1 global_batch=512 sequence=8192"},
      {"llama3_70b",
       "tensor_parallel=4 pipeline_parallel=4 virtual_pipeline=5 context_parallel=2 sequence_parallel=yes "
       "micro_batch=1 global_batch=512 sequence=8192"},
      {"llama31_405b",
       "tensor_parallel=8 pipeline_parallel=9 virtual_pipeline=2 context_parallel=4 sequence_parallel=yes "
       "micro_batch=1 global_batch=512 sequence=8192"},
      {"mistral_7b", "context_parallel=2 micro_batch=1 global_batch=512 sequence=4096"},
      {"mixtral_8x7b",
       "pipeline_parallel=4 virtual_pipeline=8 expert_parallel=8 micro_batch=1 global_batch=512 "
       "sequence=8192"},
      {"mixtral_8x22b",
       "tensor_parallel=2 pipeline_parallel=4 virtual_pipeline=14 context_parallel=2 expert_parallel=8 "
       "sequence_parallel=yes micro_batch=1 global_batch=512 sequence=4096"},
      {"nemotron4_340b",
       "tensor_parallel=8 pipeline_parallel=12 virtual_pipeline=8 context_parallel=2 sequence_parallel=yes "
       "micro_batch=1 global_batch=2304 sequence=4096"},
      {"qwen25_500m", "micro_batch=2 global_batch=32 sequence=4096"},
      {"qwen25_1p5b", "micro_batch=2 global_batch=32 sequence=4096"},
      {"qwen25_7b", "tensor_parallel=2 micro_batch=2 global_batch=32 sequence=4096"},
      {"qwen25_14b", "tensor_parallel=4 micro_batch=2 global_batch=32 sequence=4096"},
      {"qwen25_32b", "tensor_parallel=8 pipeline_parallel=2 micro_batch=2 global_batch=32 sequence=4096"},
      {"qwen25_72b", "tensor_parallel=8 pipeline_parallel=4 micro_batch=2 global_batch=32 sequence=4096"},
  }};
  constexpr std::string_view end = ".pretrain_recipe";
  if (!recipe.ends_with(end)) return std::nullopt;
  recipe.remove_suffix(end.size());
  const std::string_view name = recipe.substr(recipe.rfind('.') + 1);
  const auto row =
      std::find_if(known.begin(), known.end(), [&](const Defaults& it) { return it.name == name; });
  if (row == known.end()) return std::nullopt;
  Edits edits;
  for (const std::string_view part : parts_of(row->settings, ' ')) {
    const std::size_t equals = part.find('=');
    edits.push_back({std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))});
  }
  return edits;
}

}  // namespace headroom
