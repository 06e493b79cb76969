#include "interop/launch_in/model_zoo.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace headroom {
namespace {

// Variables of the script, and the arguments that it makes of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> zoo_sizes{{
    {"TP", "tensor_model_parallel_size"},
    {"PP", "pipeline_model_parallel_size"},
    {"VPP", "virtual_pipeline_model_parallel_size"},
    {"CP", "context_parallel_size"},
    {"EP", "expert_model_parallel_size"},
    {"MBS", "micro_batch_size"},
    {"GBS", "global_batch_size"},
    {"SEQ_LEN", "seq_length"},
}};

// What a model takes where a script leaves a variable out [runtime_configs/benchmarking/runtime.conf]; in the order of
// `zoo_sizes`, and nodes of 8 GPUs.
struct ZooDefaults {
  std::string_view model;
  std::array<std::string_view, 8> sizes;
  std::string_view nodes;
};
constexpr std::array<ZooDefaults, 8> zoo_defaults{{
    {"Mixtral-8x2B", {"1", "1", "1", "1", "8", "2", "256", "4096"}, "8"},
    {"Mixtral-8x7B", {"1", "4", "8", "1", "8", "1", "256", "4096"}, "8"},
    {"Mixtral-8x22B", {"2", "8", "1", "1", "8", "1", "256", "4096"}, "16"},
    {"DeepSeek-V2", {"1", "16", "2", "1", "8", "1", "1024", "4096"}, "32"},
    {"DeepSeek-V2-Lite", {"1", "1", "1", "1", "8", "1", "512", "4096"}, "1"},
    {"DeepSeek-V3", {"1", "16", "1", "1", "64", "1", "8192", "4096"}, "128"},
    {"Qwen3-235B-A22B", {"2", "8", "4", "1", "32", "1", "256", "4096"}, "32"},
    {"Qwen3-30B-A3B", {"1", "1", "1", "1", "8", "1", "256", "4096"}, "4"},
}};

}  // namespace

std::optional<ModelZooRun> model_zoo_run(const shell::Started& started, const FilePlace& at) {
  const auto script = std::find_if(started.words.begin(), started.words.end(), [](const shell::Value& word) {
    return word.text().ends_with("sbatch_benchmarking.sh");
  });
  if (script == started.words.end()) return std::nullopt;
  ModelZooRun run;
  run.flags.assign(script + 1, started.words.end());
  const auto variable = [&](std::string_view name) -> std::string {
    for (const auto& [known, value] : started.environment) {
      if (known == name && shell::is_known(value)) return value;
    }
    return {};
  };
  const auto add = [&](std::string_view argument, std::vector<std::string> values, std::string written) {
    run.variables.push_back({std::string(argument), std::move(values), std::move(written), at, ""});
  };
  run.model = variable("MODEL");
  const auto* const usual = std::find_if(zoo_defaults.begin(), zoo_defaults.end(),
                                         [&](const ZooDefaults& row) { return row.model == run.model; });
  for (std::size_t i = 0; i < zoo_sizes.size(); ++i) {
    const auto& [name, argument] = zoo_sizes[i];
    const std::string value = variable(name);
    if (!value.empty()) {
      add(argument, {value}, std::string(name) + "=" + value);
    } else if (usual != zoo_defaults.end()) {
      const std::string written = fmt::format("{}={}", name, usual->sizes[i]);
      add(argument, {std::string(usual->sizes[i])}, written);
      run.of_defaults += (run.of_defaults.empty() ? "" : ", ") + written;
    }
  }
  // What the configurations of all its models say.
  add("expert_tensor_parallel_size", {"1"}, "");
  for (const char* const name : {"use_distributed_optimizer", "sequence_parallel", "bf16",
                                 "overlap_grad_reduce", "overlap_param_gather"})
    add(name, {}, "");
  const std::string precision = variable("PR");
  if (precision == "fp8" || precision == "mxfp8") {
    const std::string written = "PR=" + precision;
    add("fp8_format", {"e4m3"}, written);
    add("fp8_recipe", {precision == "fp8" ? "blockwise" : "mxfp8"}, written);
    add("use_precision_aware_optimizer", {}, written);
    add("exp_avg_dtype", {"bf16"}, written);
    add("exp_avg_sq_dtype", {"bf16"}, written);
    if (variable("OPTIMIZER_OFFLOAD") != "1") add("fp8_param_gather", {}, written);
  } else if (precision == "bf16" || precision.empty()) {
    add("tp_comm_overlap", {}, "PR=bf16");
  }
  const std::string dispatcher = variable("DISPATCHER");
  if (dispatcher == "alltoall") {
    add("moe_token_dispatcher_type", {dispatcher}, "DISPATCHER=" + dispatcher);
  } else {
    add("moe_token_dispatcher_type", {"flex"}, "DISPATCHER=" + dispatcher);
    add("moe_flex_dispatcher_backend", {dispatcher.empty() ? "deepep" : dispatcher},
        "DISPATCHER=" + dispatcher);
  }
  if (variable("A2A_OVERLAP") == "1") {
    add("overlap_moe_expert_parallel_comm", {}, "A2A_OVERLAP=1");
    add("delay_wgrad_compute", {}, "A2A_OVERLAP=1");
  }
  if (variable("OPTIMIZER_OFFLOAD") == "1") add("optimizer_cpu_offload", {}, "OPTIMIZER_OFFLOAD=1");
  std::string nodes = variable("NNODES");
  if (nodes.empty() && usual != zoo_defaults.end()) {
    nodes = usual->nodes;
    run.of_defaults += (run.of_defaults.empty() ? "NNODES=" : ", NNODES=") + nodes;
  }
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(nodes.data(), nodes.data() + nodes.size(), count);
  constexpr std::int64_t most = 1 << 20;
  if (error == std::errc() && end == nodes.data() + nodes.size() && count > 0 && count < most)
    run.devices = count * (variable("GB200_CLUSTER") == "1" ? 4 : 8);
  return run;
}

}  // namespace headroom
