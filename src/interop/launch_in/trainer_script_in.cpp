// Python scripts that start a Trainer of transformers, trl or unsloth, as far as their settings are written out.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/flags.hpp"
#include "interop/launch_in/trainer_flags.hpp"
#include "interop/launch_in/trainer_script.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

std::string_view last_of(std::string_view called) { return called.substr(called.rfind('.') + 1); }

// TrainingArguments, Seq2SeqTrainingArguments, SFTConfig, DPOConfig and their like.
bool is_arguments(std::string_view called) {
  constexpr std::array<std::string_view, 8> configurations{"SFTConfig",  "DPOConfig", "KTOConfig",
                                                           "ORPOConfig", "CPOConfig", "RewardConfig",
                                                           "GRPOConfig", "BCOConfig"};
  return last_of(called).ends_with("TrainingArguments") || contains(configurations, last_of(called));
}

bool loads_model(std::string_view called) {
  constexpr std::array<std::string_view, 4> others{"Tokenizer", "Processor", "Config", "PeftModel"};
  return last_of(called) == "from_pretrained" && called.find("Model") != std::string_view::npos &&
         std::none_of(others.begin(), others.end(),
                      [&](std::string_view it) { return called.find(it) != std::string_view::npos; });
}

bool is_wanted(std::string_view called) {
  constexpr std::array<std::string_view, 5> names{"LoraConfig", "BitsAndBytesConfig", "get_peft_model",
                                                  "prepare_model_for_kbit_training",
                                                  "gradient_checkpointing_enable"};
  return is_arguments(called) || loads_model(called) || contains(names, last_of(called)) ||
         last_of(called).ends_with("Trainer");
}

// Settings of the Trainer under the names of its flags.
class Settings {
 public:
  explicit Settings(const std::string& file) : file_(file) {}

  void put(std::string name, std::string value, const TreeNode& from, std::string_view as = {}) {
    std::erase_if(written_, [&](const Written& it) { return it.name == name; });
    std::string text = fmt::format("{}={}", as.empty() ? name : as, value);
    written_.push_back({std::move(name), {std::move(value)}, std::move(text), {file_, from.line}, ""});
  }

  // A value that is written out, or what only a run knows, which the reader asks for where it matters.
  void put(const std::string& name, const TreeNode& value) {
    if (value.kind == TreeKind::scalar) return put(name, value.text, value, value.key);
    if (value.kind != TreeKind::list && value.kind != TreeKind::map) return;
    if (value.kind == TreeKind::map) {
      for (const TreeNode& member : value.members) put(name + '.' + member.key, member);
      return;
    }
    std::erase_if(written_, [&](const Written& it) { return it.name == name; });
    Written setting{name, {}, value.key + "=...", {file_, value.line}, ""};
    for (const TreeNode& item : value.members) setting.values.push_back(item.text);
    if (!setting.values.empty()) written_.push_back(std::move(setting));
  }

  [[nodiscard]] bool has(std::string_view name) const {
    return std::any_of(written_.begin(), written_.end(), [&](const Written& it) { return it.name == name; });
  }
  std::vector<Written> take() { return std::move(written_); }

 private:
  const std::string& file_;
  std::vector<Written> written_;
};

struct Renamed {
  std::string_view theirs;
  std::string_view ours;
};

void put_renamed(Settings& settings, const TreeNode& call, std::initializer_list<Renamed> names) {
  for (const auto& [theirs, ours] : names) {
    if (const TreeNode* const value = member_of(call, theirs)) settings.put(std::string(ours), *value);
  }
}

void put_arguments(Settings& settings, const TreeNode& call) {
  for (const TreeNode& member : call.members) {
    // Either is of 16 bits: "bf16=is_bfloat16_supported()".
    const bool open = member.kind == TreeKind::map || member.text.starts_with("${");
    const bool half = (member.key == "bf16" || member.key == "fp16") && open;
    if (half && !settings.has("bf16") && !settings.has("fp16"))
      settings.put("bf16", "true", member);
    else if (!half && whole_count(member.key) == std::nullopt)
      settings.put(member.key, member);
  }
}

void put_quantization(Settings& settings, const TreeNode& call) {
  put_renamed(settings, call, {{"load_in_4bit", "load_in_4bit"}, {"load_in_8bit", "load_in_8bit"}});
  const TreeNode* const nested = member_of(call, "bnb_4bit_use_double_quant");
  settings.put("use_bnb_nested_quant", nested == nullptr ? "false" : nested->text,
               nested == nullptr ? call : *nested, "bnb_4bit_use_double_quant");
}

void put_model(Settings& settings, const TreeNode& call) {
  if (settings.has("model_name_or_path")) return;  // of a reference, or of a second one that is merged
  for (const std::string_view name : {"0", "pretrained_model_name_or_path", "model_name"}) {
    const TreeNode* const value = member_of(call, name);
    if (value == nullptr || value->kind != TreeKind::scalar) continue;
    settings.put("model_name_or_path", value->text, *value, name == "0" ? "from_pretrained" : name);
    break;
  }
  put_renamed(settings, call,
              {{"load_in_4bit", "load_in_4bit"},
               {"load_in_8bit", "load_in_8bit"},
               {"torch_dtype", "torch_dtype"},
               {"dtype", "dtype"},
               {"attn_implementation", "attn_implementation"},
               {"max_seq_length", "max_seq_length"}});
  if (call.text.starts_with("Fast")) settings.put("use_unsloth", "true", call, "unsloth");
}

void put_adapter(Settings& settings, const TreeNode& call) {
  settings.put("use_peft", "true", call, last_of(call.text));
  settings.put("lora_r", last_of(call.text) == "LoraConfig" ? "8" : "16", call, "r");
  put_renamed(settings, call,
              {{"r", "lora_r"},
               {"lora_alpha", "lora_alpha"},
               {"lora_dropout", "lora_dropout"},
               {"target_modules", "lora_target_modules"},
               {"use_gradient_checkpointing", "gradient_checkpointing"}});
}

void put_call(Settings& settings, const TreeNode& call) {
  const std::string_view last = last_of(call.text);
  if (is_arguments(call.text)) {
    put_arguments(settings, call);
  } else if (loads_model(call.text)) {
    put_model(settings, call);
  } else if (last == "BitsAndBytesConfig") {
    put_quantization(settings, call);
  } else if (last == "LoraConfig" || (last == "get_peft_model" && member_of(call, "r") != nullptr)) {
    put_adapter(settings, call);
  } else if (last == "prepare_model_for_kbit_training") {
    const TreeNode* const given = member_of(call, "use_gradient_checkpointing");
    settings.put("gradient_checkpointing", given == nullptr ? "true" : given->text, call, last);
  } else if (last == "gradient_checkpointing_enable") {
    settings.put("gradient_checkpointing", "true", call, last);
  } else if (last.ends_with("Trainer")) {
    put_renamed(settings, call, {{"max_seq_length", "max_seq_length"}, {"max_length", "max_length"}});
    const TreeNode* const model = member_of(call, "model");  // trl's trainers load a model by its name
    if (model != nullptr && model->kind == TreeKind::scalar && !settings.has("model_name_or_path"))
      settings.put("model_name_or_path", *model);
  }
}

// "dpo" of DPOTrainer and DPOConfig.
std::string kind_of(std::span<const TreeNode> calls) {
  for (const TreeNode& call : calls) {
    std::string name = lower_case(last_of(call.text));
    for (const std::string_view end : {"trainer", "config"}) {
      if (!name.ends_with(end)) continue;
      name.resize(name.size() - end.size());
      if (name == "dpo" || name == "kto" || name == "orpo" || name == "cpo" || name == "reward") return name;
    }
  }
  return "";
}

}  // namespace

std::optional<TrainerLaunch> trainer_script(std::string_view text, const std::string& file,
                                            const PythonFlags& flags) {
  const PythonResult result = run_python(text, file, is_wanted, {.flags = flags, .function = {}});
  const std::vector<TreeNode>& calls = result.root.members;
  const auto arguments =
      std::find_if(calls.rbegin(), calls.rend(), [](const TreeNode& it) { return is_arguments(it.text); });
  if (arguments == calls.rend()) return std::nullopt;
  Settings settings(file);
  for (const TreeNode& call : calls) {
    if (!is_arguments(call.text) || &call == &*arguments) put_call(settings, call);
  }
  TrainerLaunch launch{.written = settings.take()};
  // The arguments stand over the length that a model is loaded for.
  if (has_flag(launch.written, "max_length"))
    std::erase_if(launch.written, [](const Written& it) { return it.name == "max_seq_length"; });
  if (last_of(arguments->text).ends_with("Config")) defaults_of_trl(launch, {file, arguments->line});
  const Preferences preferences = preferences_of(kind_of(calls), launch.written);
  launch.pairs = preferences.pairs;
  launch.reference = preferences.reference;
  return launch;
}

LaunchedRun read_trainer_script(TrainerLaunch launch, const std::string& file, const LaunchOptions& options) {
  if (!launch.devices) launch.devices = 1;
  LaunchedRun run = read_trainer_words(std::move(launch), file, options);
  LaunchRemark& remark = run.remarks.emplace_back();
  remark.kind = LaunchRemarkKind::assumed;
  remark.text = "one GPU: python starts one process (--devices N under torchrun or accelerate)";
  remark.at.file = file;
  return run;
}

}  // namespace headroom
