// Kimi Delta Attention, a mixer in place of attention whose state decays by channel [Kimi Team,
// arXiv:2510.26692]: its sizes and its row of the table of mixers. kimi_delta_ops.hpp has its op table.
#pragma once

#include "headroom/model/parts/part.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

struct KimiDelta {
  std::int64_t heads = 0;       // H
  std::int64_t head_size = 0;   // P, of q, k and v; also the rank of decays and of the output gate
  std::int64_t conv_width = 4;  // taps of the causal convolutions, in tokens
  friend bool operator==(const KimiDelta&, const KimiDelta&) = default;
};

// Return what the kernels of its delta rule move in each pass.
ScanWork kimi_delta_forward(const Scan& scan);
ScanWork kimi_delta_backward(const Scan& scan);
inline constexpr ScanKernels kimi_delta_kernels{kimi_delta_forward, kimi_delta_backward, "attn"};

constexpr std::int64_t inner_width(const KimiDelta& mixer) { return mixer.heads * mixer.head_size; }

// Hugging Face's keys are those of linear_attn_config [moonshotai/Kimi-Linear-48B-A3B-Instruct,
// configuration_kimi.py]. Its q_proj, k_proj, v_proj and o_proj have the names of attention's.
inline constexpr MixerRow<KimiDelta> kimi_delta_row{
    .name = "kimi_delta",
    .title = "Kimi Delta Attention",
    .batch_first = true,
    .sizes = {{.word = "heads",
               .member = &KimiDelta::heads,
               .letter = Symbol::recurrent_heads,
               .divided = "heads of Kimi Delta Attention",
               .in_run = {"heads"},
               .in_hub = {{"num_heads"}, 32}},
              {.word = "head_size",
               .member = &KimiDelta::head_size,
               .letter = Symbol::recurrent_head_size,
               .is_width = true,
               .in_run = {"head_dim"},
               .in_hub = {{"head_dim"}, 128}},
              {.word = "conv_width",
               .member = &KimiDelta::conv_width,
               .required = false,
               .in_hub = {{"short_conv_kernel_size"}, 4}}},
    .widths = {{"the width of the heads of Kimi Delta Attention", inner_width}},
    // As for gated DeltaNet, whose class Megatron-LM derives this one from.
    .recompute = {"gdn_norm_out", true, "delta_norm output_gate"},
    .linears = {{"kimi_delta", "qkv f_a_proj f_b_proj g_a_proj g_b_proj b_proj projection"}},
    .lora_targets = {{"f_a_proj", "", {"f_a_proj"}, all_parts},
                     {"f_b_proj", "", {"f_b_proj"}, all_parts},
                     {"g_a_proj", "", {"g_a_proj"}, all_parts},
                     {"g_b_proj", "", {"g_b_proj"}, all_parts},
                     {"b_proj", "", {"b_proj"}, all_parts}},
    .adapters =
        {{"f_a_proj", "f_a_proj_lora_dropout", "f_a_proj_lora_a", "f_a_proj_lora_b", "f_a_proj_lora_add"},
         {"f_b_proj", "f_b_proj_lora_dropout", "f_b_proj_lora_a", "f_b_proj_lora_b", "f_b_proj_lora_add"},
         {"g_a_proj", "g_a_proj_lora_dropout", "g_a_proj_lora_a", "g_a_proj_lora_b", "g_a_proj_lora_add"},
         {"g_b_proj", "g_b_proj_lora_dropout", "g_b_proj_lora_a", "g_b_proj_lora_b", "g_b_proj_lora_add"},
         {"b_proj", "b_proj_lora_dropout", "b_proj_lora_a", "b_proj_lora_b", "b_proj_lora_add"}},
    .hub_layers = {{.types = {"kimi_linear"}, .object = "linear_attn_config", .places = "kda_layers"}},
    .warning = {"kimi_delta_assumed",
                "the delta rule of Kimi Delta Attention is timed by the bytes of its kernels; their rate was "
                "fitted to forward kernels of gated DeltaNet and is assumed for these"}};

}  // namespace headroom
