// Mamba-2, a mixer in place of attention [Dao and Gu, arXiv:2405.21060]: its sizes and its row of the table
// of mixers. mamba_ops.hpp has its op table.
#pragma once

#include "headroom/model/parts/part.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

struct Mamba {
  std::int64_t heads = 0;       // H
  std::int64_t head_size = 0;   // P
  std::int64_t groups = 0;      // G; the H/G heads of a group share B and C
  std::int64_t state_size = 0;  // S
  std::int64_t conv_width = 4;  // taps of the causal convolution, in tokens
  // Tokens in a chunk of the scan [Megatron-LM, core/ssm/mamba_mixer.py].
  std::int64_t chunk_size = 128;
  friend bool operator==(const Mamba&, const Mamba&) = default;
};

// Bandwidth of one multiprocessor in the kernels of its scan (time/scan.hpp has the source).
inline constexpr BytesPerSecond mamba_bandwidth{10e9};

// Return what the kernels of its scan move in each pass.
ScanWork mamba_forward(const Scan& scan);
ScanWork mamba_backward(const Scan& scan);
inline constexpr ScanKernels mamba_kernels{mamba_forward, mamba_backward, "mamba"};

constexpr std::int64_t inner_width(const Mamba& mamba) { return mamba.heads * mamba.head_size; }

// Returns the size of a head of a mixer that is `expand` times as wide as the hidden size.
constexpr std::int64_t derived_head_size(const HubWidths& of, const Mamba& mamba) {
  return mamba.heads > 0 ? of.expand * of.hidden / mamba.heads : 0;
}

// Hugging Face's keys are those of nemotron_h [nvidia/Nemotron-H-8B-Base-8K, configuration_nemotron_h.py],
// and of bamba, granitemoehybrid and mamba2 [huggingface/transformers, models/TYPE/configuration_TYPE.py].
// Context parallelism exchanges tokens for heads and groups, and each rank needs at least one of both.
inline constexpr MixerRow<Mamba> mamba_row{
    .name = "mamba",
    .title = "Mamba",
    .letter = 'M',
    .batch_first = true,
    .sizes = {{.word = "heads",
               .member = &Mamba::heads,
               .letter = Symbol::recurrent_heads,
               .divided = "Mamba heads",
               .in_run = {"heads"},
               .in_hub = {{"mamba_num_heads", "mamba_n_heads", "num_heads"}, 128},
               .flag = "--mamba-num-heads"},
              {.word = "head_size",
               .member = &Mamba::head_size,
               .letter = Symbol::recurrent_head_size,
               .is_width = true,
               .in_run = {"head_dim"},
               .in_hub = {{"mamba_head_dim", "mamba_d_head", "head_dim"}, 64, derived_head_size},
               .flag = "--mamba-head-dim"},
              {.word = "groups",
               .member = &Mamba::groups,
               .letter = Symbol::recurrent_groups,
               .divided = "groups of Mamba heads",
               .context_limit = ": replicated groups are not modelled",
               .in_run = {"groups", 8},  // Megatron-LM's default
               .in_hub = {{"n_groups", "mamba_n_groups"}, 8},
               .flag = "--mamba-num-groups"},
              {.word = "state_size",
               .member = &Mamba::state_size,
               .letter = Symbol::recurrent_state_size,
               .is_width = true,
               .in_run = {"state"},
               .in_hub = {{"ssm_state_size", "mamba_d_state", "state_size"}, 128},
               .flag = "--mamba-state-dim"},
              {.word = "conv_width",
               .member = &Mamba::conv_width,
               .required = false,
               .in_hub = {{"conv_kernel", "mamba_d_conv"}, 4}},
              {.word = "chunk_size",
               .member = &Mamba::chunk_size,
               .is_width = true,
               .required = false,
               .in_hub = {{"chunk_size", "mamba_chunk_size"}, 128}}},
    .multiples = {{&Mamba::heads, &Mamba::groups, "must have heads that are a multiple of its groups"}},
    .widths = {{"the width of z, x, B, C and dt",
                [](const Mamba& of) {
                  return 2 * inner_width(of) + 2 * of.groups * of.state_size + of.heads;
                }},
               {"the width of the Mamba heads", inner_width}},
    // The module of Megatron-LM's pull request 5463.
    .recompute = {"mamba", false, "in_proj to_batch_first mamba_scan from_batch_first mamba_norm out_proj"},
    .linears = {{"mamba", "in_proj out_proj"}, {"in_proj", "in_proj"}, {"out_proj", "out_proj"}},
    .lora_targets = {{"in_proj", "", {"in_proj"}, all_parts}, {"out_proj", "", {"out_proj"}, all_parts}},
    .adapters = {{"in_proj",
                  "in_proj_lora_dropout",
                  "in_proj_lora_a",
                  "in_proj_lora_b",
                  "in_proj_lora_add",
                  {"zx_lora_add", "bc_lora_add", "dt_lora_add"}},
                 {"out_proj", "out_proj_lora_dropout", "out_proj_lora_a", "out_proj_lora_b",
                  "out_proj_lora_add"}},
    .hub_demands = {{"use_bias", false, "must be false: biases of these linears are not modelled"},
                    {"mamba_proj_bias", false, "must be false: biases of these linears are not modelled"},
                    {"mamba_conv_bias", true, "must be true: a convolution without a bias is not modelled"},
                    {"use_conv_bias", true, "must be true: a convolution without a bias is not modelled"}},
    .hub_layers = {{.types = {"bamba"},
                    .attention = "attn_layer_indices",
                    .by_default = {128, 0, 1, 256, 4, 256}},
                   {.types = {"granitemoehybrid"}, .word = "mamba", .by_default = {128, 0, 1, 256, 4, 256}},
                   {.types = {"mamba2"}, .alone = true, .by_default = {128, 64, 8, 128, 4, 256}}},
    .warning = {"mamba_scan_assumed",
                "the scan of Mamba layers is timed by the bytes of its kernels, at a rate that was measured "
                "only in the forward pass on H100 and is assumed for the backward pass and for other GPUs"}};

}  // namespace headroom
