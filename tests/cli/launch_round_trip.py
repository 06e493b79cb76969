#!/usr/bin/env python3
"""What --launch writes is read as what it was written from: random strategies of each launcher, there and back.

usage: launch_round_trip.py --bin DIR [--number N] [--seed S]
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

# Launcher, stack, the file that is read, models, and what its strategies vary.
LAUNCHERS = {
    "megatron": ("megatron-core-2025", "launch.sh", ["llama-3-8b", "qwen3-8b", "mixtral-8x7b", "gpt3-13b"]),
    "torchtitan": ("torchtitan-2025", "headroom.toml", ["llama-3-8b", "llama-3-70b", "qwen3-8b"]),
    "bridge": ("megatron-core-2025", "launch.sh", ["llama-3-8b", "qwen3-8b", "mixtral-8x7b"]),
    "nemo": ("nemo-2025", "launch.sh", ["llama-3-8b", "mixtral-8x7b"]),
    "zero-bubble": ("zero-bubble-2023", "launch.sh", ["llama-3-8b", "llama-3-70b"]),
    "deepspeed": ("deepspeed-2025", "launch.sh", ["llama-3-8b", "qwen3-8b"]),
    "llama-factory": ("hf-trainer", "headroom.yaml", ["llama-3-8b", "qwen3-8b"]),
    "axolotl": ("hf-trainer", "headroom.yaml", ["llama-3-8b", "qwen3-8b"]),
}
# Values that a field may have, by launcher.
CHOICES = {
    "megatron": {
        "tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [1, 2, 4], "virtual_pipeline": [1, 1, 2],
        "context_parallel": [1, 1, 2], "data_parallel": [1, 2, 4, 8], "expert_parallel": [1, 1, 2, 4, 8], "micro_batch": [1, 2],
        "sequence_parallel": ["yes", "no"], "recompute": ["none", "selective", "full"], "data_sharding": ["none", "zero1"],
        "precision": ["bf16", "fp8"], "gradient_dtype": ["fp32", "half"],
    },
    "torchtitan": {
        "tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [1, 2], "context_parallel": [1, 1, 2], "data_parallel": [2, 4, 8],
        "micro_batch": [1, 2], "sequence_parallel": ["yes"], "recompute": ["none", "full", "selective_op"],
        "data_sharding": ["zero3"], "no_reshard_after_forward": ["yes", "no"],
        "recompute_layers": [0, 0, 4, 5], "stage_layers": [0, 0, "15,17", "39,41"],
    },
    "llama-factory": {"data_parallel": [2, 4, 8], "micro_batch": [1, 2, 4], "recompute": ["none", "full"],
                      "data_sharding": ["none", "zero3"], "lora_rank": [0, 8, 16]},
}
CHOICES["bridge"] = {**CHOICES["megatron"], "gradient_dtype": ["fp32", "bf16"]}
CHOICES["nemo"] = {**CHOICES["bridge"], "precision": ["bf16", "fp8_delayed"]}
CHOICES["zero-bubble"] = {**CHOICES["megatron"], "virtual_pipeline": [1], "precision": ["bf16"],
                          "schedule": ["1f1b", "zero-bubble-h1", "zero-bubble-h2", "zero-bubble-2p"]}
CHOICES["deepspeed"] = {"tensor_parallel": [1, 1, 2, 4], "data_parallel": [2, 4, 8], "micro_batch": [1, 2, 4],
                        "recompute": ["none", "full"], "data_sharding": ["none", "zero1", "zero2", "zero3"]}
CHOICES["axolotl"] = CHOICES["llama-factory"]
# What follows from other fields, or stands in another file: accelerate's has the shards of LLaMA-Factory.
DERIVED = {"megatron": {"data_parallel"}, "torchtitan": set(), "llama-factory": {"data_parallel", "data_sharding"},
           "axolotl": {"data_parallel"}}
DERIVED.update({"bridge": {"data_parallel"}, "nemo": {"data_parallel"}, "zero-bubble": {"data_parallel"},
                "deepspeed": {"data_parallel"}})


def flags_of(strategy):
    words = []
    for field, value in strategy.items():
        flag = "--" + field.replace("_", "-")
        if value == "yes":
            words.append(flag)
        elif value not in ("no", 0):
            words += [flag, str(value)]
    return words


def strategies_of(launcher, chance):
    while True:
        one = {field: chance.choice(values) for field, values in CHOICES[launcher].items()}
        if one.get("tensor_parallel", 1) == 1:
            one["sequence_parallel"] = "no"
        if launcher == "torchtitan" and one["pipeline_parallel"] > 1:
            one["no_reshard_after_forward"] = "yes"  # a pipeline's weights stay gathered in any case
        if one.get("pipeline_parallel", 1) == 1:
            one.pop("virtual_pipeline", None)
            one.pop("schedule", None)
            one.pop("stage_layers", None)
        if one.get("recompute") != "full":
            one.pop("recompute_layers", None)
        yield one


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--number", type=int, default=20, help="legal strategies of each launcher")
    parser.add_argument("--seed", type=int, default=7)
    flags = parser.parse_args()
    program = flags.bin / "headroom"
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for launcher, (stack, file, models) in LAUNCHERS.items():
            chance = random.Random(flags.seed)
            legal = asked = 0
            for strategy in strategies_of(launcher, chance):
                if legal == flags.number or asked == 60 * flags.number:
                    break
                asked += 1
                model = chance.choice(models)
                if "mixtral" not in model:
                    strategy.pop("expert_parallel", None)
                target = pathlib.Path(folder) / f"{launcher}{asked}"
                words = ["estimate", model, "--system", "dgx-h100-80g", "--software", stack, "--global-batch", "64",
                         *flags_of(strategy), "--no-suggestions", "--format", "json", "--launch", launcher, "--launch-dir", target]
                done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
                if done.returncode == 2 or not done.stdout:
                    continue  # not legal
                reply = json.loads(done.stdout)
                # What is said of every launch of the fork.
                if any(not lack.startswith(("the fork's own", "validation after")) for lack in reply["launch"]["lacks"]):
                    continue  # not launched as it was priced
                legal += 1
                read = subprocess.run([program, "check", target / file, "--system", "dgx-h100-80g", "--format", "json"],
                                      capture_output=True, text=True, check=False)
                told = f"{launcher}: {model} {' '.join(flags_of(strategy))}"
                if not read.stdout:
                    wrong.append(f"{told}: is not read: {read.stderr.strip().splitlines()[-1]}")
                    continue
                run = json.loads(read.stdout)["run"]
                values = {setting["field"]: setting["value"] for setting in run["strategy"]}
                if "accumulation" in run:  # of a file that does not say the number of GPUs
                    values["global_batch"] = run["accumulation"] * int(values["micro_batch"]) * strategy["data_parallel"]
                if "stage_layers" in values:
                    values["virtual_pipeline"] = strategy.get("virtual_pipeline")  # a layout has it
                for field, value in {**strategy, "global_batch": 64}.items():
                    default = {"sequence_parallel": "no", "recompute": "none", "data_sharding": "none", "precision": "bf16",
                               "gradient_dtype": "fp32", "no_reshard_after_forward": "no", "lora_rank": 0,
                               "schedule": "1f1b", "recompute_layers": 0, "stage_layers": 0}.get(field, 1)
                    if field not in DERIVED[launcher] and str(values.get(field, default)) != str(value):
                        wrong.append(f"{told}: {field} is read as {values.get(field)}")
            print(f"{launcher}: {legal} strategies of {asked} there and back")
            if legal == 0:
                wrong.append(f"{launcher}: no strategy is legal")
    for line in wrong[:40]:
        print(line)
    print(f"{len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
