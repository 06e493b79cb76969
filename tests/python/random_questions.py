#!/usr/bin/env python3
"""Asks random questions of the library and of the program: replies must be equal byte for byte.

    tests/python/random_questions.py [--count 500] [--seed 1]

The environment names package, library and program (tests/python/support.py). A question that breaks
rules must break them in both, and no fewer than a fifth of all questions may have a reply.
"""

import argparse
import random
import subprocess
import sys

import headroom as hr
from support import PROGRAM

SIZES = [1, 1, 1, 2, 2, 4, 8]


def strategy(rng):
    """Return flags of a strategy: often legal, not always."""
    flags = {
        "tensor_parallel": rng.choice(SIZES),
        "pipeline_parallel": rng.choice(SIZES),
        "data_parallel": rng.choice(SIZES),
        "micro_batch": rng.choice([1, 1, 2, 4]),
        "sequence_parallel": rng.random() < 0.7,
        "recompute": rng.choice([None, "none", "selective", "full"]),
        "data_sharding": rng.choice([None, None, "none", "zero1", "zero3"]),
        "context_parallel": rng.choice([None, None, None, 2]),
        "precision": rng.choice([None, None, None, "fp8"]),
        "detail": rng.choice([None, None, "exact"]),
    }
    if rng.random() < 0.3:
        flags["global_batch"] = rng.choice([32, 64, 128])
    return flags


def question(rng, models, systems, stacks):
    """Return a command and its arguments."""
    command = rng.choices(
        ["estimate", "explain", "compare", "frontier", "sweep", "plan"], [60, 10, 8, 4, 10, 8]
    )[0]
    arguments = {"model": rng.choice(models)}
    if command != "explain":
        arguments["system"] = rng.choice([None, *systems])
        arguments["software"] = rng.choice([None, None, *stacks])
    if command == "plan":
        arguments.update(devices=rng.choice([1, 2, 4, 8]), global_batch=rng.choice([8, 16]),
                         top=rng.choice([None, 1, 3]))
    else:
        arguments.update(strategy(rng))
    if command in ("explain", "frontier"):
        arguments.pop("global_batch", None)
    if command == "compare":
        arguments["to"] = rng.choice(["--recompute full", "--sp", "-b 2", "--data-parallel 4"])
    if command == "sweep":
        arguments["vary"] = {"micro_batch": [1, 2], "sequence": [2048, 4096]}
        del arguments["micro_batch"]
    if rng.random() < 0.1:
        arguments["set"] = {"layers": rng.choice([8, 16, 24])}
    return command, arguments


def words(command, arguments):
    """Return the same question as a command line."""
    line = [*command.split(), arguments["model"]]
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if name == "model" or value is None or value is False:
            continue
        if value is True:
            line.append(flag)
        elif name == "vary":
            for field, values in value.items():
                line += [flag, f"{field}={','.join(map(str, values))}"]
        elif isinstance(value, dict):
            for field, each in value.items():
                line += [flag, f"{field}={each}"]
        else:
            line += [flag, str(value)]
    return [*line, "--format", "json"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    names = [listing().names for listing in (hr.models, hr.systems, hr.software)]
    replies = different = 0
    for i in range(given.count):
        command, arguments = question(rng, *names)
        line = words(command, arguments)
        program = subprocess.run([PROGRAM, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        try:
            reply = hr.ask(command, progress=False, **arguments)
            asked = (reply.status, reply.json + "\n")
            replies += 1
        except hr.InputError:
            asked = (2, "")
        if asked != (program.returncode, program.stdout):
            different += 1
            print(f"question {i}: status {asked[0]} of the library, {program.returncode} of: "
                  f"{' '.join(line)}", file=sys.stderr)
    print(f"{given.count} questions, {replies} with a reply, {different} differ")
    return 1 if different or 5 * replies < given.count else 0


if __name__ == "__main__":
    sys.exit(main())
