// The members of a run in a file of measured runs, by the object that holds them (io/runs_file.hpp).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "object_reader.hpp"
#include "run_graphs.hpp"
#include "settings_fields.hpp"

namespace headroom {

inline constexpr Range run_sizes{1, 1 << 28};
inline constexpr Range run_counts{1, 1 << 22};
inline constexpr Range zero_stages{0, 3};
inline constexpr std::int64_t most_predictors = 64;

struct WrittenRun {
  MeasuredRun run;
  std::optional<double> iteration;       // seconds
  std::optional<std::string> model;      // its name, which stands where its sizes would
  std::optional<std::int64_t> sequence;  // of the batch, over the model's
  std::optional<std::string> norm;
  std::optional<std::string> layout;   // of virtual stages, as Megatron-Core writes it; or "even"
  std::optional<std::string> pattern;  // of layers of one part
  std::optional<bool> tensor_overlap;
  std::optional<double> capacity_factor;
  std::optional<Dtype> router_dtype;
  bool paged_stash = false;  // of what experts keep, in pages [Megatron-LM, --moe-paged-stash]
  StatedGraphs graphs;
  std::optional<std::string> mode;  // "LoRA"
};

// Of a run in that mode that says no more [Megatron-Bridge, recipes of Llama 3: dim 16, target_modules linear_qkv].
inline const Lora lora_of_recipes{.rank = 16, .targets = {"linear_qkv"}};

inline constexpr auto run_source_fields = [](auto& fields, auto& it) {
  fields.optional("key", it.run.key);
  fields.optional("title", it.run.source);
};

inline constexpr auto run_expert_fields = [](auto& fields, auto& it) {
  Experts experts;
  fields.wanted("experts", experts.count, it.run.lacking, run_counts);
  fields.wanted("topk", experts.per_token, it.run.lacking, run_counts);
  fields.wanted("moe_ffn", experts.feedforward, it.run.lacking, run_sizes);
  fields.optional("groups", experts.groups, run_counts);
  fields.optional("group_topk", experts.groups_per_token, Range{0, run_counts.most});
  fields.optional("shared_ffn", experts.shared_feedforward, Range{0, run_sizes.most});
  fields.optional("first_dense_layers", it.run.dense_layers, Range{0, run_counts.most});
  fields.optional("every", it.run.expert_layer_every, run_counts);
  fields.optional("router_bias", experts.router_bias);
  fields.optional("latent", experts.latent, Range{0, run_sizes.most});
  fields.optional("capacity_factor", experts.capacity_factor);
  LatentAttention latent;
  std::vector<std::string> absent;
  fields.optional("q_lora", latent.q_rank, Range{0, run_sizes.most});
  fields.optional("kv_lora", latent.kv_rank, Range{0, run_sizes.most});
  fields.wanted("qk_nope", latent.nope_head_size, absent, run_sizes);
  fields.wanted("qk_rope", latent.rope_head_size, absent, run_sizes);
  fields.wanted("v_head", latent.value_head_size, absent, run_sizes);
  if (latent.kv_rank > 0) {
    it.run.latent_attention = latent;
    it.run.lacking.insert(it.run.lacking.end(), absent.begin(), absent.end());
  }
  it.run.experts = experts;
};

inline constexpr auto run_mixer_fields = [](auto& fields, auto& it) {
  for_each_mixer([&](const auto& row, auto member) {
    fields.object(row.name, it, [&](auto& of, auto& written) {
      auto& mixer = (written.run.mixers.*member).emplace();
      for (const auto& size : row.sizes) {
        const auto& [word, by_default] = size.in_run;
        const Range range = size.is_width ? run_sizes : run_counts;
        if (word.empty()) continue;
        if (by_default == 0) {
          of.wanted(word, mixer.*size.member, written.run.lacking, range);
        } else {
          mixer.*size.member = by_default;
          of.optional(word, mixer.*size.member, range);
        }
      }
    });
  });
};

inline constexpr auto run_model_fields = [](auto& fields, auto& it) {
  fields.wanted("layers", it.run.layers, it.run.lacking, run_counts);
  fields.wanted("hidden", it.run.hidden, it.run.lacking, run_sizes);
  fields.optional("ffn_hidden", it.run.feedforward, run_sizes);
  fields.wanted("heads", it.run.heads, it.run.lacking, run_counts);
  fields.optional("kv_heads", it.run.key_value_heads, run_counts);
  fields.optional("head_dim", it.run.head_size, run_counts);
  fields.optional("vocab", it.run.vocabulary, run_sizes);
  fields.wanted("seq_len", it.run.sequence, it.run.lacking, run_sizes);
  fields.wanted("gated_mlp", it.run.gated, it.run.lacking);
  fields.optional("norm", it.norm);
  fields.optional("qkv_bias", it.run.qkv_bias);
  fields.optional("linear_bias", it.run.linear_bias);
  fields.optional("name", it.run.model_name);
  fields.optional("tied_embeddings", it.run.settings.tied_embeddings);
  fields.optional("window", it.run.window, Range{0, run_sizes.most});
  fields.optional("full_attention_every", it.run.full_attention_every, Range{0, run_counts.most});
  fields.optional("attention_sinks", it.run.attention_sinks);
  fields.optional("clamped_activation", it.run.clamped_activation);
  fields.optional("scaled_rotary", it.run.scaled_rotary);
  fields.optional("qk_norm", it.run.qk_norm);
  fields.object("moe", it, run_expert_fields);
  run_mixer_fields(fields, it);
  fields.optional("hybrid_pattern", it.pattern);
};

inline constexpr auto run_parallel_fields = [](auto& fields, auto& it) {
  fields.wanted("tp", it.run.tensor_parallel, it.run.lacking, run_counts);
  fields.optional("sp", it.run.sequence_parallel);
  fields.wanted("pp", it.run.pipeline_parallel, it.run.lacking, run_counts);
  fields.optional("vpp", it.run.virtual_pipeline, run_counts);
  fields.optional("cp", it.run.context_parallel, run_counts);
  fields.optional("cp_comm_type", it.run.cp_comm);
  fields.optional("ep", it.run.expert_parallel, run_counts);
  fields.optional("etp", it.run.expert_tensor_parallel, run_counts);
  fields.wanted("dp", it.run.data_parallel, it.run.lacking, run_counts);
  fields.optional("zero_stage", it.run.zero_stage, zero_stages);
  fields.optional("fsdp", it.run.fully_sharded);
  fields.optional("hsdp_replicas", it.run.shard_copies, run_counts);
  fields.optional("schedule", it.run.schedule);
  fields.optional("layout", it.layout);
};

inline constexpr auto moe_run_fields = [](auto& fields, auto& it) {
  fields.optional("dispatcher", it.run.dispatcher);
  fields.optional("capacity_factor", it.capacity_factor);
  fields.optional("pad_to_capacity", it.run.moe_pad_to_capacity);
  fields.optional("mtp_layers", it.run.mtp_layers, Range{0, most_predictors});
  fields.optional("paged_stash", it.paged_stash);
  fields.optional("router_dtype", it.router_dtype, floating);
};

inline constexpr auto run_batch_fields = [](auto& fields, auto& it) {
  fields.wanted("global", it.run.global_batch, it.run.lacking, run_counts);
  fields.wanted("micro", it.run.micro_batch, it.run.lacking, run_counts);
  fields.optional("seq_len", it.sequence, run_sizes);
};

inline constexpr auto run_overlap_fields = [](auto& fields, auto& it) {
  fields.optional("grad_reduce", it.run.settings.overlap_grad_reduce);
  fields.optional("moe_a2a", it.run.overlap_expert_all_to_all);
  fields.optional("param_gather", it.run.settings.overlap_param_gather);
  fields.optional("tp_comm", it.tensor_overlap);
  fields.optional("p2p", it.run.settings.overlap_p2p);
  fields.optional("delay_wgrad", it.run.settings.delay_weight_gradients);
  fields.optional("shared_expert", it.run.settings.overlap_shared_experts);
};

inline constexpr auto run_precision_fields = [](auto& fields, auto& it) {
  fields.optional("grad_reduce_dtype", it.run.settings.gradient_dtype, OneOf{dtypes_that<is_floating>});
  fields.optional("recipe", it.run.recipe);
  fields.optional("fp8_param_gather", it.run.fp8_param_gather);
  fields.optional("fp8_attention", it.run.fp8_attention);
  fields.optional("bf16_layers", it.run.bf16_layers, Range{0, most_layers});
  fields.optional_names("bf16_modules", it.run.bf16_modules);
};

inline constexpr auto run_optimizer_fields = [](auto& fields, auto& it) {
  fields.optional("main_params", it.run.main_params);
  fields.optional("exp_avg", it.run.exp_avg);
  fields.optional("exp_avg_sq", it.run.exp_avg_sq);
};

inline constexpr auto run_offload_fields = [](auto& fields, auto& it) {
  fields.optional("activations_layers", it.run.offload.layers, Range{0, run_counts.most});
};

inline constexpr auto run_lora_fields = [](auto& fields, auto& it) {
  fields.optional("rank", it.run.lora.rank, run_counts);
  fields.optional_texts("targets", it.run.lora.targets);
};

inline constexpr auto run_measured_fields = [](auto& fields, auto& it) {
  fields.optional("iteration_time_s", it.iteration);
  fields.optional("peak_memory_gb", it.run.memory);
};

// Arithmetic on published figures, for those who published none of time.
inline constexpr auto run_derived_fields = [](auto& fields, auto& it) {
  fields.optional("iteration_time_s", it.iteration);
};

inline constexpr auto run_fields = [](auto& fields, auto& it) {
  fields.required("id", it.run.name);
  fields.object("source", it, run_source_fields);
  fields.optional("gpu", it.run.device);
  fields.optional("stack", it.run.stack);
  fields.optional("dense", it.run.dense);
  if (!it.model) fields.wanted_object("model", it, it.run.lacking, run_model_fields);
  fields.wanted_object("parallel", it, it.run.lacking, run_parallel_fields);
  fields.wanted_object("batch", it, it.run.lacking, run_batch_fields);
  fields.object("moe_run", it, moe_run_fields);
  fields.optional("recompute", it.run.recompute);
  fields.optional("dtype", it.run.dtype);
  fields.optional("flash_attention", it.run.flash_attention);
  fields.optional("overlap", it.run.overlap);
  fields.object("overlap_flags", it, run_overlap_fields);
  fields.object("precision", it, run_precision_fields);
  fields.object("optimizer", it, run_optimizer_fields);
  fields.object("offload", it, run_offload_fields);
  fields.optional("training_mode", it.mode);
  fields.object("lora", it, run_lora_fields);
  fields.object("derived", it, run_derived_fields);
  fields.object("measured", it, run_measured_fields);  // after what it takes precedence over
  fields.optional("memory_unit", it.run.memory_unit);
  fields.optional("peak_reserved_gib", it.run.reserved_gib);
  fields.optional("caveats", it.run.caveats);
  fields.optional("gpus_per_node", it.run.devices_per_node, run_counts);
  fields.optional("interconnect", it.run.interconnect);
  fields.object("settings", it.run.settings, run_settings_fields);  // after what it takes precedence over
  fields.optional("fit", it.run.fit);
};

}  // namespace headroom
