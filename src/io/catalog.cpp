#include "headroom/io/catalog.hpp"

#include <algorithm>

namespace headroom {
namespace {

// "gpt3-175b" of "models/gpt3-175b.json" when the kind is "model", else empty.
std::string_view name_in(std::string_view path, std::string_view kind) {
  const auto drop_suffix = [&path](std::string_view suffix) {
    if (!path.ends_with(suffix)) return false;
    path.remove_suffix(suffix.size());
    return true;
  };
  if (!drop_suffix(".json")) return {};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!drop_suffix(name) || !drop_suffix("/")) return {};
  drop_suffix("s");
  if (!drop_suffix(kind)) return {};
  return path.empty() || path.ends_with('/') ? name : std::string_view();
}

}  // namespace

std::vector<std::string_view> embedded_names(std::string_view kind) {
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (const std::string_view name = name_in(file.path, kind); !name.empty()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

const EmbeddedFile* find_embedded(std::string_view kind, std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!name.empty() && name_in(file.path, kind) == name) return &file;
  }
  return nullptr;
}

}  // namespace headroom
