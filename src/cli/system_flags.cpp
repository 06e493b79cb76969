#include "cli/system_flags.hpp"

#include "cli/flags.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom::cli {

void add_system_flags(CLI::App& command, SystemFlags& flags) {
  command
      .add_option("--system", flags.system, "A system's name (see: headroom list systems) or a system file")
      ->type_name("SYSTEM")
      ->capture_default_str();
  const auto overrides = [&](const char* name, std::vector<std::string>& values, const char* help) {
    command.add_option(name, values, help)
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  overrides("--set-system", flags.overrides, "Override a field of the system: memory='96 GiB'");
  command
      .add_option("--software", flags.software,
                  "A training stack's name (see: headroom list software) or file")
      ->type_name("SOFTWARE")
      ->capture_default_str();
  overrides("--set-software", flags.software_overrides,
            "Override a field of the software: overlaps_data_parallel=true");
}

void read_system_flags(const SystemFlags& flags, Request& request, std::vector<Problem>& problems) {
  collect(problems, [&] { request.system = read_system(flags.system, flags.overrides); });
  collect(problems, [&] { request.software = read_software(flags.software, flags.software_overrides); });
}

}  // namespace headroom::cli
