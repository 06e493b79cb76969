#include "headroom/io/model_file.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "file_formats.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "layer_lists.hpp"
#include "model_fields.hpp"
#include "object_reader.hpp"
#include "object_writer.hpp"
#include "schema_writer.hpp"

namespace headroom {
namespace {

constexpr std::int64_t megatron_vocabulary_multiple = 128;

// Gives the sizes that the file leaves out, and notes what cannot be. A size that is zero was never read, and
// has its problem already.
void resolve(Transformer& model, Document& document) {
  const auto report = [&](const char* field, std::string rule) {
    document.report(JsonPointer() / field, std::move(rule));
  };
  const auto given = [&](std::string_view field) { return document.root.contains(field); };

  if (!given("key_value_heads")) model.key_value_heads = model.heads;
  if (!given("max_positions")) model.max_positions = model.sequence;
  if (!given("qkv_bias")) model.architecture.qkv_bias = model.architecture.linear_bias;
  resolve_parts(model, given, JsonPointer(), document);
  resolve_latent_attention(model, given("head_size"), JsonPointer(), document);
  if (!given("head_size") && !model.architecture.latent_attention && model.hidden > 0 && model.heads > 0) {
    model.head_size = model.hidden / model.heads;
    if (const auto rest = model.hidden % model.heads; rest != 0) {
      report("hidden", fmt::format("must be divisible by heads ({} % {} = {}), unless head_size is given",
                                   model.hidden, model.heads, rest));
    }
  }
  check_heads(model, JsonPointer(), document);
  check_choices(model, JsonPointer(), document);
  resolve_experts(model, JsonPointer(), document);
  if (model.architecture.positions == Positions::learned && model.max_positions > 0 &&
      model.max_positions < model.sequence) {
    report("max_positions", fmt::format("must be at least sequence ({} < {}) where positions are learned",
                                        model.max_positions, model.sequence));
  }
}

// All that a layer may have or not.
Architecture with_all_parts() {
  Architecture architecture;
  architecture.experts = Experts{.capacity_factor = 1};
  architecture.latent_attention = LatentAttention{};
  for_each_mixer([&](const auto&, auto member) { (architecture.mixers.*member).emplace(); });
  return architecture;
}

// Whether a model file says which kernel attends, for all layers or for some kind.
bool states_attention(const Json& root, const LayerLists& lists) {
  const auto states = [](const Json& layer) {
    return layer.is_object() && layer.contains("kernels") && layer["kernels"].is_object() &&
           layer["kernels"].contains("attention");
  };
  if (states(root)) return true;
  return lists.kinds && std::any_of(lists.kinds->begin(), lists.kinds->end(), states);
}

}  // namespace

Transformer model_of(Document document) {
  Transformer model;
  model.name = stem_of(document.file);
  model.vocabulary_multiple = megatron_vocabulary_multiple;
  const LayerLists lists = taken_lists(document);
  model.attention_kernel.stated = states_attention(document.root, lists);
  if (ObjectReader::read(document, JsonPointer(), model, model_fields)) {
    resolve(model, document);
    read_layer_lists(document, lists, model);
  }
  document.finish();
  model.source += described_overrides(document);
  return model;
}

nlohmann::ordered_json json_of(const Transformer& model) {
  nlohmann::ordered_json json = ObjectWriter::write(model, model_fields);
  write_layer_lists(model, json);
  return json;
}

nlohmann::ordered_json model_schema() {
  nlohmann::ordered_json schema = SchemaWriter::write(Transformer{}, model_fields);
  nlohmann::ordered_json& fields = schema["properties"];
  fields["vocabulary_multiple"]["default"] = megatron_vocabulary_multiple;
  fields["qkv_bias"].erase("default");  // linear_bias
  add_layer_lists(schema);
  return schema;
}

Transformer read_model(const std::string& source, const std::vector<std::string>& overrides) {
  return model_with(open_document(source, "model"), overrides);
}

Transformer model_with(Document document, const std::vector<std::string>& overrides) {
  Json runs;  // where layers are of several kinds: `layers` may be set to another number of them
  if (document.root.is_object() && document.root.contains("layers")) runs = document.root["layers"];
  apply_overrides(document, overrides_for_kinds(document, overrides, "set"), "set");
  if (!runs.is_array() || !document.root["layers"].is_number_integer()) return model_of(std::move(document));
  const auto layers = document.root["layers"].get<std::int64_t>();
  if (layers < layer_counts.least || layers > layer_counts.most) {
    document.report(JsonPointer("/layers"), fmt::format("must be an integer from {} to {} (found {})",
                                                        layer_counts.least, layer_counts.most, layers));
  }
  document.root["layers"] = std::move(runs);
  return with_layers(model_of(std::move(document)), layers);
}

Transformer parse_model(std::string_view text, const std::string& file) {
  return model_of(read_document(text, file));
}

std::string write_model(const Transformer& model) { return json_of(model).dump(2) + '\n'; }

std::vector<std::string> model_field_names() {
  Transformer model;
  model.architecture = with_all_parts();
  return value_names(json_of(model));
}

bool is_field_of_kind(std::string_view name) {
  constexpr std::string_view start = "layer_kinds.";
  if (!name.starts_with(start)) return false;
  const std::size_t dot = name.find('.', start.size());
  if (dot == std::string_view::npos || dot == start.size()) return false;
  LayerDescription layer;
  layer.architecture = with_all_parts();
  return contains(value_names(ObjectWriter::write(layer, layer_fields)), std::string(name.substr(dot + 1)));
}

std::vector<Transformer> list_models() {
  std::vector<Transformer> models;
  for (const std::string_view name : embedded_names("model")) {
    const EmbeddedFile* file = find_embedded("model", name);
    models.push_back(parse_model(file->text, std::string(file->path)));
  }
  return models;
}

}  // namespace headroom
