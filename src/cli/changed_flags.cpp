#include "cli/changed_flags.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "cli/recipe_flags.hpp"

namespace headroom::cli {
namespace {

std::string_view key_of(std::string_view override) { return override.substr(0, override.find('=')); }

}  // namespace

void lay_over(const std::vector<std::string>& earlier, std::vector<std::string>& later) {
  std::vector<std::string> kept;
  std::copy_if(earlier.begin(), earlier.end(), std::back_inserter(kept), [&](const std::string& one) {
    return std::none_of(later.begin(), later.end(),
                        [&](const std::string& other) { return key_of(other) == key_of(one); });
  });
  later.insert(later.begin(), kept.begin(), kept.end());
}

AllFlags changed_flags(const AllFlags& first, const std::string& option, const std::string& text,
                       void (*add)(Command, SystemFlags&)) {
  AllFlags result = first;
  result.request.overrides.clear();
  result.system.overrides.clear();
  result.system.software_overrides.clear();
  ArgumentReader reader;
  add_request_flags(reader.command(), result.request);
  add(reader.command(), result.system);
  add_recipe_flag(reader.command(), result.request);
  // A recipe says the model of a side that names none.
  const bool named = !first.request.model.empty();
  reader.read(option, (named ? first.request.model : "model") + " " + text);
  if (!named) result.request.model.clear();
  lay_over(first.request.overrides, result.request.overrides);
  lay_over(first.system.overrides, result.system.overrides);
  lay_over(first.system.software_overrides, result.system.software_overrides);
  return result;
}

}  // namespace headroom::cli
