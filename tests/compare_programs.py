#!/usr/bin/env python3
"""Asks two builds of headroom the same random questions and compares every number of their JSON answers.

usage: compare_programs.py OLD NEW [--requests N] [--seed S]

For a change of structure, which must leave every figure as it was, to the last bit. Each number, truth value and exit
code of OLD must be NEW's under the same key. RENAMED maps keys that have new names, and a key that is moved, to where
it is now. Words may change and keys may be added: what NEW says beside is not compared. Exits with 1 if anything differs.
"""

import argparse
import json
import random
import subprocess
import sys

MODELS = ["gpt-22b", "gpt3-175b", "gpt3-13b", "llama-2-7b", "llama-2-70b", "llama-3-8b", "llama-3-70b", "llama-3-405b",
          "mt-nlg-530b", "gpt-1t", "gpt2-xl", "sc21-18.4b", "sc21-145.6b"]
SYSTEMS = ["dgx-a100-80g", "dgx-a100-40g", "dgx-h100-80g", "dgx-h200-141g", "dgx-b200-180g"]
STACKS = ["megatron-2022", "megatron-2021", "megatron-deepspeed-2022", "zero-bubble-2023"]

# Old key -> new key, wherever it stands; "a/b" for a key that moved below another one, "!a" for one that says the
# opposite. docs/json-format.md lists them for users.
RENAMED = {
    "interleave": "virtual_pipeline",
    "regather": "!save_gathered_input",
    "deallocate_outputs": "!keep_pipeline_outputs",
    "shard_checkpoint": "distribute_saved_activations",
    "gradients": "gradient_dtype",
    "matrix_products_seconds": "gemm_seconds",
    "attention_products_seconds": "attention_seconds",
    "streaming_seconds": "memory_bound_seconds",
    "recomputation_seconds": "recompute_seconds",
    "host_seconds": "launch_overhead_seconds",
    "host_operations": "launches",
    "replay": "recompute",
    "replay_seconds": "recompute_seconds",
    "replay_bytes": "recompute_bytes",
    "reserved_bytes": "non_torch_bytes",
    "hfu_k22": "hfu_paper",
    "hardware_k22_flops": "hardware_flops_paper",
    "mfu_causal": "mfu",
    "hfu_causal": "hfu",
    "link_share": "nic_efficiency",
    "ring_share": "shared_nic_efficiency",
    "overlaps_data_parallel": "overlap_grad_reduce",
    "kept": "saved",
    "kept_bytes": "saved_bytes",
    "replayed": "recomputed",
    "replayed_bytes": "recomputed_bytes",
    "dropped": "recomputed",
    "dropped_bytes": "recomputed_bytes",
    "chunk": "virtual_stage",
}
# Numbers about the answer itself, those that count attention otherwise now, and what has another unit or type.
IGNORED = {"distributed_optimizer", "format", "mfu", "hfu", "tflops_per_device", "adapters", "overlaps_tensor_parallel"}


def strategy_flags(pick):
    flags = ["-t", str(pick.choice([1, 2, 4, 8])), "-p", str(pick.choice([1, 1, 2, 4, 8, 16]))]
    if pick.random() < 0.3:
        flags += ["-m", str(pick.choice([2, 3, 4, 6]))]
    flags += ["-b", str(pick.choice([1, 1, 2, 4])), "-d", str(pick.choice([1, 1, 2, 4, 8]))]
    flags += ["--global-batch", str(pick.choice([64, 128, 512, 1536]))]
    for flag, odds in [("--sp", 0.6), ("--distributed-optimizer", 0.4), ("--store-gathered", 0.1), ("--keep-outputs", 0.1)]:
        if pick.random() < odds:
            flags.append(flag)
    if pick.random() < 0.2:
        flags += ["--gradients", "half"]
    if pick.random() < 0.2:
        flags += ["--schedule", pick.choice(["gpipe", "1f1b"])]
    return flags


def recompute_flags(pick):
    kind = pick.choice(["none", "selective", "full", "layers", "uniform", "ops", "window", "shard"])
    return {
        "none": [],
        "selective": ["--recompute", "selective"],
        "full": ["--recompute", "full"],
        "layers": ["--recompute", "full", "--recompute-layers", str(pick.choice([1, 2, 4]))],
        "uniform": ["--recompute", "full", "--recompute-method", "uniform", "--recompute-layers", "2"],
        "ops": ["--recompute-ops", "norm_1,activation"],
        "window": ["--recompute", "full", "--recompute-window"],
        "shard": ["--recompute", "full", "--shard-checkpoint"],
    }[kind]


def model_flags(pick):
    flags = [pick.choice(MODELS)]
    if pick.random() < 0.3:
        flags += ["--sequence", str(pick.choice([1024, 2048, 4096, 8192]))]
    if pick.random() < 0.3:
        flags += ["--attention", pick.choice(["unfused", "flash", "sdpa_math"])]
    if pick.random() < 0.3:
        flags += ["--detail", "exact"]
    return flags


def system_flags(pick):
    flags = ["--system", pick.choice(SYSTEMS)]
    if pick.random() < 0.3:
        flags += ["--software", pick.choice(STACKS)]
    return flags


def question(pick):
    """The arguments of one random command."""
    command = pick.choices(["estimate", "explain", "compare", "frontier", "plan", "find", "sweep"],
                           [50, 10, 8, 8, 14, 3, 7])[0]
    if command == "estimate":
        flags = model_flags(pick) + system_flags(pick) + strategy_flags(pick) + recompute_flags(pick)
        if pick.random() < 0.2:
            flags += ["--tokens", "300B", "--price-per-gpu-hour", "2.5"]
    elif command == "explain":
        flags = model_flags(pick) + strategy_flags(pick) + [flag for flag in recompute_flags(pick) if "window" not in flag]
    elif command == "compare":
        flags = model_flags(pick) + system_flags(pick) + strategy_flags(pick) + ["--to", "--sp --recompute selective"]
    elif command == "frontier":
        flags = model_flags(pick) + system_flags(pick) + strategy_flags(pick)
    elif command in ("plan", "find"):
        flags = model_flags(pick) + system_flags(pick)
        if command == "find":
            extreme = pick.choice(["max-sequence", "max-batch", "min-devices"])
            flags += ["--find", extreme]
            flags += [] if extreme == "min-devices" else ["--devices", str(pick.choice([16, 64]))]
            flags += [] if extreme == "max-batch" else ["--global-batch", "64"]
        else:
            flags += ["--devices", str(pick.choice([8, 16, 64, 96, 256])), "--global-batch", str(pick.choice([64, 96, 256]))]
        command = "plan"
    else:
        flags = [pick.choice(MODELS)] + system_flags(pick) + ["-t", "8", "--vary", "sequence=1024:8192:x2",
                                                             "--vary", "recompute=none,selective,full"]
    return [command, *flags, "--format", "json"]


def answer(program, arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None


def child(new, key):
    """What stands under an old key now; KeyError when nothing does."""
    name = RENAMED.get(key, key)
    for part in name.removeprefix("!").split("/"):
        new = new[part]
    return not new if name.startswith("!") else new


def differences(old, new, path=""):
    """Yields a line for each number or truth value of the old answer that the new one has not."""
    if isinstance(old, dict):
        for key, value in old.items():
            if key in IGNORED:
                continue
            try:
                below = child(new, key)
            except (KeyError, TypeError):
                yield f"{path}/{key}: is gone"
                continue
            yield from differences(value, below, f"{path}/{key}")
    elif isinstance(old, list):
        if not isinstance(new, list) or len(old) != len(new):
            yield f"{path}: had {len(old)} elements"
            return
        for i, (x, y) in enumerate(zip(old, new)):
            yield from differences(x, y, f"{path}/{i}")
    elif isinstance(old, (bool, int, float)) or old is None:
        if old != new or isinstance(old, bool) != isinstance(new, bool):
            yield f"{path}: was {old!r}, is {new!r}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pick = random.Random(options.seed)
    wrong = refused = 0
    for _ in range(options.requests):
        arguments = question(pick)
        old_code, old = answer(options.old, arguments)
        new_code, new = answer(options.new, arguments)
        refused += old_code == 2
        found = [f"exit code: was {old_code}, is {new_code}"] if old_code != new_code else []
        if old is not None:
            found += differences(old, new)
        if found:
            wrong += 1
            print("headroom " + " ".join(arguments))
            print("\n".join("  " + line for line in found[:5]))
    print(f"{options.requests} requests ({refused} refused by both), {wrong} with differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
