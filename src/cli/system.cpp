#include <filesystem>

#include "cli/command.hpp"
#include "cli/notes.hpp"
#include "cli/output.hpp"
#include "headroom/io/system_file.hpp"

namespace headroom::cli {
namespace {

struct NewSystemFlags {
  std::string from;
  std::vector<std::string> set;
  OutputFlags output;
};

ExitCode write_new_system(const NewSystemFlags& flags) {
  System system = new_system(flags.from, flags.set);
  note_reading("system", flags.from, flags.set);
  const std::string& file = flags.output.file;
  if (!file.empty()) system.name = std::filesystem::path(file).stem().string();
  write(flags.output, write_system(system));
  return ExitCode::done;
}

}  // namespace

void add_system(Command program, ExitCode& exit_code) {
  Command command = program.add_command("system", "Writes a system file");
  command.require_command();
  command.examples({"headroom system new --from dgx-h100-80g --set memory='96 GB' -o mine.json"});
  Command made =
      command.add_command("new", "Writes a system file from a data sheet and the nearest known system");
  const auto flags = std::make_shared<NewSystemFlags>();
  made.option("--from", flags->from, "SYSTEM", "Nearest system, by name or file").required();
  made.option("--set", flags->set, "KEY=VALUE", "Set a figure of the data sheet; may be repeated");
  made.in(topic::output)
      .output("-o,--output", flags->output.file, "Write to FILE instead of standard output");
  made.examples(
      {"headroom system new --from dgx-h100-80g --set device=H100-NVL --set memory='94 GB' --set "
       "performance.device.half_peak='835 TFLOP/s' --set performance.device.memory_bandwidth='3.9 TB/s' -o "
       "h100-nvl.json"});
  made.footer(
      "If device or a figure of performance.device is set, this is another GPU: its rates follow the figures "
      "(arithmetic the peaks, what GEMMs move the memory bandwidth, collectives the links) and are assumed, "
      "which every result says. Else the rates stay as they are. headroom calibrate fits rates to samples.");
  made.on_run([flags, &exit_code] { exit_code = write_new_system(*flags); });
}

}  // namespace headroom::cli
