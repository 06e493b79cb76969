#include "headroom/io/remarks.hpp"

#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "document.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/quantity.hpp"
#include "headroom/io/releases_file.hpp"
#include "text.hpp"

namespace headroom {
namespace {

// As an override has it, or else a file of one's own.
std::optional<std::string> stated_memory(const std::string& source,
                                         const std::vector<std::string>& overrides) {
  constexpr std::string_view key = "memory=";
  for (const std::string& override : overrides) {
    if (override.starts_with(key)) return override.substr(key.size());
  }
  if (!is_file(source, "system")) return std::nullopt;
  try {
    const Json root = open_document(source, "system").root;
    if (root.is_object() && root.contains("memory") && root["memory"].is_string())
      return root["memory"].get<std::string>();
  } catch (const InputError&) {
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> remarks_on_memory(const std::string& text) {
  const Parsed<Bytes> plain = parse_bytes(text);
  const Parsed<Bytes> of_device = parse_device_memory(text);
  if (!std::holds_alternative<Bytes>(of_device) || plain == of_device) return {};
  return {fmt::format("memory of {} is read as {}, as vendors count the memory of a GPU", text,
                      to_text(std::get<Bytes>(of_device), DeviceMemory{}))};
}

std::vector<std::string> remarks_on(std::string_view kind, const std::string& source,
                                    const std::vector<std::string>& overrides) {
  std::vector<std::string> remarks;
  if (kind == "software") {
    if (const std::optional<NamedRelease> release = find_release(source)) {
      const std::string name = name_of(release->family, release->place);
      if (name == source) return {};
      return {fmt::format("{} is read as {}, released on {}", printable(source, 200), name,
                          release->family.releases[release->place].date)};
    }
  }
  if (std::string name = how_read(source, kind); !name.empty()) remarks.push_back(std::move(name));
  if (kind != "system") return remarks;
  if (const std::optional<std::string> memory = stated_memory(source, overrides)) {
    for (std::string& remark : remarks_on_memory(*memory)) remarks.push_back(std::move(remark));
  }
  return remarks;
}

}  // namespace headroom
