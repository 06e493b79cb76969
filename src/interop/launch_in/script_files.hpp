// Configurations that a script names: where they lie, and what its words change in them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interop/launch_in/program.hpp"
#include "interop/launch_in/setting.hpp"

namespace headroom {

// Where a file is that a script names: from the script's folder or one above, or by its name alone beside the script.
// What only a run knows at the start of the name is left out. None: it is not there.
std::optional<std::string> place_in_script(const std::string& name, const std::string& file);

// Returns the texts of files that a script writes, by the paths where place_in_script() looks for them.
std::map<std::string, std::string> files_written_by(const shell::Followed& script, const std::string& file);

// The configuration of a framework that a program is told: "-m axolotl.cli.train run.yaml", "--job.config_file run.toml",
// CONFIG_FILE=run.toml. It lies where the script says, from its folder or one above, or beside it. Empty: there is none.
std::string configuration_of(const Program& program, const std::string& file);

// Returns the first configuration of its run that a program names and that does not exist; empty if there is none.
std::string missing_configuration(const Program& program, const std::string& file);

// Whether a configuration holds arguments of the Trainer, which words of the command may override.
bool holds_trainer_arguments(const std::string& config);

// What configures `accelerate launch`: its words ("--zero_stage 3"), and before them the file of --config_file.
std::vector<Written> accelerate_settings(const shell::Followed& script, const Program& program,
                                         const std::string& file);

// The words of a program that override its configuration: all but those that name it.
std::vector<Written> overrides_of(std::vector<Written> written, const std::string& config);

}  // namespace headroom
