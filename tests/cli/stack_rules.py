#!/usr/bin/env python3
"""Strategies on training stacks, asked of estimate and of plan --why: what a stack cannot run both refuse by the same rule, what its
launcher has no flag for both answer with the same warning, and no plan that is found has it.

usage: stack_rules.py --bin DIR
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

MODEL = "gpt2-small"
REFUSED, WARNED, RUNS = "refused", "warned", "runs"
RECOMPUTE = ["--recompute", "full", "--recompute-layers", "2"]
INTERLEAVED = ["-p", "2", "-m", "2"]
# A stack, the flags of a strategy, and what is to be said of it.
TABLE = [
    ("hf-trainer", ["--recompute", "selective"], WARNED),
    ("hf-trainer", ["--recompute", "full"], RUNS),
    ("hf-trainer", RECOMPUTE, WARNED),
    ("hf-trainer", ["--recompute-ops", "core_attn"], WARNED),
    ("hf-trainer", ["-p", "2"], REFUSED),
    ("hf-trainer", ["--data-sharding", "zero1"], REFUSED),
    ("fms-fsdp-2024", ["--recompute", "selective", "--data-sharding", "zero3"], WARNED),
    ("fms-fsdp-2024", ["--recompute", "full", "--recompute-layers", "2", "--data-sharding", "zero3"], RUNS),
    ("megatron-2022", ["-p", "2", "--stage-layers", "5,7"], WARNED),
    ("megatron-2022", ["-p", "8"], WARNED),
    ("megatron-2022", ["-p", "2", "--stage-layers", "6,6"], RUNS),
    ("megatron-2022", [*INTERLEAVED, "--microbatch-group-size", "3"], WARNED),
    ("megatron-2022", ["-p", "2", "-m", "7"], REFUSED),
    ("megatron-2022", RECOMPUTE, RUNS),
    ("megatron-2022", ["--recompute", "selective_op"], REFUSED),
    ("megatron-core-2025", ["-p", "2", "--stage-layers", "5,7"], RUNS),
    ("megatron-core-2025", ["-p", "2", "-m", "7"], RUNS),
    ("megatron-core-2025", ["-p", "2", "-m", "8"], REFUSED),
    ("megatron-core-2025", [*INTERLEAVED, "--microbatch-group-size", "3"], RUNS),
    ("megatron-core-2025", ["-p", "2", "-m", "2", "--schedule", "zero-bubble-v"], REFUSED),
    ("torchtitan-2025", ["--recompute", "selective_op", "--data-sharding", "zero3"], RUNS),
]


class Program:
    def __init__(self, path: Path):
        self.path = path

    def run(self, *arguments: str):
        call = [self.path, *arguments, "--format", "json"]
        return subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)


def no_flag(warnings: list[dict]) -> list[str]:
    return [warning["text"] for warning in warnings if warning["code"] == "no_launcher_flag"]


def answers(program: Program, stack: str, flags: list[str]):
    """What estimate and plan --why say: each what a user is told, and the rules or warnings."""
    common = [MODEL, "--software", stack, "--devices", "8", "--global-batch", "24"]
    estimate = program.run("estimate", *common, *flags)
    prefix = "headroom: error: "
    rules = [line.removeprefix(prefix) for line in estimate.stderr.splitlines() if line.startswith(prefix)]
    if estimate.returncode == 2:
        said = (REFUSED, rules)
    else:
        texts = no_flag(json.loads(estimate.stdout)["warnings"])
        said = (WARNED if texts else RUNS, texts)
    plan = json.loads(program.run("plan", *common, "--why", " ".join(flags)).stdout)
    why = plan["why"]
    rules = [f"{problem['flag']}: {problem['rule']}" for problem in why["problems"]]
    texts = no_flag(why.get("warnings", []))
    asked = (REFUSED, rules) if rules else (WARNED if texts else RUNS, texts)
    found = [text for one in plan["plans"] for text in no_flag(one.get("warnings", []))]
    return said, asked, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True)
    program = Program((parser.parse_args().bin / "headroom").resolve())
    wrong = []
    for stack, flags, expected in TABLE:
        said, asked, found = answers(program, stack, flags)
        name = f"{stack} {' '.join(flags)}"
        if said[0] != expected:
            wrong.append(f"{name}: estimate {said}, not {expected}")
        # An estimate also says which stacks have it.
        same = asked[0] == said[0] and len(asked[1]) == len(said[1]) and all(
            text.startswith(rule) for rule, text in zip(asked[1], said[1]))
        if not same:
            wrong.append(f"{name}: plan --why {asked}, estimate {said}")
        if found:
            wrong.append(f"{name}: the plans have {found}")
    print("\n".join(wrong) or f"{len(TABLE)} strategies")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
