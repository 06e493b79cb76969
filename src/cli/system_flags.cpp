#include "cli/system_flags.hpp"

#include "cli/flags.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom::cli {

void add_system_flags(Command command, SystemFlags& flags) {
  command.option("--system", flags.system, "SYSTEM",
                 "A system's name (see: headroom list systems) or a system file");
  const auto overrides = [&](const char* name, std::vector<std::string>& values, const char* help) {
    command.option(name, values, "KEY=VALUE", help);
  };
  overrides("--set-system", flags.overrides, "Override a field of the system: memory='96 GiB'");
  command.option("--software", flags.software, "SOFTWARE",
                 "A training stack's name (see: headroom list software) or file");
  overrides("--set-software", flags.software_overrides,
            "Override a field of the software: overlaps_data_parallel=true");
}

void read_system_flags(const SystemFlags& flags, Request& request, std::vector<Problem>& problems) {
  collect(problems, [&] { request.system = read_system(flags.system, flags.overrides); });
  collect(problems, [&] { request.software = read_software(flags.software, flags.software_overrides); });
}

}  // namespace headroom::cli
