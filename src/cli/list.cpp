#include "headroom/answer/list.hpp"

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "headroom/report/listing.hpp"

namespace headroom::cli {

void add_list(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "list", "Lists models, systems, training stacks, published sources and strategy fields");
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
  add("models", "Lists models", Listed::models);
  add("systems", "Lists systems", Listed::systems);
  add("software", "Lists training stacks", Listed::software);
  add("sources", "Lists published sources of measured runs", Listed::sources);
  add("fields", "Lists strategy fields: flags, JSON keys, other names", Listed::fields);
}

}  // namespace headroom::cli
