// The data files compiled into the binary, so that `headroom plan gpt3-175b` needs no file on disk.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace headroom {

struct EmbeddedFile {
  std::string_view path;  // in the source tree: "models/gpt3-175b.json"
  std::string_view text;
};

// Every embedded file. Defined in a source that the build generates from models/, presets/ and schemas/.
std::span<const EmbeddedFile> embedded_files();

// `kind` is the folder that holds the files without its plural s: "model", "system", "software", "source",
// "measurement", "spread", "schema" (io/schema.hpp).

// Names of a kind, sorted: stems of the files' names, "gpt3-175b".
std::vector<std::string_view> embedded_names(std::string_view kind);

// The file of a name, or null.
const EmbeddedFile* find_embedded(std::string_view kind, std::string_view name);

// What a name means that people give to a model, a system or a stack.
struct NameMeaning {
  std::vector<std::string_view> names;  // of embedded files; several where it does not say which
  std::string_view because;             // where the names do not show it; may be empty
};

// "h100" means dgx-h100-80g, "Llama-3-70B" llama-3-70b, "torchtitan" its newest release, "meta-llama/Llama-3.1-70B-Instruct"
// llama-3-70b, whose layers it has. Case and punctuation do not matter. A model of the hub, "owner/model", has a meaning only
// where its layers are known to be those of an embedded one. No names where the name means nothing.
NameMeaning meaning_of(std::string_view kind, std::string_view name);

// Names to suggest for one that means nothing: those that have all its words, or else those of the same numbers that are spelled
// alike, or else those of the same family ("llama-3-7b": the models of Llama 3) or of other numbers. Empty where none is near.
std::vector<std::string_view> names_near(std::string_view kind, std::string_view name);

}  // namespace headroom
