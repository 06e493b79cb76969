// Software files, format 1: choices of a training stack that change its time (hardware/software.hpp). Every
// member is required. `headroom schema software` prints the JSON schema.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/hardware/software.hpp"

namespace headroom {

// Returns a training stack, read as read_model() in model_file.hpp reads a model. Throws InputError.
Software read_software(const std::string& source, const std::vector<std::string>& overrides = {});

// Returns the training stack in a file's text; `file` is its name. Throws InputError.
Software parse_software(std::string_view text, const std::string& file);

// Returns the text of a software file. parse_software reads back the same stack, except its name.
std::string write_software(const Software& software);

// Returns the names that an override accepts: "overlap_grad_reduce".
std::vector<std::string> software_field_names();

// Returns the embedded stacks, sorted by name.
std::vector<Software> list_software();

// Returns the first stack whose `runs_of` names the software of a run, in the words of a runs file; nothing
// if no stack names it.
std::optional<std::string> stack_of_runs(const std::vector<Software>& stacks, std::string_view software);

}  // namespace headroom
