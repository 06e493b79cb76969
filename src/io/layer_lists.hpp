// The two members of a model file that say of which kinds its layers are: "layers", where it is a list of runs, and
// "layer_kinds", which describes their kinds by what differs from the model's own layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// What stood in the document. It is read apart from the rest, since kinds start from the model's own layer.
struct LayerLists {
  std::optional<Json> runs;
  std::optional<Json> kinds;
};

// Takes them out of the document, and puts the number of layers where their runs were.
LayerLists taken_lists(Document& document);

// Puts them back and reads them into a model whose own layer is known. Notes what is wrong.
void read_layer_lists(Document& document, const LayerLists& lists, Transformer& model);

// Overrides of a model file but for those that its kinds of layers take no part in or have to themselves: experts.count where only
// layers of kind moe have experts is layer_kinds.moe.experts.count. Notes these, with what to give in their place.
std::vector<std::string> overrides_for_kinds(Document& document, const std::vector<std::string>& overrides,
                                             std::string_view flag);

// As they are read. Nothing for a model whose layers are all as it says.
void write_layer_lists(const Transformer& model, nlohmann::ordered_json& json);

// Says in the schema of a model what they may be.
void add_layer_lists(nlohmann::ordered_json& schema);

}  // namespace headroom
