#include "headroom/answer/list.hpp"

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "headroom/report/listing.hpp"

namespace headroom::cli {

void add_list(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "list", "Models, systems, training stacks, published sources and the fields of a strategy, by name");
  command.require_command();
  command.footer("Examples:\n  headroom list models\n  headroom list systems --format json");
  const auto output = std::make_shared<OutputFlags>();
  const auto add = [&](const char* what, const char* help, Listed listed) {
    Command kind = command.add_command(what, help);
    add_output_flags(kind, *output);
    kind.on_run([output, listed, &exit_code] {
      const Style style = style_of(*output);
      write(*output, render(answer(ListQuestion{listed}), style));
      exit_code = ExitCode::done;
    });
  };
  add("models", "Models by name", Listed::models);
  add("systems", "Systems by name", Listed::systems);
  add("software", "Training stacks by name", Listed::software);
  add("sources", "Published sources of measured runs by key", Listed::sources);
  add("fields", "The fields of a strategy: flags, JSON keys, other names", Listed::fields);
}

}  // namespace headroom::cli
