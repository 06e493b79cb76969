// What the Hugging Face hub calls models that are compiled in.
#pragma once

#include <array>
#include <string_view>

namespace headroom {

struct HubName {
  std::string_view
      hub;  // without what tells a tuned or converted checkpoint apart: -Instruct, -Base, -it, -hf, ...
  std::string_view ours;
};

inline constexpr std::array<HubName, 64> hub_names{{
    {"openai-community/gpt2", "gpt2-small"},
    {"openai-community/gpt2-medium", "gpt2-medium"},
    {"openai-community/gpt2-large", "gpt2-large"},
    {"openai-community/gpt2-xl", "gpt2-xl"},
    {"meta-llama/Llama-2-7b", "llama-2-7b"},
    {"meta-llama/Llama-2-13b", "llama-2-13b"},
    {"meta-llama/Llama-2-70b", "llama-2-70b"},
    {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
    {"meta-llama/Meta-Llama-3-70B", "llama-3-70b"},
    {"meta-llama/Llama-3.1-8B", "llama-3-8b"},
    {"meta-llama/Llama-3.1-70B", "llama-3-70b"},
    {"meta-llama/Llama-3.3-70B", "llama-3-70b"},
    {"meta-llama/Llama-3.1-405B", "llama-3-405b"},
    {"meta-llama/Llama-4-Scout-17B-16E", "llama-4-scout"},
    {"meta-llama/Llama-4-Maverick-17B-128E", "llama-4-maverick"},
    {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
    {"mistralai/Mistral-7B-Instruct-v0.1", "mistral-7b"},
    {"mistralai/Mistral-Nemo-Base-2407", "mistral-nemo-12b"},
    {"mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo-12b"},
    {"mistralai/Mistral-Large-Instruct-2407", "mistral-large-2"},
    {"mistralai/Mistral-Small-24B-Base-2501", "mistral-small-24b"},
    {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
    {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"},
    {"mistralai/Mixtral-8x22B-v0.1", "mixtral-8x22b"},
    {"mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b"},
    {"deepseek-ai/DeepSeek-V2", "deepseek-v2"},
    {"deepseek-ai/DeepSeek-V2-Lite", "deepseek-v2-lite"},
    {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
    {"deepseek-ai/DeepSeek-V3.1", "deepseek-v3"},
    {"deepseek-ai/DeepSeek-R1", "deepseek-v3"},
    {"Qwen/Qwen2.5-0.5B", "qwen2.5-0.5b"},
    {"Qwen/Qwen2.5-7B", "qwen2.5-7b"},
    {"Qwen/Qwen2.5-14B", "qwen2.5-14b"},
    {"Qwen/Qwen2.5-32B", "qwen2.5-32b"},
    {"Qwen/Qwen2.5-72B", "qwen2.5-72b"},
    {"Qwen/Qwen3-0.6B", "qwen3-0.6b"},
    {"Qwen/Qwen3-1.7B", "qwen3-1.7b"},
    {"Qwen/Qwen3-4B", "qwen3-4b"},
    {"Qwen/Qwen3-8B", "qwen3-8b"},
    {"Qwen/Qwen3-14B", "qwen3-14b"},
    {"Qwen/Qwen3-32B", "qwen3-32b"},
    {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"},
    {"Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"},
    {"google/gemma-2-2b", "gemma-2-2b"},
    {"google/gemma-2-9b", "gemma-2-9b"},
    {"google/gemma-2-27b", "gemma-2-27b"},
    {"google/gemma-3-1b", "gemma-3-1b"},
    {"google/gemma-3-4b", "gemma-3-4b"},
    {"google/gemma-3-12b", "gemma-3-12b"},
    {"google/gemma-3-27b", "gemma-3-27b"},
    {"microsoft/Phi-3-mini-4k", "phi-3-mini"},
    {"microsoft/phi-4", "phi-4"},
    {"openai/gpt-oss-20b", "gpt-oss-20b"},
    {"openai/gpt-oss-120b", "gpt-oss-120b"},
    {"nvidia/Nemotron-4-340B", "nemotron-4-340b"},
    {"nvidia/Nemotron-H-8B-Base-8K", "nemotron-h-8b"},
    {"nvidia/Nemotron-H-47B-Base-8K", "nemotron-h-47b"},
    {"nvidia/Nemotron-H-56B-Base-8K", "nemotron-h-56b"},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3-nano-30b-a3b"},
    {"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", "nemotron-3-super-120b-a12b"},
    {"moonshotai/Kimi-K2", "kimi-k2"},
    {"zai-org/GLM-4.5", "glm-4.5"},
    {"zai-org/GLM-4.5-Air", "glm-4.5-air"},
    {"gpt2", "gpt2-small"},
}};

}  // namespace headroom
