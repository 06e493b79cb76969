#include "headroom/io/software_file.hpp"

#include <algorithm>
#include <utility>

#include "file_formats.hpp"
#include "headroom/core/dtype.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/io/catalog.hpp"
#include "object_reader.hpp"
#include "object_writer.hpp"
#include "schema_writer.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr auto sourced_choice_fields = [](auto& fields, auto& it) {
  fields.required("value", it.value);
  fields.required("origin", it.origin);
  fields.required("source", it.source);
};

constexpr auto memory_fields = [](auto& fields, auto& memory) {
  fields.required("backward_buffers", memory.backward_buffers);
  fields.required("dummy_gradients", memory.dummy_gradients);
  fields.optional("holds_logits", memory.holds_logits);
  fields.optional("fp32_logits", memory.fp32_logits);
  fields.optional("expandable_segments", memory.expandable_segments);
  fields.optional("logs_reserved", memory.logs_reserved);
  fields.optional("workspaces", memory.workspaces);
  fields.optional("expert_workspaces", memory.expert_workspaces);
  fields.optional("flat_gradients", memory.flat_gradients);
  fields.optional("widens_state", memory.widens_state);
  fields.optional("keeps_half_gradients", memory.keeps_half_gradients);
  fields.optional("frees_gradients", memory.frees_gradients);
  fields.optional("steps_in_backward", memory.steps_in_backward);
  fields.optional("fp32_embedding_moments", memory.fp32_embedding_moments);
  fields.optional("keeps_outputs", memory.keeps_outputs);
  fields.optional("keeps_logits", memory.keeps_logits);
  fields.optional("copies_context", memory.copies_context);
  fields.optional("keeps_views", memory.keeps_views);
  fields.optional("keeps_quantized_inputs", memory.keeps_quantized_inputs);
  fields.optional("quantizes_output_layer", memory.quantizes_output_layer);
  fields.optional("dequantizes_through_fp16", memory.dequantizes_through_fp16);
  fields.optional("pads_adapters", memory.pads_adapters);
  fields.optional("cuda_context", memory.cuda_context);
  fields.required("source", memory.source);
};

constexpr auto sharding_fields = [](auto& fields, auto& sharding) {
  fields.optional_names("modes", sharding.modes);
  fields.optional("with_pipeline", sharding.with_pipeline);
  fields.optional("weights", sharding.weights);
  fields.optional("reduction_buffer", sharding.reduction_buffer);
  fields.optional("copies_units", sharding.copies_units);
  fields.optional("copies_gradients", sharding.copies_gradients);
  fields.optional("autocast", sharding.autocast);
  fields.optional("ends_in_root", sharding.ends_in_root);
  fields.optional("sums_before_reduction", sharding.sums_before_reduction);
  fields.optional("flat_parameters", sharding.flat_parameters);
  fields.optional("prefetches_units", sharding.prefetches_units);
  fields.optional("sync_each_batch", sharding.sync_each_batch);
  fields.optional("plain_alone", sharding.plain_alone);
  fields.required("source", sharding.source);
};

constexpr auto choice_source_fields = [](auto& fields, auto& sources) {
  for (std::size_t i = 0; i < stack_choices.size(); ++i) fields.required(stack_choices[i], sources[i]);
};

constexpr Range bucket_sizes{1, std::int64_t{1} << 40};
constexpr Range bucket_growths{0, std::int64_t{1} << 30};

constexpr auto software_fields = [](auto& fields, auto& software) {
  fields.format(1);
  fields.required("source", software.source);
  fields.optional_texts("runs_of", software.runs_of);
  fields.object("sources", software.sources, choice_source_fields);
  fields.required("overlap_tensor_parallel", software.overlap_tensor_parallel);
  fields.optional("copies_sequence_shards", software.copies_sequence_shards);
  fields.required("overlap_grad_reduce", software.overlap_grad_reduce);
  fields.required("overlap_param_gather", software.overlap_param_gather);
  fields.required("overlap_p2p", software.overlap_p2p);
  fields.optional("overlap_expert_all_to_all", software.overlap_expert_all_to_all);
  fields.optional("delay_weight_gradients", software.delay_weight_gradients);
  fields.optional("overlap_shared_experts", software.overlap_shared_experts);
  fields.required("bucket_parameters", software.bucket_parameters, bucket_sizes);
  fields.required("bucket_parameters_per_replica", software.bucket_parameters_per_replica, bucket_growths);
  fields.required("gradient_accumulation", software.gradient_accumulation);
  fields.required("norm_backward", software.norm_backward);
  fields.optional("norm_kernel", software.norm_kernel);
  fields.optional("activation_kernel", software.activation_kernel);
  fields.optional("clamp_kernel", software.clamp_kernel);
  fields.optional("expert_bias_kernel", software.expert_bias_kernel);
  fields.optional("rotary_kernel", software.rotary_kernel);
  fields.optional("scaled_rotary_kernel", software.scaled_rotary_kernel);
  fields.optional("qkv_linear", software.qkv_linear);
  fields.optional("kv_sharing", software.kv_sharing);
  fields.optional("softmax_dtype", software.softmax_dtype, OneOf{dtypes_that<is_floating>});
  fields.optional("cross_entropy", software.cross_entropy);
  fields.optional("compiles_loss", software.compiles_loss);
  fields.optional("embedding_parallel", software.vocabulary.embedding);
  fields.optional("loss_parallel", software.vocabulary.loss);
  fields.required("gradient_reduction", software.gradient_reduction);
  fields.optional("uneven_stages", software.uneven_stages);
  fields.optional("microbatch_groups", software.microbatch_groups);
  fields.optional_names("recompute", software.recompute);
  fields.optional("recompute_layers", software.recompute_layers);
  fields.required("serial_transfers", software.serial_transfers);
  fields.required("blocking_launches", software.blocking_launches);
  fields.optional("launches", software.launches);
  fields.optional("cuda_graphs", software.cuda_graphs);
  fields.optional_names("cuda_graph_modules", software.cuda_graph_modules);
  fields.optional("attention_kernel", software.attention_kernel);
  fields.optional("attention_kernels", software.attention_kernels);
  fields.optional("optimizer", software.optimizer.kind);
  fields.optional("main_params_dtype", software.optimizer.main_params);
  fields.optional("exp_avg_dtype", software.optimizer.exp_avg);
  fields.optional("exp_avg_sq_dtype", software.optimizer.exp_avg_sq);
  fields.optional("gradient_dtype", software.gradient_dtype, OneOf{dtypes_that<is_floating>});
  fields.required_object("product_rate", software.product_rate, sourced_choice_fields);
  fields.object("expert_products", software.expert_products, sourced_choice_fields);
  fields.object("expert_weighting", software.expert_weighting, sourced_choice_fields);
  fields.object("expert_routing", software.expert_routing, sourced_choice_fields);
  fields.optional_names("fp8_parts", software.fp8_parts);
  fields.object("memory", software.memory, memory_fields);
  fields.object("sharding", software.sharding, sharding_fields);
  fields.optional_names("axes", software.axes);
  fields.optional_names("schedules", software.schedules);
  fields.optional_names("cp_comm", software.cp_comm);
  fields.optional_names("moe_dispatchers", software.moe_dispatchers);
  fields.optional_names("precisions", software.precisions);
  fields.optional_names("cuda_graph_kinds", software.cuda_graph_kinds);
  fields.optional("sequence_parallel", software.sequence_parallel);
  fields.optional("optimizer_dtypes", software.optimizer_dtypes);
  fields.optional("released", software.released);
  fields.optional_names("searches", software.searches);
  fields.optional_names("offloads", software.offloads);
  fields.optional("post_validation", software.post_validation);
  fields.optional("launcher", software.launcher);
};

}  // namespace

Software software_of(Document document) {
  Software software;
  software.name = stem_of(document.file);
  ObjectReader::read(document, JsonPointer(), software, software_fields);
  document.finish();
  software.source += described_overrides(document);
  return software;
}

nlohmann::ordered_json json_of(const Software& software) {
  return ObjectWriter::write(software, software_fields);
}

nlohmann::ordered_json software_schema() { return SchemaWriter::write(Software{}, software_fields); }

Software read_software(const std::string& source, const std::vector<std::string>& overrides) {
  const std::optional<NamedRelease> release = find_release(source);
  Document document =
      release ? document_of(release->family, release->place) : open_document(source, "software");
  apply_overrides(document, overrides, "set_software");
  Software software = software_of(std::move(document));
  if (release) software.name = name_of(release->family, release->place);
  return software;
}

Software parse_software(std::string_view text, const std::string& file) {
  return software_of(read_document(text, file));
}

std::string write_software(const Software& software) { return json_of(software).dump(2) + '\n'; }

std::vector<std::string> software_field_names() { return value_names(json_of(Software{})); }

std::vector<Software> list_software() {
  std::vector<Software> all;
  for (const std::string_view name : embedded_names("software")) {
    const EmbeddedFile* file = find_embedded("software", name);
    all.push_back(parse_software(file->text, std::string(file->path)));
  }
  return all;
}

std::optional<std::string> stack_of_runs(const std::vector<Software>& stacks, std::string_view software) {
  for (const Software& stack : stacks) {
    const bool meant = std::any_of(stack.runs_of.begin(), stack.runs_of.end(),
                                   [&](const std::string& words) { return has_words(software, words); });
    if (meant) return stack.name;
  }
  return std::nullopt;
}

}  // namespace headroom
