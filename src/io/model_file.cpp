#include "headroom/io/model_file.hpp"

#include <utility>

#include <fmt/format.h>

#include "file_formats.hpp"
#include "headroom/io/catalog.hpp"
#include "object_reader.hpp"
#include "object_writer.hpp"

namespace headroom {
namespace {

// Upper limits far beyond any model, low enough that products of a few sizes stay within 64 bits.
constexpr Range widths{1, 1 << 22};
constexpr Range head_counts{1, 1 << 16};
constexpr Range layer_counts{1, most_layers};
constexpr Range token_counts{1, 1 << 28};

constexpr bool is_mask(Dtype dtype) { return dtype == Dtype::boolean || is_floating(dtype); }
constexpr OneOf floating{dtypes_that<is_floating>};
constexpr OneOf mask{dtypes_that<is_mask>};

constexpr auto kernel_fields = [](auto& fields, auto& kernels) {
  fields.optional("attention", kernels.attention);
  fields.optional("softmax", kernels.softmax);
  fields.optional("activation", kernels.activation);
  fields.optional("normalization", kernels.normalization);
  fields.optional("cross_entropy", kernels.cross_entropy);
  fields.optional("qkv", kernels.qkv);
  fields.optional("kv_sharing", kernels.kv_sharing);
  fields.optional("layout", kernels.layout);
  fields.optional("softmax_dtype", kernels.softmax_dtype, floating);
  fields.optional("residual_dtype", kernels.residual_dtype, floating);
  fields.optional("norm_statistics", kernels.norm_statistics, floating);
  fields.optional("dropout_mask", kernels.dropout_mask, mask);
  fields.optional("logits", kernels.logits, floating);
  fields.optional("weight_copies", kernels.weight_copies);
};

constexpr auto model_fields = [](auto& fields, auto& model) {
  auto& architecture = model.architecture;
  fields.format(1);
  fields.required("source", model.source);
  fields.required("hidden", model.hidden, widths);
  fields.required("feedforward", model.feedforward, widths);
  fields.required("heads", model.heads, head_counts);
  fields.optional("key_value_heads", model.key_value_heads, head_counts);
  fields.optional("head_size", model.head_size, widths);
  fields.required("layers", model.layers, layer_counts);
  fields.required("vocabulary", model.vocabulary, token_counts);
  fields.optional("vocabulary_multiple", model.vocabulary_multiple, widths);
  fields.required("sequence", model.sequence, token_counts);
  fields.optional("max_positions", model.max_positions, token_counts);
  fields.optional("activation", architecture.activation);
  fields.optional("normalization", architecture.normalization);
  fields.optional("positions", architecture.positions);
  fields.optional("linear_bias", architecture.linear_bias);
  fields.optional("qkv_bias", architecture.qkv_bias);
  fields.optional("hidden_dropout", architecture.hidden_dropout);
  fields.optional("attention_dropout", architecture.attention_dropout);
  fields.optional("tied_embeddings", architecture.tied_embeddings);
  fields.object("kernels", architecture.kernels, kernel_fields);
};

// Gives the sizes that the file leaves out, and notes what cannot be. A size that is zero was never read, and
// has its problem already.
void resolve(Transformer& model, Document& document) {
  const auto report = [&](const char* field, std::string rule) {
    document.report(JsonPointer() / field, std::move(rule));
  };
  const auto given = [&](const char* field) { return document.root.contains(field); };

  if (!given("key_value_heads")) model.key_value_heads = model.heads;
  if (!given("max_positions")) model.max_positions = model.sequence;
  if (!given("qkv_bias")) model.architecture.qkv_bias = model.architecture.linear_bias;
  if (!given("head_size") && model.hidden > 0 && model.heads > 0) {
    model.head_size = model.hidden / model.heads;
    if (const auto rest = model.hidden % model.heads; rest != 0) {
      report("hidden", fmt::format("must be divisible by heads ({} % {} = {}), unless head_size is given",
                                   model.hidden, model.heads, rest));
    }
  }
  if (model.heads > 0 && model.key_value_heads > 0 && model.heads % model.key_value_heads != 0) {
    report("heads", fmt::format("must be divisible by key_value_heads ({} % {} = {})", model.heads,
                                model.key_value_heads, model.heads % model.key_value_heads));
  }
  if (model.architecture.positions == Positions::rotary && model.head_size % 2 != 0) {
    report("head_size", fmt::format("must be even for rotary positions ({})", model.head_size));
  }
  if (model.architecture.positions == Positions::learned && model.max_positions > 0 &&
      model.max_positions < model.sequence) {
    report("max_positions", fmt::format("must be at least sequence ({} < {}) where positions are learned",
                                        model.max_positions, model.sequence));
  }
}

}  // namespace

Transformer model_of(Document document) {
  constexpr std::int64_t megatron_vocabulary_multiple = 128;
  Transformer model;
  model.name = stem_of(document.file);
  model.vocabulary_multiple = megatron_vocabulary_multiple;
  if (ObjectReader::read(document, JsonPointer(), model, model_fields)) resolve(model, document);
  document.finish();
  model.source += described_overrides(document);
  return model;
}

nlohmann::ordered_json json_of(const Transformer& model) { return ObjectWriter::write(model, model_fields); }

Transformer read_model(const std::string& source, const std::vector<std::string>& overrides) {
  Document document = open_document(source, "model");
  apply_overrides(document, overrides, "set");
  return model_of(std::move(document));
}

Transformer parse_model(std::string_view text, const std::string& file) {
  return model_of(read_document(text, file));
}

std::string write_model(const Transformer& model) { return json_of(model).dump(2) + '\n'; }

std::vector<std::string> model_field_names() { return value_names(json_of(Transformer{})); }

std::vector<Transformer> list_models() {
  std::vector<Transformer> models;
  for (const std::string_view name : embedded_names("model")) {
    const EmbeddedFile* file = find_embedded("model", name);
    models.push_back(parse_model(file->text, std::string(file->path)));
  }
  return models;
}

}  // namespace headroom
