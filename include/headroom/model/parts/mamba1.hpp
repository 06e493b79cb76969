// Mamba-1, a mixer in place of attention in Mamba and Jamba [Gu and Dao, arXiv:2312.00752; Lieber et al.,
// arXiv:2403.19887]: its sizes and its row of the table of mixers. mamba1_ops.hpp has its op table.
#pragma once

#include "headroom/model/parts/part.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

struct Mamba1 {
  std::int64_t channels = 0;    // H, each with a state and a step of its own
  std::int64_t state_size = 0;  // S
  std::int64_t step_rank = 0;   // G, the rank of the steps (dt)
  std::int64_t conv_width = 4;  // taps of the causal convolution, in tokens
  friend bool operator==(const Mamba1&, const Mamba1&) = default;
};

// Bandwidth of one multiprocessor in its scan: that of Mamba-2's (parts/mamba.hpp), assumed.
inline constexpr BytesPerSecond mamba1_bandwidth{10e9};

// Return what the kernels of its scan move in each pass.
ScanWork mamba1_forward(const Scan& scan);
ScanWork mamba1_backward(const Scan& scan);
inline constexpr ScanKernels mamba1_kernels{mamba1_forward, mamba1_backward, "mamba"};

// Hugging Face's keys are those of jamba and mamba [huggingface/transformers,
// models/TYPE/configuration_TYPE.py].
inline constexpr MixerRow<Mamba1> mamba1_row{
    .name = "mamba1",
    .title = "Mamba-1",
    .batch_first = true,
    .sizes = {{.word = "channels",
               .member = &Mamba1::channels,
               .letter = Symbol::recurrent_heads,
               .is_width = true,
               .divided = "channels of Mamba-1",
               .in_hub = {.derived = [](const HubWidths& of,
                                        const Mamba1&) { return of.expand * of.hidden; }}},
              {.word = "state_size",
               .member = &Mamba1::state_size,
               .letter = Symbol::recurrent_state_size,
               .is_width = true,
               .in_hub = {{"mamba_d_state", "state_size"}, 16}},
              {.word = "step_rank",
               .member = &Mamba1::step_rank,
               .letter = Symbol::recurrent_groups,
               .is_width = true,
               .in_hub = {{"mamba_dt_rank", "time_step_rank"},
                          0,
                          [](const HubWidths& of, const Mamba1&) { return (of.hidden + 15) / 16; }}},
              {.word = "conv_width",
               .member = &Mamba1::conv_width,
               .required = false,
               .in_hub = {{"mamba_d_conv", "conv_kernel"}, 4}}},
    .widths = {{"the width of x and z", [](const Mamba1& of) { return 2 * of.channels; }},
               {"the channels of Mamba-1", [](const Mamba1& of) { return of.channels; }}},
    .recompute = {"mamba1", false, "convolution x_proj dt_proj selective_scan"},
    .linears = {{"mamba1", "in_proj x_proj dt_proj out_proj"}},
    .lora_targets = {{"in_proj", "", {"in_proj"}, all_parts},
                     {"x_proj", "", {"x_proj"}, all_parts},
                     {"dt_proj", "", {"dt_proj"}, all_parts},
                     {"out_proj", "", {"out_proj"}, all_parts}},
    .adapters = {{"x_proj", "x_proj_lora_dropout", "x_proj_lora_a", "x_proj_lora_b", "x_proj_lora_add"},
                 {"dt_proj", "dt_proj_lora_dropout", "dt_proj_lora_a", "dt_proj_lora_b", "dt_proj_lora_add"}},
    .hub_demands = {{"use_bias", false, "must be false: biases of these linears are not modelled"},
                    {"mamba_proj_bias", false, "must be false: biases of these linears are not modelled"},
                    {"use_conv_bias", true, "must be true: a convolution without a bias is not modelled"},
                    {"mamba_conv_bias", true, "must be true: a convolution without a bias is not modelled"}},
    .hub_layers = {{.types = {"jamba"},
                    .interval = "attn_layer_period",
                    .every = 8,
                    .offset = "attn_layer_offset",
                    .first = 4},
                   {.types = {"mamba", "falcon_mamba"}, .alone = true}},
    .warning = {
        "selective_scan_assumed",
        "the scan of Mamba-1 layers is timed by the bytes of its kernels, at a rate that was measured for "
        "Mamba-2 and is assumed for these"}};

}  // namespace headroom
