// Imports models of the Hugging Face hub: reads a config.json as a model of Headroom.
//
// A config.json names its model type. Fields that it leaves out have the defaults of this type in
// transformers. What it cannot state (the length of training sequences, the kernels of a training stack) is
// assumed. Defaults and assumptions are reported. A type that is not modelled is rejected by name.
#pragma once

#include <string>
#include <vector>

#include "headroom/model/transformer.hpp"

namespace headroom {

struct HubAssumption {
  std::string field;  // field of the model file, with dots, that it is about; empty: several
  std::string sentence;
  friend bool operator==(const HubAssumption&, const HubAssumption&) = default;
};

struct ImportedModel {
  Transformer model;
  std::vector<HubAssumption> assumed;  // empty for model files of Headroom; omits overridden fields
};

// Reads a config.json, a folder that has one, or whatever read_model() reads (a model file or a name).
// `overrides` set fields of Headroom's models, as in read_model(). Throws InputError with all problems of the
// file.
ImportedModel import_model(const std::string& source, const std::vector<std::string>& overrides = {});

// Returns remarks on how the source is read: "Llama-3-70B is read as llama-3-70b". Empty if it is read as
// written.
std::vector<std::string> remarks_on_model(const std::string& source);

// Returns the model, with the assumptions added to the end of its source.
Transformer with_assumptions(ImportedModel imported);

// Returns import_model(), with the assumptions in the model's source.
Transformer read_any_model(const std::string& source, const std::vector<std::string>& overrides = {});

}  // namespace headroom
