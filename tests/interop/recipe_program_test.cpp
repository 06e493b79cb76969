// Recipes that Python programs hand to NeMo-Run and Megatron-Bridge, alone or where a script starts them.
#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/launched_run.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

LaunchedRun program(const std::string& text) {
  const LaunchFolder folder;
  return read_launched_run(folder.with("train.py", text));
}

}  // namespace

TEST_CASE("recipe program: a recipe that a script hands to NeMo-Run, and what its base sets") {
  const LaunchedRun run = program(R"(
import nemo_run as run
from nemo.collections import llm

def go():
    recipe = llm.gemma_7b.pretrain_recipe(dir="/c", name="x", num_nodes=1, num_gpus_per_node=8)
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    recipe.trainer.strategy.pipeline_model_parallel_size = 2
    recipe.data.global_batch_size = 8
    recipe.data.seq_length = 2048
    run.run(recipe, executor=run.LocalExecutor(), name="x")

if __name__ == "__main__":
    go()
)");
  CHECK(run.framework == "NeMo");
  CHECK(run.devices == 8);
  CHECK(value_in(run, "tensor_parallel") == "4");
  CHECK(value_in(run, "pipeline_parallel") == "2");
  CHECK(value_in(run, "global_batch") == "8");
  CHECK(value_in(run, "context_parallel").empty());
  CHECK(says(run, "starts from llm.gemma_7b.pretrain_recipe, which is not in this file"));
}

TEST_CASE("recipe program: calls are known by what a script imports, whatever it calls it") {
  const auto nemo = [](const std::string& imports, const std::string& start) {
    return program(imports +
                   "\ndef make():\n"
                   "    recipe = llm.qwen25_500m.pretrain_recipe(num_nodes=1, num_gpus_per_node=2)\n"
                   "    recipe.trainer.val_check_interval = 100\n"
                   "    return recipe\n"
                   "def main():\n    recipe = make()\n    " +
                   start + "\nmain()\n");
  };
  const LaunchedRun run = nemo("import os, nemo_run as nr\nfrom nemo.collections import llm",
                               "nr.run(recipe, executor=nr.LocalExecutor())");
  CHECK(run.framework == "NeMo");
  CHECK(run.model_name == "qwen2.5-0.5b");
  CHECK(run.devices == 2);
  CHECK(value_in(run, "global_batch") == "32");
  CHECK(value_in(run, "micro_batch") == "2");
  CHECK(value_in(run, "sequence") == "4096");
  CHECK(value_in(run, "tensor_parallel").empty());
  CHECK(nemo("import nemo_run\nimport nemo.collections.llm as llm", "nemo_run.run(recipe)").devices == 2);
  CHECK(nemo("from nemo.collections import (llm)\nfrom nemo.collections.llm import pretrain as start",
             "start(recipe)")
            .devices == 2);
  const LaunchFolder folder;
  folder.with("common.py", "def sizes():\n    return 3\ndef make(n):\n    return n + 1\n");
  const LaunchedRun renamed = read_launched_run(
      folder.with("train.py",
                  "import nemo_run as r\nfrom .common import sizes as number, make as more\n"
                  "def main():\n    recipe = llm.qwen25_14b.pretrain_recipe(num_nodes=more(number()), "
                  "num_gpus_per_node=8)\n"
                  "    with r.Experiment('x') as e:\n        e.add(recipe)\n    r.run(recipe)\nmain()\n"));
  CHECK(renamed.model_name == "qwen2.5-14b");
  CHECK(renamed.devices == 32);
  CHECK(value_in(renamed, "tensor_parallel") == "4");
}

TEST_CASE("recipe program: Megatron-Bridge's programs start from their recipes") {
  const LaunchFolder folder;
  const LaunchedRun run = read_launched_run(folder.with(
      "run.sh",
      "python scripts/performance/setup_experiment.py --account a --gpu h100 -m llama3 -s 70b -ng 32 "
      "-gn 8 --task pretrain model.context_parallel_size=2\n"));
  CHECK(run.framework == "Megatron-Bridge");
  CHECK(run.devices == 32);
  CHECK(value_in(run, "tensor_parallel") == "4");
  CHECK(value_in(run, "virtual_pipeline") == "5");
  CHECK(value_in(run, "sequence_parallel") == "yes");
  CHECK(value_in(run, "data_sharding") == "zero1");
  CHECK(value_in(run, "global_batch") == "128");
  CHECK(says(run, "256 x 32 / 64 = 128"));
  const LaunchedRun unread = read_launched_run(
      folder.with("run.sh",
                  "srun -N 4 --ntasks-per-node 8 --gpus-per-node 8 python run_recipe.py --recipe own_config "
                  "model.tensor_model_parallel_size=2 model.expert_model_parallel_size=8 "
                  "train.global_batch_size=64\n"));
  CHECK(value_in(unread, "expert_parallel") == "8");
  CHECK(value_in(unread, "data_sharding") == "zero1");
  CHECK(says(unread, "starts from the recipe own_config, which is not at hand"));
}

TEST_CASE("recipe program: recipes that fine-tune are not those that pretrain, and GPUs are asked for") {
  const LaunchFolder folder;
  const std::string start = "python setup_experiment.py --gpu h100 -m llama3 -s 70b -c bf16 -ng ";
  const LaunchedRun tuned = read_launched_run(folder.with("run.sh", start + "64 --task lora\n"));
  CHECK(value_in(tuned, "tensor_parallel").empty());
  CHECK(value_in(tuned, "lora_rank") == "32");
  CHECK(says(tuned, "starts from the recipe llama3 70b, which is not at hand"));
  CHECK(says(read_launched_run(folder.with("run.sh", start + "$NG\n")), "needs $NG"));
}

TEST_CASE("recipe program: NeMo's fine-tuning takes the sizes of its training data") {
  const LaunchFolder folder;
  const LaunchedRun run = read_launched_run(
      folder.with("run.sh",
                  "torchrun --nproc_per_node 8 megatron_gpt_finetuning.py trainer.precision=bf16 "
                  "model.restore_from_path=/models/llama-3-8b.nemo model.tensor_model_parallel_size=2 "
                  "model.micro_batch_size=4 model.global_batch_size=16 model.peft.peft_scheme=none "
                  "model.data.train_ds.micro_batch_size=1 model.data.train_ds.global_batch_size=128 "
                  "model.data.train_ds.max_seq_length=2048\n"));
  CHECK(run.framework == "NeMo");
  REQUIRE(run.model);
  CHECK(run.model->layers == 32);
  CHECK(value_in(run, "micro_batch") == "1");
  CHECK(value_in(run, "global_batch") == "128");
  CHECK(value_in(run, "sequence") == "2048");
  CHECK(value_in(run, "lora_rank").empty());
}

TEST_CASE("recipe program: a recipe that a program changes and hands to Megatron-Bridge") {
  const LaunchedRun run = program(R"(
from megatron.bridge.recipes.qwen import qwen3_30b_a3b_pretrain_config
from megatron.bridge.training.pretrain import pretrain

config = qwen3_30b_a3b_pretrain_config(tensor_model_parallel_size=2, expert_model_parallel_size=4,
                                       global_batch_size=16, micro_batch_size=1, seq_length=2048)
config.model.num_layers = 4
config.model.num_moe_experts = 8
config.model.moe_router_topk = 2
config.train.train_iters = 10
pretrain(config=config, forward_step_func=forward_step)
)");
  CHECK(run.framework == "Megatron-Bridge");
  CHECK(value_in(run, "tensor_parallel") == "2");
  CHECK(value_in(run, "expert_parallel") == "4");
  CHECK(value_in(run, "global_batch") == "16");
  REQUIRE(run.model);
  CHECK(run.model->layers == 4);
  CHECK(run.model->hidden == 2048);
  REQUIRE(run.model->architecture.experts);
  CHECK(run.model->architecture.experts->count == 8);
  CHECK(run.model->architecture.experts->per_token == 2);
  CHECK(says(run, "starts from qwen3_30b_a3b_pretrain_config, which is not in this file"));
  // Layers of several kinds have sizes of several kinds.
  const LaunchedRun kinds = program(
      "config = deepseek_v3_pretrain_config()\nconfig.model.hidden_size = 512\n"
      "pretrain(config, forward_step)\n");
  REQUIRE(kinds.model);
  CHECK(kinds.model->hidden == 7168);
  CHECK(says(kinds, "model.hidden_size"));
}

TEST_CASE("recipe program: None takes away what a recipe has") {
  const std::string start =
      "recipe = llm.llama3_70b.pretrain_recipe(num_nodes=1, num_gpus_per_node=8)\n"
      "recipe.trainer.strategy.pipeline_model_parallel_size = 2\n"
      "recipe.trainer.strategy.context_parallel_size = 1\n";
  const std::string end = "run.run(recipe, executor=e)\n";
  CHECK(value_in(program(start + end), "virtual_pipeline") == "5");
  const std::string none = "recipe.trainer.strategy.virtual_pipeline_model_parallel_size = None\n";
  CHECK(value_in(program(start + none + end), "virtual_pipeline").empty());
  const LaunchFolder folder;
  const std::string bridge = "python setup_experiment.py --gpu h100 -m llama3 -s 70b -ng 64 ";
  CHECK(value_in(read_launched_run(folder.with("run.sh", bridge + "\n")), "virtual_pipeline") == "5");
  CHECK(value_in(read_launched_run(
                     folder.with("run.sh", bridge + "model.virtual_pipeline_model_parallel_size=null\n")),
                 "virtual_pipeline")
            .empty());
}

TEST_CASE("recipe program: a recipe of Megatron-Bridge keeps its model where sizes are changed") {
  const LaunchFolder folder;
  const LaunchedRun run = read_launched_run(folder.with("train.py", R"(
cfg = llama3_8b_pretrain_config()
cfg.model.num_layers = 64
cfg.model.hidden_size = 8192
cfg.model.num_attention_heads = 64
pretrain(cfg, forward_step)
)"));
  REQUIRE(run.model);
  CHECK(run.model->layers == 64);
  CHECK(run.model->hidden == 8192);
  CHECK(run.model->architecture.activation == Activation::swiglu);
  CHECK(run.model->vocabulary == 128256);
}

TEST_CASE("recipe program: a program of Megatron-Bridge that torchrun starts, with overrides behind it") {
  const LaunchFolder folder;
  // Named like a module that it imports.
  folder.with("pretrain.py", R"(
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from megatron.bridge.training.pretrain import pretrain

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cp", type=int, default=1)
    args = parser.parse_args()
    cfg = llama3_8b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.context_parallel_size = args.cp
    cfg.model.seq_length = 4096
    cfg.train.global_batch_size = 64
    cfg.train.micro_batch_size = 1
    pretrain(cfg, forward_step)

if __name__ == "__main__":
    main()
)");
  const LaunchedRun run =
      read_launched_run(folder.with("run.sh",
                                    "torchrun --nproc_per_node 8 --nnodes 4 pretrain.py --cp 2 "
                                    "model.tensor_model_parallel_size=4\n"));
  CHECK(run.framework == "Megatron-Bridge");
  CHECK(run.devices == 32);
  REQUIRE(run.model);
  CHECK(run.model->layers == 32);
  CHECK(value_in(run, "tensor_parallel") == "4");
  CHECK(value_in(run, "context_parallel") == "2");
  CHECK(value_in(run, "global_batch") == "64");
  CHECK(value_in(run, "sequence") == "4096");
  CHECK(!says(run, "a condition that only a run knows"));
}

TEST_CASE("recipe program: imports that are no Python end") {
  for (const std::string line :
       {"import co .common import base\n", "import as as as\n", "import import\n", "import .\n"})
    CHECK_THROWS_AS(program(line), InputError);
}

TEST_CASE("recipe program: a recipe as it is, and overrides behind a switch") {
  const LaunchFolder folder;
  folder.with("train.py", R"(
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
cfg = llama3_8b_pretrain_config()
pretrain(config=cfg, forward_step_func=forward_step)
)");
  folder.with("llama.py", "def llama3_8b_pretrain_config():\n    return None\n");  // of another package
  const auto started = [&](const std::string& words) {
    return read_launched_run(folder.with("run.sh", "torchrun --nproc_per_node 8 train.py " + words + "\n"));
  };
  REQUIRE(started("").model);
  CHECK(started("").model->name == "llama-3-8b");
  const LaunchedRun run = started("--debug model.tensor_model_parallel_size=2");
  REQUIRE(run.model);
  CHECK(value_in(run, "tensor_parallel") == "2");
  CHECK_THROWS_AS(started("model.tensor_model_parallel_size="), InputError);
}

}  // namespace headroom::tests
