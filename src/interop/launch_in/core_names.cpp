// Names of models and groups in NeMo, Megatron-Bridge and Primus.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {

// Names without the groups that Megatron-Core's settings are in.
std::vector<Written> without_groups(std::vector<Written> written, std::span<const std::string_view> groups) {
  for (Written& setting : written) {
    for (const std::string_view group : groups) {
      if (!setting.name.starts_with(group)) continue;
      setting.name.erase(0, group.size());
      break;
    }
  }
  return written;
}

// "llama3_70b_pretrain_64gpu_h100_bf16_config", "LlamaConfig70B", "MixtralConfig8x22B": which model is meant.
std::string model_in(const std::string& text) {
  struct Meant {
    std::string_view part;  // in lower case, without "_", "-" and "."
    std::string_view ours;
  };
  constexpr std::array<Meant, 122> models{{
      {"gemma2b", "gemma-2b"},
      {"gemma7b", "gemma-7b"},
      {"gemma22b", "gemma-2-2b"},
      {"gemma29b", "gemma-2-9b"},
      {"gemma227b", "gemma-2-27b"},
      {"gemma31b", "gemma-3-1b"},
      {"gemma34b", "gemma-3-4b"},
      {"gemma312b", "gemma-3-12b"},
      {"gemma327b", "gemma-3-27b"},
      {"qwen205b", "qwen2.5-0.5b"},
      {"qwen215b", "qwen2.5-1.5b"},
      {"qwen27b", "qwen2.5-7b"},
      {"qwen272b", "qwen2.5-72b"},
      {"qwen2505b", "qwen2.5-0.5b"},
      {"qwen2515b", "qwen2.5-1.5b"},
      {"qwen253b", "qwen2.5-3b"},
      {"starcoder15b", "starcoder"},
      {"starcoder23b", "starcoder2-3b"},
      {"starcoder27b", "starcoder2-7b"},
      {"starcoder215b", "starcoder2-15b"},
      {"phi3mini", "phi-3-mini"},
      {"baichuan27b", "baichuan2-7b"},
      {"chatglm36b", "chatglm3-6b"},
      {"nemotron34b", "nemotron-3-4b"},
      {"nemotron38b", "nemotron-3-8b"},
      {"nemotron322b", "nemotron-3-22b"},
      {"nemotron415b", "nemotron-4-15b"},
      {"nemotron3nano", "nemotron-3-nano-30b-a3b"},
      {"nemotron3super", "nemotron-3-super-120b-a12b"},
      {"llama4e16", "llama-4-scout"},
      {"llama4e128", "llama-4-maverick"},
      {"llama417b16e", "llama-4-scout"},
      {"llama417b128e", "llama-4-maverick"},
      {"glm45355b", "glm-4.5"},
      {"glm45air", "glm-4.5-air"},
      {"moonlight16b", "moonlight-16b-a3b"},
      {"olmoe7b", "olmoe-1b-7b"},
      {"mistralsmall", "mistral-small-24b"},
      {"minimaxm2", "minimax-m2"},
      {"llama3405b", "llama-3-405b"},
      {"llama31405b", "llama-3-405b"},
      {"llama370b", "llama-3-70b"},
      {"llama3170b", "llama-3-70b"},
      {"llama3370b", "llama-3-70b"},
      {"llama38b", "llama-3-8b"},
      {"llama318b", "llama-3-8b"},
      {"llama321b", "llama-3.2-1b"},
      {"llama323b", "llama-3.2-3b"},
      {"llama27b", "llama-2-7b"},
      {"llama213b", "llama-2-13b"},
      {"llama270b", "llama-2-70b"},
      {"llama3config405b", "llama-3-405b"},
      {"llama31config405b", "llama-3-405b"},
      {"llama3config70b", "llama-3-70b"},
      {"llama31config70b", "llama-3-70b"},
      {"llama3config8b", "llama-3-8b"},
      {"llama31config8b", "llama-3-8b"},
      {"llama32config1b", "llama-3.2-1b"},
      {"llama32config3b", "llama-3.2-3b"},
      {"llama2config7b", "llama-2-7b"},
      {"llama2config13b", "llama-2-13b"},
      {"llama2config70b", "llama-2-70b"},
      {"llama4scout", "llama-4-scout"},
      {"llama4experts16config", "llama-4-scout"},
      {"llama4experts128config", "llama-4-maverick"},
      {"llama4maverick", "llama-4-maverick"},
      {"mixtral8x22b", "mixtral-8x22b"},
      {"mixtralconfig8x22b", "mixtral-8x22b"},
      {"mixtral8x7b", "mixtral-8x7b"},
      {"mixtralconfig8x7b", "mixtral-8x7b"},
      {"mistral7b", "mistral-7b"},
      {"mistralconfig7b", "mistral-7b"},
      {"mistralnemo", "mistral-nemo-12b"},
      {"deepseekv316b", "deepseek-v2-lite"},  // of torchtitan, whose layers these are
      {"deepseekv3236b", "deepseek-v2"},
      {"deepseekv3", "deepseek-v3"},
      {"deepseekv317b", ""},  // of Primus, with fewer layers and experts: its sizes are not at hand
      {"deepseekv345b", ""},
      {"deepseekv3305b", ""},
      {"deepseekv3393b", ""},
      {"deepseekv2lite", "deepseek-v2-lite"},
      {"deepseekv2", "deepseek-v2"},
      {"kimik2", "kimi-k2"},
      {"qwen3235b", "qwen3-235b-a22b"},
      {"qwen330b", "qwen3-30b-a3b"},
      {"qwen3config235b", "qwen3-235b-a22b"},
      {"qwen3config30b", "qwen3-30b-a3b"},
      {"qwen332b", "qwen3-32b"},
      {"qwen314b", "qwen3-14b"},
      {"qwen38b", "qwen3-8b"},
      {"qwen34b", "qwen3-4b"},
      {"qwen317b", "qwen3-1.7b"},
      {"qwen306b", "qwen3-0.6b"},
      {"qwen3next", "qwen3-next-80b-a3b"},
      {"qwen2572b", "qwen2.5-72b"},
      {"qwen2532b", "qwen2.5-32b"},
      {"qwen2514b", "qwen2.5-14b"},
      {"qwen257b", "qwen2.5-7b"},
      {"qwen25500m", "qwen2.5-0.5b"},
      {"qwen25config500m", "qwen2.5-0.5b"},
      {"qwen2500m", "qwen2.5-0.5b"},
      {"qwen2config500m", "qwen2.5-0.5b"},
      {"qwen251p5b", "qwen2.5-1.5b"},
      {"qwen25config1p5b", "qwen2.5-1.5b"},
      {"qwen21p5b", "qwen2.5-1.5b"},
      {"qwen2config1p5b", "qwen2.5-1.5b"},
      {"qwen25config7b", "qwen2.5-7b"},
      {"qwen2config7b", "qwen2.5-7b"},
      {"qwen25config14b", "qwen2.5-14b"},
      {"qwen25config32b", "qwen2.5-32b"},
      {"qwen25config72b", "qwen2.5-72b"},
      {"qwen2config72b", "qwen2.5-72b"},
      {"gptoss120b", "gpt-oss-120b"},
      {"gptoss20b", "gpt-oss-20b"},
      {"nemotron4340b", "nemotron-4-340b"},
      {"nemotron4config340b", "nemotron-4-340b"},
      {"nemotron340b", "nemotron-4-340b"},
      {"nemotronh56b", "nemotron-h-56b"},
      {"nemotronh8b", "nemotron-h-8b"},
      {"nemotronh47b", "nemotron-h-47b"},
      {"gpt3175b", "gpt3-175b"},
      {"gptconfig175b", "gpt3-175b"},
  }};
  std::string plain = lower_case(text);
  std::erase_if(plain, [](char c) { return c == '_' || c == '-' || c == '.' || c == ' '; });
  const Meant* best = nullptr;
  for (const Meant& row : models) {
    if (plain.find(row.part) != std::string::npos && (best == nullptr || row.part.size() > best->part.size()))
      best = &row;
  }
  return best == nullptr ? "" : std::string(best->ours);
}

std::vector<LaunchKey> with_core_keys(std::span<const LaunchKey> own) {
  std::vector<LaunchKey> keys(own.begin(), own.end());
  // The first row that matches holds: what takes any name comes last.
  const bool takes_any = !keys.empty() && keys.back().name == "*";
  if (takes_any) keys.pop_back();
  keys.insert(keys.end(), core_keys().begin(), core_keys().end());
  if (takes_any) keys.push_back({"*"});
  return keys;
}

void take_peft(TreeRun& run, std::string_view group, std::int64_t rank_default) {
  RunBuilder& builder = run.builder();
  const auto named = [&](std::string_view name) { return std::string(group) + '.' + std::string(name); };
  const auto rank = run.count({named("dim"), named("adapter_dim"), named("lora_tuning.adapter_dim")});
  const Written* const targets = run.find({named("target_modules"), named("lora_tuning.target_modules")});
  const Written* const scheme = run.find({named("peft_scheme"), named("()")});
  if (!rank && targets == nullptr && scheme == nullptr) return;
  // All weights are trained, whatever is set for adapters [NeMo, megatron_gpt_finetuning.py].
  if (scheme != nullptr && (lower_case(text_of_values(*scheme)) == "none" || is_null(*scheme))) return;
  builder.set(
      "lora_rank", std::to_string(rank.value_or(rank_default)),
      rank ? run.find({named("dim"), named("adapter_dim"), named("lora_tuning.adapter_dim")}) : scheme);
  if (!rank) builder.imply(fmt::format("an adapter has rank {} where it is not written", rank_default));
  if (const Written* const dropout =
          run.find({named("dropout"), named("adapter_dropout"), named("lora_tuning.adapter_dropout")}))
    builder.set("lora_dropout", text_of_values(*dropout), dropout);
  if (targets != nullptr && text_of_values(*targets) != "attention_qkv") take_lora_targets(*targets, builder);
  if (targets != nullptr && text_of_values(*targets) == "attention_qkv")
    builder.set("lora_targets", "linear_qkv", targets);
}

}  // namespace headroom
