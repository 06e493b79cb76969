// The reports of `headroom list`.
#pragma once

#include <string>
#include <vector>

#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

std::string render(const std::vector<Transformer>& models, Format format);
std::string render(const std::vector<System>& systems, Format format);
std::string render(const std::vector<Software>& software, Format format);

}  // namespace headroom
