#include "report/sample_rows.hpp"

#include "headroom/report/table.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// Products and attention are measured under either; of other kernels a load is that of a training step.
bool has_load(const Sample& sample) {
  return sample.kind == SampleKind::matrix_product || sample.kind == SampleKind::attention ||
         sample.load == Load::sustained;
}

std::string keys_text(const Attention& attention) { return fmt::format(" of {:.0f} keys", attention.keys); }

}  // namespace

std::string size_of_sample(const Sample& sample) {
  const Gemm& product = sample.product;
  if (sample.kind == SampleKind::matrix_product) {
    const std::string batch = product.batch > 1 ? fmt::format("{} x ", product.batch) : "";
    return fmt::format("{}{} x {} x {}", batch, product.rows, product.columns, product.inner);
  }
  if (sample.kind == SampleKind::attention) {
    const Attention& it = sample.attention;
    const std::string heads = it.value_size == it.head_size
                                  ? std::to_string(it.head_size)
                                  : fmt::format("{}/{}", it.head_size, it.value_size);
    return fmt::format("{} x {} tokens, {} heads of {}, {} kv, {}{}", it.batch, it.queries, it.heads, heads,
                       it.kv_heads, name_of(it.mask), it.mask == Mask::window ? keys_text(it) : "");
  }
  if (sample.kind == SampleKind::expert_block) {
    const ExpertBlock& it = sample.expert_block;
    return fmt::format("{} tokens to {} of {} experts of {} x {}, tensor {}, expert {}", it.tokens, it.top_k,
                       it.experts, it.hidden, it.feedforward, it.tensor_parallel, it.expert_parallel);
  }
  if (sample.kind == SampleKind::transformer_layer) {
    const MeasuredLayer& layer = sample.layer;
    return fmt::format("h {}, {} x {} tokens, tensor {}, {}, recompute {}", layer.hidden, layer.micro_batch,
                       layer.sequence, layer.tensor_parallel, name_of(layer.pass), name_of(layer.recompute));
  }
  if (sample.ranks > 0) return fmt::format("{} over {} ranks", human(sample.bytes), sample.ranks);
  return sample.bytes > Bytes() ? human(sample.bytes) : "";
}

std::string kind_of_sample(const Sample& sample) {
  std::string text(name_of(sample.kind));
  if (!sample.label.empty()) text += " " + sample.label;
  if (sample.kind == SampleKind::attention) {
    if (is_narrow(sample.dtype)) text += fmt::format(" {}", name_of(sample.dtype));
    text += fmt::format(" {}", name_of(sample.attention_pass));
  }
  if (sample.kind == SampleKind::expert_block && is_narrow(sample.dtype))
    text += fmt::format(" {}", name_of(sample.dtype));
  if (sample.load == Load::sustained) text += " (sustained)";
  return text;
}

OrderedJson json_of(const ReplayedSample& row) {
  const Sample& sample = row.sample;
  OrderedJson json{{"kind", name_of(sample.kind)}};
  if (!sample.label.empty()) json["label"] = sample.label;
  if (sample.kind == SampleKind::matrix_product) {
    json["batch"] = sample.product.batch;
    json["m"] = sample.product.rows;
    json["n"] = sample.product.columns;
    json["k"] = sample.product.inner;
  }
  if (sample.kind == SampleKind::attention) {
    const Attention& it = sample.attention;
    json["pass"] = name_of(sample.attention_pass);
    json["batch"] = it.batch;
    json["query_heads"] = it.heads;
    json["kv_heads"] = it.kv_heads;
    json["head_size"] = it.head_size;
    json["value_size"] = it.value_size;
    json["sequence"] = it.queries;
    json["mask"] = name_of(it.mask);
    json["keys_met"] = it.keys;
    json["dtype"] = name_of(it.dtype);
  }
  if (sample.kind == SampleKind::expert_block) {
    const ExpertBlock& it = sample.expert_block;
    json["tokens"] = it.tokens;
    json["hidden"] = it.hidden;
    json["expert_feedforward"] = it.feedforward;
    json["top_k"] = it.top_k;
    json["experts"] = it.experts;
    json["tensor_parallel"] = it.tensor_parallel;
    json["expert_parallel"] = it.expert_parallel;
    json["dtype"] = name_of(it.dtype);
  }
  if (has_load(sample)) json["load"] = name_of(sample.load);
  if (sample.half_format != HalfFormat::unnamed) json["half_format"] = name_of(sample.half_format);
  if (sample.ranks > 0) json["ranks"] = sample.ranks;
  if (sample.nodes > 1) json["nodes"] = sample.nodes;
  if (sample.bytes > Bytes()) json["bytes"] = number(sample.bytes);
  json["measured_seconds"] = sample.median.count();
  json["predicted_seconds"] = row.predicted.count();
  json["error_percent"] = 100 * row.error;
  json["extrapolated"] = row.extrapolated;
  json["in_interval"] = row.in_interval ? OrderedJson(*row.in_interval) : OrderedJson();
  return json;
}

std::string csv_of(const SampleReplay& replay) {
  Table table{.columns = {{"kind"},
                          {"label"},
                          {"load"},
                          {"half_format"},
                          {"batch"},
                          {"m"},
                          {"n"},
                          {"k"},
                          {"ranks"},
                          {"nodes"},
                          {"bytes"},
                          {"predicted_seconds"},
                          {"measured_seconds"},
                          {"error_percent"},
                          {"extrapolated"},
                          {"pass"},
                          {"mask"},
                          {"sequence"},
                          {"query_heads"},
                          {"kv_heads"},
                          {"head_size"},
                          {"value_size"},
                          {"tokens"},
                          {"hidden"},
                          {"expert_feedforward"},
                          {"top_k"},
                          {"experts"},
                          {"tensor_parallel"},
                          {"expert_parallel"},
                          {"dtype"}}};
  for (const ReplayedSample& row : replay.rows) {
    const Sample& sample = row.sample;
    const bool product = sample.kind == SampleKind::matrix_product;
    const bool attention = sample.kind == SampleKind::attention;
    const auto of_attention = [&](std::int64_t size) {
      return attention ? std::to_string(size) : std::string();
    };
    const bool experts = sample.kind == SampleKind::expert_block;
    const auto of_experts = [&](std::int64_t size) { return experts ? std::to_string(size) : std::string(); };
    const auto of_product = [&](std::int64_t size) { return product ? std::to_string(size) : std::string(); };
    table.rows.push_back(
        {std::string(name_of(sample.kind)),
         sample.label,
         has_load(sample) ? std::string(name_of(sample.load)) : "",
         sample.half_format != HalfFormat::unnamed ? std::string(name_of(sample.half_format)) : "",
         attention ? of_attention(sample.attention.batch) : of_product(sample.product.batch),
         of_product(sample.product.rows),
         of_product(sample.product.columns),
         of_product(sample.product.inner),
         sample.ranks > 0 ? std::to_string(sample.ranks) : "",
         sample.ranks > 0 ? std::to_string(sample.nodes) : "",
         sample.bytes > Bytes() ? whole(sample.bytes.count()) : "",
         fmt::format("{:.9g}", row.predicted.count()),
         fmt::format("{:.9g}", sample.median.count()),
         fmt::format("{:.3f}", 100 * row.error),
         row.extrapolated ? "true" : "false",
         attention ? std::string(name_of(sample.attention_pass)) : "",
         attention ? std::string(name_of(sample.attention.mask)) : "",
         of_attention(sample.attention.queries),
         of_attention(sample.attention.heads),
         of_attention(sample.attention.kv_heads),
         of_attention(sample.attention.head_size),
         of_attention(sample.attention.value_size),
         of_experts(sample.expert_block.tokens),
         of_experts(sample.expert_block.hidden),
         of_experts(sample.expert_block.feedforward),
         of_experts(sample.expert_block.top_k),
         of_experts(sample.expert_block.experts),
         of_experts(sample.expert_block.tensor_parallel),
         of_experts(sample.expert_block.expert_parallel),
         std::string(name_of(sample.dtype))});
  }
  return to_csv(table);
}

}  // namespace headroom
