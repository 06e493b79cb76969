#!/usr/bin/env python3
"""Compares layouts that recipes made by hand with what a build of headroom lays out for the same sizes.

usage: layouts_by_hand.py PROGRAM [--model WORDS] [--all] [--moves]

For each distinct set of sizes of the program's recipes (headroom list recipes) that names the layers of its
stages, prints the recipe's time and verdict, those of the best plan with all of the recipe's sizes fixed, and
the gap in percent: above 0, the plan's layout is slower. Exits with 1 if the plan does not fit where the recipe
does, or is more than half a percent slower. --moves also estimates each layout that moves one layer of the plan
between neighbouring stages, and counts those that fit and are more than half a percent faster than the plan.
"""

import argparse
import json
import shlex
import subprocess
import sys

NOISE = 0.005
VERDICTS = ["fits", "marginal", "does_not_fit"]


def asked(words):
    """Returns the JSON answer of a command, or nothing if it has none."""
    run = subprocess.run([*words, "--format", "json"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.returncode in (0, 3) and run.stdout else None


def fixed(strategy):
    """Returns the flags of a search that leave open nothing but the layout."""
    words = []
    for field in ("tensor", "context", "pipeline", "virtual_pipeline", "data", "expert", "expert_tensor"):
        name = field if field.endswith("pipeline") and "_" in field else field + "_parallel"
        words += ["--" + name.replace("_", "-"), str(strategy[name])]
    for name in ("micro_batch", "schedule", "data_sharding", "cp_comm", "moe_dispatcher"):
        words += ["--" + name.replace("_", "-"), str(strategy[name])]
    words += ["--sp", "yes" if strategy["sequence_parallel"] else "no"]
    words += ["--overlap-expert-all-to-all", "yes" if strategy["overlap_expert_all_to_all"] else "no"]
    recompute = strategy["recompute"]
    if recompute["policy"] == "ops":
        return words + ["--recompute-ops", ",".join(recompute["ops"])]
    return words + ["--recompute", recompute["policy"]]


def answered(reply):
    """Returns time, verdict and layout of a reply, or of its first plan."""
    memory, time = reply["memory"], reply["time"]
    return time["iteration_seconds"], memory["verdict"], reply["layout"]["stage_layers"]


def moved(layers):
    """Yields each layout that moves one layer to a neighbouring stage."""
    for stage in range(len(layers) - 1):
        for step in (1, -1):
            other = list(layers)
            other[stage] += step
            other[stage + 1] -= step
            if all(count >= 1 for count in other):
                yield other


def short(layers):
    """Returns layers of stages as text: 4*15 1."""
    runs = []
    for count in layers:
        if runs and runs[-1][0] == count:
            runs[-1][1] += 1
        else:
            runs.append([count, 1])
    return " ".join(f"{count}*{times}" if times > 1 else str(count) for count, times in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", default="", help="only models whose name holds this")
    parser.add_argument("--all", action="store_true", help="every release and precision, not one of each sizes")
    parser.add_argument("--moves", action="store_true")
    options = parser.parse_args()
    seen, worse, compared = set(), 0, 0
    for recipe in asked([options.program, "list", "recipes"])["recipes"]:
        flags = shlex.split(recipe["flags"])
        if "--stage-layers" not in flags or options.model not in recipe["model"]:
            continue
        name = recipe["recipe"] + "@" + recipe["releases"][-1]
        hand = asked([options.program, "estimate", "--recipe", name])
        if hand is None:
            print(f"{name}: refused")
            continue
        strategy = hand["strategy"]
        more = []  # what Megatron-LM's launcher needs with moments of fewer bits, and recipes leave out
        if strategy["exp_avg_dtype"] != "fp32" and strategy["main_params_dtype"] == "fp32":
            more = ["--main-params-dtype", "remainder"]
            hand = asked([options.program, "estimate", "--recipe", name, *more])
        sizes = (recipe["model"], recipe["system"], *fixed(strategy), *strategy["stage_layers"])
        if not options.all and sizes in seen:
            continue
        seen.add(sizes)
        seconds, verdict, layers = answered(hand)
        plan = asked([options.program, "plan", "--recipe", name, *fixed(strategy), *more])
        plans = plan["plans"] if plan else []
        if not plans:
            print(f"{name}: {short(layers)}: {seconds:.3f} s {verdict}; no plan")
            worse += verdict != "does_not_fit"
            continue
        compared += 1
        best, fit, chosen = answered(plans[0])
        gap = best / seconds - 1
        lost = (VERDICTS.index(fit), gap) > (VERDICTS.index(verdict), NOISE)
        worse += lost
        text = f"{name}: {short(layers)}: {seconds:.3f} s {verdict}; {short(chosen)}: {best:.3f} s {fit}, {100 * gap:+.2f}%"
        if options.moves:
            faster = 0
            for other in moved(chosen):
                words = [options.program, "estimate", "--recipe", name, *more]
                reply = asked([*words, "--stage-layers", ",".join(map(str, other))])
                faster += reply is not None and answered(reply)[1] == fit and answered(reply)[0] < (1 - NOISE) * best
            text += f"; {faster} moves are faster"
        print(text + ("  WORSE" if lost else ""), flush=True)
    print(f"{worse} of {compared} worse than by hand")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
