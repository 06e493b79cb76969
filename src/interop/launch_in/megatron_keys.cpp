#include "interop/launch_in/megatron_keys.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "headroom/core/reading.hpp"

namespace headroom {
namespace {

// Those with a counterpart, and those that may matter and have none.
constexpr auto told = std::to_array<LaunchKey>({
    {"tensor_model_parallel_size", LaunchUse::field, "tensor_parallel"},
    {"model_parallel_size", LaunchUse::field, "tensor_parallel"},
    {"pipeline_model_parallel_size", LaunchUse::field, "pipeline_parallel"},
    {"virtual_pipeline_model_parallel_size", LaunchUse::field, "virtual_pipeline"},
    {"num_virtual_stages_per_pipeline_rank", LaunchUse::field, "virtual_pipeline"},
    {"context_parallel_size", LaunchUse::field, "context_parallel"},
    {"expert_model_parallel_size", LaunchUse::field, "expert_parallel"},
    {"moe_expert_parallel_size", LaunchUse::field, "expert_parallel"},
    {"expert_tensor_parallel_size", LaunchUse::field, "expert_tensor_parallel"},
    {"hierarchical_context_parallel_sizes", LaunchUse::field, "hierarchical_cp_sizes"},
    {"micro_batch_size", LaunchUse::field, "micro_batch"},
    {"batch_size", LaunchUse::field, "micro_batch"},
    {"global_batch_size", LaunchUse::field, "global_batch"},
    {"microbatch_group_size_per_virtual_pipeline_stage", LaunchUse::field, "microbatch_group_size"},
    {"microbatch_group_size_per_vp_stage", LaunchUse::field, "microbatch_group_size"},
    {"sequence_parallel", LaunchUse::field, "sequence_parallel"},
    {"overlap_moe_expert_parallel_comm", LaunchUse::field, "overlap_expert_all_to_all"},
    {"distribute_saved_activations", LaunchUse::field, "distribute_saved_activations"},
    {"distribute_checkpointed_activations", LaunchUse::field, "distribute_saved_activations"},
    {"moe_router_padding_for_fp8", LaunchUse::field, "moe_router_padding"},
    {"moe_router_padding_for_quantization", LaunchUse::field, "moe_router_padding"},
    {"moe_pad_expert_input_to_capacity", LaunchUse::field, "moe_pad_to_capacity"},
    {"fp8_param_gather", LaunchUse::field, "fp8_param_gather"},
    {"fp8_param", LaunchUse::field, "fp8_param_gather"},
    {"fp4_param_gather", LaunchUse::field, "fp8_param_gather"},
    {"fp4_param", LaunchUse::field, "fp8_param_gather"},
    {"num_layers_at_start_in_bf16", LaunchUse::field, "bf16_layers_at_start"},
    {"num_layers_at_end_in_bf16", LaunchUse::field, "bf16_layers_at_end"},
    {"fp8_dot_product_attention", LaunchUse::field, "fp8_attention"},
    {"fp8_output_proj", LaunchUse::field, "fp8_output_layer"},
    {"activation_func_fp8_input_store", LaunchUse::field, "fp8_activation_input"},
    {"tp_only_amax_red", LaunchUse::field, "tp_only_amax_red"},
    {"exp_avg_dtype", LaunchUse::field, "exp_avg_dtype"},
    {"exp_avg_sq_dtype", LaunchUse::field, "exp_avg_sq_dtype"},
    {"overlap_cpu_optimizer_d2h_h2d", LaunchUse::field, "overlap_cpu_optimizer"},
    {"cpu_offloading_num_layers", LaunchUse::field, "offload_layers"},
    {"offload_modules", LaunchUse::field, "offload_modules"},
    {"overlap_grad_reduce", LaunchUse::on, "overlap_grad_reduce"},
    {"overlap_param_gather", LaunchUse::on, "overlap_param_gather"},
    {"overlap_distributed_optimizer", LaunchUse::on, "overlap_param_gather"},
    {"tp_comm_overlap", LaunchUse::on, "overlap_tensor_parallel=full"},
    {"no_async_tensor_model_parallel_allreduce", LaunchUse::on, "overlap_tensor_parallel=none"},
    {"no_overlap_p2p_communication", LaunchUse::off, "overlap_p2p"},
    {"overlap_p2p_communication", LaunchUse::on, "overlap_p2p"},
    {"overlap_p2p_comm", LaunchUse::on, "overlap_p2p"},
    {"no_rope_fusion", LaunchUse::on, "rotary_kernel=rotate_chunks"},
    {"no_gradient_accumulation_fusion", LaunchUse::on, "gradient_accumulation=separate"},
    {"delay_wgrad_compute", LaunchUse::on, "delay_weight_gradients"},
    {"moe_shared_expert_overlap", LaunchUse::on, "overlap_shared_experts"},
    {"ddp_bucket_size", LaunchUse::choice, "bucket_parameters"},
    {"hidden_size", LaunchUse::member, "hidden"},
    {"num_attention_heads", LaunchUse::member, "heads"},
    {"swiglu", LaunchUse::member, "activation=swiglu"},
    {"squared_relu", LaunchUse::member, "activation=squared_relu"},
    {"quick_geglu", LaunchUse::member, "activation=geglu"},
    {"geglu", LaunchUse::member, "activation=geglu"},
    {"gated_linear_unit_geglu", LaunchUse::member, "activation=geglu"},
    {"gelu_tanh", LaunchUse::member,
     "activation=geglu"},  // [MindSpeed-LLM, which sets gated_linear_unit with it]
    {"openai_gelu", LaunchUse::member, "activation=gelu"},
    {"untie_embeddings_and_output_weights", LaunchUse::member, "tied_embeddings=false"},
    {"disable_bias_linear", LaunchUse::member, "linear_bias=false"},
    {"add_qkv_bias", LaunchUse::member, "qkv_bias=true"},
    {"fp32_residual_connection", LaunchUse::member, "kernels/residual_dtype=fp32"},
    {"make_vocab_size_divisible_by", LaunchUse::member, "vocabulary_multiple"},
    {"mtp_num_layers", LaunchUse::member, "mtp_layers"},
    {"num_mtp_predictor", LaunchUse::member, "mtp_layers"},
    {"attention_output_gate", LaunchUse::member, "attention_gate=true"},
    {"cpu_offloading_weights", LaunchUse::unmodelled, "weights on the host"},
    {"no_bias_gelu_fusion", LaunchUse::unmodelled, "a fusion that is off"},
    {"no_bias_swiglu_fusion", LaunchUse::unmodelled, "a fusion that is off"},
    {"no_bias_dropout_fusion", LaunchUse::unmodelled, "a fusion that is off"},
    {"no_masked_softmax_fusion", LaunchUse::unmodelled, "a fusion that is off"},
    {"no_persist_layer_norm", LaunchUse::unmodelled, "a fusion that is off"},
    {"moe_z_loss_coeff", LaunchUse::unmodelled, "the z-loss of the router"},
    {"fp8_multi_head_attention", LaunchUse::unmodelled, "queries, keys and values that linears give in FP8"},
    {"no_fp8_wgrad", LaunchUse::unmodelled, "weight gradients beside FP8"},
    {"fp8_wgrad", LaunchUse::unmodelled, "weight gradients beside FP8"},
    {"standalone_embedding_stage", LaunchUse::unmodelled, "a stage of the embedding alone"},
    {"pipeline_model_parallel_split_rank", LaunchUse::unmodelled, "an encoder on ranks of its own"},
    {"encoder_tensor_model_parallel_size", LaunchUse::unmodelled, "an encoder on ranks of its own"},
    {"encoder_pipeline_model_parallel_size", LaunchUse::unmodelled, "an encoder on ranks of its own"},
    {"use_nccl_ub", LaunchUse::unmodelled, "registered buffers of NCCL"},
    {"fsdp_double_buffer", LaunchUse::unmodelled, "registered buffers of NCCL"},
    {"nccl_ub", LaunchUse::unmodelled, "registered buffers of NCCL"},
    {"high_priority_stream_groups", LaunchUse::unmodelled, "streams of high priority"},
    {"use_tp_pp_dp_mapping", LaunchUse::unmodelled, "another order of the ranks"},
    {"moe_deepep_num_sms", LaunchUse::unmodelled, "the SMs of the dispatcher"},
    {"moe_hybridep_num_sms", LaunchUse::unmodelled, "the SMs of the dispatcher"},
    {"moe_flex_dispatcher_num_sms", LaunchUse::unmodelled, "the SMs of the dispatcher"},
    {"reset_position_ids", LaunchUse::unmodelled, "documents that are packed in a sequence"},
    {"reset_attention_mask", LaunchUse::unmodelled, "documents that are packed in a sequence"},
    {"sft_packing", LaunchUse::unmodelled, "documents that are packed in a sequence"},
    {"dataset_type", LaunchUse::unmodelled, "documents that are packed in a sequence"},
    {"sequence_packing", LaunchUse::unmodelled, "documents that are packed in a sequence"},
    {"create_moe_param_group", LaunchUse::unmodelled, "a group of the optimizer for experts"},
    {"moe_token_dropping", LaunchUse::unmodelled, "tokens that are dropped"},
    {"moe_token_drop_policy", LaunchUse::unmodelled, "tokens that are dropped"},
    {"freeze_LM", LaunchUse::unmodelled, "frozen weights: read as if all were trained"},
    {"freeze_ViT", LaunchUse::unmodelled, "frozen weights: read as if all were trained"},
    {"moe_permute_fusion", LaunchUse::unmodelled, "tokens are put in order by one kernel"},
    {"disable_bf16_reduced_precision_matmul", LaunchUse::unmodelled, "products that sum in FP32"},
    {"export_force_local_attention", LaunchUse::unmodelled, "attention without Transformer Engine"},
    {"softmax_scale", LaunchUse::unmodelled, "a scale of the scores"},
    {"rotary_percent", LaunchUse::unmodelled, "positions of a part of a head, unless 1"},
    {"activation_func_clamp_value", LaunchUse::own},
    {"glu_linear_offset", LaunchUse::own},
    {"offload_optimizer_states", LaunchUse::unmodelled, "optimizer states on the host between steps"},
    {"mlp_type", LaunchUse::unmodelled, "layers of a fork"},
    {"residual_type", LaunchUse::unmodelled, "layers of a fork"},
    {"curriculum_learning", LaunchUse::unmodelled, "sequences that grow"},
    {"data_efficiency_curriculum_learning", LaunchUse::unmodelled, "sequences that grow"},
    {"random_ltd", LaunchUse::unmodelled, "sequences that grow"},
    // Of MindSpeed.
    {"reuse_fp32_param", LaunchUse::unmodelled, "BF16 weights that share storage with FP32 main parameters"},
    {"swap_attention", LaunchUse::unmodelled, "offload of attention outputs to the host"},
    {"swap_optimizer", LaunchUse::unmodelled, "optimizer states on the host between steps"},
    {"recompute_activation_function", LaunchUse::unmodelled, "recomputation of the MLP's activation"},
    {"recompute_norm", LaunchUse::unmodelled, "recomputation of norms"},
    {"enable_recompute_layers_per_pp_rank", LaunchUse::unmodelled,
     "recomputed layers counted per pipeline rank"},
    {"moe_alltoall_overlap_comm", LaunchUse::unmodelled, "MindSpeed's overlap of MoE communication"},
    {"moe_allgather_overlap_comm", LaunchUse::unmodelled, "MindSpeed's overlap of MoE communication"},
    {"moe_tp_extend_ep", LaunchUse::unmodelled, "TP ranks used as EP ranks"},
});

// Those that megatron_in.cpp and megatron_model.cpp look at together.
constexpr std::string_view own =
    " DDP_impl context_parallel_algo account_for_embedding_in_pipeline_split "
    "account_for_loss_in_pipeline_split "
    " accumulate_allreduce_grads_in_fp32 activations_checkpoint_granularity activations_checkpoint_method "
    " activations_checkpoint_num_layers attention_backend attention_dropout bf16 checkpoint_activations "
    " checkpoint_num_layers cp_comm_type cpu_offloading cpu_optimizer cross_entropy_fusion_impl "
    " cross_entropy_loss_fusion cuda_graph_impl cuda_graph_modules cuda_graph_scope "
    " data_parallel_sharding_strategy decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers "
    " decoder_num_layers decoder_seq_length deepspeed deepspeed_activation_checkpointing deepspeed_config "
    " ds_sequence_parallel_size enable_cuda_graph enable_gpt_oss encoder_num_layers encoder_seq_length "
    " expert_interval external_cuda_graph extra_vocab_size ffn_hidden_size first_k_dense_replace "
    " first_last_layers_bf16 fp16 fp4 fp4_format fp4_recipe fp8 fp8_e4m3 fp8_format fp8_hybrid fp8_recipe "
    " grad_reduce_in_bf16 grad_reduce_in_fp32 gradient_accumulation_steps group_query_attention "
    " hidden_dropout hybrid_attention_ratio hybrid_layer_pattern hybrid_mlp_ratio hybrid_override_pattern "
    " is_hybrid_model kv_channels kv_lora_rank lora_r lora_target_modules main_grads_dtype main_params_dtype "
    "mamba_head_dim "
    " mamba_num_groups mamba_num_heads mamba_state_dim max_position_embeddings merge_file "
    " moe_enable_deepep moe_expert_capacity_factor moe_ffn_hidden_size moe_flex_dispatcher_backend "
    " moe_intermediate_size "
    " moe_grouped_gemm moe_latent_size moe_layer_freq moe_layer_recompute moe_router_dtype "
    " moe_router_enable_expert_bias moe_router_group_topk moe_router_load_balancing_type "
    " moe_router_num_groups moe_router_pre_softmax moe_router_score_function moe_router_topk "
    " moe_shared_expert_gate moe_shared_expert_intermediate_size moe_token_dispatcher_type "
    " moe_train_capacity_factor moe_use_upcycling multi_latent_attention n_shared_experts "
    " no_pipeline_parallel no_position_embedding normalization num_attention_heads_kv "
    " num_distributed_optimizer_instances num_experts num_key_value_heads num_layers "
    " num_layer_list num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage "
    " num_layers_per_virtual_pipeline_stage num_microbatches num_moe_experts num_query_groups "
    " num_shared_experts optimizer optimizer_cpu_offload optimizer_offload_fraction pad_vocab_size_to "
    "padded_vocab_size "
    " patch_tokenizer_type pipeline_model_parallel_layout position_embedding_type q_lora_rank qk_head_dim "
    " qk_l2_norm qk_layernorm qk_nope_head_dim qk_pos_emb_head_dim qk_rope_head_dim rampup_batch_size "
    " recompute_activations recompute_granularity recompute_method recompute_modules recompute_num_layers "
    " rotary_scaling_factor seq_length should_pad_vocab softmax_type tokenizer_model tokenizer_type topk "
    " transformer_impl use_custom_fsdp use_distributed_optimizer use_flash_attn use_flash_attn_triton "
    " use_flash_attn_v2 use_megatron_fsdp use_precision_aware_optimizer use_rope_scaling "
    " use_rotary_position_embeddings use_shared_expert_gate use_torch_fsdp2 v_head_dim vocab_file "
    " vocab_size window_attn_skip_freq window_size world_size yaml_cfg zero_bubble_max_pending_backward "
    " zero_bubble_v_schedule zero_bubble_v_schedule_mem_setup enable_zero_bubble zero_stage ";

// Paths, logs, checkpoints, data, learning rates, seeds, and defaults that are said.
constexpr std::string_view idle =
    " ai_framework gemm_gradient_accumulation_fusion moe_permutation_async_comm no_shared_storage "
    " norm_topk_prob seq_aux mla_fa_without_pad use_ascend_coc use_ascend_mc2 use_fused_mlp "
    " use_fused_moe_token_permute_and_unpermute use_fused_ring_attention_update use_fused_rmsnorm "
    " use_fused_rotary_pos_emb use_fused_swiglu use_mc2 beta_fast beta_slow rope_scaling_type "
    " allow_missing_vision_projection_checkpoint data_path2 use_te "
    " accumulate_allreduce_grads adam_beta1 adam_beta2 adam_eps adlr_autoresume app_tag_run_name "
    " app_tag_run_version apply_layernorm_1p apply_norm_1p apply_query_key_layer_scaling "
    " apply_residual_connection_post_layernorm async_save attention_softmax_in_fp32 "
    " auto_detect_ckpt_format auto_tune calculate_per_token_loss check_for_nan_in_loss_and_grad "
    " check_weight_hash_across_dp_replicas_interval checkpoint_in_cpu ckpt_assume_constant_structure "
    " ckpt_format ckpt_fully_parallel_load ckpt_fully_parallel_save ckpt_step clip_grad "
    " clone_scatter_output_in_embedding config_logger_dir consumed_train_samples contigious_checkpointing "
    " contiguous_buffers cross_entropy_loss_fusion_impl csv cuda_graph_warmup_steps data_args_path "
    " data_cache_path data_impl data_parallel_random_init data_path data_sharding dataloader_type dataset "
    " decoupled_lr decoupled_min_lr defer_embedding_wgrad_compute delay_param_gather deterministic_mode "
    " disable_moe_token_dropping disable_mtp "
    " disable_straggler_on_startup dist_ckpt_format dist_ckpt_strictness dist_url distillation "
    " distributed_backend distributed_timeout_minutes spec ds_inference embedding_init_method_std "
    " embedding_path empty_unused_memory_level enable_experimental enable_ft_package enable_msc "
    " enable_one_logger end_weight_decay eod_mask_loss error_injection_rate eval_batch_times eval_interval "
    " eval_iters exit_duration_in_mins exit_interval exit_on_missing_checkpoint exit_signal "
    " exit_signal_handler exit_signal_handler_dataloader experimental "
    " export_kd_cfg finetune fix_position_emb_redundant_alloc flash_decode fp16_lm_cross_entropy "
    " fp16_optimizer fp8_amax_compute_algo fp8_amax_history_len fp8_interval fp8_margin "
    " fsdp_db_use_persist_buf_on_alloc_fail fsdp_manual_registration full_validation grad_clip "
    " head_lr_mult hybrid_zero_stage hysteresis inference_batch_times_seqlen_threshold "
    " inference_max_batch_size inference_rng_tracker init_method_std init_method_xavier_uniform "
    " init_model_with_meta_device initial_loss_scale inprocess_restart iter_per_epoch keep_last "
    " kill_switch_file kill_switch_path kv_lora layernorm_epsilon lazy_mpu_init legacy_tokenizer load "
    " load_main_params_from_ckpt load_tag local_rank log_batch_size_to_tensorboard log_interval "
    " lora_alpha lora_load "
    " log_learning_rate_to_tensorboard log_level log_level_replica log_loss_scale_to_tensorboard "
    " log_memory_to_tensorboard log_num_zeros_in_grad log_optimizer_states_to_tensorboard log_params_norm "
    " log_progress log_straggler log_throughput log_timers_to_tensorboard "
    " log_validation_ppl_to_tensorboard log_world_size_to_tensorboard logging_level loss_scale "
    " loss_scale_window lr lr_decay_iters lr_decay_samples lr_decay_style lr_decay_tokens "
    " lr_warmup_fraction lr_warmup_init lr_warmup_iters lr_warmup_samples lr_warmup_tokens "
    " lr_wsd_decay_iters lr_wsd_decay_samples lr_wsd_decay_style manual_gc manual_gc_eval "
    " manual_gc_interval mask_factor mask_prob mask_type max_padding_length max_tokens_to_oom "
    " memory_snapshot_path merge_files micro_batch_times min_loss_scale min_lr mmap_bin_files mmap_warmup "
    " mock_data moe_aux_loss_coeff moe_eval_capacity_factor moe_extended_tp moe_input_jitter_eps "
    " moe_loss_coeff moe_min_capacity moe_per_layer_logging moe_router_bias_update_rate "
    " moe_router_force_load_balancing moe_router_fusion moe_router_topk_limited_devices "
    " moe_router_topk_scaling_factor mscale mscale_all_dim mtp_loss_scaling_factor "
    " nccl_communicator_config_path no_async_save no_barrier_with_level_1_timing "
    " no_check_for_nan_in_loss_and_grad no_ckpt_fully_parallel_save no_contiguous_buffers_in_local_ddp "
    " no_create_attention_mask_in_dataloader no_data_sharding no_fused_kernel no_initialization "
    " no_load_optim no_load_rng no_log_learning_rate_to_tensorboard no_log_loss_scale_to_tensorboard "
    " no_mmap_bin_files no_one_logger no_query_key_layer_scaling no_save_optim no_save_rng "
    " no_scatter_gather_tensors_in_pipeline no_weight_decay_cond_type norm_epsilon num_classes "
    " num_dataset_builder_threads num_trainloader_workers num_workers one_logger_async one_logger_project "
    " one_logger_run_name online_eval_config openai_gelu_ optimizer_type outer_dp_sharding_strategy "
    " overlap_param_gather_with_optimizer_step override_lr_scheduler override_opt_param_scheduler "
    " partition_activations per_split_data_args_path perform_initialization pretrained_checkpoint "
    " pretrained_hf profile profile_backward profile_iterations profile_ranks profile_step_end "
    " profile_step_start quiet rank record_memory_history remote_device replication replication_factor "
    " replication_jump rerun_mode result_rejected_tracker_filename retro_workdir "
    " reuse_grad_buf_for_mxfp8_param_ag rope_scaling_factor rope_type rotary_base rotary_interleaved "
    " rotary_seq_len_interpolation_factor run_workload_inspector_server sample_rate save save_interval "
    " save_retain_interval seed sgd_momentum sharp_enabled_group short_seq_prob skip_train split "
    " start_weight_decay straggler_ctrlr_port straggler_minmax_count strict_fsdp_dtensor_load "
    " suggested_communication_unit_size synchronize_each_layer te_rng_tracker tensorboard_dir "
    " tensorboard_log_interval tensorboard_queue_size test_data_path test_mode tiktoken_num_special_tokens "
    " tiktoken_pattern tiktoken_special_tokens tile_factor timing timing_log_level timing_log_option "
    " titles_data_path tokenizer_hf_use_fast tokenizer_name_or_path train_data_exact_num_epochs "
    " train_data_path train_iters train_mode train_samples train_tokens trust_remote_code "
    " universal_checkpoint use_bnb_optimizer use_checkpoint_args use_checkpoint_opt_param_scheduler "
    " use_contiguous_buffers_in_local_ddp use_contiguous_parameters_in_local_ddp use_cpu_initialization "
    " use_dist_ckpt use_hf_tokenizer use_legacy_models use_legacy_static_engine "
    " use_llama2_rotary_position_embeddings use_mcore_models use_mp_args_from_checkpoint_args "
    " use_multi_token_prediction use_one_sent_docs use_persistent_ckpt_worker use_pytorch_profiler "
    " use_ring_exchange_p2p use_sharp use_spda use_tokenizer_model_from_checkpoint_args valid_data_path "
    " verify_checkpoint verify_checkpoint_model_type verify_integrity vocab_extra_ids wandb_entity "
    " wandb_exp_name wandb_project wandb_save_dir warmup weight_decay weight_decay_incr_style "
    " weighted_loss xavier zero_allgather_bucket_size zero_contigious_gradients zero_reduce_bucket_size "
    " zero_reduce_scatter ";

// Of `own` and of the fields: those that stand alone.
constexpr std::string_view alone =
    " account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split "
    " accumulate_allreduce_grads_in_fp32 bf16 checkpoint_activations cpu_offloading cpu_optimizer "
    " cross_entropy_loss_fusion deepspeed deepspeed_activation_checkpointing "
    " distribute_checkpointed_activations distribute_saved_activations enable_cuda_graph enable_gpt_oss "
    " enable_zero_bubble moe_use_upcycling should_pad_vocab zero_bubble_v_schedule "
    " external_cuda_graph first_last_layers_bf16 fp16 fp4_param fp4_param_gather fp8_dot_product_attention "
    " fp8_e4m3 fp8_hybrid fp8_output_proj fp8_param fp8_param_gather grad_reduce_in_bf16 "
    " group_query_attention is_hybrid_model moe_enable_deepep moe_grouped_gemm moe_layer_recompute "
    " moe_pad_expert_input_to_capacity moe_router_enable_expert_bias moe_router_padding_for_fp8 "
    " moe_router_padding_for_quantization moe_router_pre_softmax moe_shared_expert_gate "
    " multi_latent_attention no_pipeline_parallel no_position_embedding optimizer_cpu_offload "
    " overlap_cpu_optimizer_d2h_h2d overlap_moe_expert_parallel_comm qk_l2_norm qk_layernorm "
    " recompute_activations sequence_parallel tp_only_amax_red use_custom_fsdp use_distributed_optimizer "
    " use_flash_attn use_flash_attn_triton use_flash_attn_v2 use_megatron_fsdp "
    " use_precision_aware_optimizer use_rope_scaling use_rotary_position_embeddings use_shared_expert_gate "
    " use_torch_fsdp2 ";

// Of `own`: those whose values may be none.
constexpr std::string_view lists = " cuda_graph_modules cuda_graph_scope recompute_modules ";

constexpr LaunchKey own_key{"", LaunchUse::own};
constexpr LaunchKey idle_key{"", LaunchUse::idle};

bool is_word_of(std::string_view words, std::string_view name) {
  return words.find(" " + std::string(name) + " ") != std::string_view::npos;
}

// Paths, data and checkpoints of forks.
bool is_of_files(std::string_view name) {
  constexpr std::array<std::string_view, 4> starts{"dataloader_", "save_", "val_", "valid_"};
  constexpr std::array<std::string_view, 3> ends{"_path", "_paths", "_dir"};
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view it) { return name.starts_with(it); }) ||
         std::any_of(ends.begin(), ends.end(), [&](std::string_view it) { return name.ends_with(it); });
}

}  // namespace

const LaunchKey* find_megatron_key(std::string_view name) {
  const auto* const found =
      std::find_if(told.begin(), told.end(), [&](const LaunchKey& key) { return key.name == name; });
  if (found != told.end()) return found;
  if (is_word_of(own, name)) return &own_key;
  // Also --no-x, where x is idle.
  const bool negated = name.starts_with("no_") && is_word_of(idle, name.substr(3));
  return negated || is_word_of(idle, name) || is_of_files(name) ? &idle_key : nullptr;
}

std::vector<std::string_view> megatron_names() {
  std::vector<std::string_view> names = parts_of(own, ' ');
  std::erase(names, std::string_view());
  for (const LaunchKey& key : told) names.push_back(key.name);
  return names;
}

bool is_megatron_switch(std::string_view name) {
  if (is_word_of(alone, name)) return true;
  const LaunchKey* const key = find_megatron_key(name);
  if (key == nullptr) return false;
  if (key->use == LaunchUse::on || key->use == LaunchUse::off) return true;
  return key->use == LaunchUse::member && key->target.find('=') != std::string_view::npos;
}

bool needs_megatron_value(std::string_view name) {
  const LaunchKey* const key = find_megatron_key(name);
  if (key == nullptr || is_megatron_switch(name) || is_word_of(lists, name)) return false;
  return key->use == LaunchUse::field || key->use == LaunchUse::choice || key->use == LaunchUse::member ||
         key->use == LaunchUse::own;
}

}  // namespace headroom
