// A whole launch of a plan: a script, configuration files, environment and command of a launcher's named release.
// Everything that was priced and that the launcher can say is in it; the rest is in `lacks`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/interop/launch_flags.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// Programs that a launch is written for. zero_bubble: sail-sg/zero-bubble-pipeline-parallelism.
enum class LaunchTarget : std::uint8_t {
  megatron,
  bridge,
  nemo,
  zero_bubble,
  torchtitan,
  deepspeed,
  accelerate,
  trainer,
  nanotron,
  llama_factory,
  axolotl
};

struct LaunchFile {
  std::string name;  // below the folder of the launch
  std::string text;
  friend bool operator==(const LaunchFile&, const LaunchFile&) = default;
};

// An environment variable; an empty value unsets it.
struct LaunchVariable {
  std::string name;
  std::string value;
  friend bool operator==(const LaunchVariable&, const LaunchVariable&) = default;
};

struct Launch {
  LaunchTarget target = LaunchTarget::megatron;
  std::string release;                      // "Megatron-LM core_v0.19.0": whose words the files are
  std::vector<LaunchFile> files;            // the script first
  std::vector<LaunchVariable> environment;  // set by the script
  std::string command;                      // starts the script: "sbatch launch.sh"
  std::vector<std::string> flags;           // of the strategy, with their values
  std::vector<std::string> lacks;           // what the launch does not say or the launcher refuses, and why
  friend bool operator==(const Launch&, const Launch&) = default;
};

// Returns the program that the stack's own launcher is, or nothing if that is not known.
std::optional<LaunchTarget> own_target(const Software& software);

// Returns whether the program runs what was priced on the stack: it has the stack's layers and schedules.
bool runs_stack(LaunchTarget target, const Software& software);

// Returns why the program cannot launch a plan of the stack, with the stacks that it goes with; empty if it can.
std::string target_rule(LaunchTarget target, const Software& software);

// Returns the stack as the program starts it: the rules of that launcher apply. Expects a target that runs the stack.
Software started_by(Software software, LaunchTarget target);

// Returns the launch of a legal strategy on the request's system. Expects a target that runs the stack.
Launch launch_of(const Request& request, LaunchTarget target);

template <>
inline constexpr std::array<Spelling<LaunchTarget>, 11> spellings<LaunchTarget>{{
    {LaunchTarget::megatron, "megatron"},
    {LaunchTarget::bridge, "bridge"},
    {LaunchTarget::nemo, "nemo"},
    {LaunchTarget::zero_bubble, "zero-bubble"},
    {LaunchTarget::torchtitan, "torchtitan"},
    {LaunchTarget::deepspeed, "deepspeed"},
    {LaunchTarget::accelerate, "accelerate"},
    {LaunchTarget::trainer, "trainer"},
    {LaunchTarget::nanotron, "nanotron"},
    {LaunchTarget::llama_factory, "llama-factory"},
    {LaunchTarget::axolotl, "axolotl"},
}};

}  // namespace headroom
