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

std::string render(const std::vector<Transformer>& models, Format format);
std::string render(const std::vector<System>& systems, Format format);
std::string render(const std::vector<Software>& software, Format format);
std::string render(const std::vector<PublishedSource>& sources, Format format);

// The fields of a strategy and of its workload: how flags, JSON and sweeps call them, and what they are called elsewhere.
std::string render_fields(Format format);

}  // namespace headroom
