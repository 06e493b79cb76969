// What the rules of Megatron-LM's own validation look at.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/reading.hpp"
#include "interop/launch_in/megatron_in.hpp"
#include "interop/launch_in/megatron_model.hpp"

namespace headroom {

// Arguments and variables. A value that only a run knows is neither on nor off.
class CheckedArguments {
 public:
  CheckedArguments(const MegatronArguments& arguments, const RunBuilder& run)
      : arguments_(arguments), settings_(arguments.written), run_(run), open_(arguments.open) {
    // `--log-throughput $EXTRA`: the variable may hold further arguments.
    for (const Written& setting : arguments.written) {
      if (setting.unknown.empty()) continue;
      for (const std::string_view start : {"no_", "use_", "log_", "overlap_", "mock_data"})
        open_ = open_ || setting.name.starts_with(start);
    }
  }

  [[nodiscard]] const Written* find(std::string_view name) const {
    const Written* const setting = settings_.find(name);
    return setting == nullptr ? variable(name) : setting;
  }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] bool known(std::string_view name) const {
    const Written* const setting = find(name);
    return setting != nullptr && setting->unknown.empty();
  }
  // Given with a value, or as a switch that is on.
  [[nodiscard]] bool on(std::string_view name) const { return known(name) && is_on(*find(name)); }
  // On, or on in a run that gives it.
  [[nodiscard]] bool may_be_on(std::string_view name) const { return !off(name); }
  [[nodiscard]] bool off(std::string_view name) const {
    return has(name) ? known(name) && !is_on(*find(name)) : !open_;
  }
  [[nodiscard]] bool lacks(std::string_view name) const { return !has(name) && !open_; }
  [[nodiscard]] std::string text(std::string_view name) const {
    return known(name) ? text_of_values(*find(name)) : std::string();
  }
  // The text of an argument; the default of one that is not given; empty: not known.
  [[nodiscard]] std::string text_or(std::string_view name, std::string_view fallback) const {
    return lacks(name) ? std::string(fallback) : text(name);
  }
  [[nodiscard]] std::int64_t number(std::string_view name) const {
    return settings_.number(name).value_or(0);
  }
  [[nodiscard]] std::int64_t count(std::string_view field) const { return run_.count(field).value_or(1); }
  // Given with another type than FP32.
  [[nodiscard]] bool narrow(std::string_view name) const { return known(name) && text(name) != "fp32"; }
  [[nodiscard]] bool names(std::initializer_list<std::string_view> lists, std::string_view item) const {
    return std::any_of(lists.begin(), lists.end(), [&](std::string_view list) {
      return known(list) && contains(parts_of(without_brackets(text(list)), ','), item);
    });
  }
  [[nodiscard]] bool experts() const { return settings_.has_experts(); }
  [[nodiscard]] bool no_experts() const {
    return megatron_program() && lacks("num_experts") && lacks("num_moe_experts");
  }
  // A program of Megatron-LM, whose arguments come from its command line alone: forks set their own defaults.
  [[nodiscard]] bool megatron_program() const {
    constexpr std::array<std::string_view, 6> programs{"pretrain_gpt.py", "pretrain_mamba.py",
                                                       "pretrain_t5.py",  "pretrain_bert.py",
                                                       "pretrain_vlm.py", "pretrain_hybrid.py"};
    const std::string_view name = arguments_.program;
    return contains(programs, name.substr(name.rfind('/') + 1)) && !has("use_checkpoint_args") &&
           !has("yaml_cfg");
  }
  [[nodiscard]] std::string recomputed() const {
    return on("recompute_activations") ? "selective" : text("recompute_granularity");
  }
  [[nodiscard]] bool fsdp() const { return on("use_megatron_fsdp") || on("use_custom_fsdp"); }
  [[nodiscard]] bool may_be_fsdp() const {
    return may_be_on("use_megatron_fsdp") || may_be_on("use_custom_fsdp");
  }
  [[nodiscard]] bool graphs() const {
    return (on("cuda_graph_impl") && text("cuda_graph_impl") != "none") || on("enable_cuda_graph") ||
           on("external_cuda_graph");
  }
  [[nodiscard]] bool graphs_module(std::string_view module) const {
    return graphs() && names({"cuda_graph_modules", "cuda_graph_scope"}, module);
  }
  [[nodiscard]] bool counts_ends() const {
    return on("decoder_first_pipeline_num_layers") || on("decoder_last_pipeline_num_layers");
  }
  [[nodiscard]] bool accounts() const {
    return on("account_for_embedding_in_pipeline_split") || on("account_for_loss_in_pipeline_split");
  }
  [[nodiscard]] bool every_layer_has_experts() const {
    if (!experts()) return false;
    const auto which = expert_layers(text_or("moe_layer_freq", "1"), number("num_layers"));
    return which && !which->empty() && !contains(*which, 0);
  }
  // Whether CUDA_DEVICE_MAX_CONNECTIONS must be 1.
  [[nodiscard]] bool one_connection() const {
    constexpr std::array<std::string_view, 4> blackwell{"b200", "b300", "b100", "blackwell"};
    const std::string& gpu = run_.so_far().system;
    const bool newer = std::any_of(blackwell.begin(), blackwell.end(), [&](std::string_view name) {
      return gpu.find(name) != std::string::npos;
    });
    return !newer && (count("tensor_parallel") > 1 || count("context_parallel") > 1) && !may_be_fsdp() &&
           off("use_torch_fsdp2") && off("overlap_moe_expert_parallel_comm");
  }
  [[nodiscard]] bool expandable_segments() const {
    return arguments_.allocator &&
           text_of_values(*arguments_.allocator).find("expandable_segments:True") != std::string::npos;
  }
  // A variable of the environment that has another value.
  [[nodiscard]] bool differs(std::string_view name, std::string_view value) const {
    return known(name) && text(name) != value;
  }
  // A variable that neither the script nor a file that it reads sets.
  [[nodiscard]] bool unset(std::string_view name) const {
    return !arguments_.environment_unknown && variable(name) == nullptr;
  }
  // The least minor version of Megatron-Core with these arguments of the script, by its tags; 0: any.
  [[nodiscard]] int release() const {
    constexpr std::array<std::pair<std::string_view, int>, 26> flags{{
        {"tensor_parallel_num_weight_shards", 19},
        {"cuda_graph_modules", 18},
        {"step_batch_size_schedule", 18},
        {"hybrid_layer_pattern", 17},
        {"fine_grained_activation_offloading", 16},
        {"hybrid_context_parallel", 16},
        {"moe_flex_dispatcher_backend", 16},
        {"moe_router_padding_for_quantization", 16},
        {"offload_modules", 16},
        {"cuda_graph_impl", 15},
        {"overlap_moe_expert_parallel_comm", 14},
        {"use_megatron_fsdp", 14},
        {"pipeline_model_parallel_layout", 13},
        {"delay_wgrad_compute", 13},
        {"recompute_modules", 12},
        {"mtp_num_layers", 12},
        {"fp8_recipe", 12},
        {"moe_enable_deepep", 12},
        {"cross_entropy_fusion_impl", 12},
        {"optimizer_cpu_offload", 12},
        {"use_precision_aware_optimizer", 11},
        {"num_virtual_stages_per_pipeline_rank", 11},
        {"multi_latent_attention", 10},
        {"expert_tensor_parallel_size", 10},
        {"cp_comm_type", 10},
        {"num_distributed_optimizer_instances", 10},
    }};
    const auto* const newest =
        std::find_if(flags.begin(), flags.end(), [&](const auto& flag) { return has(flag.first); });
    return newest == flags.end() ? 0 : newest->second;
  }

 private:
  static std::string without_brackets(std::string list) {
    std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == ' ' || c == '\'' || c == '"'; });
    return list;
  }
  [[nodiscard]] const Written* variable(std::string_view name) const {
    const auto found = std::find_if(arguments_.environment.begin(), arguments_.environment.end(),
                                    [&](const Written& it) { return it.name == name; });
    return found == arguments_.environment.end() ? nullptr : &*found;
  }

  const MegatronArguments& arguments_;
  MegatronSettings settings_;
  const RunBuilder& run_;
  bool open_;  // there may be further arguments
};

}  // namespace headroom
