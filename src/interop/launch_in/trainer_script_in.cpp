// Python scripts that start a Trainer of transformers, trl or unsloth, as far as their settings are written out.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
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
  constexpr std::array<std::string_view, 3> names{"get_peft_model", "prepare_model_for_kbit_training",
                                                  "gradient_checkpointing_enable"};
  return is_arguments(called) || loads_model(called) || contains(names, last_of(called)) ||
         last_of(called).ends_with("Trainer");
}

bool is_unsloth(const TreeNode& call) { return call.text.starts_with("Fast"); }

// Settings of the Trainer under the names of its flags.
class Settings {
 public:
  explicit Settings(const std::string& file) : file_(file) {}

  void put(std::string name, std::string value, const TreeNode& from, std::string_view as = {}) {
    std::erase_if(written_, [&](const Written& it) { return it.name == name; });
    std::string text = fmt::format("{}={}", as.empty() ? name : as, value);
    written_.push_back({std::move(name), {std::move(value)}, std::move(text), {file_, from.line}, ""});
  }

  // Puts a literal value, or one that only a run knows; the reader asks for the latter where it matters.
  void put(const std::string& name, const TreeNode& value) {
    if (value.kind == TreeKind::none) return;
    if (value.kind == TreeKind::scalar) return put(name, known_or_open(value), value, value.key);
    if (value.kind == TreeKind::map && !value.text.empty())  // the result of a call
      return put(name, "${" + value.text + "()}", value, value.key);
    if (value.kind == TreeKind::map) {
      for (const TreeNode& member : value.members) put(name + '.' + member.key, member);
      return;
    }
    std::erase_if(written_, [&](const Written& it) { return it.name == name; });
    Written setting{name, {}, value.key + "=...", {file_, value.line}, ""};
    for (const TreeNode& item : value.members) setting.values.push_back(item.text);
    if (!setting.values.empty()) written_.push_back(std::move(setting));
  }

  void put_or(const std::string& name, const TreeNode* value, const char* otherwise, const TreeNode& from) {
    if (value != nullptr)
      put(name, *value);
    else
      put(name, otherwise, from);
  }

  std::vector<Written> take() { return std::move(written_); }

 private:
  // A name of another object ("CFG.bs") is known only to a run; a dtype of torch says what it is.
  static std::string known_or_open(const TreeNode& value) {
    const std::string& text = value.text;
    const bool literal = value.quoted || text == "True" || text == "False" || text.starts_with("torch.") ||
                         text.starts_with("${") || text.find('.') == std::string::npos ||
                         text.find_first_not_of("0123456789.eE+-_") == std::string::npos;
    return literal ? text : "${" + text + "}";
  }

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

const TreeNode* first_member(const TreeNode& call, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const TreeNode* const value = member_of(call, name);
        value != nullptr && value->kind != TreeKind::none)
      return value;
  }
  return nullptr;
}

void put_arguments(Settings& settings, const TreeNode& call, const std::string& file) {
  bool has_half = false;
  for (const TreeNode& member : call.members) {
    if (member.key == "**")
      throw InputError(fmt::format("{}:{}", file, call.line),
                       fmt::format("{} takes arguments that only a run knows (**)", call.text));
    // Either is of 16 bits: "bf16=is_bfloat16_supported()".
    const bool open = member.kind == TreeKind::map || member.text.starts_with("${");
    const bool half = (member.key == "bf16" || member.key == "fp16") && open;
    if (half && !has_half)
      settings.put("bf16", "true", member);
    else if (!half && whole_count(member.key) == std::nullopt)
      settings.put(member.key, member);
    has_half = has_half || half;
  }
}

void put_quantization(Settings& settings, const TreeNode& call) {
  put_renamed(settings, call, {{"load_in_4bit", "load_in_4bit"}, {"load_in_8bit", "load_in_8bit"}});
  settings.put_or("use_bnb_nested_quant", member_of(call, "bnb_4bit_use_double_quant"), "false", call);
}

void put_model(Settings& settings, const TreeNode& call) {
  if (const TreeNode* const name = first_member(call, {"0", "pretrained_model_name_or_path", "model_name"}))
    settings.put("model_name_or_path", *name);
  put_renamed(settings, call,
              {{"load_in_4bit", "load_in_4bit"},
               {"load_in_8bit", "load_in_8bit"},
               {"torch_dtype", "torch_dtype"},
               {"dtype", "dtype"},
               {"attn_implementation", "attn_implementation"},
               {"max_seq_length", "max_seq_length"}});
  if (is_unsloth(call)) {  // [unsloth, models/loader.py, FastLanguageModel.from_pretrained]
    settings.put("use_unsloth", "true", call, "unsloth");
    if (member_of(call, "load_in_4bit") == nullptr) settings.put("load_in_4bit", "true", call);
  } else {
    settings.put("use_bnb_nested_quant", "false", call);  // bitsandbytes' default
  }
  const TreeNode* const quantization = member_of(call, "quantization_config");
  if (quantization != nullptr && last_of(quantization->text) == "BitsAndBytesConfig")
    put_quantization(settings, *quantization);
}

// Puts the settings of PEFT's LoraConfig, or of unsloth's get_peft_model [unsloth, models/llama.py, get_peft_model].
void put_adapter(Settings& settings, const TreeNode& call) {
  const bool of_unsloth = is_unsloth(call);
  settings.put("use_peft", "true", call, last_of(call.text));
  settings.put_or("lora_r", member_of(call, "r"), of_unsloth ? "16" : "8", call);
  if (of_unsloth && member_of(call, "target_modules") == nullptr)
    settings.put("lora_target_modules", "all-linear", call);
  put_renamed(settings, call,
              {{"lora_alpha", "lora_alpha"},
               {"lora_dropout", "lora_dropout"},
               {"target_modules", "lora_target_modules"},
               {"use_gradient_checkpointing", "gradient_checkpointing"}});
}

// What a Trainer is given.
struct Parts {
  const TreeNode* arguments = nullptr;
  const TreeNode* model = nullptr;    // the call that loads it, or its name
  const TreeNode* adapter = nullptr;  // a LoraConfig, or unsloth's call
};

bool is_lora(const TreeNode* node) { return node != nullptr && last_of(node->text) == "LoraConfig"; }

// Follows a model through what wraps it: get_peft_model(prepare_model_for_kbit_training(model), config).
void follow_model(const TreeNode* node, Parts& parts) {
  constexpr int most_wraps = 10;
  for (int i = 0; i < most_wraps && node != nullptr; ++i) {
    if (node->kind == TreeKind::scalar || loads_model(node->text)) {
      parts.model = node;
      return;
    }
    if (last_of(node->text) == "get_peft_model") {
      const TreeNode* const config = first_member(*node, {"peft_config", "1"});
      if (is_lora(config))
        parts.adapter = config;
      else if (is_unsloth(*node))
        parts.adapter = node;
    }
    node = first_member(*node, {"model", "0"});
  }
}

Parts trained_parts(const std::vector<TreeNode>& calls) {
  Parts parts;
  const TreeNode* wrapped = nullptr;
  for (const TreeNode& call : calls) {  // the last Trainer holds
    if (last_of(call.text) == "get_peft_model") wrapped = &call;
    if (!last_of(call.text).ends_with("Trainer")) continue;
    const TreeNode* const arguments = first_member(call, {"args", "1"});
    if (arguments != nullptr && is_arguments(arguments->text)) parts.arguments = arguments;
    parts.model = parts.adapter = nullptr;
    follow_model(first_member(call, {"model", "0"}), parts);
    if (const TreeNode* const config = member_of(call, "peft_config"); is_lora(config))
      parts.adapter = config;
  }
  if (parts.model == nullptr) follow_model(wrapped, parts);
  for (const TreeNode& call : calls) {
    if (parts.model == nullptr && loads_model(call.text)) parts.model = &call;
  }
  const auto last =
      std::find_if(calls.rbegin(), calls.rend(), [](const TreeNode& it) { return is_arguments(it.text); });
  if (parts.arguments == nullptr && last != calls.rend()) parts.arguments = &*last;
  return parts;
}

void put_checkpointing(Settings& settings, const TreeNode& call) {
  const std::string_view last = last_of(call.text);
  if (last == "prepare_model_for_kbit_training")
    settings.put_or("gradient_checkpointing", member_of(call, "use_gradient_checkpointing"), "true", call);
  if (last == "gradient_checkpointing_enable") settings.put("gradient_checkpointing", "true", call, last);
}

// "dpo" of DPOTrainer and DPOConfig.
std::string kind_of(const std::vector<TreeNode>& calls) {
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
                                            const PythonFlags& flags, const PythonEnvironment& environment) {
  PythonResult result =
      run_python(text, file, is_wanted, {.flags = flags, .function = {}, .environment = environment});
  const std::vector<TreeNode>& calls = result.root.members;
  const Parts parts = trained_parts(calls);
  if (parts.arguments == nullptr) return std::nullopt;
  Settings settings(file);
  if (parts.model != nullptr && parts.model->kind == TreeKind::scalar)
    settings.put("model_name_or_path", *parts.model);
  else if (parts.model != nullptr)
    put_model(settings, *parts.model);
  for (const TreeNode& call : calls) put_checkpointing(settings, call);
  if (parts.adapter != nullptr) put_adapter(settings, *parts.adapter);
  put_arguments(settings, *parts.arguments, file);
  TrainerLaunch launch{.written = settings.take()};
  for (const TreeNode& call : calls) {  // of trl before SFTConfig
    const TreeNode* const length = first_member(call, {"max_seq_length"});
    if (last_of(call.text).ends_with("Trainer") && length != nullptr &&
        !has_flag(launch.written, "max_seq_length"))
      launch.written.push_back(
          {"max_seq_length", {length->text}, "max_seq_length=" + length->text, {file, length->line}, ""});
  }
  // max_length of the arguments overrides max_seq_length of the loaded model.
  if (has_flag(launch.written, "max_length"))
    std::erase_if(launch.written, [](const Written& it) { return it.name == "max_seq_length"; });
  const bool of_grpo = last_of(parts.arguments->text).starts_with("GRPO");
  if (of_grpo) take_grpo(launch);
  if (last_of(parts.arguments->text).ends_with("Config")) {
    const TreeNode* const length = member_of(*parts.arguments, "max_length");
    defaults_of_trl(launch, {file, parts.arguments->line});
    if (length != nullptr && length->kind == TreeKind::none)  // nothing is cut
      std::erase_if(launch.written, [](const Written& it) { return it.name == "max_length"; });
  }
  const Preferences preferences = preferences_of(kind_of(calls), launch.written);
  launch.pairs = preferences.pairs;
  launch.reference = launch.reference || preferences.reference;
  for (PythonRemark& remark : result.remarks)
    launch.remarks.push_back({LaunchRemarkKind::unresolved, std::move(remark.text), {file, remark.line}, ""});
  if (of_grpo)
    launch.remarks.push_back(
        {LaunchRemarkKind::unmodelled,
         "generated answers and their rewards are not counted: read as one model trained on single sequences",
         {file, parts.arguments->line},
         ""});
  return launch;
}

void assume_one_process(TrainerLaunch& launch, const FilePlace& at) {
  if (launch.devices) return;
  launch.devices = 1;
  LaunchRemark& remark = launch.remarks.emplace_back();
  remark.kind = LaunchRemarkKind::assumed;
  remark.text = "one GPU: python starts one process (--devices N under torchrun or accelerate)";
  remark.at = at;
}

LaunchedRun read_trainer_script(TrainerLaunch launch, const std::string& file, const LaunchOptions& options) {
  assume_one_process(launch, {file, 0});
  return read_trainer_words(std::move(launch), file, options);
}

}  // namespace headroom
