// Gated short convolution, a mixer in place of attention in LFM2 [huggingface/transformers,
// models/lfm2/modeling_lfm2.py]: its sizes and its row of the table of mixers. short_conv_ops.hpp has its op
// table.
#pragma once

#include "headroom/model/parts/part.hpp"

namespace headroom {

struct ShortConv {
  std::int64_t channels = 0;    // H
  std::int64_t conv_width = 3;  // taps of the causal convolution, in tokens
  friend bool operator==(const ShortConv&, const ShortConv&) = default;
};

// Hugging Face's keys are those of lfm2 [models/lfm2/configuration_lfm2.py]; channels are the hidden size.
inline constexpr MixerRow<ShortConv> short_conv_row{
    .name = "short_conv",
    .title = "gated short convolution",
    .sizes = {{.word = "channels",
               .member = &ShortConv::channels,
               .letter = Symbol::recurrent_heads,
               .is_width = true,
               .divided = "channels of a gated short convolution",
               .in_hub = {.derived = [](const HubWidths& of, const ShortConv&) { return of.hidden; }}},
              {.word = "conv_width",
               .member = &ShortConv::conv_width,
               .required = false,
               .in_hub = {{"conv_L_cache"}, 3}}},
    .widths = {{"the width of B, C and x", [](const ShortConv& of) { return 3 * of.channels; }},
               {"the channels of a gated short convolution",
                [](const ShortConv& of) { return of.channels; }}},
    .recompute = {"short_conv", false, "input_gate short_convolution conv_gate"},
    .linears = {{"short_conv", "in_proj out_proj"}},
    .lora_targets = {{"in_proj", "", {"in_proj"}, all_parts}, {"out_proj", "", {"out_proj"}, all_parts}},
    .hub_demands = {{"conv_bias", false,
                     "must be false: biases of a gated short convolution are not modelled"}},
    .hub_layers = {{.types = {"lfm2", "lfm2_moe"}, .word = "conv", .attention = "full_attn_idxs"}}};

}  // namespace headroom
