// Whole launches: what their files say where a launcher has a rule of its own.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/interop/hugging_face.hpp"
#include "headroom/interop/launch.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests::launched_files {
namespace {

Request request_of(const std::string& model, const std::string& software, Strategy strategy,
                   const std::string& system = "dgx-h100-80g") {
  Request request{.workload = {.global_batch = 64, .sequence = 4096}};
  request.model = read_model(model);
  request.system = read_system(system);
  request.software = read_software(software);
  request.strategy = std::move(strategy);
  return request;
}

std::string file_in(const Launch& launch, std::string_view name) {
  const auto file = std::find_if(launch.files.begin(), launch.files.end(),
                                 [&](const LaunchFile& it) { return it.name == name; });
  return file == launch.files.end() ? std::string() : file->text;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string variable_in(const Launch& launch, std::string_view name) {
  for (const LaunchVariable& variable : launch.environment) {
    if (variable.name == name) return variable.value.empty() ? "unset" : variable.value;
  }
  return "";
}

}  // namespace

TEST_CASE("launched files: Megatron-Bridge's overrides are Hydra's") {
  Strategy strategy{.tensor_parallel = 2, .pipeline_parallel = 4, .data_parallel = 1};
  strategy.sequence_parallel = true;
  strategy.stage_layers = {9, 8, 8, 7};
  const Request request = request_of("llama-3-8b", "nemo-2025", strategy);
  const std::string script = file_in(launch_of(request, LaunchTarget::bridge), "launch.sh");
  CHECK(has(script, "\n  dataset.sequence_length=4096\n  model.seq_length=4096\n"));
  CHECK(has(script, "\n  model.pipeline_model_parallel_layout=\"'Et*9|(t*8|)*2,t*7,L'\"\n"));
  const std::string megatron = file_in(launch_of(request, LaunchTarget::megatron), "launch.sh");
  CHECK(has(megatron, "\n  --seq-length 4096\n"));
  CHECK(has(megatron, "\n  --pipeline-model-parallel-layout 'Et*9|(t*8|)*2,t*7,L'\n"));
}

TEST_CASE("launched files: the first host is read from all that scontrol writes") {
  const Strategy strategy{.data_parallel = 16};
  for (const auto& [target, software] :
       {std::pair{LaunchTarget::megatron, "megatron-core-2025"}, {LaunchTarget::accelerate, "hf-trainer"}}) {
    const std::string script =
        file_in(launch_of(request_of("llama-3-8b", software, strategy), target), "launch.sh");
    CHECK(has(script, "scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed -n 1p)"));
    CHECK_FALSE(has(script, "head -n"));
  }
}

TEST_CASE("launched files: CUDA_DEVICE_MAX_CONNECTIONS of forks and of NeMo") {
  const std::string name = "CUDA_DEVICE_MAX_CONNECTIONS";
  Strategy strategy{.tensor_parallel = 4, .pipeline_parallel = 2, .data_parallel = 1};
  strategy.sequence_parallel = true;
  const Request fork = request_of("llama-3-8b", "zero-bubble-2023", strategy, "dgx-b200-180g");
  CHECK(variable_in(launch_of(fork, LaunchTarget::zero_bubble), name) == "1");
  strategy.pipeline_parallel = 1;
  strategy.data_sharding = DataSharding::zero3;
  const Request sharded = request_of("llama-3-8b", "nemo-2025", strategy);
  CHECK(variable_in(launch_of(sharded, LaunchTarget::nemo), name) == "1");
  CHECK(variable_in(launch_of(sharded, LaunchTarget::bridge), name) == "unset");
}

TEST_CASE("launched files: NeMo's overlaps and experts are those that its file has") {
  Strategy strategy{.data_parallel = 8};
  strategy.data_sharding = DataSharding::none;
  const std::string plain = file_in(
      launch_of(request_of("gpt2-small", "nemo-2025", strategy), LaunchTarget::nemo), "headroom.yaml");
  CHECK(has(plain, "name: megatron_fused_adam"));
  CHECK(has(plain, "overlap_param_sync: false"));
  strategy.expert_parallel = 8;
  const std::string kinds = file_in(
      launch_of(request_of("deepseek-v3", "nemo-2025", strategy), LaunchTarget::nemo), "headroom.yaml");
  CHECK_FALSE(has(kinds, "num_moe_experts"));
  CHECK(has(kinds, "expert_model_parallel_size: 1\n"));
  const std::string experts = file_in(
      launch_of(request_of("mixtral-8x7b", "nemo-2025", strategy), LaunchTarget::nemo), "headroom.yaml");
  CHECK(has(experts, "expert_model_parallel_size: 8\n"));
}

TEST_CASE("launched files: torchtitan's TOML names no model that torchtitan has for other layers") {
  const Strategy strategy{.data_parallel = 8};
  const Launch other =
      launch_of(request_of("qwen2.5-0.5b", "torchtitan-2025", strategy), LaunchTarget::torchtitan);
  CHECK(has(file_in(other, "headroom.toml"), "flavor = \"your-flavor\""));
  CHECK_FALSE(has(file_in(other, "headroom.toml"), "debugmodel"));
}

TEST_CASE("launched files: DeepSpeed's batch is the Trainer's where a Trainer reads it") {
  Strategy strategy{.tensor_parallel = 2, .data_parallel = 4};
  const Request parallel = request_of("llama-3-8b", "deepspeed-2025", strategy);
  const auto json = [](const Request& request, LaunchTarget target) {
    return file_in(launch_of(request, target), "ds_config.json");
  };
  CHECK(has(json(parallel, LaunchTarget::deepspeed), "\"train_batch_size\": 64"));
  for (const LaunchTarget target : {LaunchTarget::accelerate, LaunchTarget::trainer,
                                    LaunchTarget::llama_factory, LaunchTarget::axolotl}) {
    CHECK_FALSE(json(parallel, target).empty());
    CHECK_FALSE(has(json(parallel, target), "\"train_batch_size\""));
  }
  strategy.tensor_parallel = 1;
  const Request plain = request_of("llama-3-8b", "deepspeed-2025", strategy);
  CHECK(has(json(plain, LaunchTarget::trainer), "\"train_batch_size\": 64"));
  strategy.pipeline_parallel = 2;
  const Launch stages =
      launch_of(request_of("llama-3-8b", "deepspeed-2025", strategy), LaunchTarget::deepspeed);
  CHECK(std::any_of(stages.lacks.begin(), stages.lacks.end(), [](const std::string& what) {
    return what.find("train.py builds no PipelineModule") != std::string::npos;
  }));
}

TEST_CASE("launch: plain rotary positions of latent attention take YaRN's fused kernel") {
  Request request = request_of("deepseek-v2-lite", "megatron-core-2025", {});
  const std::string script = file_in(launch_of(request, LaunchTarget::megatron), "launch.sh");
  CHECK(script.find("--rope-type yarn") != std::string::npos);
  CHECK(script.find("--rotary-scaling-factor 1.0") != std::string::npos);
  CHECK(script.find("--no-rope-fusion") == std::string::npos);
  request.software.rotary_kernel = RotaryKernel::rotate_chunks;
  const std::string unfused = file_in(launch_of(request, LaunchTarget::megatron), "launch.sh");
  CHECK(unfused.find("--rope-type rope") != std::string::npos);
  CHECK(unfused.find("--no-rope-fusion") != std::string::npos);
}

TEST_CASE("launched files: torchtitan clips no gradients that are gone by then") {
  Strategy strategy{.data_parallel = 64, .data_sharding = DataSharding::zero3};
  const auto toml = [&] {
    return file_in(launch_of(request_of("llama-3-8b", "torchtitan-2025", strategy), LaunchTarget::torchtitan),
                   "headroom.toml");
  };
  CHECK(has(toml(), "max_norm = 1.0"));
  strategy.step_in_backward = true;
  CHECK(has(toml(), "early_step_in_backward = true"));
  CHECK_FALSE(has(toml(), "max_norm"));
}

TEST_CASE("launched files: config.json has the layers that were priced, or there is none") {
  const Strategy strategy{.data_parallel = 8, .data_sharding = DataSharding::zero3};
  std::size_t written = 0;
  for (const Transformer& model : list_models()) {
    CAPTURE(model.name);
    Request request = request_of(model.name, "hf-trainer", strategy);
    request.workload.sequence = model.sequence;
    const std::string json = file_in(launch_of(request, LaunchTarget::accelerate), "config.json");
    if (json.empty()) continue;
    ++written;
    const LaunchFolder folder;
    const Transformer read = read_any_model(folder.with("config.json", json));
    CHECK(model_parameters(read, {}, request.workload) == model_parameters(model, {}, request.workload));
  }
  CHECK(written >= 40);
}

}  // namespace headroom::tests::launched_files
