// Lightning attention, a mixer in place of attention in MiniMax-Text-01 and MiniMax-M1: linear attention
// whose state decays by head [Qin et al., arXiv:2401.04658; MiniMax, arXiv:2501.08313]. Its sizes and its row
// of the table of mixers. lightning_ops.hpp has its op table.
#pragma once

#include "headroom/model/parts/part.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

struct Lightning {
  std::int64_t heads = 0;         // H
  std::int64_t head_size = 0;     // P, of q, k and v
  std::int64_t chunk_size = 256;  // tokens of a block
  friend bool operator==(const Lightning&, const Lightning&) = default;
};

// Bandwidth of one multiprocessor in its kernels: that of gated DeltaNet's (parts/delta_rule.hpp), assumed.
inline constexpr BytesPerSecond lightning_bandwidth{18e9};

// Return what its kernels move in each pass.
ScanWork lightning_forward(const Scan& scan);
ScanWork lightning_backward(const Scan& scan);
inline constexpr ScanKernels lightning_kernels{lightning_forward, lightning_backward, "attn"};

constexpr std::int64_t inner_width(const Lightning& mixer) { return mixer.heads * mixer.head_size; }

// Hugging Face's keys are those of minimax [huggingface/transformers, models/minimax/configuration_minimax.py]
// and of the model's own code [MiniMaxAI/MiniMax-Text-01, configuration_minimax_text_01.py]. Its heads are
// those of attention.
inline constexpr MixerRow<Lightning> lightning_row{
    .name = "lightning",
    .title = "lightning attention",
    .batch_first = true,
    .sizes = {{.word = "heads",
               .member = &Lightning::heads,
               .letter = Symbol::recurrent_heads,
               .divided = "heads of lightning attention",
               .in_hub = {.derived = [](const HubWidths& of, const Lightning&) { return of.heads; }}},
              {.word = "head_size",
               .member = &Lightning::head_size,
               .letter = Symbol::recurrent_head_size,
               .is_width = true,
               .in_hub = {.derived = [](const HubWidths& of, const Lightning&) { return of.head_size; }}},
              {.word = "chunk_size",
               .member = &Lightning::chunk_size,
               .is_width = true,
               .required = false,
               .in_hub = {{"block_size"}, 256}}},
    .widths = {{"the width of the heads of lightning attention", inner_width}},
    // Without its linears, which have the names of attention's.
    .recompute = {"lightning", false, "qkv_activation lightning lightning_norm gate_linear context_gate"},
    .linears = {{"lightning_gate", "gate_linear"}},
    .lora_targets = {{"output_gate", "", {"gate_linear"}, all_parts}},
    .adapters = {{"gate_linear", "gate_linear_lora_dropout", "gate_linear_lora_a", "gate_linear_lora_b",
                  "gate_linear_lora_add"}},
    .hub_layers = {{.types = {"minimax"}, .word = "linear_attention", .every = 2, .first = 0},
                   {.types = {"minimax_text_01", "minimax_m1"}, .flags = "attn_type_list"}},
    .warning = {
        "lightning_assumed",
        "lightning attention is timed by the bytes of its kernels, at a rate that was fitted to forward "
        "kernels of gated DeltaNet and is assumed for these"}};

}  // namespace headroom
