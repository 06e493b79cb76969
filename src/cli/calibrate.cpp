#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/report/calibration.hpp"

namespace headroom::cli {
namespace {

struct CalibrateFlags {
  std::vector<std::string> samples;
  std::string base = "dgx-a100-80g";
  std::string format = "table";
  std::string output;
};

ExitCode calibrate(const CalibrateFlags& flags) {
  const Format format = format_of({.format = flags.format});
  std::vector<Problem> problems;
  System base;
  std::vector<SampleSet> sets;
  collect(problems, [&] { base = read_system(flags.base); });
  for (const std::string& file : flags.samples) {
    collect(problems, [&] { sets.push_back(read_samples(file)); });
  }
  if (problems.empty() && !base.performance) {
    problems.push_back({flags.base, "has no performance figures, which a fit starts from"});
  }
  if (!problems.empty()) throw InputError(problems);
  Calibration calibration = headroom::calibrate(sets, base);
  if (!flags.output.empty()) {
    calibration.system.name = std::filesystem::path(flags.output).stem().string();
    write({.file = flags.output}, write_system(calibration.system));
  }
  write({}, render(calibration, format));
  return ExitCode::done;
}

}  // namespace

void add_calibrate(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand("calibrate", "Fit a system's rates to measured samples");
  const auto flags = std::make_shared<CalibrateFlags>();
  command->add_option("samples", flags->samples, "JSON of headroom-measure, CSV, or output of nccl-tests")
      ->required()
      ->type_name("SAMPLES");
  command
      ->add_option("--base", flags->base,
                   "The system (name or file) of the samples' device, whose other figures are kept")
      ->type_name("SYSTEM")
      ->capture_default_str();
  command->add_option("--format", flags->format, "Of the report: table, json, csv or markdown")
      ->type_name("FORMAT")
      ->capture_default_str();
  command->add_option("-o,--output", flags->output, "Write the calibrated system to FILE")->type_name("FILE");
  command->footer(
      "Example:\n"
      "  headroom calibrate products.csv all_reduce.txt --base dgx-h100-80g -o my-cluster.json\n"
      "\nErrors are of the fit, and of samples held out: each third of the shapes is predicted by rates "
      "fitted to\n"
      "the other two. docs/calibration.md describes the files.\n"
      "\nExit code: 0 done, 2 bad input.");
  command->callback([flags, &exit_code] { exit_code = calibrate(*flags); });
}

}  // namespace headroom::cli
