// Model files, format 1: the sizes of a transformer and their source.
//
//   {"format": 1, "source": "...", "hidden": 12288, "feedforward": 49152, "heads": 96, "layers": 96,
//    "vocabulary": 51200, "sequence": 2048}
//
// Layers that differ are listed in runs. Each kind of layer is described by what differs from the model's own
// layer, "dense" (its sizes, its members of Architecture and Kernels):
//
//   "layers": [{"kind": "dense", "count": 3}, {"kind": "wide", "count": 58}],
//   "layer_kinds": {"wide": {"feedforward": 8192, "key_value_heads": 4}}
//
// A run may be a pattern, {"pattern": ["window", "window", "dense"], "count": 26}, which repeats.
//
// The members of the first example are required. Optional members and their defaults: "key_value_heads"
// (heads), "head_size" (hidden / heads), "max_positions" (sequence), "vocabulary_multiple" (128, as in
// Megatron-LM; 1 turns padding off) and "qkv_bias" (linear_bias). Every other member of Architecture and
// Kernels is optional too, under its own name and with its own default. Kernels are in an object of their
// own, "kernels". `headroom schema model` prints the JSON schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/model/transformer.hpp"

namespace headroom {

// Returns the model in a file, or an embedded model by its name. A file on disk takes precedence. The model
// is named after the file's stem.
//
// An override is "key=value" or "kernels.key=value". It replaces a member of the file before the file is
// checked, so defaults of omitted sizes follow overridden ones. An error is reported at "set key". The source
// of the result names the overrides. Throws InputError.
Transformer read_model(const std::string& source, const std::vector<std::string>& overrides = {});

// Returns the model in a file's text; `file` is its name. Throws InputError.
Transformer parse_model(std::string_view text, const std::string& file);

// Returns the text of a model file with every member spelt out. parse_model reads back the same model, except
// its name.
std::string write_model(const Transformer& model);

// Returns the names that an override accepts: "hidden", "kernels.attention".
std::vector<std::string> model_field_names();

// Returns whether an override may name this field of a kind of layers, if the model has that kind:
// "layer_kinds.moe.experts.count".
bool is_field_of_kind(std::string_view name);

// Returns the embedded models, sorted by name.
std::vector<Transformer> list_models();

}  // namespace headroom
