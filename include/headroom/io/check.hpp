// `headroom check FILE`: is this a model, a system or a software file, and is it a valid one?
#pragma once

#include <string>
#include <variant>

#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// What a file holds, told by its keys. Throws InputError when it holds none of them, or is not valid.
std::variant<Transformer, System, Software> check_file(const std::string& path);

}  // namespace headroom
