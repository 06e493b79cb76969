// Software files, format 1: the choices of a training stack that change its time (hardware/software.hpp). Every member
// is required; `headroom schema software` says the same to other tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/hardware/software.hpp"

namespace headroom {

// As read_model in model_file.hpp. Throws InputError.
Software read_software(const std::string& source, const std::vector<std::string>& overrides = {});

// The software in a file's text; `file` is its name. Throws InputError.
Software parse_software(std::string_view text, const std::string& file);

// The text of a software file. parse_software gives the same software back, its name aside.
std::string write_software(const Software& software);

// What an override may name: "overlap_grad_reduce".
std::vector<std::string> software_field_names();

// The embedded stacks, sorted by name.
std::vector<Software> list_software();

// The first stack whose `runs_of` names the software of a run, as a runs file has it in words; nothing where none does.
std::optional<std::string> stack_of_runs(const std::vector<Software>& stacks, std::string_view software);

}  // namespace headroom
