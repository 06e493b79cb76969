#include "headroom/answer/list.hpp"

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "headroom/report/listing.hpp"

namespace headroom::cli {

void add_list(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "list",
      "Lists models, systems, training stacks, their releases and recipes, published sources and strategy "
      "fields");
  command.require_command();
  command.examples({"headroom list models", "headroom list systems --format json",
                    "headroom list releases megatron-bridge",
                    "headroom list recipes --model llama-3-70b --release 26.04"});
  const auto output = std::make_shared<OutputFlags>();
  const auto question = std::make_shared<ListQuestion>();
  const auto add = [&](const char* what, const char* help, Listed listed) {
    Command kind = command.add_command(what, help);
    add_output_flags(kind, *output);
    kind.on_run([output, question, listed, &exit_code] {
      question->listed = listed;
      const Style style = style_of(*output);
      write(*output, render(answer(*question), style));
      exit_code = ExitCode::done;
    });
    return kind;
  };
  add("models", "Lists models", Listed::models);
  add("systems", "Lists systems", Listed::systems);
  add("software", "Lists training stacks", Listed::software);
  add("releases", "Lists releases of training stacks: --software FAMILY@RELEASE", Listed::releases)
      .option("family", question->family, "FAMILY", "Family of releases (default: all)");
  Command recipes =
      add("recipes", "Lists settings that releases ship: --recipe NAME@RELEASE", Listed::recipes);
  recipes.option("--model", question->model, "MODEL", "Recipes of this model");
  recipes.option("--release", question->release, "RELEASE",
                 "Recipes of this release: 26.04, megatron-bridge@26.04, v0.4.0 or a day");
  add("sources", "Lists published sources of measured runs", Listed::sources);
  add("fields", "Lists strategy fields: flags, JSON keys, other names", Listed::fields);
}

}  // namespace headroom::cli
