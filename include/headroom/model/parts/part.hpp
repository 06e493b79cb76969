// Rows in which a part of a layer describes itself to other code (parts/mixers.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "headroom/core/fixed_vector.hpp"
#include "headroom/expr/symbol.hpp"

namespace headroom {

// Name and default of a size in a file of measured runs.
struct SizeInRun {
  std::string_view word;        // empty if runs cannot state it
  std::int64_t by_default = 0;  // 0 if runs must state it
};
// Sizes that a config.json states elsewhere, from which it lets sizes of a part follow.
struct HubWidths {
  std::int64_t hidden = 0;
  std::int64_t expand = 2;  // the mixer's width, over the hidden size
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
};
// Names and default of a size in Hugging Face's config.json.
template <class Part>
struct SizeInHub {
  std::array<std::string_view, 3>
      keys{};  // further ones are of other model types; empty where there are fewer
  std::int64_t by_default = 0;
  // Returns the size where the file leaves it out or says "auto"; null: `by_default`. The sizes before it are
  // read already.
  std::int64_t (*derived)(const HubWidths&, const Part&) = nullptr;
};

// A size of a part.
template <class Part>
struct PartSize {
  std::string_view word;  // in a model file
  std::int64_t Part::*member = nullptr;
  std::optional<Symbol> letter{};  // absent if the rows hold it as a number
  bool is_width = false;           // may be as large as a hidden size; else as a number of heads
  bool required = true;
  std::string_view divided{};        // its name in errors if TP and CP ranks divide it; else empty
  std::string_view context_limit{};  // ends the error about CP ranks that do not divide it
  SizeInRun in_run{};
  SizeInHub<Part> in_hub{};
  std::string_view flag{};  // of Megatron-LM
};

// Two sizes. The first must be a multiple of the second.
template <class Part>
struct PartMultiple {
  std::int64_t Part::*of = nullptr;
  std::int64_t Part::*unit = nullptr;
  std::string_view rule;  // "must have heads that are a multiple of its groups"
};

// A width of its linears. TP ranks divide it; kernels of fewer than 16 bits need multiples of a block.
template <class Part>
struct PartWidth {
  std::string_view what;
  std::int64_t (*of)(const Part&) = nullptr;
};

// A module of --recompute-modules. A module that discards drops its output too, and recomputes it before the
// op that reads it needs it for a gradient. Other modules are checkpoints: their output stays if an op
// outside saves it.
struct RecomputeModule {
  std::string_view name;
  bool discards = false;
  std::string_view ops{};  // separated by spaces; empty for core attention
};

// A group of linears with a name in --bf16-modules.
struct LinearGroup {
  std::string_view name;
  std::string_view ops;  // separated by spaces
};

// A name of --lora-targets, from the modules of Hugging Face and Megatron-LM.
struct LoraTarget {
  std::string_view name;
  std::string_view also;                // a second name, or empty
  std::array<std::string_view, 3> ops;  // in a dense layer, in experts and in shared experts
  int part;  // index of an output, or of gate and up; all_parts: one adapter for all
};
inline constexpr int all_parts = -1;

// Names of the ops of an adapter. A table has each op under its own name, so they are written out.
struct AdapterNames {
  std::string_view name;  // the linear's
  std::string_view dropout;
  std::string_view a;
  std::string_view b;
  std::string_view add;
  std::array<std::string_view, 3> adds{};  // if the linear has several outputs: one for each
};

// A field of config.json of which only one value is modelled.
struct HubDemand {
  std::string_view key;
  bool value = false;
  std::string_view rule;
};

// How model types of Hugging Face say which layers have the mixer. All layers have it where no key is given.
struct HubLayers {
  std::array<std::string_view, 3> types{};
  std::string_view object{};     // object with its sizes and lists; empty for the configuration itself
  std::string_view word{};       // in layer_types
  std::string_view interval{};   // key of N; without a list, every N-th layer has attention
  std::int64_t every = 4;        // N by default
  std::string_view offset{};     // key of the first layer with attention, from 0
  std::int64_t first = -1;       // that layer by default; -1: N - 1
  std::string_view places{};     // key of a list of layers with the mixer, from 1
  std::string_view attention{};  // key of a list of layers with attention, from 0
  std::string_view flags{};      // key of a list with 1 for a layer with attention and 0 for the mixer
  bool alone = false;            // layers have no MLP beside it
  // Defaults of its sizes in these types, in their order; 0: the size's own.
  std::array<std::int64_t, 8> by_default{};
};

// A warning that every plan with the part carries.
struct PartWarning {
  std::string_view code;
  std::string_view text;
};

// A mixer of tokens that replaces attention.
template <class Mixer>
struct MixerRow {
  std::string_view name;     // of its object in a model file, and of a kind of layers that has nothing else
  std::string_view title;    // in sentences
  char letter = '\0';        // in Megatron-LM's --hybrid-layer-pattern; '\0' if it has none
  bool batch_first = false;  // its kernels read whole sequences; several are transposed before and after
  FixedVector<PartSize<Mixer>, 8> sizes{};
  FixedVector<PartMultiple<Mixer>, 2> multiples{};
  FixedVector<PartWidth<Mixer>, 4> widths{};
  RecomputeModule recompute{};            // the whole mixer
  FixedVector<LinearGroup, 4> linears{};  // the first has all of them
  FixedVector<LoraTarget, 8> lora_targets{};
  FixedVector<AdapterNames, 8> adapters{};
  FixedVector<HubDemand, 4> hub_demands{};
  FixedVector<HubLayers, 4> hub_layers{};
  PartWarning warning{};
};

}  // namespace headroom
