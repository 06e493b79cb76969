// Programs that train as the Trainer or Megatron-Core does, told in other words.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

LaunchedRun of_words(const std::string& text) { return read_launch_script(text, "run.sh", {}); }

}  // namespace

TEST_CASE("programs: ms-swift's megatron sft, a model by its name and Megatron-Core's flags") {
  const LaunchedRun run = of_words(
      "NPROC_PER_NODE=4 NNODES=2 megatron sft --load /ckpt/Qwen2.5-14B-mcore --dataset 'a#1' 'b#2' "
      "--tensor_model_parallel_size 2 --pipeline_model_parallel_size 2 --sequence_parallel true "
      "--recompute_granularity full --recompute_method uniform --recompute_num_layers 2 --max_length 8192");
  CHECK(run.framework == "ms-swift on Megatron-Core");
  CHECK(run.devices == 8);
  REQUIRE(run.model);
  CHECK(run.model->layers == 48);
  CHECK(value_in(run, "tensor_parallel") == "2");
  CHECK(value_in(run, "pipeline_parallel") == "2");
  CHECK(value_in(run, "sequence") == "8192");
  CHECK(value_in(run, "recompute") == "full");
  CHECK(value_in(run, "micro_batch") == "1");
  CHECK(value_in(run, "global_batch") == "16");
  CHECK(value_in(run, "data_sharding") == "zero1");
  CHECK(value_in(run, "lora_rank").empty());
}

TEST_CASE("programs: adapters of megatron sft run on the stack that has them") {
  const LaunchedRun run = of_words(
      "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --tuner_type lora "
      "--expert_model_parallel_size 8");
  CHECK(run.software == "nemo-2025");
  CHECK(value_in(run, "lora_rank") == "8");
  CHECK(value_in(run, "expert_parallel") == "8");
  CHECK(value_in(run, "recompute") == "selective");
  CHECK(value_in(run, "sequence") == "2048");
}

TEST_CASE("programs: other commands of ms-swift train nothing") {
  CHECK_THROWS_AS(of_words("swift infer --model Qwen/Qwen3-8B"), InputError);
  const LaunchedRun run = of_words("swift export --model Qwen/Qwen3-8B\nswift sft --model Qwen/Qwen3-4B\n");
  CHECK(run.model_name == "Qwen/Qwen3-4B");
}

TEST_CASE("programs: OpenRLHF states the batch of all ranks") {
  const LaunchedRun run = of_words(
      "deepspeed --num_gpus 4 --module openrlhf.cli.train_sft --pretrain $CKPT/Meta-Llama-3-8B "
      "--max_len 4096 --train_batch_size 64 --micro_train_batch_size 2 --zero_stage 3 --bf16 --adam_offload "
      "--gradient_checkpointing --flash_attn");
  CHECK(run.framework == "OpenRLHF");
  REQUIRE(run.model);
  CHECK(run.model->layers == 32);
  CHECK(value_in(run, "micro_batch") == "2");
  CHECK(value_in(run, "global_batch") == "64");
  CHECK(value_in(run, "sequence") == "4096");
  CHECK(value_in(run, "data_sharding") == "zero3");
  CHECK(value_in(run, "recompute") == "full");
  CHECK(value_in(run, "optimizer_offload_fraction") == "1");
}

TEST_CASE("programs: OpenRLHF takes the last of equal flags, and its sequences have 2048 tokens by default") {
  const std::string sft =
      "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --bf16 "
      "--micro_train_batch_size 2 --zero_stage 3 --zero_stage 2";
  CHECK(value_in(of_words(sft), "data_sharding") == "zero2");
  CHECK(value_in(of_words(sft), "sequence") == "2048");
  CHECK_THROWS_AS(of_words(sft + " --zero_stage 9"), InputError);
  const LaunchedRun most =
      of_words(sft + " --actor_num_nodes 9223372036854775807 --actor_num_gpus_per_node 8");
  CHECK(most.devices == 8);
  const std::string pairs = "openrlhf.cli.train_dpo";
  CHECK(says(of_words("deepspeed --module " + pairs + sft.substr(sft.find(" --pretrain"))),
             "MBS and GBS count sequences: two for each pair"));
}

TEST_CASE("programs: the actor of OpenRLHF's PPO has GPUs of its own") {
  const LaunchedRun run = of_words(
      "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --ref_num_gpus_per_node 8 --actor_num_nodes 2 "
      "--actor_num_gpus_per_node 8 --pretrain meta-llama/Llama-3.1-8B --micro_train_batch_size 4 "
      "--prompt_max_len 1024 --generate_max_len 3072 --bf16");
  CHECK(run.devices == 16);
  CHECK(value_in(run, "sequence") == "4096");
  CHECK(value_in(run, "global_batch") == "128");
  CHECK(value_in(run, "data_sharding") == "zero2");
}

TEST_CASE("programs: DeepSpeed-Chat's stage of ZeRO is a flag") {
  const LaunchedRun first = of_words(
      "STAGE=$2\nif [ \"$STAGE\" == \"\" ]; then STAGE=3; fi\n"
      "deepspeed --num_gpus 8 main.py --data_split 2,4,4 --model_name_or_path facebook/opt-6.7b "
      "--per_device_train_batch_size 6 --zero_stage $STAGE --deepspeed --lora_dim 128 "
      "--gradient_checkpointing");
  CHECK(value_in(first, "data_sharding") == "zero3");
  CHECK(value_in(first, "lora_rank") == "128");
  CHECK(value_in(first, "sequence") == "512");
  const LaunchedRun third = of_words(
      "deepspeed main.py --actor_model_name_or_path facebook/opt-13b --critic_model_name_or_path "
      "facebook/opt-125m --per_device_training_batch_size 16 --max_prompt_seq_len 256 "
      "--max_answer_seq_len 512 --actor_zero_stage 2 --critic_zero_stage 3 --deepspeed");
  CHECK(value_in(third, "data_sharding") == "zero2");
  CHECK(value_in(third, "micro_batch") == "16");
  CHECK(value_in(third, "sequence") == "768");
}

TEST_CASE("programs: verl's SFT trainer") {
  const LaunchedRun run = of_words(
      "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_batch_size=32 "
      "data.max_length=16384 model.partial_pretrain=Qwen/Qwen2.5-7B-Instruct "
      "model.enable_gradient_checkpointing=True ulysses_sequence_parallel_size=2 model.lora_rank=16");
  CHECK(run.devices == 8);
  CHECK(value_in(run, "context_parallel") == "2");
  CHECK(value_in(run, "micro_batch") == "4");
  CHECK(value_in(run, "global_batch") == "32");
  CHECK(value_in(run, "sequence") == "16384");
  CHECK(value_in(run, "recompute") == "full");
  CHECK(value_in(run, "lora_rank") == "16");
  const LaunchedRun usual = of_words(
      "torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer model.partial_pretrain=Qwen/Qwen2.5-7B");
  CHECK(value_in(usual, "recompute") == "full");
}

TEST_CASE(
    "programs: DeepSpeed-Chat without its batch and stage has the defaults of its parser, and says so") {
  const LaunchedRun first = of_words(
      "deepspeed --num_gpus 8 main.py --data_split 2,4,4 --model_name_or_path facebook/opt-1.3b --deepspeed");
  CHECK(value_in(first, "data_sharding") == "none");
  CHECK(value_in(first, "micro_batch") == "16");
  CHECK(value_in(first, "global_batch") == "128");
  CHECK(value_in(first, "sequence") == "512");
  CHECK(says(first, "DeepSpeed-Chat's default of zero_stage is 0"));
  CHECK(says(first, "DeepSpeed-Chat's default of per_device_train_batch_size is 16"));
  const LaunchedRun third = of_words(
      "deepspeed --num_gpus 8 main.py --actor_model_name_or_path facebook/opt-13b "
      "--critic_model_name_or_path facebook/opt-350m --max_answer_seq_len 512 --deepspeed");
  CHECK(value_in(third, "micro_batch") == "16");
  CHECK(value_in(third, "sequence") == "768");
}

TEST_CASE("programs: verl's SFT trainer is read as such without a model") {
  const LaunchedRun run = of_words(
      "torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=x optim.lr=1e-4");
  CHECK(value_in(run, "micro_batch") == "4");
  CHECK(value_in(run, "global_batch") == "256");
  CHECK(value_in(run, "sequence") == "1024");
  CHECK(!run.model);
}

TEST_CASE("programs: verl's SFT trainer on Megatron-Core, in microbatches of so many tokens") {
  const LaunchedRun run = of_words(
      "torchrun --nproc_per_node=16 -m verl.trainer.sft_trainer data.train_batch_size=64 "
      "data.max_length=2048 "
      "data.use_dynamic_bsz=True data.max_token_len_per_gpu=8192 model.path=Qwen/Qwen3-8B engine=megatron "
      "optim=megatron engine.tensor_model_parallel_size=4 engine.pipeline_model_parallel_size=2");
  CHECK(run.software == "megatron-core-2025");
  CHECK(value_in(run, "tensor_parallel") == "4");
  CHECK(value_in(run, "pipeline_parallel") == "2");
  CHECK(value_in(run, "sequence_parallel") == "yes");
  CHECK(value_in(run, "data_sharding") == "zero1");
  CHECK(value_in(run, "micro_batch") == "4");
  CHECK(value_in(run, "recompute").empty());
  const LaunchedRun usual = of_words(
      "torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer data.max_length=4096 model.path=Qwen/Qwen3-8B "
      "engine=megatron engine.override_transformer_config.recompute_granularity=full "
      "engine.override_transformer_config.recompute_method=uniform "
      "engine.override_transformer_config.recompute_num_layers=2");
  CHECK(value_in(usual, "micro_batch") == "2");
  CHECK(says(usual, "data.use_dynamic_bsz is true by default"));
  CHECK(value_in(usual, "recompute") == "full");
  CHECK(value_in(usual, "recompute_layers") == "2");
}

TEST_CASE("programs: OpenRLHF's ranks of a ring and of tensors") {
  const std::string sft =
      "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain meta-llama/Meta-Llama-3-8B "
      "--max_len 2048 --train_batch_size 256 --micro_train_batch_size 2 --zero_stage 2 --bf16 ";
  const LaunchedRun ring = of_words(sft + "--ring_attn_size 2 --ring_head_stride 2");
  CHECK(value_in(ring, "context_parallel") == "2");
  CHECK(value_in(ring, "data_parallel") == "4");
  CHECK(value_in(ring, "global_batch") == "256");
  const LaunchedRun tensor = of_words(sft + "--ds_tensor_parallel_size 2");
  CHECK(value_in(tensor, "tensor_parallel") == "2");
  CHECK(value_in(tensor, "data_parallel") == "4");
}

TEST_CASE("programs: a variable that is not set and decides a field is needed, not its default") {
  const auto needed = [](const std::string& text) {
    std::string fields;
    for (const LaunchRemark& remark : of_words(text).remarks) {
      if (remark.kind == LaunchRemarkKind::unresolved && remark.text.find(": needs $") != std::string::npos)
        fields += remark.field + " ";
    }
    return fields;
  };
  CHECK(needed("deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain $MODEL --max_len $LEN "
               "--train_batch_size $GBS --micro_train_batch_size $MBS --zero_stage $STAGE --bf16") ==
        "data_sharding global_batch model micro_batch sequence ");
  CHECK(
      needed("NPROC_PER_NODE=8 swift sft --model $MODEL --per_device_train_batch_size $MBS --max_length $LEN "
             "--deepspeed zero3 --train_type full --gradient_accumulation_steps $GAS") ==
      "model micro_batch global_batch sequence ");
  CHECK(needed("NPROC_PER_NODE=$N swift sft --model Qwen/Qwen3-8B --train_type $T --deepspeed $DS") ==
        "lora_rank data_sharding data_parallel ");
  CHECK(needed("NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --tensor_model_parallel_size $TP "
               "--micro_batch_size $MBS") == "tensor_parallel micro_batch ");
  CHECK(
      needed(
          "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node $GPUS "
          "--pretrain Qwen/Qwen3-8B --micro_train_batch_size 2 --prompt_max_len $P --generate_max_len 512") ==
      "data_parallel sequence ");
}

TEST_CASE("programs: more TP than processes leaves the data-parallel size to the check of the GPUs") {
  const LaunchedRun run =
      of_words("NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen3-8B --tensor_model_parallel_size 8");
  CHECK(run.devices == 4);
  CHECK(value_in(run, "data_parallel").empty());
  CHECK(value_in(run, "tensor_parallel") == "8");
}

TEST_CASE("programs: a flag whose value is empty is refused by its name") {
  const auto problem = [](const std::string& text) {
    try {
      of_words(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string none = "needs a value (is a variable empty or unset?)";
  const std::string sft = "V=\nNPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --max_length 2048 ";
  for (const std::string flag : {"--per_device_train_batch_size $V --bf16",
                                 "--per_device_train_batch_size=$V", "--per_device_train_batch_size \"$V\""})
    CHECK(problem(sft + flag) == "run.sh:2: --per_device_train_batch_size: " + none);
  CHECK(problem(sft + "--deepspeed \"$V\"").empty());
  const std::string core =
      "V=\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --seq-length 512 "
      "--num-attention-heads 8 ";
  CHECK(problem(core + "--hidden-size $V --micro-batch-size 1") == "run.sh:2: --hidden-size: " + none);
  CHECK(problem(core + "--hidden-size 512 --micro-batch-size \"$V\"") ==
        "run.sh:2: --micro-batch-size: " + none);
}

TEST_CASE("programs: a rule that Megatron-LM has too cites the program of the file, or none") {
  LaunchedRun run;
  const auto source = [&](const char* framework, const char* software, const char* field) {
    run.framework = framework;
    run.software = software;
    return own_source(run, field, "Megatron-LM, core/utils.py");
  };
  CHECK(source("OpenRLHF", "deepspeed-2025", "global_batch") == "DeepSpeed, deepspeed/runtime/config.py");
  CHECK(source("verl", "hf-trainer", "global_batch").starts_with("verl, "));
  CHECK(source("Hugging Face Trainer", "hf-trainer", "global_batch").empty());
  CHECK(source("verl", "hf-trainer", "context_parallel").empty());
  CHECK(source("GPT-NeoX", "megatron-deepspeed-2022", "tensor_parallel").empty());
  CHECK(source("verl", "megatron-core-2025", "tensor_parallel") == "Megatron-LM, core/utils.py");
  CHECK(source("Megatron-LM", "megatron-core-2025", "global_batch") == "Megatron-LM, core/utils.py");
}

TEST_CASE("programs: how the allocator is set reaches every reader") {
  const std::string set = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True NPROC_PER_NODE=8 ";
  for (const char* const words : {"megatron sft --model Qwen/Qwen3-8B", "swift sft --model Qwen/Qwen3-8B"}) {
    const LaunchedRun run = of_words(set + words);
    CHECK(std::any_of(run.stack.begin(), run.stack.end(), [](const LaunchSetting& it) {
      return it.field == "memory.expandable_segments" && it.value == "true";
    }));
  }
}

TEST_CASE("programs: the later of two words holds") {
  const LaunchedRun run = of_words(
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.nnodes=1 "
      "actor_rollout_ref.model.enable_gradient_checkpointing=False trainer.n_gpus_per_node=8 "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
      "actor_rollout_ref.model.enable_gradient_checkpointing=True");
  CHECK(value_in(run, "recompute") == "full");
}

TEST_CASE("programs: a path names its model by the last part, also behind a variable") {
  const LaunchedRun run = of_words(
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=$DATA/DeepSeek-V3-own-words "
      "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=12 trainer.nnodes=12");
  REQUIRE(run.model);
  CHECK(run.model->layers == 61);
  CHECK(says(run, "DeepSeek-V3-own-words is read as DeepSeek-V3, with which its name starts"));
  const LaunchedRun open =
      of_words("python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=$MODEL trainer.nnodes=1");
  CHECK(!open.model);
  CHECK(says(open, "needs $MODEL: give it with --env NAME=VALUE"));
}

TEST_CASE("programs: GPUs that are not stated hold all experts of a layer") {
  LaunchedRun run;
  run.strategy = {{"tensor_parallel", "2", "", {}},
                  {"pipeline_parallel", "8", "", {}},
                  {"expert_parallel", "16", "", {}},
                  {"expert_tensor_parallel", "1", "", {}}};
  run.nodes = 1;
  take_whole_nodes(run, 8);
  CHECK(run.devices == 128);
}

TEST_CASE("programs: a model that is not at hand is named with its line") {
  const LaunchedRun run =
      read_tree_file("sequence_len: 512\nbase_model: nobody/of-this-name\n", "run.yaml", {});
  CHECK(!run.model);
  REQUIRE(!run.remarks.empty());
  const auto missing = [&](const LaunchRemark& remark) { return remark.field == "model"; };
  const auto found = std::find_if(run.remarks.begin(), run.remarks.end(), missing);
  REQUIRE(found != run.remarks.end());
  CHECK(found->at.line == 2);
  CHECK(found->text == "nobody/of-this-name is not a known model: give --model and its config.json");
}

TEST_CASE("programs: arguments of a script by the names of the variables that take them") {
  const std::string script =
      "SIZE=$1\nTP=${2}\nif [ $SIZE = small ]; then LAYERS=12; else LAYERS=24; fi\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $LAYERS --hidden-size 1024 "
      "--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --bf16 "
      "--tensor-model-parallel-size $TP";
  const LaunchedRun named =
      read_launch_script(script, "run.sh", {.environment = {{"SIZE", "small"}, {"TP", "4"}}});
  REQUIRE(named.model);
  CHECK(named.model->layers == 12);
  CHECK(value_in(named, "tensor_parallel") == "4");
  const LaunchedRun given = read_launch_script(
      script, "run.sh", {.arguments = {"large", "2"}, .environment = {{"SIZE", "small"}, {"TP", "4"}}});
  REQUIRE(given.model);
  CHECK(given.model->layers == 24);
  CHECK(value_in(given, "tensor_parallel") == "2");
}

TEST_CASE("programs: torchtitan's newest registry counts tokens") {
  const LaunchedRun run = read_python_config(
      "def qwen3_14b():\n"
      "    spec = model_registry(\"14B\")\n"
      "    return Trainer.Config(\n"
      "        model_spec=spec,\n"
      "        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=4 * 4096, "
      "max_context_length=4096),\n"
      "        activation_checkpoint=FullAC.Config(),\n"
      "    )\n",
      "qwen3/config_registry.py", "qwen3_14b", {});
  CHECK(value_in(run, "sequence") == "4096");
  CHECK(value_in(run, "micro_batch") == "4");
  CHECK(value_in(run, "recompute") == "full");
}

TEST_CASE("programs: attributes of modules that are set change no recipe of theirs") {
  const LaunchedRun run = read_python_config(
      "from nemo.collections import llm\nimport torch\n"
      "llm.flag = True\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
      "def mine():\n"
      "    recipe = llm.llama3_8b.pretrain_recipe(num_nodes=2, num_gpus_per_node=8)\n"
      "    recipe.trainer.strategy.tensor_model_parallel_size = 2\n"
      "    return recipe\n",
      "mine.py", "mine", {});
  REQUIRE(run.model);
  CHECK(run.model->name == "llama-3-8b");
  CHECK(value_in(run, "tensor_parallel") == "2");
}

TEST_CASE("programs: sizes beyond any cluster are counts still") {
  LaunchedRun run;
  for (const char* field : {"tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
                            "expert_tensor_parallel"}) {
    run.strategy.push_back({field, field == std::string("expert_parallel") ? "1048575" : "1048576", "", {}});
  }
  take_whole_nodes(run, 8);
  CHECK(run.devices > 0);
}

TEST_CASE("programs: a sharded run whose GPUs are open has two replicas at least") {
  LaunchedRun run;
  run.strategy = {{"tensor_parallel", "8", "", {}}, {"data_sharding", "zero3", "", {}}};
  run.nodes = 1;
  take_whole_nodes(run, 8);
  CHECK(run.devices == 16);
}

TEST_CASE("programs: GPT-NeoX's experts, gas and Mamba layers") {
  const std::string sizes =
      "{\"model_parallel_size\": 1, \"pipe_parallel_size\": 1, \"num_layers\": 4, \"hidden_size\": 1024, "
      "\"num_attention_heads\": 16, \"seq_length\": 2048, \"max_position_embeddings\": 2048, ";
  const LaunchedRun experts =
      read_tree_file(sizes +
                         "\"num_experts\": 8, \"moe_expert_parallel_size\": 2, \"moe_top_k\": 2, "
                         "\"train_micro_batch_size_per_gpu\": 2, \"gas\": 4}",
                     "moe.yml", {});
  REQUIRE(experts.model);
  CHECK(value_in(experts, "expert_parallel") == "2");
  CHECK(experts.model->layer_kinds.size() == 2);
  CHECK(says(experts, "1 of every 2 layers has experts"));
  CHECK(says(experts, "microbatch x accumulation x DP = 2 x 4 x 2 = 16"));
  CHECK(experts.accumulation == 4);  // with --devices, the batch is of those GPUs
  const LaunchedRun mamba = read_tree_file(
      "{\"model_parallel_size\": 1, \"pipe_parallel_size\": 0, \"num_layers\": 48, \"hidden_size\": 1024, "
      "\"num_attention_heads\": 12, \"seq_length\": 2048, \"attention_config\": [[[\"mamba\"], 48]]}",
      "mamba.yml", {});
  REQUIRE(mamba.model);
  CHECK(mamba.model->layers == 48);
  CHECK(says(mamba, "these layers are those of mamba-370m"));
}

TEST_CASE("programs: NeMo's recipes name models by their files, and train experts with TP") {
  const LaunchedRun dense = read_python_config(
      "NAME = \"nemotron3_8b\"\n"
      "def pretrain_recipe(tensor_parallelism=2, num_nodes=1, num_gpus_per_node=8):\n"
      "    return run.Partial(pretrain, model=nemotron_model(version=NAME),\n"
      "        trainer=nemotron_trainer(tensor_parallelism=tensor_parallelism, num_nodes=num_nodes,\n"
      "            num_gpus_per_node=num_gpus_per_node),\n"
      "        data=run.Config(Mock, seq_length=4096, global_batch_size=32, micro_batch_size=2))\n",
      "nemotron3_8b.py", "", {});
  REQUIRE(dense.model);
  CHECK(dense.model->layers == 32);
  const LaunchedRun experts = read_python_config(
      "def pretrain_recipe():\n"
      "    recipe = run.Partial(pretrain, trainer=trainer(tensor_parallelism=2, expert_parallelism=64,\n"
      "        pipeline_parallelism=16, num_nodes=128, num_gpus_per_node=8),\n"
      "        data=run.Config(Mock, seq_length=4096, global_batch_size=4096, micro_batch_size=1))\n"
      "    return recipe\n",
      "deepseek_v3.py", "", {});
  CHECK(value_in(experts, "sequence_parallel") == "yes");
}

TEST_CASE("programs: MindSpeed's own flags") {
  const LaunchedRun run = of_words(
      "torchrun --nproc_per_node 8 pretrain_gpt.py --use-mcore-models --num-layers 12 --hidden-size 1024 "
      "--num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 "
      "--global-batch-size 16 --bf16 --context-parallel-size 4 --context-parallel-algo ulysses_cp_algo "
      "--use-fused-rmsnorm --no-shared-storage --swap-attention");
  CHECK(value_in(run, "context_parallel") == "4");
  CHECK(value_in(run, "cp_comm") == "a2a");
  CHECK(says(run, "--swap-attention: offload of attention outputs to the host"));
  CHECK(!says(run, "--no-shared-storage: not known"));
}

}  // namespace headroom::tests
