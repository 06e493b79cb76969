// Models of the Hugging Face hub: a config.json as a model of ours.
//
// A config.json names its model type. What it leaves out has the defaults of that type in transformers; what it cannot say (the
// length of training sequences, the kernels of a training stack) is assumed. Both are told. A type that is not modelled is
// refused by its name.
#pragma once

#include <string>
#include <vector>

#include "headroom/model/transformer.hpp"

namespace headroom {

struct HubAssumption {
  std::string field;  // of the model file, with dots, that it is about; empty: of several
  std::string sentence;
};

struct ImportedModel {
  Transformer model;
  std::vector<HubAssumption> assumed;  // none of a model file of ours, nor of fields that are overridden
};

// Of a config.json or of a folder that has one, or whatever read_model() reads: a model file or a name. `overrides` are of our own fields, as of
// read_model(). Throws InputError with all problems of the file.
ImportedModel import_model(const std::string& source, const std::vector<std::string>& overrides = {});

// What a user should be told of how the source is read: "Llama-3-70B is read as llama-3-70b". Empty where it is as it is written.
std::vector<std::string> remarks_on_model(const std::string& source);

// The model, whose source ends with what was assumed.
Transformer with_assumptions(ImportedModel imported);

// The same of what is read.
Transformer read_any_model(const std::string& source, const std::vector<std::string>& overrides = {});

}  // namespace headroom
