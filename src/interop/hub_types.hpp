// Model types of Hugging Face transformers that are modelled, and the defaults of their configuration classes
// [huggingface/transformers, src/transformers/models/TYPE/configuration_TYPE.py].
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headroom {

enum class HubFamily : std::uint8_t {
  llama,
  gpt2,
  gpt_neox,
  opt,
  gemma,
  mixtral,
  qwen_moe,
  deepseek,
  glm,
  gpt_oss,
  llama4,
  nemotron,
  nemotron_h
};

struct HubType {
  std::string_view name;
  HubFamily family = HubFamily::llama;
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  std::int64_t feedforward = 0;  // of the MLP; 0: four times hidden
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;  // 0: as many as heads
  std::int64_t head_size = 0;        // 0: hidden / heads
  bool tied = false;
  std::string_view activation = "silu";
};

inline constexpr std::array<HubType, 29> hub_types{{
    {"llama", HubFamily::llama, 32000, 4096, 11008, 32, 32},
    {"mistral", HubFamily::llama, 32000, 4096, 14336, 32, 32, 8},
    {"qwen2", HubFamily::llama, 151936, 4096, 22016, 32, 32, 32},
    {"qwen3", HubFamily::llama, 151936, 4096, 22016, 32, 32, 32, 128},
    {"phi3", HubFamily::llama, 32064, 3072, 8192, 32, 32},
    {"olmo2", HubFamily::llama, 50304, 4096, 11008, 32, 32},
    {"granite", HubFamily::llama, 32000, 4096, 11008, 32, 32},
    {"gemma", HubFamily::gemma, 256000, 3072, 24576, 28, 16, 16, 256, true, "gelu_pytorch_tanh"},
    {"gemma2", HubFamily::gemma, 256000, 2304, 9216, 26, 8, 4, 256, true, "gelu_pytorch_tanh"},
    {"gemma3", HubFamily::gemma, 262208, 2304, 9216, 26, 8, 4, 256, true, "gelu_pytorch_tanh"},
    {"gemma3_text", HubFamily::gemma, 262208, 2304, 9216, 26, 8, 4, 256, true, "gelu_pytorch_tanh"},
    {"gpt2", HubFamily::gpt2, 50257, 768, 0, 12, 12, 0, 0, true, "gelu_new"},
    {"gpt_neox", HubFamily::gpt_neox, 50432, 6144, 24576, 44, 64, 0, 0, false, "gelu"},
    {"opt", HubFamily::opt, 50272, 768, 3072, 12, 12, 0, 0, true, "relu"},
    {"nemotron", HubFamily::nemotron, 256000, 6144, 24576, 32, 48, 0, 0, false, "relu2"},
    {"nemotron_h", HubFamily::nemotron_h, 131072, 4096, 21504, 52, 32, 8, 128, false, "relu2"},
    {"mixtral", HubFamily::mixtral, 32000, 4096, 14336, 32, 32, 8},
    {"qwen2_moe", HubFamily::qwen_moe, 151936, 2048, 5632, 24, 16, 16},
    {"qwen3_moe", HubFamily::qwen_moe, 151936, 2048, 6144, 24, 32, 4},
    {"qwen3_next", HubFamily::qwen_moe, 151936, 2048, 5632, 48, 16, 2, 256},
    {"qwen3_5_text", HubFamily::llama, 248320, 4096, 12288, 32, 16, 4, 256},
    {"qwen3_5_moe_text", HubFamily::qwen_moe, 248320, 2048, 5632, 40, 16, 2, 256},
    {"deepseek_v2", HubFamily::deepseek, 32000, 4096, 11008, 32, 32},
    {"deepseek_v3", HubFamily::deepseek, 129280, 7168, 18432, 61, 128, 128},
    {"kimi_k2", HubFamily::deepseek, 129280, 7168, 18432, 61, 128, 128},
    {"kimi_linear", HubFamily::deepseek, 163840, 4096, 11008, 32, 32, 32},
    {"glm4_moe", HubFamily::glm, 151552, 4096, 10944, 46, 96, 8},
    {"gpt_oss", HubFamily::gpt_oss, 201088, 2880, 2880, 36, 64, 8, 64},
    {"llama4_text", HubFamily::llama4, 202048, 5120, 16384, 48, 40, 8, 128},
}};

}  // namespace headroom
