// Names of models of the Hugging Face hub as configurations have them: of mirrors, of tuned or quantized checkpoints, and of
// models that are not embedded but have published sizes.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/decimal.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/memory/state.hpp"
#include "interop/hub_published.hpp"
#include "interop/launch_in/tree_run.hpp"
#include "io/command_files.hpp"
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
constexpr std::array<SameLayers, 76> same_layers{{
    {"llama3.2-vision-11b", "llama-3.2-11b-vision"},
    {"llama3.2-vision-90b", "llama-3.2-90b-vision"},
    {"llama4-17b128e", "llama-4-maverick"},
    {"llama4-17b16e", "llama-4-scout"},
    {"glm4-7", "glm-4.5"},
    {"glm-4.7", "glm-4.5"},
    {"mistral-small-3.1-24b", "mistral-small-24b"},
    {"mistral-small-3.2-24b", "mistral-small-24b"},
    {"magistral-small", "mistral-small-24b"},
    {"devstral-small", "mistral-small-24b"},
    {"pixtral-12b", "mistral-nemo-12b"},
    {"mathstral-7b", "mistral-7b-v0.3"},
    {"open_llama_7b", "llama-2-7b"},
    {"open_llama_13b", "llama-2-13b"},
    {"qwen2.5-omni-7b", "qwen2.5-7b"},
    {"qwen3-omni-30b-a3b", "qwen3-30b-a3b"},
    {"qwen3-vl-2b", "qwen3-1.7b"},
    {"llava-1.5-7b", "llama-2-7b"},
    {"llava-1.5-13b", "llama-2-13b"},
    {"llava-v1.6-mistral-7b", "mistral-7b"},
    {"llava-v1.6-vicuna-7b", "llama-2-7b"},
    {"hermes-4-14b", "qwen3-14b"},
    {"hermes-4-70b", "llama-3-70b"},
    {"hermes-4-405b", "llama-3-405b"},
    {"medgemma-4b", "gemma-3-4b"},
    {"medgemma-27b", "gemma-3-27b"},
    {"qwen3-vl-4b", "qwen3-4b"},
    {"qwen3-vl-32b", "qwen3-32b"},
    {"deepseek-r1-0528-qwen3-8b", "qwen3-8b"},
    {"llama-3.1-nemotron-70b", "llama-3-70b"},
    {"llama-3-base-8b", "llama-3-8b"},
    {"l3-8b", "llama-3-8b"},
    {"llama-3.1-tulu-3-8b", "llama-3-8b"},
    {"llama-3.1-tulu-3-70b", "llama-3-70b"},
    {"deepseek-r1-distill-llama-8b", "llama-3-8b"},
    {"deepseek-r1-distill-llama-70b", "llama-3-70b"},
    {"mistral-7b-sft", "mistral-7b"},
    {"openhermes-2.5-mistral-7b", "mistral-7b"},
    {"llava-v1.5-7b", "llama-2-7b"},
    {"llava-v1.5-13b", "llama-2-13b"},
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

// The name of the hub in a path: the last part of "/data/models/Qwen2.5-7B/", of "models--Qwen--Qwen2.5-7B/snapshots/HASH" of
// the hub's cache. Nothing if a text is no path but OWNER/NAME.
std::string name_in_path(std::string_view text) {
  while (text.ends_with('/')) text.remove_suffix(1);
  constexpr std::string_view cached = "models--";
  if (const std::size_t at = text.rfind(cached); at != std::string_view::npos) {
    std::string name(text.substr(at + cached.size(), text.find('/', at) - at - cached.size()));
    if (const std::size_t owner = name.find("--"); owner != std::string::npos) name.replace(owner, 2, "/");
    return name;
  }
  const auto slashes = std::count(text.begin(), text.end(), '/');
  const bool path = slashes > 1 || (slashes == 1 && std::string_view("/.~$\x01").find(text.front()) !=
                                                        std::string_view::npos);
  return path ? std::string(text.substr(text.rfind('/') + 1)) : std::string();
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

std::string plain_name(const std::string& name) {
  return without_meta(lower_case(name.substr(name.rfind('/') + 1)));
}

// Looks beside the file, then in the two folders above it: examples/train_full/qwen3.yaml is run from the
// folder above examples.
std::string config_beside(const std::string& name, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(file).parent_path();
  for (const fs::path& place :
       {folder / name, folder / ".." / name, folder / ".." / ".." / name, fs::path(name)}) {
    if (is_regular_file((place / "config.json").string()))
      return (place / "config.json").lexically_normal().string();
    if (name.ends_with(".json") && is_regular_file(place.string())) return place.lexically_normal().string();
  }
  return "";
}

bool is_known_name(const std::string& name) {
  return !embedded_name(name).empty() || best_row(same_layers, plain_name(name)) != same_layers.end() ||
         published_config(plain_name(name)) != nullptr;
}

// "17B" says that a model is another than the one without it.
bool is_size(std::string_view word) {
  const std::size_t digits = std::min(word.find_first_not_of("0123456789."), word.size());
  const std::string unit = lower_case(std::string(word.substr(digits)));
  return digits > 0 && (unit == "b" || unit == "m" || unit == "t");
}

bool has_size(std::string_view name) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("-_"), name.size());
    if (is_size(name.substr(0, end))) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

// "671B" of DeepSeek-V3 is its own.
bool is_size_of(const std::string& size, const std::string& name) {
  const std::string ours = embedded_name(name);
  if (ours.empty()) return false;
  const double unit = lower_case(size).back() == 't' ? 1e12 : lower_case(size).back() == 'b' ? 1e9 : 1e6;
  double stated = 0;
  decimal_from_chars(size.data(), size.data() + size.size() - 1, stated);
  constexpr double rounding = 0.1;  // of a size in a name: "8B" has 8.03 billion, "14B" 14.8
  const double all = parameter_count(read_any_model(ours));
  return std::abs(stated * unit - all) <= rounding * all;
}

// The model that a name starts with, up to the end of a word: "DeepSeek-V3" of "DeepSeek-V3-config-verl". Empty: none.
std::string known_start(std::string name) {
  name.erase(0, name.rfind('/') + 1);
  for (std::size_t end = name.find_last_of("-_"); end != std::string::npos && end > 0;
       end = name.find_last_of("-_")) {
    const std::string last = name.substr(end + 1);
    name.resize(end);
    if (is_size(last) && !has_size(name) && !is_size_of(last, name)) return "";
    if (is_known_name(name)) return name;
  }
  return "";
}

// "Qwen2.5-VL-7B-Instruct", "Llama-3.2-11B-Vision", "llava-v1.6-7b", "InternVL2-8B".
bool has_vision(std::string_view name) {
  const std::string plain = lower_case(name.substr(name.find_last_of('/') + 1));
  constexpr std::array<std::string_view, 7> words{"-vl",       "vision",  "llava",    "internvl",
                                                  "minicpm-v", "pixtral", "paligemma"};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return plain.find(word) != std::string::npos; });
}

void name_text_model(const std::string& name, const Written* from, const std::string& file,
                     RunBuilder& builder) {
  if (const std::string config = config_beside(name, file); !config.empty())
    return builder.name_model(config, from);
  if (const std::string of_path = name_in_path(name); !of_path.empty()) {
    if (!is_known_name(of_path) && known_start(of_path).empty()) return builder.name_absent_model(name, from);
    builder.imply(fmt::format("{} has the layers of {} on the hub", printable(name), printable(of_path)),
                  from);
    return name_text_model(of_path, from, file, builder);
  }
  if (const std::string ours = embedded_name(name); !ours.empty()) return builder.name_model(ours, from);
  const std::string plain = plain_name(name);
  const auto alike = best_row(same_layers, plain);
  const PublishedConfig* const sizes = published_config(plain);
  const bool by_sizes =
      sizes != nullptr && (alike == same_layers.end() || sizes->name.size() > alike->name.size());
  if (!by_sizes && alike != same_layers.end()) {
    builder.imply(fmt::format("{} has the layers of {}", printable(name), alike->ours), from);
    return builder.name_model(std::string(alike->ours), from);
  }
  if (!by_sizes) {
    const std::string start = known_start(name);
    if (start.empty()) return builder.name_absent_model(name, from);
    builder.assume(fmt::format("{} is read as {}, with which its name starts", printable(name), start), from);
    return name_text_model(start, from, file, builder);
  }
  builder.imply(
      fmt::format("the sizes of {} are those of {}'s config.json on the hub", printable(name), sizes->name),
      from);
  builder.name_model(std::string(sizes->name), from);
}

}  // namespace

void name_model_of(const std::string& name, const Written* from, const std::string& file,
                   RunBuilder& builder) {
  if (name.empty()) return;
  std::string text = name;
  constexpr std::string_view point = "___";  // of ModelScope's folders: "Qwen2___5-7B"
  for (std::size_t at = text.find(point); at != std::string::npos; at = text.find(point, at))
    text.replace(at, point.size(), ".");
  name_text_model(text, from, file, builder);
  if (has_vision(name) && !builder.so_far().model_name.empty())
    builder.assume("only the language model is counted: the vision tower is left out", from);
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
