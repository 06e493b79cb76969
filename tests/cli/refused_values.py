#!/usr/bin/env python3
"""Each flag that sets a field of the strategies of a search, with a value that no strategy can have: plan, sweep plan and
frontier refuse it before they search, with exit code 2 and the words of estimate.

usage: refused_values.py --bin DIR
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

MODEL = "gpt3-13b"
A100 = ["--system", "dgx-a100-80g"]
H100 = ["--system", "dgx-h100-80g"]
LORA = ["--lora-rank", "4"]
# For each flag of `plan` a value that estimate refuses, and what stands beside it.
REFUSED = {
    "tensor-parallel": [("7", []), ("0", []), ("x", [])],
    "pipeline-parallel": [("999", []), ("0", [])],
    "virtual-pipeline": [("99", ["--pipeline-parallel", "2"]), ("x", [])],
    "context-parallel": [("3", []), ("2", ["--software", "megatron-deepspeed-2022"])],
    "cp-comm": [("nonsense", []), ("a2a", ["--software", "torchtitan-2025", "--context-parallel", "2"])],
    "data-parallel": [("x", [])],
    "expert-parallel": [("3", []), ("2", [])],
    "expert-tensor-parallel": [("2", []), ("x", [])],
    "moe-dispatcher": [("nonsense", [])],
    "moe-router-padding": [(None, [])],
    "moe-pad-to-capacity": [(None, [])],
    "moe-imbalance": [("nonsense", []), ("0.5", [])],
    "moe-balancing": [("nonsense", [])],
    "micro-batch": [("0", [])],
    "global-batch": [("x", [])],
    "sequence": [("0", [])],
    "schedule": [("nonsense", []), ("dualpipe", ["--software", "megatron-core-2025", "--pipeline-parallel", "2"])],
    "overlap-expert-all-to-all": [],  # yes, no or both for a search
    "sequence-parallel": [],
    "split-hidden": [(None, ["--software", "megatron-core-2025"])],
    "recompute": [("nonsense", []), ("selective_op", ["--software", "megatron-core-2025"])],
    "recompute-ops": [("nonsense", []), ("activation,activation", [])],
    "recompute-window": [(None, ["--schedule", "zero-bubble-h1", "--pipeline-parallel", "2"])],
    "save-gathered-input": [],  # goes with any
    "keep-pipeline-outputs": [],
    "data-sharding": [("nonsense", []), ("zero3", ["--software", "megatron-2021", "--data-parallel", "2"])],
    "shard-size": [("x", [])],
    "no-reshard-after-forward": [],
    "sync-each-batch": [],
    "reference-model": [],
    "precision": [("nonsense", []), ("fp8", A100)],
    "fp8-param-gather": [(None, [])],
    "bf16-layers-at-start": [("2", []), ("99", [*H100, "--precision", "fp8"])],
    "bf16-layers-at-end": [("2", [])],
    "fp8-attention": [(None, [])],
    "fp8-output-layer": [(None, [])],
    "fp8-activation-input": [(None, [])],
    "bf16-modules": [("nonsense", []), ("attention", [])],
    "tp-only-amax-red": [(None, [])],
    "gradient-dtype": [("nonsense", []), ("int8", [])],
    "optimizer": [("nonsense", []), ("muon", ["--optimizer-offload-fraction", "1"])],
    "main-params-dtype": [("nonsense", []), ("fp16", ["--software", "torchtitan-2025"])],
    "exp-avg-dtype": [("nonsense", [])],
    "exp-avg-sq-dtype": [("nonsense", [])],
    "step-in-backward": [],
    "optimizer-offload-fraction": [("2", []), ("1", ["--software", "torchtitan-2025"])],
    "overlap-cpu-optimizer": [(None, [])],
    "offload-parameters": [(None, [])],
    "offload-modules": [("nonsense", []), ("attn_proj", [])],
    "offload-layers": [("999", []), ("x", [])],
    "lora-rank": [("x", [])],
    "lora-targets": [("nonsense", LORA), ("q_proj", [])],
    "lora-dropout": [("0.1", []), ("2", LORA)],
    "base-dtype": [("nf4", []), ("nonsense", LORA)],
}


def run(bin_dir: Path, *arguments: str) -> tuple[int, list[str]]:
    """The exit code and the errors of a command, or the first lines of what else it says."""
    result = subprocess.run([bin_dir / "headroom", *arguments], capture_output=True, text=True, timeout=60)
    return result.returncode, result.stderr.splitlines()


def output_of(bin_dir: Path, *arguments: str) -> str:
    return subprocess.run([bin_dir / "headroom", *arguments], capture_output=True, text=True, check=True).stdout


def fields_of_plan(bin_dir: Path) -> set[str]:
    """The fields of strategies and workloads that plan has a flag for."""
    flags = set(re.findall(r"--([a-z][a-z0-9-]*)", output_of(bin_dir, "plan", "--help-all")))
    fields = json.loads(output_of(bin_dir, "list", "fields", "--format", "json"))["fields"]
    return flags & {field["name"].replace("_", "-") for field in fields}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True)
    bin_dir = parser.parse_args().bin
    wrong = []
    if fields_of_plan(bin_dir) != set(REFUSED):
        wrong.append(f"no case, or none of a flag: {sorted(fields_of_plan(bin_dir) ^ set(REFUSED))}")
    help_of_frontier = output_of(bin_dir, "frontier", "--help-all")
    for flag, cases in REFUSED.items():
        for value, beside in cases:
            asked = [MODEL, *beside, f"--{flag}", *([] if value is None else [value])]
            code, errors = run(bin_dir, "estimate", *asked)
            if code != 2 or not errors:
                wrong.append(f"estimate {' '.join(asked)}: exit {code}, no case of a bad value")
                continue
            batch = [] if flag == "global-batch" else ["--global-batch", "64"]
            plan = run(bin_dir, "plan", *asked, "--devices", "64", *batch)
            if plan != (2, errors):
                wrong.append(f"plan {' '.join(asked)}: {plan}\n  estimate: {errors}")
            of_frontier = f"--{flag}" in help_of_frontier and not flag.startswith("recompute")  # which it chooses
            frontier = run(bin_dir, "frontier", *asked) if of_frontier else (2, errors)
            if frontier[0] != 2 or not set(errors) <= set(frontier[1]):
                wrong.append(f"frontier {' '.join(asked)}: {frontier}\n  estimate: {errors}")
            sweep = run(bin_dir, "sweep", "plan", *asked, "--vary", "devices=32,64", *batch)
            if sweep != (2, errors):
                wrong.append(f"sweep plan {' '.join(asked)}: {sweep}\n  estimate: {errors}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
