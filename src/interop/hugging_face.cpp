#include "headroom/interop/hugging_face.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/remarks.hpp"
#include "headroom/memory/state.hpp"
#include "interop/hub_model.hpp"
#include "interop/hub_published.hpp"
#include "interop/hub_types.hpp"
#include "io/command_files.hpp"
#include "io/document.hpp"
#include "io/file_formats.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t longest_name = 200;

// The config.json of a folder that has one, or the source as it is.
std::string resolved(const std::string& source) {
  if (kind_of_file(source) != FileKind::folder) return source;
  const std::filesystem::path config = std::filesystem::path(source) / "config.json";
  return kind_of_file(config.string()) != FileKind::none ? config.string() : source;
}

// Also of a part of one that lacks its model type, which is refused for that alone.
bool is_config(const Json& root) {
  if (!root.is_object() || root.contains("format")) return false;
  constexpr std::array<const char*, 8> keys{"model_type", "architectures", "hidden_size", "num_hidden_layers",
                                            "n_embd",     "text_config",   "llm_config",  "language_config"};
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return root.contains(key); });
}

std::string known_types() {
  std::string text;
  for (const HubType& type : hub_types) text += (text.empty() ? "" : ", ") + std::string(type.name);
  return text;
}

// Why a type is not read, and the types with near names.
std::string refusal_of(const std::string& name) {
  const std::string shown = printable(name, longest_name);
  for (const HubRefusal& refusal : hub_refusals) {
    if (name == refusal.name || name == std::string(refusal.name) + "_text")
      return fmt::format("'{}' is not modelled: {}", shown, refusal.because);
  }
  const auto stem = [](std::string_view word) { return word.substr(0, word.find_first_of("_0123456789")); };
  std::vector<std::string_view> all;
  std::vector<std::string_view> near;
  for (const HubType& type : hub_types) {
    all.push_back(type.name);
    if (stem(type.name) == stem(name)) near.push_back(type.name);
  }
  const std::string_view alike = nearest(name, all);
  if (!alike.empty() && !contains(near, alike)) near.push_back(alike);
  return near.empty() ? fmt::format("'{}' is not modelled; these are: {}", shown, known_types())
                      : fmt::format("'{}' is not modelled; these of near names are: {}", shown, joined(near));
}

// "Qwen3-8B" of "models/Qwen3-8B/config.json", else the name of the file.
std::string model_name(const std::string& file) {
  // A text of a question has no folder.
  const bool on_disk = command_files().given(file) == nullptr;
  const std::filesystem::path path = on_disk ? std::filesystem::absolute(file) : std::filesystem::path(file);
  const bool plain = path.filename() == "config.json" && path.has_parent_path();
  return printable(plain ? path.parent_path().filename().string() : path.stem().string(), longest_name);
}

// The key of the part that is a transformer of text, of a model of several kinds of input; null: it is the whole.
const char* text_part(const Json& root) {
  for (const char* const key : {"text_config", "llm_config", "language_config"}) {
    if (root.contains(key) && root[key].is_object()) return key;
  }
  return nullptr;
}

struct Translated {
  Json model;
  std::vector<HubAssumption> assumed;
};

Translated translated(Document& document) {
  const Json& root = document.root;
  const char* const part = text_part(root);
  const bool nested = part != nullptr;
  Json members = nested ? root[part] : root;
  constexpr const char* of_whole = "tie_word_embeddings";  // which the whole model decides
  if (nested && root.contains(of_whole) && !members.contains(of_whole)) members[of_whole] = root[of_whole];
  const JsonPointer at = nested ? JsonPointer() / part : JsonPointer();
  ConfigReader config(document, members, at);
  const bool stated = root.contains("model_type") && root["model_type"].is_string();
  const std::string of_root = stated ? root["model_type"].get<std::string>() + "_text" : "";
  const std::string name = config.has("model_type") ? config.text("model_type", "") : nested ? of_root : "";
  if (name.empty()) {
    document.problems.clear();
    config.report("model_type", "must be there, and say of which type the model is: " + known_types());
    document.finish();
  }
  const auto type = std::find_if(std::begin(hub_types), std::end(hub_types),
                                 [&](const HubType& row) { return row.name == name; });
  const auto is_named = [&](const HubType& row) { return row.name == name + "_text"; };
  if (type == std::end(hub_types) && std::any_of(std::begin(hub_types), std::end(hub_types), is_named)) {
    config.report("text_config",
                  fmt::format("must be an object: it describes the text model of type {}", name));
    document.finish();
  }
  if (type == std::end(hub_types)) {
    config.report("model_type", refusal_of(name));
    document.finish();
  }
  if (nested || root.contains("vision_config"))
    config.assume("",
                  "only the part for text is taken: other towers have no parameters and activations here");
  Json model = model_file_of(config, *type);
  model["format"] = 1;
  model["source"] = fmt::format("{}, model_type {}", printable(document.file, longest_name), name);
  document.finish();
  return {std::move(model), config.assumed()};
}

// Whether both have as many layers of the same sizes, and the same ends.
bool same_shape(const Transformer& x, const Transformer& y) {
  return x.hidden == y.hidden && x.feedforward == y.feedforward && x.heads == y.heads &&
         x.key_value_heads == y.key_value_heads && x.head_size == y.head_size && x.layers == y.layers &&
         x.vocabulary == y.vocabulary && x.mtp_layers == y.mtp_layers &&
         parameter_counts(x) == parameter_counts(y);
}

// The length of training sequences of the embedded model of this shape, if there is one, in place of what is assumed of any: the same
// model trains at the same length by its name and by its config.json.
void take_known_length(Document& document, std::vector<HubAssumption>& assumptions) {
  const auto assumed = std::find_if(assumptions.begin(), assumptions.end(),
                                    [](const HubAssumption& it) { return it.field == "sequence"; });
  if (assumed == assumptions.end()) return;
  const Transformer model = model_of(document);
  for (const std::string_view name : embedded_names("model")) {
    const EmbeddedFile& file = *find_embedded("model", name);
    const Document known = read_document(file.text, std::string(file.path));
    if (known.root["hidden"] != model.hidden) continue;
    const Transformer published = model_of(known);
    if (!same_shape(model, published)) continue;
    document.root["sequence"] = published.sequence;
    assumed->sentence =
        fmt::format("sequence is {}, as {} trains, which has the same layers", published.sequence, name);
    return;
  }
}

// The published sizes of a name that is neither a file nor an embedded model; null: there are none.
const PublishedConfig* published_of(const std::string& source) {
  const bool other = is_file(source, "model") || !meaning_of("model", source).names.empty();
  const PublishedConfig* const published = other ? nullptr : published_config(source);
  if (published == nullptr) return nullptr;
  std::string rest = source.substr(source.rfind('/') + 1).substr(published->name.size());
  std::transform(rest.begin(), rest.end(), rest.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  constexpr std::array<std::string_view, 10> checkpoints{
      "", "-hf", "-base", "-instruct", "-chat", "-it", "-v0.1", "-v1.0", "-deduped", "-instruct-v0.1"};
  return contains(checkpoints, std::string_view(rest)) ? published : nullptr;
}

// Whether KEY=VALUE sets the field.
bool sets(const std::string& override, const std::string& field) {
  return !field.empty() && override.starts_with(field + "=");
}

}  // namespace

ImportedModel import_model(const std::string& source, const std::vector<std::string>& overrides) {
  const PublishedConfig* const published = published_of(source);
  Document document = published != nullptr ? read_document(published->config,
                                                           fmt::format("config.json of {}", published->name))
                                           : open_document(resolved(source), "model");
  ImportedModel imported;
  const bool config = is_config(document.root);
  const std::string file = document.file;
  if (config) {
    auto [model, assumed] = translated(document);
    document.root = std::move(model);
    imported.assumed = std::move(assumed);
    take_known_length(document, imported.assumed);
    std::erase_if(imported.assumed, [&](const HubAssumption& assumption) {
      return std::any_of(overrides.begin(), overrides.end(),
                         [&](const std::string& override) { return sets(override, assumption.field); });
    });
  }
  imported.model = model_with(std::move(document), overrides);
  if (config) imported.model.name = published != nullptr ? std::string(published->name) : model_name(file);
  return imported;
}

std::vector<std::string> remarks_on_model(const std::string& source) {
  if (const PublishedConfig* const published = published_of(source))
    return {fmt::format("{} has the sizes of {}'s config.json on the hub", printable(source, longest_name),
                        published->name)};
  return remarks_on("model", resolved(source));
}

Transformer with_assumptions(ImportedModel imported) {
  for (const HubAssumption& assumption : imported.assumed)
    imported.model.source += "; " + assumption.sentence;
  return std::move(imported.model);
}

Transformer read_any_model(const std::string& source, const std::vector<std::string>& overrides) {
  return with_assumptions(import_model(source, overrides));
}

}  // namespace headroom
