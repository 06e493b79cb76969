#!/usr/bin/env python3
"""Asks two builds of headroom the same random questions and compares their answers.

usage: compare_programs.py OLD NEW [--requests N] [--seed S] [--exact]

For a change of structure, which must leave every figure as it was, to the last bit. The questions are about all models,
systems and stacks of OLD, with all commands that compute. Each number, truth value and exit code of OLD must be NEW's
under the same key; words may change and keys may be added. With --exact the answers must be the same text, errors included.
Exits with 1 if anything differs.
"""

import argparse
import json
import random
import shlex
import subprocess
import sys

FLAGS = [  # odds that a strategy has a flag, and its values
    (0.2, "--virtual-pipeline", [2, 4]),
    (0.2, "--context-parallel", [2, 4]),
    (0.1, "--cp-comm", ["p2p", "all_gather", "a2a"]),
    (0.7, "--sequence-parallel", None),
    (0.1, "--schedule", ["gpipe", "1f1b", "zero-bubble-h1", "zero-bubble-v", "dualpipe-v"]),
    (0.4, "--data-sharding", ["none", "zero1", "zero2", "zero3"]),
    (0.05, "--shard-size", [2, 8]),
    (0.03, "--no-reshard-after-forward", None),
    (0.03, "--sync-each-batch", None),
    (0.1, "--gradient-dtype", ["half", "fp32"]),
    (0.15, "--precision", ["fp8", "fp8_delayed", "fp8_blockwise", "mxfp8", "nvfp4"]),
    (0.03, "--fp8-param-gather", None),
    (0.1, "--save-gathered-input", None),
    (0.05, "--keep-pipeline-outputs", None),
    (0.1, "--optimizer", ["adam", "sgd", "muon", "adafactor"]),
    (0.05, "--optimizer-offload-fraction", [0.5, 1]),
    (0.03, "--offload-layers", [1, 2]),
    (0.05, "--lora-rank", [8, 64]),
    (0.1, "--detail", ["exact"]),
    (0.1, "--attention", ["unfused", "flash", "sdpa_math"]),
    (0.3, "--sequence", [1024, 4096, 8192, 32768]),
]
EXPERT_FLAGS = [
    (0.8, "--expert-parallel", [2, 4, 8, 16]),
    (0.1, "--expert-tensor-parallel", [1, 2]),
    (0.3, "--moe-dispatcher", ["alltoall", "allgather", "deepep"]),
    (0.2, "--overlap-expert-all-to-all", None),
    (0.1, "--moe-imbalance", ["typical", 2]),
]
RECOMPUTATION = [
    ["none"], ["selective"], ["full"], ["selective_op"], ["full", "--recompute-layers", "2"],
    ["full", "--recompute-method", "uniform", "--recompute-layers", "2"], ["full", "--recompute-window"],
    ["full", "--distribute-saved-activations"], ["ops", "--recompute-ops", "layernorm,mlp"],
]


class Questions:
    """Draws the arguments of one random command after another."""

    def __init__(self, program, seed):
        def listed(kind):
            return json.loads(answer(program, ["list", kind, "--format", "json"])[1])[kind]
        self.program = program
        self.pick = random.Random(seed)
        self.models = listed("models")
        self.systems = [system["name"] for system in listed("systems")]
        self.stacks = [stack["name"] for stack in listed("software")]

    def some(self, flags):
        for odds, flag, values in flags:
            if self.pick.random() < odds:
                yield from [flag] if values is None else [flag, str(self.pick.choice(values))]

    def parallel(self):
        pick = self.pick
        return ["-t", str(pick.choice([1, 1, 2, 4, 8])), "-p", str(pick.choice([1, 1, 2, 4, 8])),
                "-b", str(pick.choice([1, 1, 2])), "-d", str(pick.choice([1, 2, 8, 32])),
                "--global-batch", str(pick.choice([64, 256, 1536]))]

    def strategy(self, model):
        pick = self.pick
        flags = [*self.parallel(), *self.some(FLAGS)]
        if "experts" in json.dumps(model):
            flags += self.some(EXPERT_FLAGS)
        if pick.random() < 0.6:
            flags += ["--recompute", *pick.choice(RECOMPUTATION)]
        return flags

    def asked(self, commands=None):
        """The next question, of one of the commands, and its answer by the program; of four that it refuses, one."""
        while True:
            arguments = self.next()
            if commands and arguments[0] not in commands:
                continue
            old = answer(self.program, arguments)
            if old[0] != 2 or self.pick.random() < 0.25:
                return arguments, old

    def next(self):
        pick = self.pick
        model = pick.choice(self.models)
        where = [model["name"], "--system", pick.choice(self.systems)]
        if pick.random() < 0.7:
            where += ["--software", pick.choice(self.stacks)]
        fleet = ["--devices", str(pick.choice([8, 16, 64, 96, 256])), "--global-batch", str(pick.choice([64, 96, 256]))]
        command = pick.choices(["estimate", "explain", "compare", "frontier", "plan", "why", "find", "sweep", "trace"],
                               [50, 10, 8, 8, 12, 3, 3, 6, 3])[0]
        if command == "plan":
            flags = where + fleet
        elif command == "why":
            command, flags = "plan", [*where, *fleet, "--why", f"-t {pick.choice([1, 4, 8])} -p {pick.choice([1, 2, 4])}"]
        elif command == "find":
            extreme = pick.choice(["max-sequence", "max-batch", "min-devices"])
            asked = {"max-sequence": fleet, "max-batch": fleet[:2], "min-devices": fleet[2:]}[extreme]
            command, flags = "plan", [*where, "--find", extreme, *asked]
        elif command == "sweep":
            flags = [*where, "-t", "8", "--vary", "sequence=1024:8192:x2", "--vary", "recompute=none,selective,full"]
        elif command == "explain":
            flags = [model["name"], *self.strategy(model)]
        elif command == "frontier":
            flags = where + self.parallel()
        else:
            flags = where + self.strategy(model)
        if command == "estimate" and pick.random() < 0.2:
            flags += ["--tokens", "300B", "--price-per-gpu-hour", "2.5"]
        if command == "compare":
            flags += ["--to", "--sp --recompute selective"]
        return [command, *flags] + ([] if command == "trace" else ["--format", "json"])


def answer(program, arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout, done.stderr


def differences(old, new, path=""):
    """Yields a line for each number or truth value of the old answer that the new one has not."""
    if isinstance(old, dict):
        for key, value in old.items():
            if not isinstance(new, dict) or key not in new:
                yield f"{path}/{key}: is gone"
            else:
                yield from differences(value, new[key], f"{path}/{key}")
    elif isinstance(old, list):
        if not isinstance(new, list) or len(old) != len(new):
            yield f"{path}: had {len(old)} elements"
            return
        for i, (x, y) in enumerate(zip(old, new)):
            yield from differences(x, y, f"{path}/{i}")
    elif isinstance(old, (bool, int, float)) or old is None:
        if old != new or isinstance(old, bool) != isinstance(new, bool):
            yield f"{path}: was {old!r}, is {new!r}"


def compared(old, new, exact):
    """Lines that say how the answers to a question differ."""
    found = [f"exit code: was {old[0]}, is {new[0]}"] if old[0] != new[0] else []
    if exact:
        pairs = [pair for i in (1, 2) for pair in zip(old[i].splitlines(), new[i].splitlines()) if pair[0] != pair[1]]
        found += [f"was {x}\n   is {y}" for x, y in pairs] or (["other text"] if old[1:] != new[1:] else [])
    elif old[1].strip():
        found += differences(json.loads(old[1]), json.loads(new[1]) if new[1].strip() else None)
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exact", action="store_true")
    options = parser.parse_args()
    questions = Questions(options.old, options.seed)
    wrong = refused = 0
    for _ in range(options.requests):
        arguments, old = questions.asked()
        new = answer(options.new, arguments)
        refused += old[0] == new[0] == 2
        if found := compared(old, new, options.exact):
            wrong += 1
            print("headroom " + shlex.join(arguments), flush=True)
            print("\n".join("  " + line for line in found[:5]), flush=True)
    print(f"{options.requests} requests ({refused} refused by both), {wrong} with differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
