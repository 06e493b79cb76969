// Names of models of the Hugging Face hub as configurations have them: of mirrors, of tuned or quantized checkpoints, and of
// models that are not embedded but have published sizes.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/io/catalog.hpp"
#include "interop/launch_in/tree_run.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// Owners who publish others' models under the same names.
constexpr std::array<std::string_view, 11> mirrors{
    "nousresearch", "unsloth",    "mistral-community", "hugging-quants", "huggyllama",   "modelscope",
    "llm-research", "meta-llama", "axolotl-quants",    "casperhansen",   "ai-modelscope"};

// Ends of names that say how a checkpoint is tuned or stored. The layers are the same.
constexpr std::array<std::string_view, 22> stored{
    "-bnb-4bit", "-unsloth", "-bnb-nf4-bf16", "-bnb-nf4",  "-awq",  "-gptq",       "-fp8", "-hf",
    "-bf16",     "-4bit",    "-base",         "-instruct", "-chat", "-int4",       "-sft", "-linearized",
    "-experts",  "-it",      "-dequantized",  "-128k",     "-4k",   "-fp8-dynamic"};

// Models whose layers are those of an embedded one, by the start of their names.
struct SameLayers {
  std::string_view name;
  std::string_view ours;
};
constexpr std::array<SameLayers, 36> same_layers{{
    {"qwen2-0.5b", "qwen2.5-0.5b"},
    {"qwen2-7b", "qwen2.5-7b"},
    {"qwen2-72b", "qwen2.5-72b"},
    {"qwen2.5-math-7b", "qwen2.5-7b"},
    {"qwen2.5-math-72b", "qwen2.5-72b"},
    {"qwen2.5-coder-0.5b", "qwen2.5-0.5b"},
    {"qwen2.5-coder-7b", "qwen2.5-7b"},
    {"qwen2.5-coder-14b", "qwen2.5-14b"},
    {"qwen2.5-coder-32b", "qwen2.5-32b"},
    {"qwen2.5-vl-7b", "qwen2.5-7b"},
    {"qwen2-vl-7b", "qwen2.5-7b"},
    {"qwen2.5-vl-32b", "qwen2.5-32b"},
    {"qwen2.5-vl-72b", "qwen2.5-72b"},
    {"qwen2-vl-72b", "qwen2.5-72b"},
    {"qwq-32b", "qwen2.5-32b"},
    {"qwen3-coder-30b-a3b", "qwen3-30b-a3b"},
    {"qwen3-vl-235b-a22b", "qwen3-235b-a22b"},
    {"qwen3-vl-30b-a3b", "qwen3-30b-a3b"},
    {"qwen3-vl-8b", "qwen3-8b"},
    {"deepseek-r1-distill-qwen-7b", "qwen2.5-7b"},
    {"deepseek-r1-distill-qwen-14b", "qwen2.5-14b"},
    {"deepseek-r1-distill-qwen-32b", "qwen2.5-32b"},
    {"deepseek-moe-16b", "deepseek-v2-lite"},
    {"deepseek-coder-v2-lite", "deepseek-v2-lite"},
    {"deepseek-v2.5", "deepseek-v2"},
    {"zephyr-7b", "mistral-7b"},
    {"mistral-7b-v0.2", "mistral-7b"},
    {"openchat", "mistral-7b"},
    {"vicuna-7b", "llama-2-7b"},
    {"vicuna-13b", "llama-2-13b"},
    {"llama-7b", "llama-2-7b"},
    {"llama-13b", "llama-2-13b"},
    {"hermes-3-llama-3.1-8b", "llama-3-8b"},
    {"hermes-3-llama-3.1-70b", "llama-3-70b"},
    {"phi-3.5-mini", "phi-3-mini"},
    {"glm-4.6", "glm-4.5"},
}};

// config.json of each on the hub: layers like Llama's, with SwiGLU, RMSNorm and rotary positions.
struct PublishedSizes {
  std::string_view name;
  std::int64_t hidden;
  std::int64_t feedforward;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t key_value_heads;
  std::int64_t vocabulary;
  bool tied = false;
  bool qkv_bias = false;
};
constexpr std::array<PublishedSizes, 25> published{{
    {"qwen2-1.5b", 1536, 8960, 28, 12, 2, 151936, true, true},
    {"qwen2.5-1.5b", 1536, 8960, 28, 12, 2, 151936, true, true},
    {"qwen2.5-math-1.5b", 1536, 8960, 28, 12, 2, 151936, true, true},
    {"qwen2.5-coder-1.5b", 1536, 8960, 28, 12, 2, 151936, true, true},
    {"deepseek-r1-distill-qwen-1.5b", 1536, 8960, 28, 12, 2, 151936, false, true},
    {"qwen2.5-3b", 2048, 11008, 36, 16, 2, 151936, true, true},
    {"qwen2.5-coder-3b", 2048, 11008, 36, 16, 2, 151936, true, true},
    {"qwen2-vl-2b", 1536, 8960, 28, 12, 2, 151936, true, true},
    {"qwen2.5-vl-3b", 2048, 11008, 36, 16, 2, 151936, true, true},
    {"mistral-7b-v0.3", 4096, 14336, 32, 32, 8, 32768},
    {"mistral-7b-instruct-v0.3", 4096, 14336, 32, 32, 8, 32768},
    {"mistral-7b-instruct-v0.2", 4096, 14336, 32, 32, 8, 32000},
    {"tinyllama", 2048, 5632, 22, 32, 4, 32000},
    {"smollm2-135m", 576, 1536, 30, 9, 3, 49152, true},
    {"smollm2-360m", 960, 2560, 32, 15, 5, 49152, true},
    {"smollm2-1.7b", 2048, 8192, 24, 32, 32, 49152, true},
    {"smollm3-3b", 2048, 11008, 36, 16, 4, 128256, true},
    {"llama-30b", 6656, 17920, 60, 52, 52, 32000},
    {"llama-65b", 8192, 22016, 80, 64, 64, 32000},
    {"codellama-7b", 4096, 11008, 32, 32, 32, 32016},
    {"codellama-34b", 8192, 22016, 48, 64, 8, 32000},
    {"yi-6b", 4096, 11008, 32, 32, 4, 64000},
    {"yi-34b", 7168, 20480, 60, 56, 8, 64000},
    {"yi-1.5-9b", 4096, 11008, 48, 32, 4, 64000},
    {"phi-3-medium", 5120, 17920, 40, 40, 10, 32064},
}};

bool is_at_hand(std::string_view name) { return meaning_of("model", name).names.size() == 1; }

// Whether a name starts with another at the end of a word: "qwen2-7b" is no start of "qwen2-7b0".
bool starts_as(std::string_view name, std::string_view start) {
  return name.starts_with(start) &&
         (name.size() == start.size() || name[start.size()] == '-' || name[start.size()] == '_');
}

// The longest row whose name a name starts with.
template <class Rows>
auto best_row(const Rows& rows, std::string_view name) {
  auto best = rows.end();
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    if (starts_as(name, row->name) && (best == rows.end() || row->name.size() > best->name.size()))
      best = row;
  }
  return best;
}

// "Meta-Llama-3.1-8B" is Llama-3.1-8B under its first name.
std::string without_meta(const std::string& name) {
  constexpr std::string_view start = "meta-";
  return lower_case(name).starts_with(start) ? name.substr(start.size()) : name;
}

// What is at hand under a name: of a mirror, without how it is stored.
std::string embedded_name(const std::string& given) {
  if (is_at_hand(given)) return given;
  const std::size_t slash = given.find('/');
  const std::string owner = slash == std::string::npos ? "" : lower_case(given.substr(0, slash));
  std::string name = slash == std::string::npos ? given : given.substr(slash + 1);
  if (!owner.empty() && !contains(mirrors, std::string_view(owner))) {
    for (const std::string_view end : stored) {
      if (lower_case(name).ends_with(end) && is_at_hand(given.substr(0, given.size() - end.size())))
        return given.substr(0, given.size() - end.size());
    }
    return "";
  }
  for (bool shorter = true; shorter;) {
    for (const std::string& form : {name, without_meta(name)}) {
      if (is_at_hand(form)) return form;
    }
    shorter = false;
    for (const std::string_view end : stored) {
      if (!lower_case(name).ends_with(end)) continue;
      name.resize(name.size() - end.size());
      shorter = true;
    }
  }
  return "";
}

std::string config_beside(const std::string& name, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(file).parent_path();
  std::error_code error;
  for (const fs::path& place : {folder / name, fs::path(name)}) {
    if (fs::is_regular_file(place / "config.json", error))
      return (place / "config.json").lexically_normal().string();
    if (name.ends_with(".json") && fs::is_regular_file(place, error))
      return place.lexically_normal().string();
  }
  return "";
}

}  // namespace

void name_model_of(const std::string& name, const Written* from, const std::string& file,
                   RunBuilder& builder) {
  if (name.empty()) return;
  if (const std::string config = config_beside(name, file); !config.empty())
    return builder.name_model(config, from);
  if (const std::string ours = embedded_name(name); !ours.empty()) return builder.name_model(ours, from);
  const std::string plain = without_meta(lower_case(name.substr(name.rfind('/') + 1)));
  const auto alike = best_row(same_layers, plain);
  const auto sizes = best_row(published, plain);
  const bool by_sizes =
      sizes != published.end() && (alike == same_layers.end() || sizes->name.size() > alike->name.size());
  if (!by_sizes && alike != same_layers.end()) {
    builder.imply(fmt::format("{} has the layers of {}", printable(name), alike->ours), from);
    return builder.name_model(std::string(alike->ours), from);
  }
  builder.name_absent_model(name, from);
  if (!by_sizes) {
    builder.unresolved(fmt::format("{} is not at hand: give --model with its config.json", printable(name)),
                       from == nullptr ? FilePlace{file, 0} : from->at);
    return;
  }
  builder.imply(fmt::format("the sizes of {} are those that its config.json on the hub has", printable(name)),
                from);
  builder.member("hidden", sizes->hidden, nullptr);
  builder.member("feedforward", sizes->feedforward, nullptr);
  builder.member("layers", sizes->layers, nullptr);
  builder.member("heads", sizes->heads, nullptr);
  builder.member("key_value_heads", sizes->key_value_heads, nullptr);
  builder.member("vocabulary", sizes->vocabulary, nullptr);
  builder.member("tied_embeddings", sizes->tied, nullptr);
  llama_members(builder);
  if (sizes->qkv_bias) builder.member("qkv_bias", true, nullptr);
}

void name_model_of(const Written& setting, RunBuilder& builder) {
  name_model_of(text_of_values(setting), &setting, setting.at.file, builder);
}

void llama_members(RunBuilder& builder) {
  const auto otherwise = [&](std::string_view path, const Json& value) {
    if (builder.member_at(path) == nullptr) builder.member(path, value, nullptr);
  };
  constexpr std::int64_t assumed_sequence = 4096;
  otherwise("vocabulary_multiple", 1);
  otherwise("sequence", assumed_sequence);
  otherwise("activation", "swiglu");
  otherwise("normalization", "rms_norm");
  otherwise("positions", "rotary");
  otherwise("linear_bias", false);
  otherwise("hidden_dropout", false);
  otherwise("attention_dropout", false);
  otherwise("tied_embeddings", false);
}

}  // namespace headroom
