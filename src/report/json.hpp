// The parts that JSON reports share: the resolved request. Keys are in DESIGN order, hence ordered_json.
#pragma once

#include <cmath>

#include <nlohmann/json.hpp>

#include "headroom/calibrate/published_source.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

using OrderedJson = nlohmann::ordered_json;

// A count of bytes, FLOPs or devices: an integer where it is one.
OrderedJson number(double value);
// Whole ones: uneven loads of experts and fewer than 8 bits an element leave parts of a byte.
inline OrderedJson number(Bytes bytes) { return number(std::round(bytes.count())); }

OrderedJson to_json(const Transformer& model);
// With the sequence of the workload, at which it is planned.
OrderedJson to_json(const Transformer& model, const Workload& workload);
OrderedJson to_json(const ParameterCounts& parameters);
OrderedJson to_json(const System& system);
OrderedJson to_json(const Software& software);
OrderedJson to_json(const PublishedSource& source);
OrderedJson to_json(const Strategy& strategy);
OrderedJson to_json(const Workload& workload, const Strategy& strategy);

// Returns the text of a report, which ends in a newline.
std::string to_text(const OrderedJson& json);

}  // namespace headroom
