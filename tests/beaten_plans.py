#!/usr/bin/env python3
"""Asks a build of headroom random questions, and looks for a neighbour or a narrower search that beats the best plan.

usage: beaten_plans.py PROGRAM [--questions N] [--seed S] [--jobs J] [--narrower]

For each question, every strategy one step from the best plan is estimated on its own: one size doubled and another
halved, another microbatch, virtual pipeline, recomputation, module, sharding, shard group, exchange or dispatcher. A
neighbour that is legal, can be launched, fits and is more than half a percent faster is printed, unless the answer
names a change that is as good. With --narrower, each question is asked with --exact, then again with the TP, CP, PP
and DP of each plan shown; a plan that only the narrower search finds is printed if it is half a percent faster. Exits
with 1 if there is one.
"""

import argparse
import concurrent.futures
import json
import random
import shlex
import subprocess
import sys

FASTER = 0.995
SIZES = {"t": "-t", "c": "-c", "p": "-p", "d": "-d"}
BATCHES = [None, 1, 2, 4, 16]
SEQUENCES = [2048, 4096, 8192, 16384, 32768]
MODULES = ["core_attn", "layernorm", "mlp", "moe", "moe_act", "mla_up_proj", "shared_experts"]


def asked(program, words):
    """Returns the JSON answer of a command, or nothing if it has none."""
    run = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.returncode in (0, 3) and run.stdout else None


def names(program, kind):
    run = subprocess.run([program, "list", kind, "--format", "csv"], capture_output=True, text=True, check=True)
    return [line.split(",")[0].strip('"') for line in run.stdout.splitlines()[1:]]


def question(program, draw, known):
    devices = draw.choice([8, 16, 64, 128, 256, 512, 1024, 2048])
    words = ["plan", draw.choice(known["models"]), "--system", draw.choice(known["systems"]), "--devices", str(devices)]
    if draw.random() < 0.7:
        words += ["--software", draw.choice(known["software"])]
    batch = draw.choice(BATCHES)
    if batch:
        words += ["--global-batch", str(batch * devices)]
    if draw.random() < 0.5:
        words += ["--sequence", str(draw.choice(SEQUENCES))]
    return words


class Flags:
    """The flags of an estimate: a flag with its value, or alone."""

    def __init__(self, words):
        self.model, self.of = words[0], {}
        words = words[1:]
        while words:
            flag = words.pop(0)
            alone = not words or words[0].startswith("-")
            self.of[flag] = None if alone else words.pop(0)

    def words(self, changes):
        of = {**self.of, **changes}
        words = ["estimate", self.model, "--no-suggestions"]
        for flag, value in of.items():
            if value is False:
                continue
            words += [flag] if value is None else [flag, str(value)]
        return words

    def count(self, flag):
        return int(self.of.get(flag) or 1)


def neighbours(flags, strategy):
    """Yields the changes of flags that lead to neighbours; False takes a flag away."""
    for change in single_changes(flags, strategy):
        if "--stage-layers" in flags.of and ("-p" in change or "-m" in change):
            change = {**change, "--stage-layers": False}  # those of another number of stages do not fit
        yield change


def single_changes(flags, strategy):
    for more in SIZES.values():
        for less in SIZES.values():
            if more != less and flags.count(less) % 2 == 0:
                yield {more: 2 * flags.count(more), less: flags.count(less) // 2}
    sizes = [("-b", 2), ("-b", 0.5), ("-m", 2), ("-m", 0.5), ("--expert-parallel", 2), ("--expert-parallel", 0.5)]
    for flag, factor in sizes:
        value = flags.count(flag) * factor
        if value == int(value):
            yield {flag: int(value)}
    none = {"--recompute-ops": False, "--recompute-layers": False, "--recompute-method": False}
    for policy in ["none", "selective", "full", "selective_op"]:
        yield {**none, "--recompute": policy}
    layers = strategy["recompute"]["layers"]
    for count in {max(layers - 1, 1), layers + 1}:
        yield {**none, "--recompute": "full", "--recompute-layers": count}
    own = strategy["recompute"]["ops"]
    for module in MODULES:
        ops = [one for one in own if one != module] if module in own else [*own, module]
        if ops:
            yield {**none, "--recompute": "ops", "--recompute-ops": ",".join(ops)}
    for sharding in ["none", "zero1", "zero2", "zero3"]:
        yield {"--data-sharding": sharding}
    replicas = strategy["data_parallel"] * strategy["context_parallel"]
    size = replicas // 2
    while size > 1:
        yield {"--shard-size": size}
        size //= 2
    yield {"--shard-size": False}
    for switch in ["--no-reshard-after-forward", "--sequence-parallel", "--overlap-expert-all-to-all"]:
        yield {switch: False if switch in flags.of else None}
    for comm in ["p2p", "all_gather", "a2a", "a2a_p2p"]:
        yield {"--cp-comm": comm}
    for dispatcher in ["alltoall", "allgather", "deepep", "hybridep"]:
        yield {"--moe-dispatcher": dispatcher}


def beaten(program, words):
    """Returns the question, and the best neighbour of its best plan if that is faster."""
    reply = asked(program, words)
    if not reply or not reply["plans"]:
        return words, "no plan", None
    best = reply["plans"][0]
    seconds = best["time"]["iteration_seconds"]
    flags = Flags(shlex.split(best["command"])[2:])
    announced = reply.get("left_out", []) + [one for one in [reply.get("choice", {}).get("fastest")] if one]
    worst = None
    for change in neighbours(flags, best["strategy"]):
        answer = asked(program, flags.words(change))
        if not answer or answer["memory"]["verdict"] != "fits" or "time" not in answer:
            continue
        if answer["strategy"]["devices"] != best["strategy"]["devices"]:
            continue
        if any(warning["code"] == "no_launcher_flag" for warning in answer["warnings"]):
            continue
        other = answer["time"]["iteration_seconds"]
        named = any(one["iteration_seconds"] <= 1.005 * other for one in announced)
        if not named and other < FASTER * seconds and (worst is None or other < worst[0]):
            worst = (other, change)
    return words, seconds, worst


def beaten_by_narrower(program, words):
    """Returns the question, and the best plan of a search for one division of the GPUs if that is faster."""
    words = [*words, "--exact", "--use-all-devices"]
    reply = asked(program, words)
    if not reply or not reply["plans"]:
        return words, "no plan", None
    best = reply["plans"][0]
    seconds = best["time"]["iteration_seconds"]
    worst = None
    for plan in reply["plans"]:
        sizes = {"-t": "tensor_parallel", "-c": "context_parallel", "-p": "pipeline_parallel", "-d": "data_parallel"}
        change = {flag: plan["strategy"][size] for flag, size in sizes.items()}
        answer = asked(program, [*words, *(word for item in change.items() for word in map(str, item))])
        if not answer or not answer["plans"]:
            continue
        other = answer["plans"][0]
        faster = other["time"]["iteration_seconds"]
        alike = other["memory"]["verdict"] == best["memory"]["verdict"]
        if alike and faster < FASTER * seconds and (worst is None or faster < worst[0]):
            worst = (faster, change)
    return words, seconds, worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--narrower", action="store_true")
    options = parser.parse_args()
    looked_for = beaten_by_narrower if options.narrower else beaten
    draw = random.Random(options.seed)
    known = {kind: names(options.program, kind) for kind in ["models", "systems", "software"]}
    questions = [question(options.program, draw, known) for _ in range(options.questions)]
    planned = lost = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for words, seconds, worst in pool.map(lambda one: looked_for(options.program, one), questions):
            planned += seconds != "no plan"
            if not worst:
                continue
            lost += 1
            change = " ".join(f"{flag} {value}" for flag, value in worst[1].items())
            slower = f"{100 * (worst[0] / seconds - 1):+.1f}% {seconds:.4g} s, {worst[0]:.4g} s"
            print(f"{slower} with {change}: {shlex.join(words)}", flush=True)
    print(f"{options.questions} questions, {planned} with a plan, {lost} beaten")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
