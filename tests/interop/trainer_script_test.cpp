// Python scripts of trainers.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/launched_run.hpp"
#include "interop/launched_values.hpp"

namespace headroom::tests {
namespace {

LaunchedRun python(const std::string& text) {
  const LaunchFolder folder;
  return read_launched_run(folder.with("train.py", text));
}

const char* const qlora = R"(
import torch
from trl import SFTTrainer, SFTConfig

NAME = "meta-llama/Llama-3.1-8B"

def main():
    bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(NAME, quantization_config=bnb), None
    peft = LoraConfig(r=16, lora_dropout=0.05, target_modules=["q_proj", "v_proj"])
    args = SFTConfig(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=16 // 4,
                     max_length=1024, bf16=torch.cuda.is_bf16_supported())
    SFTTrainer(model=model, args=args, peft_config=peft).train()

if __name__ == "__main__":
    main()
)";

}  // namespace

TEST_CASE("trainer script: a script of trl with quantized weights and adapters") {
  const LaunchedRun run = python(qlora);
  CHECK(run.framework == "Hugging Face Trainer");
  CHECK(run.devices == 1);
  REQUIRE(run.model);
  CHECK(run.model->layers == 32);
  CHECK(value_in(run, "micro_batch") == "2");
  CHECK(value_in(run, "global_batch") == "8");
  CHECK(value_in(run, "sequence") == "1024");
  CHECK(value_in(run, "precision") == "bf16");
  CHECK(value_in(run, "lora_rank") == "16");
  CHECK(value_in(run, "lora_targets") == "q_proj,v_proj");
  CHECK(value_in(run, "base_dtype") == "nf4_single");  // bnb_4bit_use_double_quant is off by default
  CHECK(value_in(run, "recompute") == "full");         // trl's default
}

TEST_CASE("trainer script: unsloth's models, and pairs of DPO with a reference") {
  const LaunchedRun unsloth = python(R"(
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/Meta-Llama-3.1-8B-bnb-4bit", max_seq_length=4096, load_in_4bit=True, dtype=None)
model = FastLanguageModel.get_peft_model(model, r=32, use_gradient_checkpointing="unsloth")
trainer = SFTTrainer(model=model, args=TrainingArguments(per_device_train_batch_size=4, fp16=not True, bf16=True))
)");
  CHECK(unsloth.software == "unsloth");
  CHECK(value_in(unsloth, "lora_rank") == "32");
  CHECK(value_in(unsloth, "base_dtype") == "nf4");
  CHECK(value_in(unsloth, "sequence") == "4096");
  CHECK(value_in(unsloth, "offload_modules") == "layer_input");
  const LaunchedRun pairs = python(R"(
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B")
args = DPOConfig(per_device_train_batch_size=4, max_length=1024, bf16=True)
DPOTrainer(model, ref_model=AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.1-8B"), args=args)
)");
  CHECK(pairs.model->layers == 16);  // the reference is not what is trained
  CHECK(value_in(pairs, "micro_batch") == "8");
  CHECK(value_in(pairs, "reference_model") == "yes");
}

TEST_CASE("trainer script: flags of argparse, their defaults and what a launcher's command gives") {
  const char* const text = R"(
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--model-name", type=str, default="meta-llama/Llama-3.1-8B")
parser.add_argument("--bs", type=int, default=2)
parser.add_argument("--checkpoint", action="store_true")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model_name)
trainer = Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=args.bs, bf16=True,
                                                      gradient_checkpointing=args.checkpoint))
)";
  const LaunchedRun alone = python(text);
  CHECK(value_in(alone, "micro_batch") == "2");
  CHECK(value_in(alone, "recompute") == "none");
  const LaunchFolder folder;
  folder.with("src/train.py", text);
  const LaunchedRun run = read_launched_run(
      folder.with("run.sh", "torchrun --nproc_per_node 4 src/train.py --bs 8 --checkpoint\n"));
  CHECK(run.devices == 4);
  CHECK(value_in(run, "micro_batch") == "8");
  CHECK(value_in(run, "recompute") == "full");
}

TEST_CASE("trainer script: other Python is refused") {
  CHECK_THROWS_WITH_AS(python("def main():\n    print('x')\n"),
                       doctest::Contains("has no configuration in what 'main' returns"), InputError);
  CHECK_THROWS_WITH_AS(python("import os\nprint(os.getcwd())\n"),
                       doctest::Contains("makes no arguments of a Trainer"), InputError);
}

TEST_CASE("trainer script: one visible GPU, a folder of ModelScope, and a placeholder") {
  const LaunchFolder folder;
  const std::string start = "CUDA_VISIBLE_DEVICES=0 python src/train_bash.py --stage sft --do_train True ";
  const LaunchedRun run = read_launched_run(folder.with(
      "run.sh", start + "--model_name_or_path /hub/qwen/Qwen1___5-0___5B --cutoff_len 1024 --bf16 True "
                        "--per_device_train_batch_size 2 --gradient_accumulation_steps 32\n"));
  CHECK(run.devices == 1);
  REQUIRE(run.model);
  CHECK(run.model->layers == 24);
  CHECK_THROWS_WITH_AS(read_launched_run(folder.with("run.sh", "cd <YOUR_PATH>\n" + start + "\n")),
                       doctest::Contains("replace the placeholder <YOUR_PATH> with its value"), InputError);
}

TEST_CASE("trainer script: what the Trainer is given is what is trained") {
  const LaunchFolder folder;
  const LaunchedRun run = read_launched_run(
      folder.with("train.py",
                  "import argparse\n"
                  "p = argparse.ArgumentParser()\n"
                  "p.add_argument('-b', '--batch', type=int, default=4)\n"
                  "a = p.parse_args()\n"
                  "reference = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.1-70B')\n"
                  "model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.1-8B')\n"
                  "unused = TrainingArguments(output_dir='x', per_device_train_batch_size=32)\n"
                  "args = TrainingArguments(output_dir='x', per_device_train_batch_size=a.batch, bf16=True)\n"
                  "trainer = Trainer(model=model, args=args)\n"
                  "later = TrainingArguments(output_dir='x', per_device_train_batch_size=64)\n"));
  CHECK(value_in(run, "micro_batch") == "4");
  REQUIRE(run.model);
  CHECK(run.model->layers == 32);
  const std::string open = folder.with("open.py",
                                       "import json\nwords = json.load(open('x.json'))\n"
                                       "Trainer(model='gpt2', args=TrainingArguments(**words))\n");
  CHECK_THROWS_WITH_AS(read_launched_run(open), doctest::Contains("only a run knows"), InputError);
}

TEST_CASE("trainer script: what a script asks for by ${NAME:?} is a need") {
  const LaunchFolder folder;
  const std::string path = folder.with(
      "run.sh",
      "MODE=${MODE:?set MODE}\nBS=${BS:?set BS}\ncase $MODE in\n  on) N=8 ;;\n  *) echo no; exit 1 ;;\nesac\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 "
      "--seq-length 512 --max-position-embeddings 512 --bf16 --micro-batch-size $BS\n");
  CHECK(says(read_launched_run(path), "needs $BS"));
  const LaunchedRun run = read_launched_run(path, {.environment = {{"MODE", "on"}, {"BS", "4"}}});
  CHECK(value_in(run, "micro_batch") == "4");
  const std::string exits =
      folder.with("exits.sh", "if [ -z \"${IMAGE:-}\" ]; then\n  exit 1\nfi\ntorchrun x.py\n");
  CHECK_THROWS_WITH_AS(read_launched_run(exits), doctest::Contains("it exits in line 2"), InputError);
}

TEST_CASE("trainer script: variables of the environment, as the job sets them or by default") {
  const std::string text = R"(
import os
os.environ.setdefault("ACCUMULATION", "4")
args = TrainingArguments(per_device_train_batch_size=int(os.environ.get("BATCH", "2")), bf16=True,
                         gradient_accumulation_steps=int(os.environ["ACCUMULATION"]))
model = AutoModelForCausalLM.from_pretrained(os.getenv("BASE", "Qwen/Qwen3-8B"))
Trainer(model=model, args=args)
)";
  const LaunchFolder folder;
  const std::string file = folder.with("train.py", text);
  const LaunchedRun plain = read_launched_run(file);
  CHECK(value_in(plain, "micro_batch") == "2");
  // What the script sets itself stands over what is given.
  const std::string sets = folder.with("sets.py", "import os\nos.environ[\"BATCH\"] = \"5\"" + text);
  CHECK(value_in(read_launched_run(sets, {.environment = {{"BATCH", "4"}}}), "micro_batch") == "5");
  CHECK(value_in(plain, "global_batch") == "8");
  REQUIRE(plain.model);
  CHECK(plain.model->name == "qwen3-8b");
  CHECK(value_in(read_launched_run(file, {.environment = {{"BATCH", "1"}}}), "micro_batch") == "1");
  const auto started = [&](const std::string& start) {
    return read_launched_run(folder.with("run.sh", start + "torchrun --nproc_per_node 8 train.py\n"));
  };
  const LaunchedRun exported = started("export BATCH=16\nBASE=meta-llama/Llama-3.1-8B\nexport BASE\n");
  CHECK(value_in(exported, "micro_batch") == "16");
  REQUIRE(exported.model);
  CHECK(exported.model->name == "llama-3-8b");
  CHECK(value_in(started("BATCH=16\n"), "micro_batch") == "2");  // of the shell alone
  CHECK(value_in(started("BATCH=4 "), "micro_batch") == "4");
  CHECK(value_in(started("export BATCH=$(cat batch)\n"), "micro_batch").empty());
  // What launchers set is known to a run alone.
  CHECK(value_in(python("n = int(os.environ.get('WORLD_SIZE', 1))\n"
                        "Trainer(model='Qwen/Qwen3-8B', args=TrainingArguments("
                        "per_device_train_batch_size=8 // n, bf16=True))\n"),
                 "micro_batch")
            .empty());
}

TEST_CASE("trainer script: a checkpoint of four bits") {
  const LaunchedRun run = python(R"(
model = AutoModelForCausalLM.from_pretrained("unsloth/Qwen2.5-7B-bnb-4bit", torch_dtype=torch.bfloat16)
model = get_peft_model(prepare_model_for_kbit_training(model), LoraConfig(r=16))
SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, bf16=True))
)");
  CHECK(value_in(run, "base_dtype") == "nf4");
  CHECK(value_in(run, "lora_rank") == "16");
}

TEST_CASE("trainer script: flags that name the model in scripts of one's own") {
  const LaunchFolder folder;
  for (const std::string flag : {"--model_path", "--base_model", "--pretrained_model_name_or_path"}) {
    const LaunchedRun named = read_launched_run(
        folder.with("run.sh", "torchrun --nproc_per_node 4 train.py --per_device_train_batch_size 1 --bf16 " +
                                  flag + " Qwen/Qwen2.5-7B-Instruct\n"));
    REQUIRE(named.model);
    CHECK(named.model->name == "qwen2.5-7b");
  }
}

TEST_CASE("trainer script: matrices that LLaMA-Factory trains beside adapters are left out") {
  const LaunchFolder folder;
  const LaunchedRun whole = read_launched_run(
      folder.with("run.yaml",
                  "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\ntemplate: qwen\n"
                  "cutoff_len: 1024\nadditional_target: embed_tokens,lm_head\n"));
  CHECK(says(whole, "additional_target: embed_tokens,lm_head: modules trained in full"));
}

TEST_CASE("trainer script: a model's folder is found from a folder above the configuration") {
  const LaunchFolder folder;
  folder.with("models/own/config.json", R"({"model_type": "qwen3", "hidden_size": 1024,
    "intermediate_size": 3072, "num_hidden_layers": 4, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936})");
  const LaunchedRun run = read_launched_run(folder.with(
      "examples/full/own.yaml",
      "model_name_or_path: models/own\nstage: pt\nfinetuning_type: full\ncutoff_len: 1024\nbf16: true\n"));
  REQUIRE(run.model);
  CHECK(run.model_name.ends_with("models/own/config.json"));
}

TEST_CASE("trainer script: LLaMA-Factory's FP8 is named as left out") {
  const LaunchFolder folder;
  const LaunchedRun run =
      read_launched_run(folder.with("run.yaml",
                                    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\n"
                                    "cutoff_len: 1024\nfp8: true\nfp8_backend: torchao\n"));
  CHECK(says(run, "fp8: true: GEMMs are modelled in BF16"));
}

TEST_CASE("trainer script: sequences of GRPO are a prompt and an answer") {
  const std::string script = R"(
from trl import GRPOConfig, GRPOTrainer
args = GRPOConfig(per_device_train_batch_size=4, max_prompt_length=256, max_completion_length=1024, beta=BETA)
GRPOTrainer(model="Qwen/Qwen2.5-0.5B-Instruct", args=args).train()
)";
  const auto with_beta = [&](const std::string& beta) {
    std::string text = script;
    return python(text.replace(text.find("BETA"), 4, beta));
  };
  CHECK(value_in(with_beta("0.0"), "sequence") == "1280");
  CHECK(value_in(with_beta("0.0"), "reference_model") != "yes");
  CHECK(value_in(with_beta("0.04"), "reference_model") == "yes");
  const LaunchedRun by_default = python(R"(
from trl import GRPOConfig, GRPOTrainer
args = GRPOConfig(per_device_train_batch_size=4, num_generations=4)
GRPOTrainer(model="Qwen/Qwen2.5-0.5B-Instruct", args=args).train()
)");
  CHECK(value_in(by_default, "sequence") == "768");
  CHECK(says(by_default, "prompts of 512 tokens and answers of 256"));
  CHECK_FALSE(says(by_default, "default of max_completion_length"));
  const LaunchedRun open = python(R"(
from trl import GRPOConfig, GRPOTrainer
args = GRPOConfig(per_device_train_batch_size=4, num_generations=4, max_completion_length=longest())
GRPOTrainer(model="Qwen/Qwen2.5-0.5B-Instruct", args=args).train()
)");
  CHECK(value_in(open, "sequence").empty());
  CHECK(says(open, "is known only when the job runs: give --sequence"));
  const LaunchFolder folder;
  const LaunchedRun swift = read_launched_run(folder.with(
      "run.sh",
      "NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --train_type full "
      "--max_length 2048 --max_completion_length 1024 --per_device_train_batch_size 8\n"));
  CHECK(value_in(swift, "sequence") == "3072");  // max_length is of prompts
  CHECK(value_in(swift, "reference_model") == "yes");
}

TEST_CASE("trainer script: sizes that only a run knows are asked for") {
  const LaunchedRun run = python(R"(
parser = argparse.ArgumentParser()
parser.add_argument("--bs", type=int, required=True)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.1-8B")
training = TrainingArguments(per_device_train_batch_size=args.bs, gradient_accumulation_steps=steps())
Trainer(model=model, args=training).train()
)");
  for (const std::string field : {"micro_batch", "global_batch"}) {
    const auto asks = [&](const LaunchRemark& remark) {
      return remark.field == field && remark.kind == LaunchRemarkKind::unresolved;
    };
    CHECK(std::any_of(run.remarks.begin(), run.remarks.end(), asks));
  }
  CHECK(says(run, "is known only when the job runs: give --micro-batch"));
}

}  // namespace headroom::tests
