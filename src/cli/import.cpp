#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/notes.hpp"
#include "cli/output.hpp"
#include "cli/request_flags.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/io/model_file.hpp"

namespace headroom::cli {
namespace {

struct ImportFlags {
  std::string source;
  std::vector<std::string> overrides;
  OutputFlags output;
};

ExitCode import(const ImportFlags& flags) {
  const ImportedModel imported = import_model(flags.source, flags.overrides);
  tell_once(remarks_on_model(flags.source));
  for (const HubAssumption& assumption : imported.assumed) tell(assumption);
  write(flags.output, write_model(imported.model));
  return ExitCode::done;
}

}  // namespace

void add_import(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "import", "Converts a Hugging Face config.json to a model file, and names what it assumes");
  const auto flags = std::make_shared<ImportFlags>();
  command.option("config", flags->source, "CONFIG", "A config.json, or a folder that has one").required();
  command.option("--set", flags->overrides, "KEY=VALUE", "Override a field of the model file");
  command.in(topic::output)
      .output("-o,--output", flags->output.file, "Write to FILE instead of standard output");
  command.examples({"headroom import ./Qwen3-8B/config.json --set sequence=32768 -o qwen3-8b-32k.json"});
  command.footer(
      "Every command that takes a model takes a config.json too; a model file can be mended by hand.");
  command.on_run([flags, &exit_code] { exit_code = import(*flags); });
}

}  // namespace headroom::cli
