// What the program has by name: the question of `headroom list`. All of it is compiled into the library.
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
#include "headroom/memory/state.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

enum class Listed : std::uint8_t { models, systems, software, sources, fields };

struct ListQuestion {
  Listed listed = Listed::models;
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
  Bytes reserved;  // the most that a device of it keeps from PyTorch
  std::vector<ListedPeak>
      peaks;  // of the types that the device computes at a peak of their own; none without figures
  friend bool operator==(const ListedSystem&, const ListedSystem&) = default;
};

// A field of a strategy or of its workload, and what flags, JSON and other programs call it.
struct ListedField {
  std::string_view name;
  std::string flag;                  // "--tensor-parallel"
  std::string short_flag;            // "-t"; empty where it has none
  std::string_view json;             // "strategy/tensor_parallel"
  std::string value;                 // where nobody sets it
  std::vector<std::string> aliases;  // flags too
  std::string_view help;
  friend bool operator==(const ListedField&, const ListedField&) = default;
};

// Sorted by name; fields in the order in which flags are written.
struct ListReply {
  std::variant<std::vector<ListedModel>, std::vector<ListedSystem>, std::vector<Software>,
               std::vector<PublishedSource>, std::vector<ListedField>>
      entries;
  friend bool operator==(const ListReply&, const ListReply&) = default;
};

ListReply answer(const ListQuestion& question);

}  // namespace headroom
