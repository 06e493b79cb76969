#include "interop/launch_in/trainer_flags.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/decimal.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/flags.hpp"
#include "interop/launch_in/program.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// --zero_stage as accelerate's configuration has it, with what `offload` sends to the host.
void take_stage_flag(TrainerLaunch& launch, std::string_view stage_name, std::string_view offload) {
  Written* const stage = flag_of(launch.written, stage_name);
  if (stage == nullptr) return;
  launch.accelerate.push_back(*stage);
  launch.accelerate.back().name = "deepspeed_config.zero_stage";
  const Written* const host = flag_of(launch.written, offload);
  if (host != nullptr && is_on(*host)) {
    launch.accelerate.push_back(*host);
    launch.accelerate.back().name = "deepspeed_config.offload_optimizer_device";
    launch.accelerate.back().values = {"cpu"};
  }
  std::erase_if(launch.written, [&](const Written& it) {
    return it.name == stage_name || it.name == offload || (it.name == "deepspeed" && it.values.empty());
  });
}

// A prompt and its answer, where both are stated. If only a run knows one of them, it takes the name of both.
void join_lengths(std::vector<Written>& written, std::string_view prompt, std::string_view answer) {
  for (const std::string_view name : {prompt, answer}) {
    if (Written* const one = flag_of(written, name); one != nullptr && !one->unknown.empty()) {
      one->name = "max_length";
      return;
    }
  }
  const auto first = count_in_flag(written, prompt);
  const auto second = count_in_flag(written, answer);
  std::int64_t both = 0;
  if (!first || !second || __builtin_add_overflow(*first, *second, &both)) return;
  Written& setting = *flag_of(written, answer);
  setting.name = "max_length";
  setting.values = {std::to_string(both)};
}

// Renames a CP or TP size as accelerate does. The batch is of the remaining data-parallel ranks
// [OpenRLHF, openrlhf/utils/deepspeed/deepspeed.py].
void take_as_accelerate(TrainerLaunch& launch, std::string_view theirs, std::string_view ours) {
  const Written* const size = flag_of(launch.written, theirs);
  if (size == nullptr) return;
  launch.accelerate.push_back(*size);
  launch.accelerate.back().name = fmt::format("parallelism_config.parallelism_config_{}", ours);
  std::erase_if(launch.written, [&](const Written& it) { return it.name == theirs; });
}

}  // namespace

// The names that a Trainer has for what a program with DeepSpeed's engine is told.
void rename_for_trainer(std::vector<Written>& written) {
  std::erase_if(written, [](const Written& it) { return it.name == "deepspeed" || it.name == "steps"; });
  for (Written& setting : written) {
    if (setting.name == "deepspeed_config") setting.name = "deepspeed";
  }
  rename(written, {{"model", "model_name_or_path"},
                   {"model_name", "model_name_or_path"},
                   {"model_path", "model_name_or_path"},
                   {"batch_size", "per_device_train_batch_size"},
                   {"gradient_accumulate_every", "gradient_accumulation_steps"},
                   {"sequence_length", "max_length"},
                   {"seq_length", "max_length"},
                   {"seq_len", "max_length"}});
}

bool are_swift_words(std::string_view program, const std::vector<Written>& written) {
  if (program == "megatron") return false;
  return program == "swift" || has_flag(written, "train_type") || has_flag(written, "tuner_type") ||
         has_flag(written, "sft_type");
}

// The same for `swift sft`, whose --deepspeed is a stage ("zero3", once "default-zero3") or a file. LoRA of rank 8, checkpoints of all layers,
// a batch of 1 and accumulation up to 16 sequences are its defaults [modelscope/ms-swift, docs, Command-line-parameters].
void rename_of_swift(TrainerLaunch& launch) {
  std::vector<Written>& written = launch.written;
  rename(written, {{"model", "model_name_or_path"},
                   {"model_id_or_path", "model_name_or_path"},
                   {"target_modules", "lora_target_modules"},
                   {"quant_bits", "quantization_bit"},
                   {"batch_size", "per_device_train_batch_size"},
                   {"sft_type", "tuner_type"}});
  for (Written& setting : written) {
    std::string value = text_of_values(setting);
    if (setting.name == "train_type" || setting.name == "tuner_type") {
      launch.tuner = setting;
      setting.name = "use_peft";
      setting.values = {value == "full" || value == "llamapro" ? "false" : "true"};
    }
    constexpr std::string_view once = "default-";
    if (value.starts_with(once)) value.erase(0, once.size());
    if (setting.name != "deepspeed" || !value.starts_with("zero")) continue;
    Written stage = setting;
    stage.name = "deepspeed_config.zero_stage";
    stage.values = {value.substr(4, 1)};
    launch.accelerate.push_back(stage);
    if (value.ends_with("_offload")) {
      stage.name = "deepspeed_config.offload_optimizer_device";
      stage.values = {"cpu"};
      launch.accelerate.push_back(std::move(stage));
    }
    setting.name = "";
  }
  std::erase_if(written, [](const Written& it) { return it.name.empty(); });
  if (Written* const model = flag_of(written, "model_name_or_path")) {
    for (std::string& name : model->values) {  // ModelScope's folders: "Qwen2-1___5B"
      for (std::size_t dot; (dot = name.find("___")) != std::string::npos;) name.replace(dot, 3, ".");
    }
  } else if (Written* const kind = flag_of(written, "model_type")) {  // once "qwen2-1_5b-instruct"
    kind->name = "model_name_or_path";
    for (std::string& name : kind->values) std::replace(name.begin(), name.end(), '_', '.');
  }
  const FilePlace at = written.empty() ? FilePlace{} : written.front().at;
  // Returns what is written of a setting, which is its default where the script has none.
  const auto or_default = [&](const std::string& name, const std::string& value) {
    const auto found =
        std::find_if(written.begin(), written.end(), [&](const Written& it) { return it.name == name; });
    if (found != written.end()) return text_of_values(*found);
    written.push_back({name, {value}, fmt::format("swift{}{}", default_of, name), at, ""});
    return value;
  };
  or_default("gradient_checkpointing", "true");
  if (!has_flag(written, "fp16") && !has_flag(written, "torch_dtype")) or_default("bf16", "true");
  if (or_default("use_peft", "true") == "true") {
    or_default("lora_rank", "8");
    or_default("lora_target_modules", "all-linear");
  }
  const auto micro = whole_count(or_default("per_device_train_batch_size", "1"));
  constexpr std::int64_t least = 16;
  if (!micro || !launch.devices || *micro < 1 || *launch.devices < 1) return;
  const std::int64_t steps =
      *micro >= least || *launch.devices >= least ? 1 : ceiling(least, *micro * *launch.devices);
  or_default("gradient_accumulation_steps", std::to_string(steps));
}

// [modelscope/ms-swift, docs, Command-line-parameters, train_type and tuner_type]
void take_tuner(const Written& tuner, RunBuilder& builder) {
  constexpr std::array<std::string_view, 10> as_lora{"lora", "longlora", "adalora", "lora_llm",  "adapter",
                                                     "vera", "boft",     "reft",    "fourierft", "bone"};
  const std::string word = text_of_values(tuner);
  if (!tuner.unknown.empty() || word == "lora" || word == "full") return;
  if (word == "llamapro")
    builder.leave_out(tuner, "read as if all weights were trained");
  else if (contains(as_lora, std::string_view(word)))
    builder.leave_out(tuner, "read as LoRA");
  else
    builder.problem(tuner,
                    fmt::format("must be lora, full, longlora, adalora, llamapro, adapter, vera, boft, "
                                "fourierft, reft, lora_llm or bone, not '{}'",
                                printable(word)));
}

bool are_trl_words(std::string_view program, const std::vector<Written>& written) {
  constexpr std::array<std::string_view, 6> own{"dataset_text_field",   "assistant_only_loss",
                                                "completion_only_loss", "packing_strategy",
                                                "eval_packing",         "dataset_kwargs"};
  const bool is_own = std::any_of(written.begin(), written.end(), [&](const Written& setting) {
    return contains(own, std::string_view(setting.name).substr(0, setting.name.find('.')));
  });
  return program == "trl" ||
         (is_own && !are_factory_words(program, written) && !are_swift_words(program, written));
}

void defaults_of_trl(TrainerLaunch& launch, const FilePlace& at) {
  const auto or_default = [&](const std::string& name, const std::string& value) {
    if (!has_flag(launch.written, name))
      launch.written.push_back({name, {value}, fmt::format("trl{}{}", default_of, name), at, ""});
  };
  if (!has_flag(launch.written, "no_gradient_checkpointing")) or_default("gradient_checkpointing", "true");
  if (!has_flag(launch.written, "fp16")) or_default("bf16", "true");
  const auto has = [&](std::string_view name) { return has_flag(launch.written, name); };
  const bool has_length = std::any_of(trainer_lengths.begin(), trainer_lengths.end(), has);
  if (!has_length && !are_grpo_words(launch.written)) or_default("max_length", "1024");
}

bool are_grpo_words(const std::vector<Written>& written) {
  const Written* const type = flag_of(written, "rlhf_type");
  if (type != nullptr) return lower_case(text_of_values(*type)) == "grpo";
  return has_flag(written, "num_generations") || has_flag(written, "reward_funcs");
}

// TRL's defaults: prompts of 512 tokens, answers of 256, beta 0 [trl/trainer/grpo_config.py, v0.17; later
// releases have no max_prompt_length]. TRL makes a reference model if beta is not 0
// [trl/trainer/grpo_trainer.py, ref_model]. ms-swift's defaults: answers of 512, beta 0.04. Its max_length
// limits the prompt [swift/llm/argument/rlhf_args.py].
void take_grpo(TrainerLaunch& launch) {
  std::vector<Written>& written = launch.written;
  if (written.empty() || std::exchange(launch.joined_lengths, true)) return;
  const bool of_swift = has_flag(written, "rlhf_type");
  if (of_swift) rename(written, {{"max_length", "max_prompt_length"}});
  const FilePlace at = written.front().at;
  const auto has = [&](std::string_view name) { return has_flag(written, name); };
  const bool states_lengths = has("max_completion_length") || has("max_prompt_length");
  const bool has_length = std::any_of(trainer_lengths.begin(), trainer_lengths.end(), has);
  if (states_lengths || !has_length) {
    // max_seq_length of the loaded model is only a limit.
    std::erase_if(written, [](const Written& it) { return contains(trainer_lengths, it.name); });
    for (const auto& [name, tokens] :
         {std::pair{"max_prompt_length", "512"}, {"max_completion_length", of_swift ? "512" : "256"}}) {
      if (!has(name)) written.push_back({name, {tokens}, fmt::format("{}={}", name, tokens), at, ""});
    }
    constexpr std::array<std::string_view, 2> lengths{"max_prompt_length", "max_completion_length"};
    const auto* const open = std::find_if(lengths.begin(), lengths.end(), [&](std::string_view name) {
      return count_in_flag(written, name).value_or(0) < 1;
    });
    if (open != lengths.end()) {
      flag_of(written, *open)->name = "max_length";  // which is then asked for, or refused
    } else {
      const std::string text = fmt::format("sequences are prompts of {} tokens and answers of {} at most",
                                           text_of_values(*flag_of(written, lengths[0])),
                                           text_of_values(*flag_of(written, lengths[1])));
      launch.remarks.push_back({LaunchRemarkKind::implied, text, at, ""});
      join_lengths(written, lengths[0], lengths[1]);
    }
    std::erase_if(written, [](const Written& it) {
      return it.name == "max_prompt_length" || it.name == "max_completion_length";
    });
  }
  if (of_swift && !has("beta"))
    written.push_back({"beta", {"0.04"}, fmt::format("swift{}beta", default_of), at, ""});
  if (const Written* const beta = flag_of(written, "beta"); beta != nullptr && beta->unknown.empty()) {
    double weight = 0;
    const std::string text = text_of_values(*beta);
    decimal_from_chars(text.data(), text.data() + text.size(), weight);
    launch.reference = launch.reference || weight != 0;
  }
}

bool are_factory_words(std::string_view program, const std::vector<Written>& written) {
  const bool has_model = has_flag(written, "model_name_or_path");
  if (has_flag(written, "finetuning_type") || (has_flag(written, "cutoff_len") && has_model)) return true;
  return (program == "llamafactory-cli" || program == "lmf") && has_model;
}

Preferences preferences_of(std::string_view program, const std::vector<Written>& written) {
  const Written* const found = flag_of(written, "rlhf_type");
  const std::string type = found == nullptr ? "" : lower_case(text_of_values(*found));
  // As a word of the program's name: "run_dpo.py", not "endpoint.py".
  const auto is = [&](std::string_view name) {
    const auto is_letter = [&](std::size_t at) {
      return at < program.size() && std::isalpha(static_cast<unsigned char>(program[at])) != 0;
    };
    const std::size_t at = program.find(name);
    return type == name ||
           (at != std::string_view::npos && (at == 0 || !is_letter(at - 1)) && !is_letter(at + name.size()));
  };
  constexpr std::array<std::string_view, 7> of_model_alone{"orpo",     "simpo",           "cpo",   "rm",
                                                           "train_rm", "reward_modeling", "reward"};
  const bool stands_alone = std::any_of(of_model_alone.begin(), of_model_alone.end(), is);
  const bool chosen = has_flag(written, "chosen_key") || has_flag(written, "rejected_key");
  // open-instruct's dpo_tune_cache.py scores all samples first, and drops the reference.
  const bool scores_first = program.find("cache") != std::string_view::npos;
  return {.pairs = is("dpo") || stands_alone || chosen,
          .reference = (is("dpo") || is("kto")) && !stands_alone && !scores_first};
}

bool are_openrlhf_words(const std::vector<Written>& written) {
  return (has_flag(written, "pretrain") &&
          (has_flag(written, "micro_train_batch_size") || has_flag(written, "zero_stage"))) ||
         std::any_of(written.begin(), written.end(), [](const Written& it) {
           // Megatron-Bridge has overrides of the same names.
           return it.as_written.starts_with("--train.micro_batch_size") ||
                  it.as_written.starts_with("--ds.zero_stage");
         });
}

// Defaults: batches of 128, microbatches of 8 and sequences of 2048, stage 2 [OpenRLHF, openrlhf/cli/train_sft.py].
void rename_of_openrlhf(TrainerLaunch& launch, bool on_pairs) {
  std::vector<Written>& written = launch.written;
  const FilePlace at = written.front().at;
  // Of its releases whose flags are in groups.
  rename(written, {{"model.model_name_or_path", "pretrain"},
                   {"actor.model_name_or_path", "pretrain"},
                   {"actor.num_nodes", "actor_num_nodes"},
                   {"actor.num_gpus_per_node", "actor_num_gpus_per_node"},
                   {"train.batch_size", "train_batch_size"},
                   {"train.micro_batch_size", "micro_train_batch_size"},
                   {"data.max_len", "max_len"},
                   {"ds.zero_stage", "zero_stage"},
                   {"ds.adam_offload", "adam_offload"},
                   {"ds.packing_samples", "packing_samples"},
                   {"ds.attn_implementation", "attn_implementation"},
                   {"ds.ring_attn_size", "ring_attn_size"},
                   {"ds.tensor_parallel_size", "ds_tensor_parallel_size"},
                   {"ds.lora.rank", "lora_rank"},
                   {"ds.lora.alpha", "lora_alpha"},
                   {"ds.lora.target_modules", "target_modules"},
                   {"model.gradient_checkpointing_enable", "gradient_checkpointing"},
                   {"actor.gradient_checkpointing_enable", "gradient_checkpointing"}});
  for (Written& setting : written) {
    if (setting.name != "ds.param_dtype") continue;
    setting.name = text_of_values(setting);
    setting.values = {"true"};
  }
  const auto nodes = count_in_flag(written, "actor_num_nodes");
  const auto each = count_in_flag(written, "actor_num_gpus_per_node");
  if (const auto devices = nodes && each ? product_of(*nodes, *each) : std::nullopt) {
    launch.devices = devices;
    launch.devices_per_node = *each;
  }
  rename(written, {{"pretrain", "model_name_or_path"},
                   {"micro_train_batch_size", "per_device_train_batch_size"},
                   {"target_modules", "lora_target_modules"},
                   {"max_len", "max_length"}});
  join_lengths(written, "prompt_max_len", "generate_max_len");
  const auto or_default = [&](const std::string& name, const std::string& value) {
    if (!has_flag(written, name))
      written.push_back({name, {value}, fmt::format("OpenRLHF{}{}", default_of, name), at, ""});
  };
  or_default("per_device_train_batch_size", "8");
  if (!on_pairs) or_default("max_length", "2048");
  or_default("train_batch_size", "128");
  or_default("zero_stage", "2");
  launch.global = *flag_of(written, "train_batch_size");
  std::erase_if(written, [](const Written& it) { return it.name == "train_batch_size"; });
  take_stage_flag(launch, "zero_stage", "adam_offload");
  take_as_accelerate(launch, "ring_attn_size", "cp_size");
  take_as_accelerate(launch, "ds_tensor_parallel_size", "tp_size");
}

bool are_deepspeed_chat_words(const std::vector<Written>& written) {
  return has_flag(written, "actor_model_name_or_path") ||
         (has_flag(written, "model_name_or_path") &&
          (has_flag(written, "data_split") || has_flag(written, "num_padding_at_beginning")));
}

// Microbatches of 16, sequences of 512 tokens (a prompt and an answer of 256) and stage 0 are its defaults
// [deepspeedai/DeepSpeedExamples, applications/DeepSpeed-Chat/training, main.py of each step].
void rename_of_deepspeed_chat(TrainerLaunch& launch) {
  std::vector<Written>& written = launch.written;
  const bool chat = are_deepspeed_chat_words(written);
  const bool third = has_flag(written, "actor_model_name_or_path");
  const FilePlace at = written.empty() ? FilePlace{} : written.front().at;
  const auto or_default = [&](const std::string& name, const std::string& value) {
    if (!has_flag(written, name))
      written.push_back({name, {value}, fmt::format("DeepSpeed-Chat{}{}", default_of, name), at, ""});
  };
  if (third) {
    or_default("max_prompt_seq_len", "256");
    or_default("max_answer_seq_len", "256");
    rename(written, {{"actor_model_name_or_path", "model_name_or_path"},
                     {"per_device_training_batch_size", "per_device_train_batch_size"},
                     {"actor_zero_stage", "zero_stage"},
                     {"actor_lora_dim", "lora_rank"},
                     {"actor_gradient_checkpointing", "gradient_checkpointing"}});
    join_lengths(written, "max_prompt_seq_len", "max_answer_seq_len");
  }
  if (chat) {
    or_default("zero_stage", "0");
    or_default("per_device_train_batch_size", "16");
    if (!has_flag(written, "max_length")) or_default("max_seq_len", "512");
  }
  if (!has_flag(written, "zero_stage")) return;
  // Its dtype is fp16 or bf16.
  if (!has_flag(written, "dtype") && !has_flag(written, "bf16")) or_default("fp16", "true");
  rename(written, {{"lora_dim", "lora_rank"}});
  take_stage_flag(launch, "zero_stage", "offload");
}

// Batches of 16, microbatches of 1 and sequences of 2048, selective recomputation and the distributed optimizer are its defaults
// [modelscope/ms-swift, docs, Megatron-SWIFT, Command-line-parameters].
LaunchedRun read_swift_megatron(TrainerLaunch launch, const std::string& file, const LaunchOptions& options) {
  RunBuilder builder(file, "ms-swift on Megatron-Core", "megatron-core-2025");
  builder.open_conditions(launch.open_conditions);
  RunScale scale{.devices = launch.devices, .devices_per_node = launch.devices_per_node};
  if (Written* const load = flag_of(launch.written, "load");
      load != nullptr && !has_flag(launch.written, "model")) {
    load->name = "model";
    for (std::string& value : load->values) {  // a converted checkpoint: "Qwen2.5-7B-Instruct-mcore"
      if (const std::size_t end = value.rfind("-mcore"); end != std::string::npos) value.resize(end);
    }
  }
  TreeRun run(last_of_each(std::move(launch.written)), builder);
  if (const Written* const model = run.find_path({"model"})) name_model_of(*model, builder);
  const Written* const tuner = run.find({"train_type", "tuner_type"}, "lora_rank");
  const std::string way = tuner == nullptr ? "full" : text_of_values(*tuner);
  const bool adapter = way == "lora" || way == "lora_llm";
  if (!adapter && way != "full")
    builder.problem(*tuner, fmt::format("must be full, lora or lora_llm, not '{}'", printable(way)));
  if (adapter) builder.use_software("nemo-2025");  // Megatron-Bridge has adapters
  take_core(run, scale, {.expert_tensor_is_one = true});
  need_equal_stages(run);
  const auto or_default = [&](std::string_view field, const std::string& value, std::string_view name) {
    if (builder.value(field)) return;
    builder.set(field, value, nullptr);
    builder.imply(fmt::format("{} is {} by default", name, value));
  };
  if (run.has("max_length")) take_sequence(run, {"max_length"});
  or_default("micro_batch", "1", "micro_batch_size");
  or_default("global_batch", "16", "global_batch_size");
  or_default("sequence", "2048", "max_length");
  if (!builder.value("data_sharding")) {
    builder.set("data_sharding", "zero1", nullptr);
    builder.imply("the distributed optimizer (ZeRO 1) is on, as by default");
  }
  if (!builder.value("recompute") && !builder.value("recompute_ops"))
    or_default("recompute", "selective", "recompute_granularity");
  scale.micro = builder.count("micro_batch");
  scale.global = builder.count("global_batch");
  const TrainerNames names{{"model"}, {"micro_batch_size"}, {"max_length"}, 1,
                           2048,      {"optimizer"},        {"lora_rank"},  {"target_modules"}};
  take_adapter(run, names, adapter, tuner, 8);
  if (adapter) default_lora_dropout(run, tuner);
  settle(scale, builder);
  static constexpr LaunchKey own[] = {
      {"packing", LaunchUse::unmodelled, "samples that are packed into sequences"},
      {"freeze_*", LaunchUse::unmodelled, "frozen weights: they are counted as trained"},
      {"*"}};
  run.rest(with_core_keys(own));
  return builder.finish(options);
}

}  // namespace headroom
