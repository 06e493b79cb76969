// --shard: a part of a command's work, written as a part file, and the commands whose parts can be joined.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "headroom/answer/sweep.hpp"
#include "headroom/io/part_file.hpp"

namespace headroom::cli {

void add_shard_flag(Command command, FlagText& shard);

// "2/3"; none where the flag is not given. A part has a format of its own: --format is a mistake then. Every mistake is added to `problems`.
std::optional<Shard> read_shard(const Command& command, const FlagText& text, std::vector<Problem>& problems);

// The names or files that a command reads models and so on from.
struct Inputs {
  std::vector<std::string> models;
  std::vector<std::string> systems;
  std::vector<std::string> software;
};

// The digest is over the arguments and over what the inputs hold now.
PartHead part_head(std::string command, const Shard& shard, std::vector<std::string> arguments,
                   const Inputs& inputs);

// Throws InputError when the parts were made from other inputs than those that are found now.
void check_inputs(const std::vector<PartReader>& parts, const Inputs& inputs);

// The flags that change where a result goes or who works on it, but not the result.
inline constexpr std::array<std::string_view, 11> flags_beside_the_result{
    "--verbose", "--shard",  "--threads", "--time-limit", "--format", "--columns",
    "--color",   "--output", "--html",    "--what-if",    "--plot"};

// Print what the whole command would have printed. The parts are complete and in the order of their shards.
ExitCode merge_plan(std::vector<PartReader>& parts, const OutputFlags& flags);
ExitCode merge_sweep(SweepKind kind, std::vector<PartReader>& parts, const OutputFlags& flags);

}  // namespace headroom::cli
