// Question of `headroom list`: models, systems, stacks, releases, recipes, sources and fields with a name. All are compiled into
// the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/calibrate/published_source.hpp"
#include "headroom/core/dtype.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/io/recipes_file.hpp"
#include "headroom/io/releases_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

enum class Listed : std::uint8_t { models, systems, software, releases, recipes, sources, fields };

struct ListQuestion {
  Listed listed = Listed::models;
  std::string family;   // of releases; empty: all
  std::string model;    // of recipes; empty: all
  std::string release;  // of recipes, "megatron-bridge@26.04" or its part behind the @; empty: all
};

struct ListedModel {
  Transformer model;
  ParameterCounts parameters;
  friend bool operator==(const ListedModel&, const ListedModel&) = default;
};

struct ListedPeak {
  Dtype dtype{};
  FlopsPerSecond dense;
  friend bool operator==(const ListedPeak&, const ListedPeak&) = default;
};

struct ListedSystem {
  System system;
  Bytes reserved;                 // most memory that a GPU of it withholds from PyTorch
  std::vector<ListedPeak> peaks;  // for types with a peak of their own; empty without figures
  friend bool operator==(const ListedSystem&, const ListedSystem&) = default;
};

// A field of a strategy or its workload, with its names in flags, JSON and other programs.
struct ListedField {
  std::string_view name;
  std::string flag;                  // "--tensor-parallel"
  std::string short_flag;            // "-t"; empty where it has none
  std::string_view json;             // "strategy/tensor_parallel"
  std::string value;                 // default value
  std::vector<std::string> aliases;  // flags too
  std::string_view help;
  friend bool operator==(const ListedField&, const ListedField&) = default;
};

// Sorted by name; recipes as their files have them, fields in the order in which flags are written.
struct ListReply {
  std::variant<std::vector<ListedModel>, std::vector<ListedSystem>, std::vector<Software>,
               std::vector<StackFamily>, std::vector<Recipe>, std::vector<PublishedSource>,
               std::vector<ListedField>>
      entries;
  friend bool operator==(const ListReply&, const ListReply&) = default;
};

// Throws InputError if a family, model or release is not known.
ListReply answer(const ListQuestion& question);

}  // namespace headroom
