// Data files compiled into the binary, so that `headroom plan gpt3-175b` needs no file on disk.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace headroom {

struct EmbeddedFile {
  std::string_view path;  // in the source tree: "models/gpt3-175b.json"
  std::string_view text;
};

// Returns every embedded file. The build generates the definition from models/, presets/ and schemas/.
std::span<const EmbeddedFile> embedded_files();

// In all functions below, `kind` is the files' folder without the plural s: "model", "system", "software",
// "release", "recipe", "source", "measurement", "spread", "schema" (io/schema.hpp).

// Returns the names of a kind, sorted. Names are stems of file names, such as "gpt3-175b".
std::vector<std::string_view> embedded_names(std::string_view kind);

// Returns the file of a name, or null.
const EmbeddedFile* find_embedded(std::string_view kind, std::string_view name);

// Meaning of a name that people give to a model, a system or a stack.
struct NameMeaning {
  std::vector<std::string_view> names;  // of embedded files; several if the name is ambiguous
  std::string_view because;             // reason, if the names do not show it; may be empty
};

// Returns the meaning of a name: dgx-h100-80g for "h100", llama-3-70b for "Llama-3-70B", the newest release
// for "torchtitan". "meta-llama/Llama-3.1-70B-Instruct" means llama-3-70b, which has the same layers. Case
// and punctuation are ignored. A Hugging Face model, "owner/model", has a meaning only if its layers are
// known to be an embedded model's. Returns no names if the name means nothing.
NameMeaning meaning_of(std::string_view kind, std::string_view name);

// Returns names to suggest for a name that means nothing: names with all its words; else names with the same
// numbers and similar spelling; else names of the same family ("llama-3-7b": the Llama 3 models) or with
// other numbers. Empty if no name is near.
std::vector<std::string_view> names_near(std::string_view kind, std::string_view name);

}  // namespace headroom
