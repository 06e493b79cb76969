#!/usr/bin/env python3
"""A printed launch is the plan that it is of: `check` reads it as what was priced, for each launcher and kind of layers.

usage: launch_as_planned.py --bin DIR
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# Launcher, stack, the file that starts it, models whose layers its files can say.
DENSE = ["llama-3-8b", "qwen3-8b"]
MOE = ["mixtral-8x7b", "qwen3-30b-a3b"]
LATENT = ["deepseek-v2-lite"]
CASES = [
    ("megatron", "megatron-core-2025", "launch.sh", DENSE + MOE + LATENT),
    ("bridge", "megatron-core-2025", "launch.sh", DENSE + MOE + LATENT),
    ("nemo", "nemo-2025", "launch.sh", DENSE + MOE),
    ("torchtitan", "torchtitan-2025", "launch.sh", DENSE + ["qwen3-30b-a3b"] + LATENT),
    ("deepspeed", "deepspeed-2025", "launch.sh", DENSE + MOE + LATENT + ["gpt-oss-20b"]),
    ("accelerate", "hf-trainer", "launch.sh", DENSE + MOE + LATENT + ["gpt-oss-20b"]),
    ("trainer", "hf-trainer", "launch.sh", ["llama-3-8b", "gpt-oss-20b"]),
    ("llama-factory", "hf-trainer", "launch.sh", ["llama-3-8b", "qwen3-30b-a3b"]),
    ("axolotl", "hf-trainer", "launch.sh", ["llama-3-8b", "qwen3-30b-a3b"]),
]
# Of the iteration's time, for what no file says: the dtype of NeMo's router, and whether torchtitan's DeepSeek-V2 takes the
# softmax before the choice. The other launches differ by less than 1e-9.
TOLERANCE = 1e-3


def reply_of(program, words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    if not done.stdout:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr else "says nothing"
    return json.loads(done.stdout), ""


def difference(program, launcher, stack, file, model, folder):
    """What is wrong with the launch of a model's best plan; empty: nothing."""
    system = ["--system", "dgx-h100-80g", "--format", "json"]
    plan, error = reply_of(program, ["plan", model, "--devices", 64, "--software", stack, "--global-batch", 256, "--sequence",
                                     4096, "--launch", launcher, "--launch-dir", folder, *system])
    if plan is None:
        return f"no plan: {error}"
    best = plan["plans"][0]
    if best["launch"]["lacks"]:
        return f"cannot be launched: {best['launch']['lacks']}"
    read, error = reply_of(program, ["check", folder / file, *system])
    if read is None:
        return f"is not read: {error}"
    if read["outcome"] != "starts":
        return f"{read['outcome']}: {read['findings']}"
    priced, asked = (reply["time"]["iteration_seconds"] for reply in (best, read["estimate"]))
    if abs(asked / priced - 1) > TOLERANCE:
        return f"takes {asked:.6g} s, not {priced:.6g} s ({best['command']})"
    return ""


def asked_for(program, folder):
    """A value that is asked for stays where the launcher's files have no word for it, and its launch says so."""
    words = ["plan", "llama-3-8b", "--devices", 64, "--software", "nemo-2025", "--global-batch", 256, "--sequence", 4096,
             "--system", "dgx-h100-80g", "--format", "json"]
    own, _ = reply_of(program, [*words, "--data-sharding", "zero2"])
    nemo, _ = reply_of(program, [*words, "--data-sharding", "zero2", "--launch", "nemo", "--launch-dir", folder])
    lacks = nemo["plans"][0]["launch"]["lacks"]
    if not any("--data-sharding zero2" in lack for lack in lacks):
        return f"nemo: zero2 is asked for, and the launch lacks {lacks}"
    times = [reply["plans"][0]["time"]["iteration_seconds"] for reply in (own, nemo)]
    return "" if times[1] < 1.1 * times[0] else f"nemo: zero2 takes {times[1]} s, and {times[0]} s without a launch"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    program = pathlib.Path(parser.parse_args().bin) / "headroom"
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for launcher, stack, file, models in CASES:
            for model in models:
                what = difference(program, launcher, stack, file, model, pathlib.Path(folder) / launcher / model)
                if what:
                    wrong += 1
                    print(f"{launcher}: {model}: {what}")
        if what := asked_for(program, pathlib.Path(folder) / "asked"):
            wrong += 1
            print(what)
    print(f"{sum(len(models) for *_, models in CASES)} launches, {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
