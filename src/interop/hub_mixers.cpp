#include "interop/hub_mixers.hpp"

#include <algorithm>
#include <utility>

#include "io/model_fields.hpp"

namespace headroom {
namespace {

// Of a list of numbers of layers from 1, and one of the layers that it leaves out, which have attention.
std::vector<bool> listed_places(const HubLayers& where, ConfigReader& inner, std::size_t layers) {
  const auto most = static_cast<std::int64_t>(layers);
  const auto read = [&](std::string_view name) {
    const std::string key(name);
    std::vector<bool> has(layers);
    if (!inner.has(key)) inner.report(key, "is missing, and has no default in this model type");
    for (const std::int64_t number : inner.list<std::int64_t>(key)) {
      if (layers == 0) break;
      if (number < 1 || number > most) {
        inner.report(key, fmt::format("must be of the layers 1 to {} (found {})", most, number));
      } else if (has[static_cast<std::size_t>(number - 1)]) {
        inner.report(key, fmt::format("names layer {} twice", number));
      } else {
        has[static_cast<std::size_t>(number - 1)] = true;
      }
    }
    return has;
  };
  std::vector<bool> mixing = read(where.places);
  const char* const rest = "full_attn_layers";
  std::vector<bool> others = read(rest);
  others.flip();
  if (mixing != others)
    inner.report(rest, fmt::format("must be the layers that {} leaves out", where.places));
  return mixing;
}

// Of a list with 1 for attention and 0 for the mixer.
std::vector<bool> flagged_places(const std::string& key, ConfigReader& inner, std::size_t layers) {
  std::vector<bool> mixing(layers);
  if (!inner.has(key)) {
    inner.report(key, "is missing, and has no default in this model type");
    return mixing;
  }
  const std::vector<std::int64_t> flags = inner.list<std::int64_t>(key);
  if (layers > 0 && flags.size() != layers)
    inner.report(key, fmt::format("must be of the model's {} layers (found {})", layers, flags.size()));
  for (std::size_t i = 0; i < std::min(layers, flags.size()); ++i) {
    if (flags[i] != 0 && flags[i] != 1) {
      inner.report(key, fmt::format("must be a list of 0 and 1 (found {})", flags[i]));
      break;
    }
    mixing[i] = flags[i] == 0;
  }
  return mixing;
}

}  // namespace

std::vector<bool> mixer_places(const HubLayers& where, ConfigReader& config, ConfigReader& inner,
                               const std::vector<std::string>& layer_types, std::size_t layers) {
  if (!where.places.empty()) return listed_places(where, inner, layers);
  if (!where.flags.empty()) return flagged_places(std::string(where.flags), inner, layers);
  std::vector<bool> mixing(layers, true);
  if (!layer_types.empty() && !where.word.empty()) {
    for (std::size_t i = 0; i < layers; ++i)
      mixing[i] = i < layer_types.size() && layer_types[i] == where.word;
  } else if (!where.attention.empty()) {
    const std::string key(where.attention);
    // LFM2 without a list has attention everywhere, Bamba nowhere.
    if (!inner.has(key)) return std::vector<bool>(layers, where.word.empty());
    for (const std::size_t i : inner.places(key, layers)) mixing[i] = false;
  } else if (!where.interval.empty() || where.first >= 0) {
    const std::int64_t every = where.interval.empty()
                                   ? where.every
                                   : config.integer(std::string(where.interval), where.every, layer_counts);
    std::int64_t first = where.first < 0 ? every - 1 : where.first;
    if (!where.offset.empty()) {
      const std::string key(where.offset);
      first = config.integer(key, first, Range{0, most_layers});
      if (first >= every)
        config.report(key, fmt::format("must be below {} ({} >= {})", where.interval, first, every));
    }
    for (std::size_t i = 0; i < layers; ++i) mixing[i] = static_cast<std::int64_t>(i) % every != first;
  }
  return mixing;
}

}  // namespace headroom
