// Takes the words of a started program apart: launchers with their own options, the program, its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interop/shell/interpreter.hpp"

namespace headroom {

struct Program {
  std::string name;  // "pretrain_gpt.py", or a module: "verl.trainer.main_ppo"
  std::string path;  // as the command has it: "src/pretrain_gpt.py"
  std::vector<shell::Value> arguments;
  std::vector<std::string> launchers;  // "srun", "torchrun"
  std::vector<std::pair<std::string, std::string>> environment;
  shell::JobSizes sizes;  // of its launchers
  std::optional<std::int64_t> processes_per_node;
  std::optional<std::int64_t> processes;
  std::string missing_size;  // the words of a launcher's sizes that only a run knows
  std::string missing_each;  // of its processes on a node
  bool whole_nodes = false;  // takes all GPUs of each node: `deepspeed train.py`, --nproc_per_node=gpu
  // Of accelerate, without dashes: {"use_deepspeed", ""}, {"zero_stage", "3"}.
  std::vector<std::pair<std::string, std::string>> options;
  shell::Place at;
};

// Nothing if no program of Python is started, nor one of the known.
std::optional<Program> program_of(const shell::Started& started);

// The launcher of a command whose program is not among its words; empty: there is none.
std::string launcher_alone(const shell::Started& started);

}  // namespace headroom
