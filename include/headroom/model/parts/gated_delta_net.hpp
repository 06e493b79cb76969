// Gated DeltaNet, a mixer in place of attention in Qwen3-Next and Qwen3.5 [Yang et al., arXiv:2412.06464]:
// its sizes and its row of the table of mixers. gated_delta_net_ops.hpp has its op table.
#pragma once

#include "headroom/model/parts/part.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

struct GatedDeltaNet {
  std::int64_t heads = 0;          // H, of values
  std::int64_t head_size = 0;      // P
  std::int64_t key_heads = 0;      // G, of queries and keys; H/G heads of values share one
  std::int64_t key_head_size = 0;  // S
  std::int64_t conv_width = 4;     // taps of the causal convolution, in tokens
  friend bool operator==(const GatedDeltaNet&, const GatedDeltaNet&) = default;
};

// Return what the kernels of its delta rule move in each pass.
ScanWork gated_delta_forward(const Scan& scan);
ScanWork gated_delta_backward(const Scan& scan);
inline constexpr ScanKernels gated_delta_kernels{gated_delta_forward, gated_delta_backward, "attn"};

// Hugging Face's keys are those of qwen3_next [huggingface/transformers,
// models/qwen3_next/configuration_qwen3_next.py].
inline constexpr MixerRow<GatedDeltaNet> gated_delta_net_row{
    .name = "gated_delta_net",
    .title = "gated DeltaNet",
    .letter = 'G',
    .batch_first = true,
    .sizes = {{.word = "heads",
               .member = &GatedDeltaNet::heads,
               .letter = Symbol::recurrent_heads,
               .divided = "value heads of gated DeltaNet",
               .in_run = {"heads"},
               .in_hub = {{"linear_num_value_heads"}, 32},
               .flag = "--linear-num-value-heads"},
              {.word = "head_size",
               .member = &GatedDeltaNet::head_size,
               .letter = Symbol::recurrent_head_size,
               .is_width = true,
               .in_run = {"head_dim"},
               .in_hub = {{"linear_value_head_dim"}, 128},
               .flag = "--linear-value-head-dim"},
              {.word = "key_heads",
               .member = &GatedDeltaNet::key_heads,
               .letter = Symbol::recurrent_groups,
               .divided = "key heads of gated DeltaNet",
               .in_run = {"key_heads"},
               .in_hub = {{"linear_num_key_heads"}, 16},
               .flag = "--linear-num-key-heads"},
              {.word = "key_head_size",
               .member = &GatedDeltaNet::key_head_size,
               .letter = Symbol::recurrent_state_size,
               .is_width = true,
               .in_run = {"key_head_dim"},
               .in_hub = {{"linear_key_head_dim"}, 128},
               .flag = "--linear-key-head-dim"},
              {.word = "conv_width",
               .member = &GatedDeltaNet::conv_width,
               .required = false,
               .in_hub = {{"linear_conv_kernel_dim"}, 4},
               .flag = "--linear-conv-kernel-dim"}},
    .multiples = {{&GatedDeltaNet::heads, &GatedDeltaNet::key_heads,
                   "must have heads that are a multiple of its key_heads"}},
    .widths = {{"the width of q, k, v, z, beta and alpha",
                [](const GatedDeltaNet& of) {
                  return 2 * of.key_heads * of.key_head_size + 2 * of.heads * of.head_size + 2 * of.heads;
                }},
               {"the width of the value heads of gated DeltaNet",
                [](const GatedDeltaNet& of) { return of.heads * of.head_size; }}},
    // The module of Megatron-LM [core/transformer/transformer_config.py, recompute_modules].
    .recompute = {"gdn_norm_out", true, "delta_norm output_gate"},
    .linears = {{"gated_delta_net", "in_proj out_proj"}, {"in_proj", "in_proj"}, {"out_proj", "out_proj"}},
    .lora_targets = {{"in_proj", "", {"in_proj"}, all_parts}, {"out_proj", "", {"out_proj"}, all_parts}},
    .hub_layers = {{.types = {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"},
                    .word = "linear_attention",
                    .interval = "full_attention_interval"}},
    .warning = {
        "delta_rule_assumed",
        "the delta rule of gated DeltaNet layers is timed by the bytes of its kernels; their rate was "
        "fitted to forward kernels and is assumed for the backward pass"}};

}  // namespace headroom
