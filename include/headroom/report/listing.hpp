// The reports of `headroom list`.
#pragma once

#include <string>
#include <vector>

#include "headroom/calibrate/published_source.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

std::string render(const std::vector<Transformer>& models, const Style& style);
std::string render(const std::vector<System>& systems, const Style& style);
std::string render(const std::vector<Software>& software, const Style& style);
std::string render(const std::vector<PublishedSource>& sources, const Style& style);

// The fields of a strategy and of its workload: how flags, JSON and sweeps call them, and what they are called elsewhere.
std::string render_fields(const Style& style);

}  // namespace headroom
