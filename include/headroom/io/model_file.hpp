// Model files, format 1: the sizes of a transformer and where they were published.
//
//   {"format": 1, "source": "...", "hidden": 12288, "feedforward": 49152, "heads": 96, "layers": 96,
//    "vocabulary": 51200, "sequence": 2048}
//
// Layers that are not all alike are listed in runs, whose kinds are described by what differs from the model's own layer,
// "dense" (its sizes, its members of Architecture and Kernels):
//
//   "layers": [{"kind": "dense", "count": 3}, {"kind": "wide", "count": 58}],
//   "layer_kinds": {"wide": {"feedforward": 8192, "key_value_heads": 4}}
//
// A run may be a pattern, {"pattern": ["window", "window", "dense"], "count": 26}, which is gone through again and again.
//
// These are required. What may be left out: "key_value_heads" (then heads), "head_size" (hidden / heads),
// "max_positions" (sequence), "vocabulary_multiple" (128, as in Megatron-LM; 1 turns padding off), "qkv_bias"
// (linear_bias), and every other member of Architecture and Kernels under its own name, with its own default;
// kernels form an object of their own, "kernels". `headroom schema model` says the same to other tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/model/transformer.hpp"

namespace headroom {

// The model in a file, or an embedded one by its name; a file on disk wins. Named after the file's stem.
//
// An override is "key=value" or "kernels.key=value" and replaces a member of the file before it is checked:
// sizes that the file leaves out follow an overridden one, and a mistake is reported at "set key". The
// source of the result names the overrides. Throws InputError.
Transformer read_model(const std::string& source, const std::vector<std::string>& overrides = {});

// The model in a file's text; `file` is its name. Throws InputError.
Transformer parse_model(std::string_view text, const std::string& file);

// The text of a model file with every member spelt out. parse_model gives the same model back, its name
// aside.
std::string write_model(const Transformer& model);

// What an override may name: "hidden", "kernels.attention".
std::vector<std::string> model_field_names();

// Whether it may name this field of a kind of layers, if the model has such a kind: "layer_kinds.moe.experts.count".
bool is_field_of_kind(std::string_view name);

// The embedded models, sorted by name.
std::vector<Transformer> list_models();

}  // namespace headroom
