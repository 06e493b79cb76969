// Flavors that a module beside torchtitan's TOML adds, those of printed launches among them.
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/launch.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests::titan_models {
namespace {

std::string toml_of(const std::string& model, const std::string& module) {
  return "[model]\nname = \"" + model + "\"\nflavor = \"mine\"\n[experimental]\ncustom_import = \"" + module +
         "\"\n[training]\nlocal_batch_size = 1\nseq_len = 4096\n[parallelism]\n"
         "data_parallel_shard_degree = 8\n";
}

LaunchedRun run_of(const std::string& model, const std::string& python) {
  const LaunchFolder folder;
  folder.with("my/models.py", python);
  return read_launched_run(folder.with("train.toml", toml_of(model, "my.models")));
}

}  // namespace

TEST_CASE("torchtitan's models: arguments that are not written are those of the class") {
  const LaunchedRun llama = run_of("llama3",
                                   "from torchtitan.models.llama3 import TransformerModelArgs, llama3_args\n"
                                   "width = 2048\n"
                                   "llama3_args[\"mine\"] = TransformerModelArgs(dim=width, n_layers=16, "
                                   "ffn_dim_multiplier=1.5, multiple_of=1024)\n");
  REQUIRE(llama.model);
  CHECK(llama.model->hidden == 2048);
  CHECK(llama.model->layers == 16);
  CHECK(llama.model->heads == 32);
  CHECK(llama.model->key_value_heads == 32);
  CHECK(llama.model->feedforward == 8192);  // int(1.5 x int(8 x 2048 / 3)) = 8191, rounded up
  CHECK(llama.model->vocabulary == 128256);

  const LaunchedRun qwen =
      run_of("qwen3", "mine_args = {\"mine\": Qwen3ModelArgs(enable_weight_tying=True)}\n");
  REQUIRE(qwen.model);
  CHECK(qwen.model->head_size == 128);
  CHECK(qwen.model->key_value_heads == 8);
  CHECK(qwen.model->architecture.qk_norm == QkNorm::per_head);
  CHECK(qwen.model->architecture.tied_embeddings);
  CHECK_FALSE(qwen.model->architecture.experts);

  const LaunchedRun latent = run_of(
      "deepseek_v3",
      "deepseekv3_args[\"mine\"] = DeepSeekV3ModelArgs(n_layers=4, moe_args=MoEArgs(num_experts=64, top_k=6, "
      "num_shared_experts=2, score_func=\"softmax\"))\n");
  REQUIRE(latent.model);
  REQUIRE(latent.model->layer_runs.size() == 2);
  CHECK(latent.model->layer_runs[0].count == 1);
  const auto& experts = latent.model->layer_kinds[latent.model->layer_runs[1].kind].architecture.experts;
  REQUIRE(experts);
  CHECK(experts->count == 64);
  CHECK(experts->per_token == 6);
  CHECK(experts->shared_feedforward == 2 * 1408);
  CHECK(experts->scores == RouterScores::softmax);
}

TEST_CASE("torchtitan's models: the class of the named model, whatever else the module has") {
  const std::string all =
      "from torchtitan.models.llama3 import TransformerModelArgs, llama3_args\n"
      "from torchtitan.models.qwen3 import Qwen3ModelArgs, qwen3_args\n"
      "llama3_args.update({\"mine\": TransformerModelArgs(dim=2**3**2 * 8)})\n"
      "qwen3_args[\"mine\"] = Qwen3ModelArgs(dim=512)\n";
  const LaunchedRun llama = run_of("llama3", all);
  const LaunchedRun qwen = run_of("qwen3", all);
  REQUIRE((llama.model && qwen.model));
  CHECK(llama.model->hidden == 4096);
  CHECK(qwen.model->hidden == 512);
  CHECK_FALSE(run_of("llama4", all).model);  // its arguments are of a class of the same name
  CHECK(says(run_of("llama3", "mine_args = {\"mine\": MyTransformerModelArgs(dim=512)}\n"),
             "does not read the arguments of MyTransformerModelArgs(...)"));
}

TEST_CASE("torchtitan's models: a module that cannot be used leaves the flavor as it is named") {
  const auto error_of = [](const std::string& python) {
    try {
      run_of("llama3", python);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_FALSE(run_of("llama3", "llama3_args[\"other\"] = TransformerModelArgs()\n").model);
  CHECK_FALSE(run_of("llama3", "llama3_args[\"mine\"] = MyArgs(dim=8)\n").model);
  CHECK(says(run_of("llama3", "x = (\n\xff"), "is not read: "));
  CHECK(error_of("llama3_args[\"mine\"] = TransformerModelArgs(dim=\"wide\")\n")
            .find("models.py:1: dim: must be a whole number, not 'wide'") != std::string::npos);
  CHECK(error_of("llama3_args[\"mine\"] = TransformerModelArgs(1024, 2)\n").find("must be given by name") !=
        std::string::npos);
  CHECK(error_of("llama3_args[\"mine\"] = TransformerModelArgs(ffn_dim_multiplier=\"abc\")\n")
            .find("must be a number") != std::string::npos);
  CHECK(error_of("llama3_args[\"mine\"] = TransformerModelArgs(dim=0)\n").find("models.py:1") !=
        std::string::npos);
}

TEST_CASE("torchtitan's models: a launch that was printed is read again, model and all") {
  for (const std::string name : {"llama-2-7b", "llama-3-70b", "qwen3-8b", "qwen3-30b-a3b", "deepseek-v2"}) {
    CAPTURE(name);
    const Request request{.model = read_model(name),
                          .system = read_system("dgx-h100-80g"),
                          .software = read_software("torchtitan-2025"),
                          .strategy = {.data_parallel = 64, .data_sharding = DataSharding::zero3},
                          .workload = {.global_batch = 64, .sequence = 4096}};
    const LaunchFolder folder;
    std::string toml;
    for (const LaunchFile& file : launch_of(request, LaunchTarget::torchtitan).files) {
      const std::string path = folder.with(file.name, file.text);
      if (file.name == "headroom.toml") toml = path;
    }
    const LaunchedRun run = read_launched_run(toml);
    REQUIRE(run.model);
    CHECK(model_parameters(*run.model, {}, request.workload) ==
          model_parameters(request.model, {}, request.workload));
    CHECK(value_in(run, "data_parallel") == "64");
  }
}

}  // namespace headroom::tests::titan_models
