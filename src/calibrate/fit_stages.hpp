// Stages of a fit: rates that are fitted, judged and given intervals together, and the samples that determine
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "rate_parameters.hpp"
#include "sample_checks.hpp"

namespace headroom {

// Kinds of rates; those of GEMMs and experts also have a type.
enum class RateKind : std::uint8_t {
  products,
  sustained,
  attention,
  attention_fp8,
  attention_sustained,
  attention_backward,
  experts,
  collectives,
  collectives_in_steps,
  streaming,
  streaming_in_steps,
  none
};
struct RatesOf {
  RateKind kind = RateKind::none;
  std::optional<std::size_t> narrow;  // place in narrow_types; nothing for 16 bits, and for all else
  friend bool operator<(const RatesOf& x, const RatesOf& y) {
    return std::tie(x.kind, x.narrow) < std::tie(y.kind, y.narrow);
  }
  friend bool operator==(const RatesOf&, const RatesOf&) = default;
};
RatesOf rates_of(const Sample& sample);

// Rates, and the samples that determine them.
struct Stage {
  RatesOf rates;
  std::vector<Parameter> parameters;
  const std::vector<Sample>* samples;
  double scale;
  std::string what;                 // "products"
  std::vector<std::string> groups;  // of errors: the first that there is speaks for the stage
};

// Returns the stages that have samples, in the order in which they are fitted. Refers to the samples.
std::vector<Stage> stages_of(const SortedSamples& samples, const Performance& base);

}  // namespace headroom
