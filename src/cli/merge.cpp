#include <algorithm>

#include "cli/command.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/shards.hpp"
#include "cli/version.hpp"

namespace headroom::cli {
namespace {

struct MergeFlags {
  std::vector<std::string> parts;
  OutputFlags output;
};

ExitCode merge(const MergeFlags& flags) {
  style_of(flags.output);
  std::vector<Problem> problems;
  std::vector<PartReader> parts;
  std::vector<PartHead> heads;
  for (const std::string& path : flags.parts) {
    collect(problems, [&] { heads.push_back(parts.emplace_back(path).head()); });
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  check_parts(heads, flags.parts, version());
  std::sort(parts.begin(), parts.end(), [](const PartReader& x, const PartReader& y) {
    return x.head().shard.index < y.head().shard.index;
  });
  note_interrupts();
  const std::string& command = heads.front().command;
  if (command == "plan") return merge_plan(parts, flags.output);
  if (command == "sweep") return merge_sweep(SweepKind::estimate, parts, flags.output);
  if (command == "sweep plan") return merge_sweep(SweepKind::plan, parts, flags.output);
  throw InputError(parts.front().path() + ": /command", "must be plan, sweep or sweep plan");
}

}  // namespace

void add_merge(Command program, ExitCode& exit_code) {
  Command command = program.add_command("merge", "Merges the outputs of --shard runs");
  const auto flags = std::make_shared<MergeFlags>();
  command.option("parts", flags->parts, "PART", "All parts of one command, in any order").required();
  add_verbose_flag(command, flags->output.verbose);
  add_output_flags(command, flags->output);
  command.examples({"headroom plan gpt3-175b --devices 64 --global-batch 64 --shard 1/2 -o part1.json",
                    "headroom plan gpt3-175b --devices 64 --global-batch 64 --shard 2/2 -o part2.json",
                    "headroom merge part1.json part2.json"});
  command.footer("Exit code: that of the whole command; 2 bad input, such as a missing part.");
  command.on_run([flags, &exit_code] { exit_code = merge(*flags); });
}

}  // namespace headroom::cli
