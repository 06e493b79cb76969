#include "headroom/io/runs_file.hpp"

#include <array>
#include <iterator>
#include <utility>

#include "document.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "object_reader.hpp"
#include "settings_fields.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr Range sizes{1, 1 << 28};
constexpr Range run_counts{1, 1 << 22};
constexpr Range stages{0, 3};
constexpr std::int64_t most_predictors = 64;

// What a run says in words, in figures that other members give, or that no prediction depends on.
constexpr std::string_view described[] = {"/quality",
                                          "/complete",
                                          "/complete_strict",
                                          "/where",
                                          "/filled",
                                          "/gpus_per_node",
                                          "/interconnect",
                                          "/software",
                                          "/tflops_convention",
                                          "/timing_note",
                                          "/tokens_rounded",
                                          "/num_gpus",
                                          "/peak_reserved_gib",
                                          "/recompute_detail",
                                          "/cuda_graphs",
                                          "/attention_backend",
                                          "/model/name",
                                          "/model/params_b",
                                          "/model/moe/note",
                                          "/model/moe/attention",
                                          "/model/moe/shared_experts",
                                          "/moe_run/forced_balance",
                                          "/moe_run/grouped_gemm",
                                          "/moe_run/paged_stash",
                                          "/parallel/layout",
                                          "/parallel/nvlink_domain",
                                          "/parallel/fsdp_double_buffer",
                                          "/overlap_flags/param_gather_with_optimizer_step",
                                          "/overlap_flags/tp_comm_config",
                                          "/overlap_flags/batch_p2p",
                                          "/overlap_flags/delay_wgrad",
                                          "/overlap_flags/shared_expert",
                                          "/overlap_flags/defer_embedding_wgrad",
                                          "/precision/fp8_format",
                                          "/precision/fp4_format",
                                          "/optimizer/name",
                                          "/optimizer/precision_aware",
                                          "/optimizer/main_grads",
                                          "/source/url",
                                          "/batch/num_microbatches",
                                          "/derived/how",
                                          "/derived/tokens_per_s_per_gpu",
                                          "/derived/model_tflops_per_gpu",
                                          "/derived/samples_per_gpu_per_s_reported",
                                          "/measured/tokens_per_s_per_gpu",
                                          "/measured/tflops_per_gpu",
                                          "/measured/mfu_pct",
                                          "/measured/hfu_pct"};

// Members of which a run that has one cannot be predicted yet. A line goes when its feature comes. Not had is what is
// left out, null, false, 0, "none", or a list of such; with `text` only what holds it counts.
struct UnmodelledMember {
  std::string_view path;
  std::string_view what;
  std::string_view text = {};
};

constexpr std::array unmodelled_members{
    UnmodelledMember{"/model/moe/latent", "experts behind a latent projection"},
    UnmodelledMember{"/model/mamba", "Mamba layers"},
    UnmodelledMember{"/model/hybrid_pattern", "Mamba layers"},
    UnmodelledMember{"/precision/bf16_layers", "some layers in BF16 among others"},
    UnmodelledMember{"/precision/fp8_attention", "FP8 attention"},
    UnmodelledMember{"/offload", "offloading to the host"},
    UnmodelledMember{"/training_mode", "low-rank adapters (LoRA)", "LoRA"},
};

struct WrittenRun {
  MeasuredRun run;
  std::optional<double> iteration;       // seconds
  std::optional<std::string> model;      // its name, which stands where its sizes would
  std::optional<std::int64_t> sequence;  // of the batch, over the model's
  std::optional<std::string> norm;
  std::optional<bool> tensor_overlap;
  std::optional<std::string> dispatcher;
  std::optional<double> capacity_factor;
};

constexpr auto source_fields = [](auto& fields, auto& it) {
  fields.optional("key", it.run.key);
  fields.optional("title", it.run.source);
};

constexpr auto run_expert_fields = [](auto& fields, auto& it) {
  Experts experts;
  fields.wanted("experts", experts.count, it.run.lacking, run_counts);
  fields.wanted("topk", experts.per_token, it.run.lacking, run_counts);
  fields.wanted("moe_ffn", experts.feedforward, it.run.lacking, sizes);
  fields.optional("shared_ffn", experts.shared_feedforward, Range{0, sizes.most});
  fields.optional("first_dense_layers", it.run.dense_layers, Range{0, run_counts.most});
  fields.optional("every", it.run.expert_layer_every, run_counts);
  fields.optional("router_bias", experts.router_bias);
  fields.optional("capacity_factor", experts.capacity_factor);
  LatentAttention latent;
  std::vector<std::string> absent;
  fields.optional("q_lora", latent.q_rank, Range{0, sizes.most});
  fields.optional("kv_lora", latent.kv_rank, Range{0, sizes.most});
  fields.wanted("qk_nope", latent.nope_head_size, absent, sizes);
  fields.wanted("qk_rope", latent.rope_head_size, absent, sizes);
  fields.wanted("v_head", latent.value_head_size, absent, sizes);
  if (latent.kv_rank > 0) {
    it.run.latent_attention = latent;
    it.run.lacking.insert(it.run.lacking.end(), absent.begin(), absent.end());
  }
  it.run.experts = experts;
};

constexpr auto run_model_fields = [](auto& fields, auto& it) {
  fields.wanted("layers", it.run.layers, it.run.lacking, run_counts);
  fields.wanted("hidden", it.run.hidden, it.run.lacking, sizes);
  fields.optional("ffn_hidden", it.run.feedforward, sizes);
  fields.wanted("heads", it.run.heads, it.run.lacking, run_counts);
  fields.optional("kv_heads", it.run.key_value_heads, run_counts);
  fields.optional("head_dim", it.run.head_size, run_counts);
  fields.optional("vocab", it.run.vocabulary, sizes);
  fields.wanted("seq_len", it.run.sequence, it.run.lacking, sizes);
  fields.wanted("gated_mlp", it.run.gated, it.run.lacking);
  fields.optional("norm", it.norm);
  fields.optional("qkv_bias", it.run.qkv_bias);
  fields.optional("tied_embeddings", it.run.settings.tied_embeddings);
  fields.optional("window", it.run.window, Range{0, sizes.most});
  fields.optional("full_attention_every", it.run.full_attention_every, Range{0, run_counts.most});
  fields.optional("attention_sinks", it.run.attention_sinks);
  fields.optional("qk_norm", it.run.qk_norm);
  fields.object("moe", it, run_expert_fields);
};

constexpr auto parallel_fields = [](auto& fields, auto& it) {
  fields.wanted("tp", it.run.tensor_parallel, it.run.lacking, run_counts);
  fields.optional("sp", it.run.sequence_parallel);
  fields.wanted("pp", it.run.pipeline_parallel, it.run.lacking, run_counts);
  fields.optional("vpp", it.run.virtual_pipeline, run_counts);
  fields.optional("cp", it.run.context_parallel, run_counts);
  fields.optional("cp_comm_type", it.run.cp_comm);
  fields.optional("ep", it.run.expert_parallel, run_counts);
  fields.optional("etp", it.run.expert_tensor_parallel, run_counts);
  fields.wanted("dp", it.run.data_parallel, it.run.lacking, run_counts);
  fields.optional("zero_stage", it.run.zero_stage, stages);
  fields.optional("fsdp", it.run.fully_sharded);
  fields.optional("hsdp_replicas", it.run.shard_copies, run_counts);
  fields.optional("schedule", it.run.schedule);
};

constexpr auto moe_run_fields = [](auto& fields, auto& it) {
  fields.optional("dispatcher", it.dispatcher);
  fields.optional("capacity_factor", it.capacity_factor);
  fields.optional("mtp_layers", it.run.mtp_layers, Range{0, most_predictors});
};

constexpr auto batch_fields = [](auto& fields, auto& it) {
  fields.wanted("global", it.run.global_batch, it.run.lacking, run_counts);
  fields.wanted("micro", it.run.micro_batch, it.run.lacking, run_counts);
  fields.optional("seq_len", it.sequence, sizes);
};

constexpr auto overlap_fields = [](auto& fields, auto& it) {
  fields.optional("grad_reduce", it.run.settings.overlap_grad_reduce);
  fields.optional("moe_a2a", it.run.overlap_expert_all_to_all);
  fields.optional("param_gather", it.run.settings.overlap_param_gather);
  fields.optional("tp_comm", it.tensor_overlap);
  fields.optional("p2p", it.run.settings.overlap_p2p);
};

constexpr auto precision_fields = [](auto& fields, auto& it) {
  fields.optional("grad_reduce_dtype", it.run.settings.gradient_dtype, OneOf{dtypes_that<is_floating>});
  fields.optional("recipe", it.run.recipe);
  fields.optional("fp8_param_gather", it.run.fp8_param_gather);
};

constexpr auto optimizer_fields = [](auto& fields, auto& it) {
  fields.optional("main_params", it.run.main_params);
  fields.optional("exp_avg", it.run.exp_avg);
  fields.optional("exp_avg_sq", it.run.exp_avg_sq);
};

constexpr auto measured_fields = [](auto& fields, auto& it) {
  fields.optional("iteration_time_s", it.iteration);
  fields.optional("peak_memory_gb", it.run.memory);
};

// Arithmetic on published figures, for those who published none of time.
constexpr auto derived_fields = [](auto& fields, auto& it) {
  fields.optional("iteration_time_s", it.iteration);
};

constexpr auto run_fields = [](auto& fields, auto& it) {
  fields.required("id", it.run.name);
  fields.object("source", it, source_fields);
  fields.optional("gpu", it.run.device);
  fields.optional("stack", it.run.stack);
  fields.optional("dense", it.run.dense);
  if (!it.model) fields.wanted_object("model", it, it.run.lacking, run_model_fields);
  fields.wanted_object("parallel", it, it.run.lacking, parallel_fields);
  fields.wanted_object("batch", it, it.run.lacking, batch_fields);
  fields.object("moe_run", it, moe_run_fields);
  fields.optional("recompute", it.run.recompute);
  fields.optional("dtype", it.run.dtype);
  fields.optional("flash_attention", it.run.flash_attention);
  fields.optional("overlap", it.run.overlap);
  fields.object("overlap_flags", it, overlap_fields);
  fields.object("precision", it, precision_fields);
  fields.object("optimizer", it, optimizer_fields);
  fields.object("derived", it, derived_fields);
  fields.object("measured", it, measured_fields);  // after what it takes precedence over
  fields.optional("memory_unit", it.run.memory_unit);
  fields.optional("caveats", it.run.caveats);
  fields.object("settings", it.run.settings, run_settings_fields);  // after what it takes precedence over
  fields.optional("fit", it.run.fit);
};

void drop_nulls(Json& value) {
  if (!value.is_structured()) return;
  for (auto member = value.begin(); member != value.end();) {
    drop_nulls(*member);
    member = member->is_null() && value.is_object() ? value.erase(member) : std::next(member);
  }
}

const Json* find(const Json& run, std::string_view path) {
  const JsonPointer field{std::string(path)};
  return run.contains(field) ? &run.at(field) : nullptr;
}

bool is_had(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value != 0;
  if (value.is_array()) return std::any_of(value.begin(), value.end(), is_had);
  return !value.is_string() || value != "none";
}

bool has(const Json& run, const UnmodelledMember& member) {
  const Json* value = find(run, member.path);
  if (value == nullptr || member.text.empty()) return value != nullptr && is_had(*value);
  return value->is_string() && value->get_ref<const std::string&>().find(member.text) != std::string::npos;
}

void erase(Json& run, std::string_view path) {
  const JsonPointer field{std::string(path)};
  const JsonPointer parent = field.parent_pointer();
  if (run.contains(parent) && run.at(parent).is_object()) run.at(parent).erase(field.back());
}

// Of those that shard weights, by what they call it, and by what their overlap says.
std::string stack_of_sharding(const std::string& name, const Json* overlap) {
  if (name.starts_with("Megatron-FSDP")) return "nemo-2025";
  const bool second = name.starts_with("FSDP2") || (overlap != nullptr && overlap->is_string() &&
                                                    overlap->get<std::string>().starts_with("FSDP2"));
  return second ? "torchtitan-2025" : "pytorch-fsdp-2023";
}

// What is taken from a run before ObjectReader reads it, which then has no nulls and words, and "FULL_SHARD" as true.
void normalize(Json& run, WrittenRun& written) {
  drop_nulls(run);
  if (!run.is_object()) return;
  for (const UnmodelledMember& member : unmodelled_members) {
    if (has(run, member)) written.run.unmodelled.emplace_back(member.what);
  }
  for (const UnmodelledMember& member : unmodelled_members) erase(run, member.path);
  for (const std::string_view path : described) erase(run, path);
  if (const Json* sharded = find(run, "/parallel/fsdp"); sharded != nullptr && sharded->is_string()) {
    const auto name = sharded->get<std::string>();
    written.run.shards_in_node = name == "HYBRID_SHARD";
    written.run.sharding_stack = stack_of_sharding(name, find(run, "/overlap"));
    run["parallel"]["fsdp"] = true;
  }
  if (const Json* model = find(run, "/model"); model != nullptr && model->is_string()) {
    written.model = model->get<std::string>();
    erase(run, "/model");
  }
}

// Reads what the run refers to by name, and what it says in words of its own. Notes what does not exist.
void resolve(WrittenRun& written, Document& document, const JsonPointer& at) {
  MeasuredRun& run = written.run;
  const auto named = [&](const JsonPointer& field, auto read) {
    try {
      read();
    } catch (const InputError& error) {
      for (const auto& [where, rule] : error.problems()) document.report(field, where + " " + rule);
    }
  };
  if (written.iteration) run.iteration = Seconds(*written.iteration);
  if (written.model) named(at / "model", [&] { run.model = read_model(*written.model); });
  if (run.model) run.sequence = run.model->sequence;
  if (run.stack) named(at / "stack", [&] { read_software(*run.stack); });
  if (written.sequence) run.sequence = *written.sequence;
  if (written.tensor_overlap && !run.settings.overlap_tensor_parallel)
    run.settings.overlap_tensor_parallel =
        *written.tensor_overlap ? TensorOverlap::full : TensorOverlap::backward;
  if (written.dispatcher) {  // "flex (DeepEP)"
    const std::string name = written.dispatcher->substr(0, written.dispatcher->find(' '));
    run.dispatcher = from_name<Dispatcher>(name).value_or(Dispatcher::alltoall);
  }
  if (run.experts && written.capacity_factor) run.experts->capacity_factor = written.capacity_factor;
  if (written.norm == "rms" || written.norm == "rms_norm") run.normalization = Normalization::rms_norm;
  if (written.norm == "layer" || written.norm == "layer_norm") run.normalization = Normalization::layer_norm;
  if (written.norm && !run.normalization)
    document.report(at / "model" / "norm",
                    "must be rms or layer (found \"" + printable(*written.norm) + "\")");
  if (const std::string rule = run.key.empty() ? "" : unknown_source(run.key); !rule.empty())
    document.report(at / "source" / "key", rule);
}

}  // namespace

std::vector<MeasuredRun> parse_runs(std::string_view text, const std::string& file) {
  constexpr std::size_t most_runs = 10'000;
  Document document = read_document(text, file, most_runs);
  if (!document.root.is_array()) throw InputError(file, "must be a list of runs");
  if (document.root.empty()) throw InputError(file, "holds no runs");
  std::vector<MeasuredRun> runs;
  for (std::size_t i = 0; i < document.root.size(); ++i) {
    const JsonPointer at = JsonPointer() / i;
    WrittenRun written;
    normalize(document.root[i], written);
    ObjectReader::read(document, at, written, run_fields);
    resolve(written, document, at);
    runs.push_back(std::move(written.run));
  }
  document.finish();
  return runs;
}

std::vector<MeasuredRun> read_runs(const std::string& path) { return parse_runs(read_file(path), path); }

}  // namespace headroom
