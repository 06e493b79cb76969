#include "headroom/interop/launch.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "headroom/core/expects.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "interop/launch_out/launches.hpp"
#include "interop/launch_out/script.hpp"

namespace headroom {
namespace {

struct TargetRow {
  LaunchTarget target;
  Launcher launcher;         // whose flags it takes
  std::string_view release;  // whose words its files are
  void (*write)(const Request& request, Launch& launch);
};
constexpr std::array targets{
    TargetRow{LaunchTarget::megatron, Launcher::megatron_lm, "Megatron-LM core_v0.19.0", write_megatron},
    TargetRow{LaunchTarget::bridge, Launcher::megatron_bridge, "Megatron-Bridge v0.5.0", write_bridge},
    TargetRow{LaunchTarget::nemo, Launcher::megatron_lm, "NeMo v2.0.0", write_nemo},
    TargetRow{LaunchTarget::zero_bubble, Launcher::zero_bubble, "zero-bubble-pipeline-parallelism of 2024",
              write_megatron},
    TargetRow{LaunchTarget::torchtitan, Launcher::torchtitan, "torchtitan v0.2.2", write_titan},
    TargetRow{LaunchTarget::deepspeed, Launcher::deepspeed, "DeepSpeed v0.18.0", write_deepspeed},
    TargetRow{LaunchTarget::accelerate, Launcher::accelerate, "accelerate v1.12.0", write_accelerate},
    TargetRow{LaunchTarget::trainer, Launcher::accelerate, "transformers v4.57.0 on accelerate v1.12.0",
              write_accelerate},
    TargetRow{LaunchTarget::nanotron, Launcher::megatron_lm, "nanotron at 2411b022a75f (2026-04-07)",
              write_nanotron},
    TargetRow{LaunchTarget::llama_factory, Launcher::accelerate, "LLaMA-Factory v0.9.3", write_llama_factory},
    TargetRow{LaunchTarget::axolotl, Launcher::accelerate, "axolotl v0.12.0", write_axolotl},
};

const TargetRow& row_of(LaunchTarget target) {
  for (const TargetRow& row : targets) {
    if (row.target == target) return row;
  }
  EXPECTS(!"unknown target");
  return targets.front();
}

// A release that was priced and is not the one whose words the files are.
std::string other_release(const Software& software, const TargetRow& row) {
  const std::size_t at = software.name.find('@');
  if (at == std::string::npos || row.release.ends_with(" " + software.name.substr(at + 1))) return {};
  return "the release: the files are written for " + std::string(row.release) + ", not " + software.name;
}

// Kernels that were priced apart from those that the stack has by itself, for which no launch has words.
void add_other_kernels(const Software& software, Launch& launch) {
  nlohmann::ordered_json own;
  try {
    own = nlohmann::ordered_json::parse(write_software(read_software(software.name)));
  } catch (const InputError&) {
    return;  // a stack of the user's: nothing says what it is a change of
  }
  const auto priced = nlohmann::ordered_json::parse(write_software(software));
  std::vector<std::string_view> changed;
  for (const std::string_view field :
       {"norm_backward", "norm_kernel", "activation_kernel", "clamp_kernel", "expert_bias_kernel",
        "rotary_kernel", "scaled_rotary_kernel", "qkv_linear", "kv_sharing", "softmax_dtype", "cross_entropy",
        "compiles_loss", "embedding_parallel", "loss_parallel", "gradient_reduction"}) {
    // --no-rope-fusion says it.
    const bool said = field == "rotary_kernel" &&
                      (launch.target == LaunchTarget::megatron || launch.target == LaunchTarget::bridge);
    if (!said && own.value(field, nlohmann::ordered_json()) != priced.value(field, nlohmann::ordered_json()))
      changed.push_back(field);
  }
  if (!changed.empty())
    launch.lacks.push_back("what was set of the stack, and no file says: " + joined(changed));
}

bool trains_transformers(LaunchTarget target) {
  switch (target) {
    case LaunchTarget::accelerate:
    case LaunchTarget::trainer:
    case LaunchTarget::llama_factory:
    case LaunchTarget::axolotl: return true;
    default: return false;
  }
}

}  // namespace

std::optional<LaunchTarget> own_target(const Software& software) {
  if (!software.launcher) return std::nullopt;
  for (const TargetRow& row : targets) {
    if (row.launcher == *software.launcher) return row.target;
  }
  return std::nullopt;
}

bool runs_stack(LaunchTarget target, const Software& software) {
  if (!software.launcher) return false;
  const Launcher launcher = *software.launcher;
  const bool core = launcher == Launcher::megatron_lm || launcher == Launcher::megatron_bridge;
  switch (target) {
    case LaunchTarget::megatron: return core;
    // Their layers are Transformer Engine's.
    case LaunchTarget::bridge:
    case LaunchTarget::nemo: return core && software.memory.dummy_gradients == DummyGradients::kept_by_shape;
    // Megatron's layers and 1F1B, without collectives in pieces.
    case LaunchTarget::nanotron: return core && software.overlap_tensor_parallel != TensorOverlap::full;
    default:
      // DeepSpeed is an engine of theirs.
      return launcher == row_of(target).launcher ||
             (trains_transformers(target) && launcher == Launcher::deepspeed);
  }
}

std::string target_rule(LaunchTarget target, const Software& software) {
  if (runs_stack(target, software)) return {};
  std::vector<std::string> stacks;
  for (const std::string_view name : embedded_names("software")) {
    if (runs_stack(target, read_software(std::string(name)))) stacks.emplace_back(name);
  }
  return "cannot be " + std::string(name_of(target)) + " on the stack " + software.name +
         ", which it does not run: use --software " + joined(stacks, " or ");
}

Software started_by(Software software, LaunchTarget target) {
  EXPECTS(runs_stack(target, software));
  // Of a stack of DeepSpeed, its engine's words.
  if (software.launcher != Launcher::deepspeed) software.launcher = row_of(target).launcher;
  return software;
}

Launch launch_of(const Request& request, LaunchTarget target) {
  EXPECTS(runs_stack(target, request.software));
  const TargetRow& row = row_of(target);
  Request told = request;
  told.software = started_by(std::move(told.software), target);
  ToldStrategy part = told_part(request.model, request.strategy, request.workload, told.software);
  told.strategy = std::move(part.strategy);
  LaunchFlags flags = *launch_flags(told.model, told.strategy, told.workload, told.software);
  Launch launch{.target = target,
                .release = std::string(row.release),
                .files = {},
                .environment = shared_environment(told),
                .command = {},
                .flags = std::move(flags.flags),
                .lacks = std::move(part.lacks)};
  if (std::string other = other_release(request.software, row); !other.empty())
    launch.lacks.push_back(std::move(other));
  add_other_kernels(request.software, launch);
  row.write(told, launch);
  return launch;
}

}  // namespace headroom
