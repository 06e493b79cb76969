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

// Every embedded file. Defined in a source that the build generates from models/ and presets/.
std::span<const EmbeddedFile> embedded_files();

// `kind` is the folder that holds the files without its plural s: "model", "system", "software", "source",
// "measurement", "spread".

// Names of a kind, sorted: stems of the files' names, "gpt3-175b".
std::vector<std::string_view> embedded_names(std::string_view kind);

// The file of a name, or null.
const EmbeddedFile* find_embedded(std::string_view kind, std::string_view name);

}  // namespace headroom
