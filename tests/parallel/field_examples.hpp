// An example of each field of a strategy, for tests that go through all of them.
#pragma once

namespace headroom {

// A value that the field does not have by default.
struct FieldExample {
  const char* field;
  const char* value;
};

inline constexpr FieldExample field_examples[] = {{"tensor_parallel", "8"},
                                                  {"pipeline_parallel", "4"},
                                                  {"virtual_pipeline", "3"},
                                                  {"context_parallel", "4"},
                                                  {"cp_comm", "all_gather"},
                                                  {"hierarchical_cp_sizes", "2,4"},
                                                  {"data_parallel", "2"},
                                                  {"expert_parallel", "8"},
                                                  {"expert_tensor_parallel", "2"},
                                                  {"moe_dispatcher", "hybridep"},
                                                  {"moe_router_padding", "yes"},
                                                  {"moe_pad_to_capacity", "yes"},
                                                  {"micro_batch", "5"},
                                                  {"global_batch", "640"},
                                                  {"sequence", "4096"},
                                                  {"moe_imbalance", "typical"},
                                                  {"moe_balancing", "loss_free"},
                                                  {"reference_model", "yes"},
                                                  {"schedule", "gpipe"},
                                                  {"overlap_expert_all_to_all", "yes"},
                                                  {"stage_layers", "3,4,0"},
                                                  {"microbatch_group_size", "5"},
                                                  {"sequence_parallel", "yes"},
                                                  {"split_hidden", "yes"},
                                                  {"recompute", "selective"},
                                                  {"recompute_ops", "gelu,norm_1"},
                                                  {"recompute_layers", "2"},
                                                  {"recompute_method", "uniform"},
                                                  {"recompute_window", "yes"},
                                                  {"distribute_saved_activations", "yes"},
                                                  {"save_gathered_input", "yes"},
                                                  {"keep_pipeline_outputs", "yes"},
                                                  {"data_sharding", "zero3"},
                                                  {"shard_size", "4"},
                                                  {"no_reshard_after_forward", "yes"},
                                                  {"sync_each_batch", "yes"},
                                                  {"precision", "mxfp8"},
                                                  {"fp8_param_gather", "yes"},
                                                  {"bf16_layers_at_start", "1"},
                                                  {"bf16_layers_at_end", "2"},
                                                  {"fp8_attention", "yes"},
                                                  {"fp8_output_layer", "yes"},
                                                  {"fp8_activation_input", "yes"},
                                                  {"bf16_modules", "attention,mtp"},
                                                  {"tp_only_amax_red", "yes"},
                                                  {"gradient_dtype", "half"},
                                                  {"optimizer", "muon"},
                                                  {"main_params_dtype", "none"},
                                                  {"exp_avg_dtype", "int8"},
                                                  {"exp_avg_sq_dtype", "bf16"},
                                                  {"step_in_backward", "yes"},
                                                  {"optimizer_offload_fraction", "0.5"},
                                                  {"overlap_cpu_optimizer", "yes"},
                                                  {"offload_parameters", "yes"},
                                                  {"offload_modules", "core_attn,attn_proj"},
                                                  {"offload_layers", "2"},
                                                  {"lora_rank", "16"},
                                                  {"lora_targets", "q_proj,v_proj"},
                                                  {"lora_dropout", "0.05"},
                                                  {"base_dtype", "nf4"}};

}  // namespace headroom
