#!/usr/bin/env python3
"""Asks for published cases of training memory, and compares verdicts and peaks with what happened.

usage: published_peaks.py PROGRAM [--list]

Reads shared/data/measured/oom_cases.json beside the checkout, a part of the development data. Fails if fewer
than 92% of the verdicts or 88% of the cases out of memory are right, or if the median peak is off by more than
6%, or that of adapters by more than 8%. --list prints each case. Exits with 77 if the data are not there.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

CASES = pathlib.Path(__file__).resolve().parents[3] / "shared/data/measured/oom_cases.json"
UNITS = {"GB": 1e9, "GiB": 2**30}
# Stacks that are the frameworks' own, where a case asks for a similar one.
STACKS = {"litgpt": "litgpt-2024", "torchtune": "torchtune"}
# litgpt adapts q and v unless it is told otherwise (finetune/lora.py, lora_key), has a linear each for gate and
# up, and quantizes "bnb.nf4" once.
OF_LITGPT = {
    "linear_qkv": "q_proj,v_proj",
    "linear_qkv,linear_proj,linear_fc1,linear_fc2": "qkv_proj,o_proj,gate_proj,up_proj,down_proj",
    "nf4": "nf4_single",
}
# torchtune's recipes of the largest models shard embedding and output layer by themselves (custom_sharded_layers).
SHARDED_ENDS = {"llama-3-70b", "llama-3-405b"}


def words_of(case):
    """Returns the flags of a case for `headroom estimate`."""
    ask, framework = case["ask"], case["framework"]
    args = ask["args"]
    if framework == "litgpt":
        args = [OF_LITGPT.get(word, word) for word in args]
    if framework == "torchtune" and ask["model"] in SHARDED_ENDS:
        args = [*args, "--set-software", "sharding.ends_in_root=false"]
    system = pathlib.PurePath(ask["system"]).stem if "/" in ask["system"] else ask["system"]
    if system.startswith("rtx") and "-" not in system:
        system = "rtx-" + system[3:]
    stack = STACKS.get(framework, ask["software"])
    return ["estimate", ask["model"], *args, "--system", system, "--software", stack, "--json"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not CASES.is_file():
        print("skipped: shared/data is not beside this checkout")
        return 77
    right, found, ooms, errors, of_adapters = 0, 0, 0, [], []
    cases = [case for case in json.loads(CASES.read_text()) if case["ask"]]
    for case in cases:
        run = subprocess.run([options.program, *words_of(case)], capture_output=True, text=True, check=False)
        if run.returncode not in (0, 3):
            print(f"{case['id']}: {run.stderr.strip()}")
            continue
        memory = json.loads(run.stdout)["memory"]
        outcome = case["outcome"]
        happened = outcome["verdict"] == "oom"
        predicted = memory["verdict"] == "does_not_fit"
        ooms += happened
        found += happened and predicted
        right += happened == predicted
        line = f"{case['id']}: {outcome['verdict']}, predicted {memory['verdict']}"
        peaks = {"peak_allocated_gb": memory["allocated"]["peak_bytes"]}
        peaks["peak_reserved_gb"] = (memory["allocator"] or {}).get("reserved_bytes") or memory["peak_bytes"]
        for name, bytes_ in peaks.items():
            if outcome[name] and not happened:  # what ran out of memory had not reached its peak
                error = bytes_ / (outcome[name] * UNITS[outcome["unit"]]) - 1
                (errors if case["training_mode"] == "full" else of_adapters).append(abs(error))
                line += f", {name[5:-3]} {error:+.1%}"
        if options.list:
            print(line)
    overall, adapters = statistics.median(errors + of_adapters), statistics.median(of_adapters)
    print(f"{right} of {len(cases)} verdicts right, {found} of {ooms} out of memory found")
    print(f"peaks {overall:.1%} off in the median, those of adapters {adapters:.1%}")
    kept = right >= 0.92 * len(cases) and found >= 0.88 * ooms and overall <= 0.06 and adapters <= 0.08
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
