#include "headroom/io/samples_file.hpp"

#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "attention_sample.hpp"
#include "document.hpp"
#include "expert_sample.hpp"
#include "file_formats.hpp"
#include "nccl_tests.hpp"
#include "object_reader.hpp"
#include "sample_csv.hpp"
#include "sample_text.hpp"
#include "schema_writer.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr Range sides{1, 1 << 28};
constexpr Range result_sizes{1, 16};
constexpr Range rank_counts{2, 1 << 16};
constexpr Range byte_counts{1, std::int64_t{1} << 50};
constexpr OneOf half_formats{HalfFormat::fp16, HalfFormat::bf16};
constexpr OneOf layer_policies{RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full};

// A sample as it is written: what its kind does not need is left out.
struct Written {
  Sample sample;
  std::optional<std::int64_t> m, n, k, ranks, bytes;
  std::optional<std::int64_t> sequence, micro_batch, hidden, heads, tensor_parallel, stored, peak;
  std::optional<std::int64_t> query_heads, kv_heads, head_size, value_size, window;
  std::optional<std::int64_t> tokens, expert_feedforward, top_k, experts, expert_parallel;
  std::optional<bool> causal;
  std::optional<RecomputePolicy> recompute;
  std::optional<LayerPass> pass;
  std::optional<double> flops;
  double seconds = 1;
  // For whoever reads the file: nothing is computed from how often a sample was repeated and the device's state.
  std::optional<std::int64_t> repeats;
  std::optional<double> sm_clock, least_sm_clock, power, temperature;
};

constexpr auto sample_fields = [](auto& fields, auto& it) {
  fields.required("kind", it.sample.kind);
  fields.optional("label", it.sample.label);
  fields.optional("m", it.m, sides);
  fields.optional("n", it.n, sides);
  fields.optional("k", it.k, sides);
  fields.optional("batch", it.sample.product.batch, sides);
  fields.optional("result_bytes", it.sample.product.result_bytes, result_sizes);
  fields.optional("ranks", it.ranks, rank_counts);
  fields.optional("nodes", it.sample.nodes, Range{1, rank_counts.most});
  fields.optional("sequence", it.sequence, sides);
  fields.optional("micro_batch", it.micro_batch, sides);
  fields.optional("hidden", it.hidden, sides);
  fields.optional("heads", it.heads, sides);
  fields.optional("tensor_parallel", it.tensor_parallel, Range{1, rank_counts.most});
  fields.optional("query_heads", it.query_heads, sides);
  fields.optional("kv_heads", it.kv_heads, sides);
  fields.optional("head_size", it.head_size, sides);
  fields.optional("value_size", it.value_size, sides);
  fields.optional("causal", it.causal);
  fields.optional("window", it.window, sides);
  fields.optional("tokens", it.tokens, sides);
  fields.optional("expert_feedforward", it.expert_feedforward, sides);
  fields.optional("top_k", it.top_k, sides);
  fields.optional("experts", it.experts, sides);
  fields.optional("expert_parallel", it.expert_parallel, sides);
  fields.optional("recompute", it.recompute, layer_policies);
  fields.optional("pass", it.pass);
  fields.optional("stored_bytes", it.stored, byte_counts);
  fields.optional("peak_bytes", it.peak, byte_counts);
  fields.optional("dtype", it.sample.dtype);
  fields.optional("quantizes", it.sample.quantizes);
  fields.optional("half_format", it.sample.half_format, half_formats);
  fields.optional("load", it.sample.load);
  fields.optional("bytes", it.bytes, byte_counts);
  fields.optional("flops", it.flops);
  fields.required("median_seconds", it.seconds);
  fields.optional("spread", it.sample.spread);
  fields.optional("repeats", it.repeats, sides);
  fields.optional("sm_clock_mhz", it.sm_clock);
  fields.optional("least_sm_clock_mhz", it.least_sm_clock);
  fields.optional("power_watts", it.power);
  fields.optional("temperature_celsius", it.temperature);
};

struct Heading {
  SampleSet set;
  std::string driver, cuda, cublas, nccl, clocks, date;
};

// The list of samples is read by hand, since it may be longer than lists of other files.
constexpr auto file_fields = [](auto& fields, auto& it) {
  fields.format(1);
  fields.required("device", it.set.device);
  fields.optional("driver", it.driver);
  fields.optional("cuda", it.cuda);
  fields.optional("cublas", it.cublas);
  fields.optional("nccl", it.nccl);
  fields.optional("clocks", it.clocks);
  fields.optional("date", it.date);
};

std::string environment_of(const Heading& heading) {
  std::string text;
  const auto add = [&](const char* what, const std::string& version) {
    if (!version.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, version);
  };
  add("driver", heading.driver);
  add("CUDA", heading.cuda);
  add("cuBLAS", heading.cublas);
  add("NCCL", heading.nccl);
  return text;
}

// What a kind needs, and that what is given twice agrees.
void complete(Written& written, const JsonPointer& at, Document& document) {
  Sample& sample = written.sample;
  const auto take = [&](const char* key, const auto& given, auto& kept, bool needed) {
    using Kept = std::remove_reference_t<decltype(kept)>;
    if (given) {
      if constexpr (std::is_same_v<Kept, Bytes>) {
        kept = Bytes(static_cast<double>(*given));
      } else {
        kept = *given;
      }
    } else if (needed && !document.root.contains(at / key)) {
      document.report(at / key, fmt::format("is missing, which {} needs", name_of(sample.kind)));
    }
  };
  const bool product = sample.kind == SampleKind::matrix_product;
  const bool layer = sample.kind == SampleKind::transformer_layer;
  const bool between_ranks = is_collective(sample.kind) || sample.kind == SampleKind::all_to_all ||
                             sample.kind == SampleKind::send_receive;
  if (product && arithmetic_of(sample.dtype) == Arithmetic::none)
    document.report(at / "dtype", fmt::format("must be a type that products are computed in (found {})",
                                              name_of(sample.dtype)));
  if (sample.quantizes && (!product || !narrow_index(sample.dtype)))
    document.report(at / "quantizes",
                    "is of products whose dtype has rates of its own: fp8, fp8_blockwise, "
                    "mxfp8, nvfp4");
  if (product) sample.product.dtype = sample.dtype;
  take("m", written.m, sample.product.rows, product);
  take("n", written.n, sample.product.columns, product);
  take("k", written.k, sample.product.inner, product);
  const bool attention = sample.kind == SampleKind::attention;
  if (attention) {
    take("query_heads", written.query_heads, sample.attention.heads, true);
    take("head_size", written.head_size, sample.attention.head_size, true);
    take("sequence", written.sequence, sample.attention.queries, true);
    sample.attention.batch = sample.product.batch;
    sample.attention.kv_heads = written.kv_heads.value_or(sample.attention.heads);
    sample.attention.value_size = written.value_size.value_or(sample.attention.head_size);
    sample.attention.dtype = sample.dtype;
    const bool masked = set_mask(sample.attention, written.causal.value_or(true), written.window.value_or(0));
    if (!masked) document.report(at / "window", "is of causal attention");
    if (const auto rule = refused(sample.attention)) document.report(at, *rule);
    if (written.pass == LayerPass::backward) sample.attention_pass = AttentionPass::backward;
  }
  if (sample.kind == SampleKind::expert_block) {
    ExpertBlock& block = sample.expert_block;
    take("tokens", written.tokens, block.tokens, true);
    take("hidden", written.hidden, block.hidden, true);
    take("expert_feedforward", written.expert_feedforward, block.feedforward, true);
    take("top_k", written.top_k, block.top_k, true);
    take("experts", written.experts, block.experts, true);
    take("tensor_parallel", written.tensor_parallel, block.tensor_parallel, false);
    take("expert_parallel", written.expert_parallel, block.expert_parallel, false);
    block.dtype = sample.dtype;
    if (const auto rule = refused(block)) document.report(at, *rule);
  }
  take("sequence", written.sequence, sample.layer.sequence, layer);
  take("micro_batch", written.micro_batch, sample.layer.micro_batch, layer);
  if (layer) take("hidden", written.hidden, sample.layer.hidden, true);
  take("heads", written.heads, sample.layer.heads, layer);
  if (layer) take("tensor_parallel", written.tensor_parallel, sample.layer.tensor_parallel, true);
  take("recompute", written.recompute, sample.layer.recompute, layer);
  take("pass", written.pass, sample.layer.pass, layer);
  take("stored_bytes", written.stored, sample.layer.stored, layer);
  take("peak_bytes", written.peak, sample.layer.peak, layer);
  take("ranks", written.ranks, sample.ranks, between_ranks);
  take("bytes", written.bytes, sample.bytes, between_ranks || sample.kind == SampleKind::streaming);
  if (sample.nodes > 1 && (sample.ranks == 0 || sample.ranks % sample.nodes != 0)) {
    document.report(at / "nodes", fmt::format("must divide ranks (found {} nodes and {} ranks)", sample.nodes,
                                              sample.ranks));
  }
  if (layer && written.ranks && written.tensor_parallel && *written.ranks != *written.tensor_parallel) {
    document.report(at / "ranks", fmt::format("must be tensor_parallel in a layer with its collectives "
                                              "(found {} and {})",
                                              *written.ranks, *written.tensor_parallel));
  }
  constexpr double same = 1e-6;
  if (product && written.m && written.n && written.k && written.flops) {
    const double counted = flops(sample.product).count();
    if (std::abs(*written.flops / counted - 1) > same) {
      document.report(at / "flops",
                      fmt::format("must be 2 m n k batch = {:.0f} (found {:.0f})", counted, *written.flops));
    }
  }
  sample.median = Seconds(written.seconds);
  sample.where = at.to_string();
}

SampleSet parse_sample_json(std::string_view text, const std::string& file) {
  Document document = read_document(text, file, most_samples);
  if (!document.root.is_object()) throw InputError(file, "must be an object with \"device\" and \"samples\"");
  Json list = Json::array();
  if (!document.root.contains("samples")) {
    document.report(JsonPointer("/samples"), "is missing");
  } else if (!document.root["samples"].is_array()) {
    document.report(JsonPointer("/samples"), "must be a list");
    document.root.erase("samples");
  } else {
    list = document.root["samples"];
    document.root.erase("samples");
  }
  Heading heading;
  ObjectReader::read(document, JsonPointer(), heading, file_fields);
  heading.set.file = file;
  heading.set.environment = environment_of(heading);

  document.root["samples"] = std::move(list);
  for (std::size_t i = 0; i < document.root["samples"].size(); ++i) {
    const JsonPointer at = JsonPointer("/samples") / i;
    Written written;
    ObjectReader::read(document, at, written, sample_fields);
    complete(written, at, document);
    heading.set.samples.push_back(std::move(written.sample));
  }
  document.finish();
  return std::move(heading.set);
}

}  // namespace

nlohmann::ordered_json samples_schema() {
  using Schema = nlohmann::ordered_json;
  Schema schema = SchemaWriter::write(Heading{}, file_fields);
  Schema items = SchemaWriter::write(Written{}, sample_fields);
  items["allOf"] = Schema::array();
  for (const auto& [kind, name] : spellings<SampleKind>) {  // what one that says no more lacks
    Document document{
        .file = "", .root = Json::object(), .overridden = {}, .overrides = {}, .origins = {}, .problems = {}};
    Written written;
    written.sample.kind = kind;
    complete(written, JsonPointer(), document);
    Schema needed = Schema::array();
    for (const Problem& problem : document.problems) {
      if (problem.rule.starts_with("is missing"))
        needed.push_back(problem.where.substr(problem.where.rfind('/') + 1));
    }
    if (needed.empty()) continue;
    items["allOf"].push_back({{"if", {{"properties", {{"kind", {{"const", name}}}}}}},
                              {"then", {{"required", std::move(needed)}}}});
  }
  schema["required"].push_back("samples");
  schema["properties"]["samples"] = {
      {"type", "array"}, {"minItems", 1}, {"maxItems", most_samples}, {"items", std::move(items)}};
  return schema;
}

SampleSet parse_samples(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError(file, "is empty");
  SampleSet set;
  if (text[first] == '{' || text[first] == '[') {
    set = parse_sample_json(text, file);
  } else if (is_nccl_tests(text)) {
    set = parse_nccl_tests(text, file);
  } else if (is_sample_csv(text)) {
    set = parse_sample_csv(text, file);
  } else {
    throw InputError(
        file,
        "is no samples file: JSON of headroom-measure, CSV with a header such as m,n,k,milliseconds, or "
        "the output of nccl-tests");
  }
  if (set.samples.empty()) throw InputError(file, "holds no samples");
  return set;
}

SampleSet read_samples(const std::string& path) { return parse_samples(read_file(path), path); }

}  // namespace headroom
