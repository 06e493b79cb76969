#include "interop/launch_in/core_parts.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "interop/launch_in/megatron_model.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr LaunchKey keys_of_core[] = {
    {"overlap_grad_reduce", LaunchUse::choice, "overlap_grad_reduce"},
    {"overlap_param_gather", LaunchUse::choice, "overlap_param_gather"},
    {"overlap_p2p_comm", LaunchUse::choice, "overlap_p2p"},
    {"delay_wgrad_compute", LaunchUse::choice, "delay_weight_gradients"},
    {"moe_shared_expert_overlap", LaunchUse::choice, "overlap_shared_experts"},
    {"overlap_moe_expert_parallel_comm", LaunchUse::on, "overlap_expert_all_to_all"},
    {"distribute_saved_activations", LaunchUse::on, "distribute_saved_activations"},
    {"fp8_param", LaunchUse::on, "fp8_param_gather"},
    {"fp8_param_gather", LaunchUse::on, "fp8_param_gather"},
    {"fp8_dot_product_attention", LaunchUse::on, "fp8_attention"},
    {"activation_func_fp8_input_store", LaunchUse::on, "fp8_activation_input"},
    {"tp_only_amax_red", LaunchUse::on, "tp_only_amax_red"},
    {"num_layers_at_start_in_bf16", LaunchUse::field, "bf16_layers_at_start"},
    {"num_layers_at_end_in_bf16", LaunchUse::field, "bf16_layers_at_end"},
    {"microbatch_group_size_per_vp_stage", LaunchUse::field, "microbatch_group_size"},
    {"moe_router_padding_for_fp8", LaunchUse::on, "moe_router_padding"},
    {"moe_router_padding_for_quantization", LaunchUse::on, "moe_router_padding"},
    {"moe_pad_expert_input_to_capacity", LaunchUse::on, "moe_pad_to_capacity"},
    {"cpu_offloading_num_layers", LaunchUse::field, "offload_layers"},
    {"optimizer_offload_fraction", LaunchUse::field, "optimizer_offload_fraction"},
    {"overlap_cpu_optimizer_d2h_h2d", LaunchUse::on, "overlap_cpu_optimizer"},
    {"batch_p2p_comm"},
    {"tp_comm_*"},
    {"barrier_with_L1_time"},
    {"defer_embedding_wgrad_compute", LaunchUse::unmodelled, "weight gradients of the embedding at the end"},
    {"wgrad_deferral_limit"},
    {"overlap_param_gather_with_optimizer_step", LaunchUse::unmodelled, "gathers beside the step"},
    {"align_param_gather"},
    {"average_in_collective"},
    {"bucket_size", LaunchUse::choice, "bucket_parameters"},
    {"check_for_nan_in_grad"},
    {"check_for_nan_in_loss_and_grad"},
    {"gradient_as_bucket_view"},
    {"gradient_accumulation_fusion", LaunchUse::off, "gradient_accumulation=separate"},
    {"cross_entropy_*"},
    {"masked_softmax_fusion"},
    {"bias_*_fusion"},
    {"bias_activation_fusion"},
    {"bias_dropout_*"},
    {"bias_swiglu_fusion"},
    {"persist_layer_norm"},
    {"apply_rope_fusion"},
    {"moe_permute_fusion", LaunchUse::unmodelled, "tokens are put in order by one kernel"},
    {"mtp_loss_scaling_factor"},
    {"moe_router_*"},
    {"moe_aux_*"},
    {"moe_z_*"},
    {"moe_token_drop_policy"},
    {"moe_hybridep_num_sms"},
    {"moe_deepep_num_sms"},
    {"moe_expert_capacity_factor", LaunchUse::unmodelled, "tokens beyond a capacity are dropped"},
    {"moe_apply_probs_on_input"},
    {"moe_per_layer_logging"},
    {"moe_use_*"},
    {"attention_backend"},
    {"attention_softmax_in_fp32"},
    {"apply_query_key_layer_scaling"},
    {"use_flash_attn"},
    {"use_te_*"},
    {"use_custom_fsdp"},
    {"transformer_engine"},
    {"transformer_impl"},
    {"use_transformer_engine_op_fuser", LaunchUse::unmodelled, "fused operators of Transformer Engine"},
    {"cuda_graph_*"},
    {"use_te_rng_tracker"},
    {"rotary_*"},
    {"rope_*"},
    {"position_embedding_type"},
    {"share_embeddings_*"},
    {"should_pad_vocab"},
    {"vocab_size"},
    {"params_dtype"},
    {"pipeline_dtype"},
    {"autocast_dtype"},
    {"fp8_*"},
    {"fp8"},
    {"fp4*"},
    {"bf16"},
    {"fp16"},
    {"init_method*"},
    {"output_layer_init_method"},
    {"layernorm_epsilon"},
    {"norm_epsilon"},
    {"disable_parameter_transpose_cache"},
    {"deallocate_pipeline_outputs"},
    {"calculate_per_token_loss"},
    {"train_iters"},
    {"manual_gc*"},
    {"exit_*"},
    {"eval_*"},
    {"data_parallel_random_init"},
    {"gc_interval"},
    {"use_ring_exchange_p2p"},
    {"enable_autocast"},
    {"grad_scale_func"},
    {"qk_layernorm"},
    {"qk_clip"},
    {"attention_dropout"},
    {"hidden_dropout"},
    {"normalization"},
    {"gated_linear_unit"},
    {"activation_func"},
    {"add_bias_linear"},
    {"kv_channels"},
    {"max_position_embeddings"},
    {"make_vocab_size_divisible_by"},
    {"finetune"},
    {"nccl_ub", LaunchUse::unmodelled, "registered buffers of NCCL"},
    {"fsdp_double_buffer"},
    {"ckpt_*"},
    {"data_parallel_sharding_strategy"},
    {"use_turbo_*", LaunchUse::unmodelled, "kernels of Primus-Turbo"},
    {"enable_primus_turbo", LaunchUse::unmodelled, "kernels of Primus-Turbo"},
    {"turbo_*", LaunchUse::unmodelled, "kernels of Primus-Turbo"},
    {"mock_data"},
    {"no_load_*"},
    {"no_save_*"},
    {"load"},
    {"save"},
    {"trainable"},
    {"stderr_sink_level"},
    {"profile*"},
    {"use_pytorch_profiler"},
    {"disable_*"},
    {"eod_mask_loss"},
    {"num_workers"},
    {"lr*"},
    {"min_lr"},
};

void switch_field(TreeRun& run, std::string_view name, std::string_view field, const std::string& value) {
  const Written* const setting = run.find(name);
  if (setting != nullptr && is_on(*setting)) run.builder().set(field, value, setting);
}

void take_recomputation(TreeRun& run) {
  RunBuilder& builder = run.builder();
  const Written* const kind =
      run.find({"recompute_granularity", "activations_checkpoint_granularity"}, "recompute");
  const auto layers = run.count({"recompute_num_layers", "activations_checkpoint_num_layers"});
  const Written* const layers_at = run.find({"recompute_num_layers", "activations_checkpoint_num_layers"});
  const Written* const method = run.find({"recompute_method", "activations_checkpoint_method"});
  const Written* const modules = run.find({"recompute_modules"});
  if (kind == nullptr) return;
  const std::string word = lower_case(text_of_values(*kind));
  if (word == "none") {
    builder.set("recompute", "none", kind);
  } else if (word == "full") {
    builder.set("recompute", "full", kind);
    // block with 0 layers recomputes nothing.
    const bool block = method != nullptr && text_of_values(*method) == "block";
    if (layers && *layers == 0 && block) builder.set("recompute", "none", layers_at);
    if (layers && *layers > 0 && (*layers > 1 || block)) {
      builder.set("recompute_layers", std::to_string(*layers), layers_at);
      if (method != nullptr) builder.set("recompute_method", text_of_values(*method), method);
    }
  } else if (modules != nullptr && text_of_values(*modules) != "core_attn") {
    builder.set("recompute_ops", text_of_values(*modules), modules);
  } else {
    builder.set("recompute", "selective", kind);
    if (modules == nullptr) builder.imply("recompute_modules is core_attn where it is not written", kind);
  }
}

void take_experts(TreeRun& run, std::int64_t tensor, const CoreRules& rules) {
  RunBuilder& builder = run.builder();
  const std::int64_t experts = run.size("expert_parallel", {"expert_model_parallel_size"});
  const auto expert_tensor = run.count({"expert_tensor_parallel_size"}, "expert_tensor_parallel");
  if (expert_tensor && *expert_tensor > 0) {
    builder.set("expert_tensor_parallel", std::to_string(*expert_tensor),
                run.find({"expert_tensor_parallel_size"}));
  } else if (experts > 1 && tensor > 1 && !rules.expert_tensor_is_one) {
    builder.set("expert_tensor_parallel", std::to_string(tensor), nullptr);
    builder.imply("expert_tensor_parallel_size is TP where it is not written");
  }
  const Written* const dispatcher = run.find({"moe_token_dispatcher_type"});
  const Written* const backend = run.find({"moe_flex_dispatcher_backend"});
  const Written* const turbo = run.find("use_turbo_deepep");
  const Written* const deepep = run.find("moe_enable_deepep");
  const bool patched = !run.has("enable_primus_turbo") || run.on("enable_primus_turbo");
  // Primus-Turbo's dispatcher takes the place of the one that is named.
  if (turbo != nullptr && is_on(*turbo) && patched) return builder.set("moe_dispatcher", "deepep", turbo);
  if (dispatcher == nullptr) {
    if (deepep != nullptr && is_on(*deepep)) builder.set("moe_dispatcher", "deepep", deepep);
    return;
  }
  const std::string kind = text_of_values(*dispatcher);
  if (kind == "flex") {
    const bool known = backend != nullptr && text_of_values(*backend) != "deepep";
    builder.set("moe_dispatcher", known ? text_of_values(*backend) : "deepep",
                backend != nullptr  ? backend
                : deepep != nullptr ? deepep
                                    : dispatcher);
  } else if (kind == "allgather" || kind == "alltoall" || kind == "alltoall_seq") {
    builder.set("moe_dispatcher", kind == "alltoall_seq" ? "alltoall" : kind, dispatcher);
  } else {
    builder.leave_out(*dispatcher, "a dispatcher that is not modelled");
  }
}

void take_sharding(TreeRun& run) {
  RunBuilder& builder = run.builder();
  if (const Written* const shards = run.find("use_distributed_optimizer"))
    builder.set("data_sharding", is_on(*shards) ? "zero1" : "none", shards);
  const Written* const strategy = run.find({"data_parallel_sharding_strategy"});
  for (const std::string_view name : {"use_megatron_fsdp", "dist.use_megatron_fsdp", "use_custom_fsdp"}) {
    const Written* const fsdp = run.find(name);
    if (fsdp == nullptr || !is_on(*fsdp)) continue;
    const std::string kind = strategy == nullptr ? "optim_grads_params" : text_of_values(*strategy);
    builder.set("data_sharding",
                kind == "optim"         ? "zero1"
                : kind == "optim_grads" ? "zero2"
                : kind == "no_shard"    ? "none"
                                        : "zero3",
                strategy != nullptr ? strategy : fsdp);
    builder.use_software("nemo-2025");
  }
  const Written* const torch = run.find("use_torch_fsdp2");
  if (torch != nullptr && is_on(*torch)) {
    builder.set("data_sharding", "zero3", torch);
    builder.use_software("nemo-2025");
  }
}

void take_precision(TreeRun& run) {
  RunBuilder& builder = run.builder();
  const Written* const eight = run.find({"fp8", "fp8_format"});
  const Written* const recipe = run.find({"fp8_recipe"});
  const Written* const four = run.find({"fp4", "fp4_format"});
  const Written* const mixed = run.find({"mixed_precision", "precision_config"});
  if (mixed != nullptr) take_core_precision(*mixed, builder);
  if (four != nullptr && is_on(*four)) {
    builder.set("precision", "nvfp4", four);
  } else if (eight != nullptr && is_on(*eight)) {
    const std::string name = recipe == nullptr ? "delayed" : lower_case(text_of_values(*recipe));
    const std::string kind = name == "delayed"      ? "fp8_delayed"
                             : name == "tensorwise" ? "fp8"
                             : name == "blockwise"  ? "fp8_blockwise"
                             : name == "mxfp8"      ? "mxfp8"
                                                    : "";
    if (kind.empty())
      builder.leave_out(*recipe, "a recipe that is not modelled");
    else
      builder.set("precision", kind, recipe != nullptr ? recipe : eight);
    if (recipe == nullptr) builder.imply("fp8_recipe is delayed where it is not written", eight);
    if (run.on("first_last_layers_bf16")) {
      if (!run.has("num_layers_at_start_in_bf16"))
        builder.set("bf16_layers_at_start", "1", run.find("first_last_layers_bf16"));
      if (!run.has("num_layers_at_end_in_bf16"))
        builder.set("bf16_layers_at_end", "1", run.find("first_last_layers_bf16"));
    }
  } else if (mixed == nullptr && (run.on("bf16") || run.on("fp16"))) {
    builder.set("precision", "bf16", run.find({"bf16", "fp16"}));
  }
}

}  // namespace

void take_core_precision(const Written& setting, RunBuilder& builder) {
  const std::string name = lower_case(text_of_values(setting));
  const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (name == "32" || name == "32-true" || name == "fp32")
    return builder.leave_out(setting, "products in fp32: they are taken as bf16");
  std::string precision = "bf16";
  if (is("nvfp4"))
    precision = "nvfp4";
  else if (is("mxfp8") || is("fp8_mx"))
    precision = "mxfp8";
  else if (is("subchannel") || is("fp8_sc") || is("blockwise"))
    precision = "fp8_blockwise";
  else if (is("current_scaling") || is("fp8_cs"))
    precision = "fp8";
  else if (is("delayed") || is("fp8"))
    precision = "fp8_delayed";
  builder.set("precision", precision, &setting);
  if (is("16-mixed") && !is("bf16"))
    builder.imply("fp16 takes the memory and time of bf16 here: 2 bytes an element", &setting);
}

void need_equal_stages(TreeRun& run) {
  const Written* const pipeline = run.find("pipeline_model_parallel_size");
  const bool has_pattern = run.has("hybrid_override_pattern") || run.has("hybrid_layer_pattern") ||
                           run.has("hybrid_attention_ratio") || run.has("hybrid_mlp_ratio");
  if (pipeline == nullptr || has_pattern || run.has("pipeline_model_parallel_layout")) return;
  run.builder().need_equal_stages(
      {.pipeline = *pipeline,
       .layers_of_stage = copy_of(run.find("num_layers_per_virtual_pipeline_stage")),
       .embedding = copy_of(run.find("account_for_embedding_in_pipeline_split")),
       .loss = copy_of(run.find("account_for_loss_in_pipeline_split"))});
}

std::span<const LaunchKey> core_keys() { return keys_of_core; }

void take_core(TreeRun& run, RunScale& scale, const CoreRules& rules) {
  RunBuilder& builder = run.builder();
  scale.tensor = run.size("tensor_parallel", {"tensor_model_parallel_size"});
  scale.pipeline = run.size("pipeline_parallel", {"pipeline_model_parallel_size"});
  scale.context = run.size("context_parallel", {"context_parallel_size"});
  run.size("virtual_pipeline",
           {"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"});
  take_experts(run, scale.tensor, rules);
  const Written* const sequence = run.find("sequence_parallel");
  if (sequence != nullptr && is_on(*sequence)) {
    if (scale.tensor > 1)
      builder.set("sequence_parallel", "yes", sequence);
    else
      builder.imply("sequence_parallel is off at TP 1", sequence);
  }
  scale.micro = run.count({"micro_batch_size"}, "micro_batch");
  if (scale.micro) builder.set("micro_batch", std::to_string(*scale.micro), run.find("micro_batch_size"));
  scale.global = run.count({"global_batch_size"}, "global_batch");
  if (scale.global) builder.set("global_batch", std::to_string(*scale.global), run.find("global_batch_size"));
  const std::initializer_list<std::string_view> lengths{"seq_length", "encoder_seq_length",
                                                        "sequence_length"};
  if (const auto length = run.count(lengths, "sequence"); length && *length > 0)
    builder.set("sequence", std::to_string(*length), run.find(lengths));
  scale.replicate = run.count("num_distributed_optimizer_instances");
  if (const Written* const kind = run.find("cp_comm_type"); kind != nullptr && scale.context > 1) {
    const std::string name = kind->values.front();
    builder.set("cp_comm", name == "a2a+p2p" ? "a2a_p2p" : name, kind);
  }
  take_recomputation(run);
  take_sharding(run);
  take_precision(run);
  const Written* const layout = run.find("pipeline_model_parallel_layout");
  const Written* const first =
      run.find({"num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"});
  const Written* const last =
      run.find({"num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"});
  if (layout != nullptr) {
    std::string text = text_of_values(*layout);
    std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == '\\'; });  // Hydra's quotes
    if (text.find('|') != std::string::npos)
      builder.set("stage_layers", text, layout);
    else
      builder.leave_out(*layout, "a layout that is made by the recipe: stages are even");
  } else if ((first != nullptr || last != nullptr) && scale.pipeline > 1) {
    std::string ends;
    if (first != nullptr) ends = "first=" + text_of_values(*first);
    if (last != nullptr) ends += (ends.empty() ? "last=" : ",last=") + text_of_values(*last);
    builder.set("stage_layers", ends, first != nullptr ? first : last);
  }
  const Written* const full =
      run.find({"grad_reduce_in_fp32", "accumulate_allreduce_grads_in_fp32", "megatron_amp_O2_fp32"});
  if (full != nullptr) builder.set("gradient_dtype", is_on(*full) ? "fp32" : "bf16", full);
  switch_field(run, "grad_reduce_in_bf16", "gradient_dtype", "bf16");
  if (const Written* const overlap = run.find({"tp_comm_overlap", "ub_tp_comm_overlap"});
      overlap != nullptr && is_on(*overlap) && scale.tensor > 1) {
    // It splits the all-gathers and reduce-scatters of sequence parallelism [core/model_parallel_config.py].
    const bool on = sequence != nullptr && is_on(*sequence);
    if (on)
      builder.choose("overlap_tensor_parallel", "full", overlap);
    else
      builder.imply("tp_comm_overlap is off without sequence parallelism", overlap);
  }
  if (const Written* const grouped = run.find("moe_grouped_gemm"); grouped != nullptr && !is_on(*grouped))
    builder.leave_out(*grouped, "experts one after another: --set-software expert_products=per_expert");
  if (const Written* const share = run.find("optimizer_offload_fraction"))
    builder.set("optimizer_offload_fraction", text_of_values(*share), share);
  else if (run.on("optimizer_cpu_offload"))
    builder.set("optimizer_offload_fraction", "1", run.find("optimizer_cpu_offload"));
  if (run.on("use_precision_aware_optimizer")) {
    for (const auto& [name, target] :
         {std::pair{"main_grads_dtype", "gradient_dtype"}, std::pair{"exp_avg_dtype", "exp_avg_dtype"},
          std::pair{"exp_avg_sq_dtype", "exp_avg_sq_dtype"}}) {
      if (const Written* const dtype = run.find(name)) {
        std::string text = text_of_values(*dtype);
        text.erase(0, text.rfind('.') + 1);
        const std::string ours = text == "bfloat16"  ? "bf16"
                                 : text == "float32" ? "fp32"
                                 : text == "float16" ? "fp16"
                                                     : text;
        builder.set(target, ours, dtype);
      }
    }
    // What the host steps has fp32 main parameters [core/optimizer/cpu_offloading/hybrid_optimizer.py].
    if (!run.on("optimizer_cpu_offload") || builder.value("optimizer_offload_fraction") != "1")
      builder.set("main_params_dtype", "remainder", run.find("use_precision_aware_optimizer"));
  }
  if (const Written* const loss = run.find("cross_entropy_fusion_impl");
      loss != nullptr && text_of_values(*loss) == "te" && run.on("cross_entropy_loss_fusion"))
    builder.choose("cross_entropy", "fused_fp32", loss);
  std::vector<Written> graphs;
  for (const std::string_view name : {"cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph",
                                      "cuda_graph_scope", "cuda_graph_modules"}) {
    if (const Written* const setting = run.find(name)) graphs.push_back(*setting);
  }
  read_graphs(MegatronSettings(graphs), builder);
  if (const auto mtp = run.count({"mtp_num_layers"}))
    builder.member("mtp_layers", *mtp, run.find("mtp_num_layers"));
}

}  // namespace headroom
