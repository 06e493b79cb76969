#!/usr/bin/env python3
"""Runs commands with --format json and validates what they print against the schemas of the reports.

usage: report_schemas.py --bin DIR
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/io"))
from validate_schemas import schema_of  # noqa: E402

PAPER = ["gpt3-175b", "-t", "8", "-p", "8", "-m", "3", "--global-batch", "64"]
KINDS = ["tests/cli/two_kinds.json", "-t", "4", "-p", "2", "--global-batch", "16", "--sp"]
SHARDED = ["gpt2-small", "--system", "dgx-h100-80g", "-d", "2", "--zero", "1", "--global-batch", "2"]
SNAPSHOT = "SNAPSHOT"  # stands for the path of a plan's snapshot
COMMANDS = {
    "plan": [
        ["gpt3-175b", "--devices", "64", "--global-batch", "64", "--timing"],
        ["gpt-1t", "--devices", "64", "--global-batch", "64", "-t", "8"],  # nothing fits
        ["llama-2-7b", "--devices", "16", "--global-batch", "32", "--recompute-window", "--why", "-t 3"],
        ["gpt2-xl", "--devices", "8", "--global-batch", "8", "--top", "2", "--why", "-t 8 --recompute full"],
        ["gpt3-175b", "--devices", "64", "--find", "max-batch", "--tokens", "300B", "--price-per-gpu-hour", "2.5"],
        ["gpt3-175b", "--devices", "64", "--global-batch", "64", "--find", "max-layers", "--step", "8"],
        ["gpt-1t", "--devices", "64", "--global-batch", "8", "--find", "max-sequence"],  # nothing fits
        ["gpt3-175b", "--global-batch", "1536", "--tokens", "300B", "--deadline", "60d", "--power-per-gpu", "400 W"],
        ["gpt2-xl", "--devices", "4,8", "--global-batch", "8", "--tokens", "1B", "--top", "2"],
        ["tests/cli/two_kinds.json", "--devices", "8", "--global-batch", "16"],
        ["gpt2-small", "--devices", "6", "-t", "4"],  # nothing divides
        ["gpt2-xl", "--devices", "8", "--global-batch", "16", "--batch-range", "20%", "--tokens", "1B", "--top", "2",
         "--system", "dgx-a100-80g,dgx-h100-80g", "--price", "a100=1,h100=9"],
        ["gpt2-xl", "--devices", "8", "--global-batch", "16", "--tokens", "1B", "--mtbf", "50000h", "--checkpoint-time",
         "10s", "--restart-time", "5min", "--repair-time", "1d", "--spares", "8"],
        ["llama-3-8b", "--system", "dgx-h100-80g", "--devices", "8", "--global-batch", "64", "-b", "1", "-m", "1",
         "--no-recompute-layers", "--try-offload", "--top", "2"],  # faster in fp8
        ["mixtral-8x7b", "--system", "dgx-h100-80g", "--devices", "16", "--global-batch", "64", "--fast", "--views"],
    ],
    "estimate": [
        PAPER + ["--sp", "--recompute", "selective", "--tokens", "300B"],
        PAPER,  # does not fit
        PAPER + ["--sp", "--recompute", "full", "--recompute-window"],
        ["llama-3-70b", "-t", "8", "-p", "3", "--recompute-ops", "norm_1,activation", "--keep-pipeline-outputs"],
        ["gpt2-xl", "--detail", "exact", "--system", "dgx-a100-40g", "--no-suggestions", "--peak"],
        ["llama-3-8b", "--system", "dgx-h100-80g", "--software", "deepspeed-2025", "-d", "8", "--zero", "3", "--recompute",
         "full", "--optimizer-cpu-offload", "--offload-parameters", "--offload-modules", "layer_input"],
        KINDS,
        KINDS + ["--views"],
        ["llama-3-8b", "--system", "dgx-h100-80g", "-p", "4", "-m", "2", "--global-batch", "512", "--views", "--recompute",
         "full"],
        ["llama-3-8b", "--system", "dgx-h100-80g", "-d", "8", "--software", "torchtitan-2025", "--zero", "3", "--views"],
    ],
    "explain": [
        KINDS + ["--recompute", "selective"],
        PAPER + ["--sp", "--recompute", "selective"],
        ["llama-3-8b", "-t", "16", "--detail", "exact", "--recompute", "selective"],
        ["gpt3-13b", "-p", "3", "--recompute", "full", "--recompute-layers", "2"],
        ["llama-3-8b", "-c", "4"],
        ["llama-3-8b", "-t", "2", "-c", "4", "--cp-comm", "a2a"],
        ["mixtral-8x7b", "-d", "8", "--expert-parallel", "8", "--software", "megatron-core-2025"],
        ["mixtral-8x7b", "-d", "8", "--expert-parallel", "8", "--moe-dispatcher", "allgather"],
        ["nemotron-3-nano-30b-a3b", "-t", "2", "-d", "4", "--sp", "--expert-parallel", "2"],
        ["llama-3-8b", "-d", "8", "--data-sharding", "zero3", "--software", "torchtitan-2025"],
    ],
    "frontier": [
        KINDS + ["--budget", "20 GiB"],
        PAPER + ["--sp"],
        PAPER + ["--sp", "--budget", "60 GiB,10 GiB"],  # the second does not fit
        ["llama-3-70b", "-t", "8", "-p", "3", "-m", "2", "--global-batch", "24", "--detail", "exact", "--recompute-window"],
    ],
    "sweep": [
        PAPER + ["--vary", "recompute=none,selective,full", "--vary", "micro_batch=1:3:1"],  # 3 does not divide 64
        ["gpt2-xl", "--vary", "memory=40 GiB:80 GiB:x2", "--vary", "sp=yes,no", "--vary", "kernels.attention=flash"],
        ["plan", "--vary", "model=gpt2-xl,gpt-1t", "--vary", "devices=8,16", "--global-batch", "16", "-t", "1,8"],
        ["gpt2-xl", "--vary", "tokens=1B,2B", "--vary", "price_per_gpu_hour=1,2", "--mtbf", "50000 h", "--checkpoint-time",
         "10s", "--restart-time", "5min"],
    ],
    "compare": [
        PAPER + ["--recompute", "full", "--to", "--sp --recompute selective"],
        PAPER + ["--to", "--micro-batch 2"],
        PAPER + ["--to", "--system dgx-h100-80g --software torchtitan-2025 --zero 3"],
    ],
    "check": [
        ["examples/train_dense.sh", "--patch"],
        ["examples/train_dense.sh", "--devices", "6"],  # refused
        ["examples/trainer/zero3.yaml", "--devices", "1", "--system", "l40s"],  # does not fit
        ["examples/axolotl-qlora.yaml", "--system", "dgx-h100-80g"],
    ],
    "validate": [
        [],
        ["--runs", "examples/my-runs.json"],
        ["--runs", "examples/cluster-runs.json", "--system", "dgx-h100-80g"],
    ],
    "validate_samples": [
        ["--samples", "tests/io/samples/headroom_measure.json", "--system", "dgx-h100-80g"],
        ["--samples", "tests/io/samples/kinds.json", "--system", "dgx-h100-80g"],
    ],
    "memory_snapshot": [
        [SNAPSHOT],
        [SNAPSHOT, *SHARDED],
    ],
    "calibrate_samples": [
        ["tests/io/samples/sustained.json", "--base", "dgx-a100-80g"],
    ],
    "calibrate_from_runs": [
        ["--from-runs", "examples/cluster-runs.json"],
        ["--from-runs", "examples/my-runs.json"],  # one run
    ],
}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    program = (parser.parse_args().bin / "headroom").resolve()
    with tempfile.TemporaryDirectory() as folder:
        violations = check_reports(program, str(Path(folder) / "plan.pickle"))
    violations += check_parts(program)
    sys.exit(1 if violations else 0)


def check_reports(program, snapshot):
    violations = 0
    printed(program, ["estimate", *SHARDED, "--no-suggestions", "--format", "json", "--snapshot", snapshot])
    for command, calls in COMMANDS.items():
        schema = schema_of(program, command)
        kind = jsonschema.validators.validator_for(schema)
        for flags in calls:
            call = [command.partition("_")[0], *(snapshot if flag == SNAPSHOT else flag for flag in flags)]
            report = printed(program, [*call, "--format", "json"])
            violations += violated(kind(schema), report, call)
            if command == "estimate":
                violations += unequal_sums(report)
        print(f"{command}: {len(calls)} reports")
    return violations


def check_parts(program):
    violations = 0
    part = schema_of(program, "part")
    for command in ("sweep", "plan"):
        for flags in COMMANDS[command]:
            # Several are compared by one run, and parts say nothing of the host.
            if "4,8" in flags or "--price" in flags or "--try-offload" in flags:
                continue
            call = [command, *(flag for flag in flags if flag not in ("--timing", "--views")), "--shard", "2/3"]
            violations += violated(jsonschema.Draft202012Validator(part), printed(program, call), call)
    return violations


def printed(program, arguments):
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    return json.loads(done.stdout)


def violated(validator, report, call):
    """How many rules of the schema a report breaks."""
    errors = list(validator.iter_errors(report))
    for error in errors:
        print(f"{' '.join(call)}: {error.json_path}: {error.message}")
    return len(errors)


PARTS = ("weights", "gradients", "optimizer", "activation", "dummy_gradients", "workspaces", "non_torch")


def unequal_sums(report):
    """Terms add up: exactly where they are bytes, but for rounding where they are seconds."""
    wrong = 0
    for rank in report["memory"]["ranks"]:
        parts = sum(rank.get(name + "_bytes", 0) for name in PARTS)
        wrong += parts != rank["total_bytes"] or sum(rank["activations"].values()) != rank["activation_bytes"]
    wrong += report["memory"]["peak_bytes"] != max(rank["total_bytes"] for rank in report["memory"]["ranks"])
    time = report["time"]
    wrong += abs(sum(time["breakdown"].values()) / time["iteration_seconds"] - 1) > 1e-12
    return wrong


if __name__ == "__main__":
    main()
