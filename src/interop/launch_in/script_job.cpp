#include "interop/launch_in/script_job.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/script_words.hpp"

namespace headroom {

using shell::Followed;

namespace {

// Whether words that only a run knows count the GPUs of its node: $(nvidia-smi -L | wc -l), $SLURM_GPUS_ON_NODE.
bool counts_gpus_of_node(const Followed& script, std::string_view words) {
  constexpr std::array<std::string_view, 4> counters{"nvidia-smi", "device_count", "SLURM_GPUS_ON_NODE",
                                                     "SLURM_GPUS_PER_NODE"};
  const std::vector<std::size_t> marks = shell::marks_in(words);
  return !marks.empty() && std::all_of(marks.begin(), marks.end(), [&](std::size_t mark) {
    return std::any_of(counters.begin(), counters.end(), [&](std::string_view counter) {
      return script.unknowns[mark].text.find(counter) != std::string::npos;
    });
  });
}

}  // namespace

bool read_sizes(const Followed& script, const Program& program, RunBuilder& run,
                std::optional<std::int64_t>& devices) {
  shell::JobSizes job = script.job;
  for (const shell::Started& started : script.started) {  // `sbatch --nodes=8 train.sh`
    if (started.words.empty()) continue;
    const std::string& first = started.words.front().text();
    if (first != "sbatch" && first != "srun" && first != "salloc") continue;
    std::vector<std::string> rest;
    for (std::size_t i = 1; i < started.words.size(); ++i) rest.push_back(started.words[i].text());
    shell::read_job_options(rest, job);
  }
  const shell::JobSizes& own = program.sizes;
  const auto either = [](auto x, auto y) { return x ? x : y; };
  const auto tasks_each = either(own.tasks_per_node, job.tasks_per_node);
  const auto gpus_each = either(own.gpus_per_node, job.gpus_per_node);
  const bool spawns = !program.launchers.empty() && program.launchers.back() != "srun";
  std::optional<std::int64_t> each = program.processes_per_node;
  if (!each) each = spawns ? either(gpus_each, tasks_each) : either(tasks_each, gpus_each);
  // Words that count the GPUs of a node stand for all of them.
  const bool counts_all = counts_gpus_of_node(script, program.missing_each);
  std::string missing = program.missing_size;
  if (!counts_all && !program.missing_each.empty())
    missing += (missing.empty() ? "" : ", ") + program.missing_each;
  const bool whole = program.whole_nodes || counts_all;
  std::optional<std::int64_t> nodes =
      either(own.nodes, missing.empty() || job.nodes ? job.nodes : std::nullopt);
  if (!nodes && missing.empty() && whole) nodes = 1;
  if (!each && whole && nodes && missing.empty()) run.whole_nodes(*nodes);
  const bool one_node =
      !nodes && missing.empty() && program.processes_per_node &&
      contains(std::array<std::string_view, 4>{"torchrun", "torch.distributed.launch",
                                               "torch.distributed.run", "deepspeed"},
               program.launchers.empty() ? std::string_view() : std::string_view(program.launchers.back()));
  if (one_node) nodes = 1;
  if (program.processes) {
    devices = program.processes;
  } else if (nodes && each) {
    devices = *nodes * *each;
  } else if (const auto tasks = either(own.tasks, job.tasks)) {
    devices = spawns ? std::nullopt : tasks;
  } else if (job.gpus) {
    devices = job.gpus;
  }
  if (each && *each <= 64) run.devices_per_node(*each);
  if (each && *each > 64 && nodes == 1) devices = each;
  if (devices) run.devices(*devices);
  if (!devices && !missing.empty()) {
    Written size{"", {}, "the number of GPUs", file_place(script, program.at), needs(script, missing)};
    size.unknown = size.unknown.empty() ? missing + " has no value: give --devices"
                                        : size.unknown + " (or give --devices)";
    run.unresolved(size, "data_parallel");
  }
  const std::string& gpu = own.gpu.empty() ? job.gpu : own.gpu;
  if (!gpu.empty()) run.system(gpu);
  return missing.empty();
}

void tell_conditions(const Followed& script, RunBuilder& run) {
  constexpr std::size_t most = 200;
  std::vector<std::size_t> told;
  for (std::size_t i = 0; i < std::min(script.conditions.size(), most); ++i) {
    const shell::Uncertain& condition = script.conditions[i];
    for (const std::size_t mark : condition.unknowns) {
      const shell::Unknown& unknown = script.unknowns[mark];
      if (unknown.source == shell::Source::environment || unknown.text == "$#" || contains(told, mark))
        continue;
      told.push_back(mark);
      run.unresolved(fmt::format("a condition {}; it is taken as {}", needs(script, shell::mark_of(mark)),
                                 condition.taken ? "true" : "false"),
                     file_place(script, condition.at));
    }
  }
}

std::string need_of_conditions(const Followed& script) {
  for (const shell::Uncertain& condition : script.conditions) {
    if (!condition.taken && !condition.unknowns.empty())
      return needs(script, shell::mark_of(condition.unknowns.front()));
  }
  return {};
}

}  // namespace headroom
