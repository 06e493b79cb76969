// Whole launches of what trains models of Hugging Face transformers: DeepSpeed, accelerate, Trainer, LLaMA-Factory and
// axolotl.
#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "headroom/core/joined.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "interop/launch_out/hugging_face_config.hpp"
#include "interop/launch_out/launches.hpp"
#include "interop/launch_out/script.hpp"

namespace headroom {
namespace {

bool runs_deepspeed(const Request& request) { return request.software.launcher == Launcher::deepspeed; }

std::string_view word(bool value) { return value ? "true" : "false"; }

// Adds config.json, which the programs build the model from.
void add_model(const Request& request, Launch& launch) {
  const auto json = hugging_face_config(request.model, request.workload.sequence);
  if (json) {
    launch.files.push_back({"config.json", json->dump(2) + "\n"});
  } else {
    launch.lacks.emplace_back(
        "the model: Headroom knows no model of transformers with these layers; put its config.json beside "
        "the script");
  }
}

// Who computes the batch: DeepSpeed from its own file, or a Trainer, whose values must be the file's.
enum class Batch : std::uint8_t { of_engine, of_trainer };

// "zero_optimization.stage 1" as {"zero_optimization": {"stage": 1}}.
std::string deepspeed_json(const Request& request, const std::vector<std::string>& flags, Batch batch) {
  nlohmann::ordered_json json;
  for (const std::string& flag : flags) {
    const std::size_t space = flag.find(' ');
    const std::string value = flag.substr(space + 1);
    nlohmann::ordered_json* at = &json;
    std::string path = flag.substr(0, space);
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
      at = &(*at)[path.substr(0, dot)];
      path.erase(0, dot + 1);
    }
    const auto parsed = nlohmann::ordered_json::parse(value, nullptr, /*allow_exceptions=*/false);
    (*at)[path] = parsed.is_discarded() ? nlohmann::ordered_json(value) : parsed;
  }
  // A Trainer multiplies by all GPUs, those of tensor parallelism too, and refuses another product
  // [transformers, integrations/deepspeed.py]. Without the key, DeepSpeed multiplies by data-parallel ranks.
  if (batch == Batch::of_trainer && request.strategy.tensor_parallel > 1) json.erase("train_batch_size");
  json["gradient_clipping"] = 1.0;
  json["steps_per_print"] = 1;
  if (!request.software.overlap_grad_reduce) json["zero_optimization"]["overlap_comm"] = false;
  return json.dump(2) + "\n";
}

bool is_checkpointed(const Request& request) {
  return request.strategy.recompute.policy == RecomputePolicy::full;
}

// Trains on random tokens with DeepSpeed's engine.
std::string deepspeed_program(const Request& request, const Launch& launch) {
  std::string text = file_title(launch, request);
  text += R"(# Trains on random tokens, to be replaced by a data set.
import argparse

import deepspeed
import torch
from transformers import AutoConfig, AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--sequence_length", type=int, required=True)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--gradient_checkpointing", action="store_true")
parser.add_argument("--local_rank", type=int, default=-1)
deepspeed.add_config_arguments(parser)
args = parser.parse_args()

deepspeed.init_distributed()
config = AutoConfig.from_pretrained(args.model)
with deepspeed.zero.Init(config_dict_or_path=args.deepspeed_config, enabled=STAGE_3):
    model = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16)
if args.gradient_checkpointing:
    model.gradient_checkpointing_enable()
    deepspeed.checkpointing.configure(None, deepspeed_config=args.deepspeed_config)
    for module in model.modules():
        if hasattr(module, "_gradient_checkpointing_func"):
            module._gradient_checkpointing_func = deepspeed.checkpointing.checkpoint
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
engine, _, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer)
for step in range(args.steps * engine.gradient_accumulation_steps()):
    shape = (engine.train_micro_batch_size_per_gpu(), args.sequence_length)
    tokens = torch.randint(config.vocab_size, shape, device=engine.device)
    loss = engine(input_ids=tokens, labels=tokens).loss
    engine.backward(loss)
    engine.step()
)";
  const auto put = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  put("STAGE_3", request.strategy.data_sharding == DataSharding::zero3 ? "True" : "False");
  if (request.strategy.tensor_parallel > 1)
    put("optimizer = ",
        fmt::format("model = deepspeed.tp_model_init(model, tp_size={}, dtype=torch.bfloat16)\n"
                    "optimizer = ",
                    request.strategy.tensor_parallel));
  if (request.strategy.offload.optimizer.value > 0) {
    const std::string gpu = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)";
    put(gpu, "optimizer = deepspeed.ops.adam.DeepSpeedCPUAdam(model.parameters(), lr=1e-4)");
  }
  return text;
}

std::string trainer_program(const Request& request, const Launch& launch) {
  std::string text = file_title(launch, request);
  text += R"(# Trains on random tokens, to be replaced by a data set.
from dataclasses import dataclass, field

import torch
from transformers import AutoConfig, AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name_or_path: str
    max_length: int
    use_peft: bool = False
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    use_bnb_nested_quant: bool = True
    lora_r: int = 16
    lora_dropout: float = 0.0
    lora_target_modules: list[str] = field(default_factory=lambda: ["all-linear"])


class RandomTokens(torch.utils.data.Dataset):
    def __init__(self, vocabulary, length):
        self.vocabulary, self.length = vocabulary, length

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        tokens = torch.randint(self.vocabulary, (self.length,))
        return {"input_ids": tokens, "labels": tokens}


own, arguments = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
config = AutoConfig.from_pretrained(own.model_name_or_path)
if own.load_in_4bit or own.load_in_8bit:
    from transformers import BitsAndBytesConfig

    model = AutoModelForCausalLM.from_pretrained(
        own.model_name_or_path,
        quantization_config=BitsAndBytesConfig(
            load_in_4bit=own.load_in_4bit, load_in_8bit=own.load_in_8bit, bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_use_double_quant=own.use_bnb_nested_quant,
        ),
    )
else:
    model = AutoModelForCausalLM.from_config(config)
if own.use_peft:
    from peft import LoraConfig, get_peft_model

    targets = own.lora_target_modules
    model = get_peft_model(
        model,
        LoraConfig(
            r=own.lora_r, lora_dropout=own.lora_dropout,
            target_modules="all-linear" if targets == ["all-linear"] else targets,
        ),
    )
Trainer(model=model, args=arguments, train_dataset=RandomTokens(config.vocab_size, own.max_length)).train()
)";
  return text;
}

// Flags of `accelerate launch`, which its file holds; the others are TrainingArguments'.
bool is_of_launcher(std::string_view flag) {
  for (const std::string_view start :
       {"--num_processes", "--use_fsdp", "--fsdp_", "--multi_gpu", "--mixed_precision",
        "--use_parallelism_config", "--parallelism_config_"}) {
    if (flag.starts_with(start)) return true;
  }
  return false;
}

std::string accelerate_yaml(const Request& request, const Launch& launch) {
  const Strategy& strategy = request.strategy;
  const NodeGrid grid = node_grid(request);
  const bool fsdp = strategy.data_sharding == DataSharding::zero3 && !runs_deepspeed(request);
  std::string text = file_title(launch, request);
  text += "compute_environment: LOCAL_MACHINE\n";
  text += fmt::format("distributed_type: {}\n", runs_deepspeed(request) ? "DEEPSPEED"
                                                : fsdp                  ? "FSDP"
                                                : devices(strategy) > 1 ? "MULTI_GPU"
                                                                        : "'NO'");
  text +=
      fmt::format("num_machines: {}\nnum_processes: {}\nmachine_rank: 0\n", grid.nodes, devices(strategy));
  if (!runs_deepspeed(request)) text += "mixed_precision: bf16\n";
  text += "main_training_function: main\nrdzv_backend: static\nsame_network: true\n";
  if (runs_deepspeed(request)) return text + "deepspeed_config:\n  deepspeed_config_file: ds_config.json\n";
  std::string fsdp_lines;
  std::string parallelism;
  for (const std::string& flag : launch.flags) {
    const std::size_t space = flag.find(' ');
    if (space == std::string::npos) continue;
    const std::string name = flag.substr(2, space - 2);
    std::string& lines = name.starts_with("fsdp_") ? fsdp_lines : parallelism;
    if (name.starts_with("fsdp_") || name.starts_with("parallelism_config_"))
      lines += fmt::format("  {}: {}\n", name, flag.substr(space + 1));
  }
  if (fsdp)
    text += "fsdp_config:\n" + fsdp_lines +
            "  fsdp_cpu_ram_efficient_loading: false\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n";
  if (!parallelism.empty()) text += "use_parallelism_config: true\nparallelism_config:\n" + parallelism;
  return text;
}

std::vector<std::string> trainer_words(const Request& request, const Launch& launch) {
  std::vector<std::string> words{"--model_name_or_path \"$MODEL_PATH\"",
                                 fmt::format("--max_length {}", request.workload.sequence),
                                 "--output_dir \"$OUTPUT_PATH\"",
                                 "--max_steps \"$TRAIN_STEPS\"",
                                 "--learning_rate 1e-4",
                                 "--logging_steps 1",
                                 "--save_strategy no",
                                 "--report_to none",
                                 "--bf16 true"};
  if (runs_deepspeed(request)) {
    words.push_back(fmt::format("--per_device_train_batch_size {}", request.strategy.micro_batch));
    words.push_back(
        fmt::format("--gradient_accumulation_steps {}", microbatches(request.strategy, request.workload)));
    if (is_checkpointed(request)) words.emplace_back("--gradient_checkpointing");
    words.emplace_back("--deepspeed ds_config.json");
    return words;
  }
  for (const std::string& flag : launch.flags) {
    if (!is_of_launcher(flag)) words.push_back(flag);
  }
  return words;
}

constexpr UserVariable model_path{"MODEL_PATH", ".", "a folder with config.json, or a name on the Hub"};
constexpr UserVariable output_path{"OUTPUT_PATH", "./output", "folder for logs"};
constexpr UserVariable train_steps{"TRAIN_STEPS", "50", "steps"};

std::string accelerate_start(const Request& request, std::string_view program) {
  const NodeGrid grid = node_grid(request);
  if (grid.nodes == 1) return fmt::format("accelerate launch --config_file accelerate.yaml {}", program);
  return fmt::format(
      "MASTER_ADDR=\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed -n 1p)\"\n"
      "export MASTER_ADDR\n"
      "srun bash -c 'accelerate launch --config_file accelerate.yaml --machine_rank \"$SLURM_NODEID\" "
      "--main_process_ip \"$MASTER_ADDR\" --main_process_port 29500 {} \"$@\"' start",
      program);
}

}  // namespace

void write_deepspeed(const Request& request, Launch& launch) {
  std::vector<std::string> words{
      "--model \"$MODEL_PATH\"", fmt::format("--sequence_length {}", request.workload.sequence),
      "--steps \"$TRAIN_STEPS\"", "--deepspeed", "--deepspeed_config ds_config.json"};
  if (is_checkpointed(request)) words.emplace_back("--gradient_checkpointing");
  Script script{.variables = {model_path, train_steps},
                .arrays = {{"ARGS", std::move(words)}},
                .program = "train.py",
                .setup = {},
                .started = {}};
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  launch.files.push_back({"ds_config.json", deepspeed_json(request, launch.flags, Batch::of_engine)});
  launch.files.push_back({"train.py", deepspeed_program(request, launch)});
  if (request.strategy.pipeline_parallel > 1)
    launch.lacks.emplace_back(
        "--pipeline-parallel: train.py builds no PipelineModule, and DeepSpeed refuses the batch of "
        "ds_config.json "
        "without one");
  add_model(request, launch);
}

void write_accelerate(const Request& request, Launch& launch) {
  const bool plain = launch.target == LaunchTarget::trainer && node_grid(request).nodes == 1 &&
                     request.strategy.data_sharding != DataSharding::zero3;
  Script script{.variables = {model_path, output_path, train_steps},
                .arrays = {{"ARGS", trainer_words(request, launch)}},
                .program = "train.py",
                .setup = {},
                .started = {}};
  // torchrun has no words for FSDP2; the configuration of accelerate has, which Trainer reads.
  if (!plain || runs_deepspeed(request)) script.started = accelerate_start(request, "train.py");
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  if (!script.started.empty()) launch.files.push_back({"accelerate.yaml", accelerate_yaml(request, launch)});
  if (runs_deepspeed(request))
    launch.files.push_back({"ds_config.json", deepspeed_json(request, launch.flags, Batch::of_trainer)});
  launch.files.push_back({"train.py", trainer_program(request, launch)});
  if (is_quantized(request.strategy.lora.base))
    launch.lacks.emplace_back(
        "frozen weights in 4 or 8 bits: set MODEL_PATH to a checkpoint, since config.json has none");
  add_model(request, launch);
}

namespace {

std::string optim_of(const Optimizer& optimizer) {
  if (optimizer.kind == OptimizerKind::adafactor) return "adafactor";
  if (optimizer.kind == OptimizerKind::sgd) return "sgd";
  return optimizer.exp_avg == MomentDtype::int8 ? "adamw_bnb_8bit" : "adamw_torch_fused";
}

std::string targets_of(const Lora& lora, std::string_view all, std::string_view between) {
  return lora.targets.empty() ? std::string(all) : joined(lora.targets, between);
}

void add_deepspeed_or_accelerate(const Request& request, Launch& launch) {
  if (runs_deepspeed(request)) {
    launch.files.push_back({"ds_config.json", deepspeed_json(request, launch.flags, Batch::of_trainer)});
  } else {
    launch.files.push_back({"accelerate.yaml", accelerate_yaml(request, launch)});
  }
}

}  // namespace

void write_llama_factory(const Request& request, Launch& launch) {
  const Strategy& strategy = request.strategy;
  const auto line = [](std::string_view key, const auto& value) {
    return fmt::format("{}: {}\n", key, value);
  };
  std::string text = file_title(launch, request);
  text += line("model_name_or_path", ".") + line("train_from_scratch", word(strategy.lora.rank == 0)) +
          line("stage", "pt") + line("do_train", "true") +
          line("finetuning_type", strategy.lora.rank > 0 ? "lora" : "full");
  if (strategy.lora.rank > 0) {
    text += line("lora_rank", strategy.lora.rank) +
            line("lora_target", targets_of(strategy.lora, "all", ",")) +
            line("lora_dropout", fmt::format("{:g}", strategy.lora.dropout.value));
    const bool of_eight_bits = strategy.lora.base == BaseDtype::int8;
    if (is_quantized(strategy.lora.base))
      text += line("quantization_bit", of_eight_bits ? 8 : 4) + line("quantization_method", "bnb");
    if (is_quantized(strategy.lora.base) && !of_eight_bits)
      text += line("double_quantization", word(strategy.lora.base == BaseDtype::nf4));
  }
  text += line("dataset", "c4_demo") + line("template", "default") +
          line("cutoff_len", request.workload.sequence) + line("packing", "true") +
          line("per_device_train_batch_size", strategy.micro_batch) +
          line("gradient_accumulation_steps", microbatches(strategy, request.workload)) +
          line("disable_gradient_checkpointing", word(!is_checkpointed(request))) + line("bf16", "true") +
          line("flash_attn", "sdpa") + line("optim", optim_of(strategy.optimizer)) +
          line("learning_rate", "1.0e-4") + line("max_steps", 50) + line("logging_steps", 1) +
          line("output_dir", "./output") + line("report_to", "none");
  if (request.software.launches == Launches::compiled) text += line("torch_compile", "true");
  if (runs_deepspeed(request)) text += line("deepspeed", "ds_config.json");
  if (strategy.sync_each_batch)
    launch.lacks.emplace_back("--sync-each-batch: LLaMA-Factory has no key for it");
  Script script{
      .variables = {{"LLAMA_FACTORY_PATH", "/opt/LLaMA-Factory", "a checkout of the release above"}},
      .arrays = {},
      .program = "\"$LLAMA_FACTORY_PATH/src/train.py\" headroom.yaml",
      .setup = "[ -e data ] || ln -s \"$LLAMA_FACTORY_PATH/data\" data\n",
      .started = {}};
  if (!runs_deepspeed(request))
    script.started = accelerate_start(request, "\"$LLAMA_FACTORY_PATH/src/train.py\" headroom.yaml");
  if (node_grid(request).nodes > 1 && !runs_deepspeed(request)) script.setup += "export LLAMA_FACTORY_PATH\n";
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  launch.files.push_back({"headroom.yaml", text});
  add_deepspeed_or_accelerate(request, launch);
  add_model(request, launch);
}

void write_axolotl(const Request& request, Launch& launch) {
  const Strategy& strategy = request.strategy;
  const auto line = [](std::string_view key, const auto& value) {
    return fmt::format("{}: {}\n", key, value);
  };
  const bool adapters = strategy.lora.rank > 0;
  const bool fsdp = strategy.data_sharding == DataSharding::zero3 && !runs_deepspeed(request);
  std::string text = file_title(launch, request);
  text += line("base_model", ".") + line("sequence_len", request.workload.sequence) +
          line("sample_packing", "true") + line("micro_batch_size", strategy.micro_batch) +
          line("gradient_accumulation_steps", microbatches(strategy, request.workload));
  if (!adapters) text += line("reinit_weights", "true");
  if (adapters) {
    const bool of_eight_bits = strategy.lora.base == BaseDtype::int8;
    const bool of_four_bits = is_quantized(strategy.lora.base) && !of_eight_bits;
    text += line("adapter", of_four_bits ? "qlora" : "lora") + line("lora_r", strategy.lora.rank) +
            line("lora_alpha", strategy.lora.rank) +
            line("lora_dropout", fmt::format("{:g}", strategy.lora.dropout.value));
    text += strategy.lora.targets.empty()
                ? line("lora_target_linear", "true")
                : line("lora_target_modules", "[" + joined(strategy.lora.targets, ", ") + "]");
    if (of_four_bits) text += line("load_in_4bit", "true");
    if (of_eight_bits) text += line("load_in_8bit", "true");
    if (strategy.lora.base == BaseDtype::nf4_single)
      text += "bnb_config_kwargs:\n  bnb_4bit_use_double_quant: false\n";
  }
  text += line("gradient_checkpointing", word(is_checkpointed(request))) + line("bf16", "true") +
          line("sdp_attention", "true") + line("optimizer", optim_of(strategy.optimizer)) +
          line("lr_scheduler", "cosine") + line("learning_rate", "1.0e-4") + line("max_steps", 50) +
          line("output_dir", "./output");
  if (request.software.launches == Launches::compiled) text += line("torch_compile", "true");
  text += "datasets:\n  - path: allenai/c4\n    name: en\n    split: train[:10000]\n    type: completion\n";
  if (runs_deepspeed(request)) text += line("deepspeed", "ds_config.json");
  if (fsdp) {
    text += line("fsdp_version", 2) + "fsdp_config:\n";
    text += fmt::format(
        "  reshard_after_forward: {}\n  offload_params: {}\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
        "  state_dict_type: SHARDED_STATE_DICT\n  cpu_ram_efficient_loading: false\n",
        word(!strategy.no_reshard_after_forward), word(strategy.offload.parameters));
    if (strategy.shard_size > 0 && strategy.shard_size < replicas(strategy))
      text += line("dp_shard_size", strategy.shard_size) +
              line("dp_replicate_size", replicas(strategy) / strategy.shard_size);
  }
  if (strategy.sync_each_batch) launch.lacks.emplace_back("--sync-each-batch: axolotl has no key for it");
  Script script{.variables = {},
                .arrays = {},
                .program = "-m axolotl.cli.train headroom.yaml",
                .setup = {},
                .started = {}};
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  launch.files.push_back({"headroom.yaml", text});
  if (runs_deepspeed(request))
    launch.files.push_back({"ds_config.json", deepspeed_json(request, launch.flags, Batch::of_trainer)});
  add_model(request, launch);
}

}  // namespace headroom
