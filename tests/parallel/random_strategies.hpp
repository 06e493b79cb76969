// Random questions about legality: models, stacks and systems with strategies that change some fields of a stack's defaults.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// Values of a field, with semicolons between. Most are legal somewhere.
struct FieldValues {
  std::string_view field;
  std::string_view values;
};
inline constexpr std::array field_values{
    FieldValues{"tensor_parallel", "1;2;3;4;8;16"},
    FieldValues{"pipeline_parallel", "1;2;3;4;8;96"},
    FieldValues{"virtual_pipeline", "1;2;3;4;12"},
    FieldValues{"context_parallel", "1;2;3;4;8"},
    FieldValues{"cp_comm", "p2p;all_gather;a2a;a2a_p2p"},
    FieldValues{"hierarchical_cp_sizes", "2,2;2,4;1,2;3"},
    FieldValues{"data_parallel", "1;2;3;4;8;64"},
    FieldValues{"expert_parallel", "1;2;4;8;3;64"},
    FieldValues{"expert_tensor_parallel", "1;2;4"},
    FieldValues{"moe_dispatcher", "alltoall;allgather;deepep;hybridep"},
    FieldValues{"moe_router_padding", "yes;no"},
    FieldValues{"moe_pad_to_capacity", "yes;no"},
    FieldValues{"fp8_activation_input", "yes;no"},
    FieldValues{"micro_batch", "1;2;3;4"},
    FieldValues{"global_batch", "1;8;48;64;96;1000"},
    FieldValues{"sequence", "2048;4096;1001;8192;64"},
    FieldValues{"schedule",
                "gpipe;1f1b;interleaved;looped-bfs;zero-bubble-h1;zero-bubble-h2;zero-bubble-v;v-half;v-min;"
                "dualpipe;dualpipe-v"},
    FieldValues{"overlap_expert_all_to_all", "yes;no"},
    FieldValues{"stage_layers", "16,16;8,8,8,8;6,6;3,4,4,1;0,16,16,0;12"},
    FieldValues{"microbatch_group_size", "2;4;5;8"},
    FieldValues{"sequence_parallel", "yes;no"},
    FieldValues{"split_hidden", "yes;no"},
    FieldValues{"recompute", "none;selective;full;selective_op"},
    FieldValues{"recompute_ops",
                "core_attn;moe_act;mlp;layernorm;moe;activation;nothing;mlp,mlp;shared_experts"},
    FieldValues{"recompute_layers", "1;2;5;1000"},
    FieldValues{"recompute_method", "block;uniform"},
    FieldValues{"recompute_window", "yes;no"},
    FieldValues{"distribute_saved_activations", "yes;no"},
    FieldValues{"save_gathered_input", "yes;no"},
    FieldValues{"data_sharding", "none;zero1;zero2;zero3"},
    FieldValues{"shard_size", "1;2;3;4"},
    FieldValues{"no_reshard_after_forward", "yes;no"},
    FieldValues{"sync_each_batch", "yes;no"},
    FieldValues{"precision", "bf16;fp8;fp8_delayed;fp8_blockwise;mxfp8;nvfp4"},
    FieldValues{"fp8_param_gather", "yes;no"},
    FieldValues{"bf16_layers_at_start", "1;2;1000"},
    FieldValues{"bf16_layers_at_end", "1;2;1000"},
    FieldValues{"fp8_attention", "yes;no"},
    FieldValues{"fp8_output_layer", "yes;no"},
    FieldValues{"bf16_modules", "attention;mlp;experts;mamba;attention,mlp;mtp;linear_proj"},
    FieldValues{"tp_only_amax_red", "yes;no"},
    FieldValues{"gradient_dtype", "fp32;bf16"},
    FieldValues{"optimizer", "adam;sgd;adafactor;muon"},
    FieldValues{"main_params_dtype", "fp32;fp16;remainder;none"},
    FieldValues{"exp_avg_dtype", "fp32;bf16;fp8"},
    FieldValues{"exp_avg_sq_dtype", "fp32;bf16;fp8"},
    FieldValues{"step_in_backward", "yes;no"},
    FieldValues{"optimizer_offload_fraction", "0.5;1"},
    FieldValues{"overlap_cpu_optimizer", "yes;no"},
    FieldValues{"offload_parameters", "yes;no"},
    FieldValues{"offload_modules",
                "core_attn;core_attn,attn_proj;attn_proj;layer_input;moe_act;mlp_norm;nothing"},
    FieldValues{"offload_layers", "1;4;1000"},
    FieldValues{"lora_rank", "8;9;100000"},
    FieldValues{"lora_targets", "all-linear;q_proj,v_proj;down_proj;in_proj;qkv_proj,q_proj;nothing"},
    FieldValues{"lora_dropout", "0.1"},
    FieldValues{"base_dtype", "bf16;nf4"},
};

// Draws them; the same seed draws the same.
class RandomStrategies {
 public:
  explicit RandomStrategies(std::uint32_t seed) : random_(seed) {
    for (const char* const name : {"gpt3-175b", "gpt2-small", "llama-3-8b", "mixtral-8x7b", "deepseek-v3",
                                   "nemotron-h-8b", "gpt-oss-20b", "gemma-2-9b", "qwen3-30b-a3b"})
      models_.push_back(read_model(name));
    for (const std::string_view name : embedded_names("software"))
      stacks_.push_back(read_software(std::string(name)));
    for (const char* const name : {"dgx-a100-80g", "dgx-h100-80g", "gb200-nvl72"})
      systems_.push_back(read_system(name));
  }

  Request next() {
    const Software& stack = stacks_[below(stacks_.size())];
    Request request{.model = with_attention(models_[below(models_.size())], stack.attention_kernel),
                    .system = systems_[below(systems_.size())],
                    .software = stack,
                    .strategy = {},
                    .workload = {.global_batch = 192}};
    request.workload.sequence = request.model.sequence;
    request.strategy = with_stack_defaults({}, stack, request.model);
    request.strategy.data_sharding = least_sharding(stack);
    edits.clear();
    for (std::size_t changes = below(7); changes > 0; --changes) {
      const auto& [field, values] = field_values[below(field_values.size())];
      std::vector<std::string_view> choices;
      for (std::string_view rest = values;;) {
        const std::size_t end = rest.find(';');
        choices.push_back(rest.substr(0, end));
        if (end == std::string_view::npos) break;
        rest.remove_prefix(end + 1);
      }
      edits.push_back({std::string(field), std::string(choices[below(choices.size())])});
      apply(edits.back(), request.strategy, request.workload);
    }
    return request;
  }

  Edits edits;  // of the last

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  std::mt19937 random_;
  std::vector<Transformer> models_;
  std::vector<Software> stacks_;
  std::vector<System> systems_;
};

}  // namespace headroom
