#include "cli/command.hpp"
#include "cli/output.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/report/listing.hpp"

namespace headroom::cli {

void add_list(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "list", "Models, systems, training stacks, published sources and the fields of a strategy, by name");
  command.require_command();
  command.footer("Examples:\n  headroom list models\n  headroom list systems --format json");
  const auto output = std::make_shared<OutputFlags>();
  const auto add = [&](const char* what, const char* help, auto all) {
    Command kind = command.add_command(what, help);
    add_output_flags(kind, *output);
    kind.on_run([output, all, &exit_code] {
      write(*output, render(all(), style_of(*output)));
      exit_code = ExitCode::done;
    });
  };
  add("models", "Models by name", list_models);
  add("systems", "Systems by name", list_systems);
  add("software", "Training stacks by name", list_software);
  add("sources", "Published sources of measured runs by key", list_sources);
  Command fields = command.add_command("fields", "The fields of a strategy: flags, JSON keys, other names");
  add_output_flags(fields, *output);
  fields.on_run([output, &exit_code] {
    write(*output, render_fields(style_of(*output)));
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
