#!/usr/bin/env python3
"""Lays configurations that experts published beside what a build of headroom plans for the same question.

usage: expert_plans.py PROGRAM [--systems N] [--model WORDS] [--recipe NAME@RELEASE]... [--no-runs] [--list]

The questions are recipes of the program (of each stack and model, those of N systems, in the newest release that
ships them; precisions take turns) and a few published runs. The expert's configuration is estimated, and plan is
asked for its model, system, stack, GPUs, batch, sequence and precision, with nothing else fixed. Prints for each
question the expert's time and verdict, the regret of taking it rather than the first plan (below 0, the expert is
faster), the place of its TP, CP, PP and EP, and of all its sizes, among the plans, what the first plan is and what
an engineer would trip over in it, then a summary. An expert that fits and is more than half a percent faster than
the first plan is a fault, unless the answer names a change that is as good. Exits with 1 if there is one.
"""

import argparse
import collections
import json
import shlex
import statistics
import subprocess
import sys
import time

FASTER = 0.995
VERDICTS = ["fits", "marginal", "does_not_fit"]
SYSTEM = "dgx-h100-80g"  # of recipes that name none
AXES = {"tensor_parallel": "TP", "context_parallel": "CP", "pipeline_parallel": "PP", "expert_parallel": "EP",
        "expert_tensor_parallel": "ETP", "virtual_pipeline": "VP", "shard_size": "HSDP"}
GROUPS = ["tensor_parallel", "context_parallel", "pipeline_parallel", "expert_parallel"]
SIZES = [*GROUPS, "expert_tensor_parallel", "virtual_pipeline", "micro_batch"]
RUNS = [  # name, question, strategy
    ("Llama 3 405B, 8192 GPUs (2407.21783)",
     "llama-3-405b --system dgx-h100-80g --software meta-2024 --devices 8192 --sequence 8192 --global-batch 2048",
     "-t 8 -p 16 -m 8 -d 64 -b 1 --sp --recompute none --stage-layers 0,1*126,0 --data-sharding zero2"),
    ("Llama 3 405B, 16384 GPUs (2407.21783)",
     "llama-3-405b --system dgx-h100-80g --software meta-2024 --devices 16384 --sequence 8192 --global-batch 2048",
     "-t 8 -p 16 -m 8 -d 128 -b 1 --sp --recompute none --stage-layers 0,1*126,0 --data-sharding zero2"),
    ("Llama 3 405B, 128k tokens (2407.21783)",
     "llama-3-405b --system dgx-h100-80g --software meta-2024 --devices 16384 --sequence 131072 --global-batch 128",
     "-t 8 -c 16 --cp-comm all_gather -p 16 -m 8 -d 8 -b 1 --sp --recompute none --stage-layers 0,1*126,0 --data-sharding zero2"),
    ("Llama 3 405B by torchtitan, 512 GPUs (2410.06511)",
     "llama-3-405b --system h100-96g --software torchtitan-2024 --devices 512 --sequence 8192 --global-batch 256 --precision fp8",
     "-t 8 -p 8 -m 2 -d 8 -b 4 --sp --schedule interleaved --recompute full --data-sharding zero3"),
    ("Nemotron-4 340B, 6144 GPUs (2402.16819)",
     "nemotron-4-340b --system dgx-h100-80g --software megatron-core-2025 --devices 6144 --sequence 4096 --global-batch 2304",
     "-t 8 -p 12 -m 8 -d 64 -b 1 --sp --recompute none --data-sharding zero1"),
    ("DeepSeek-V3, 2048 GPUs (2412.19437)",
     "deepseek-v3 --system h800 --software dualpipe-2025 --devices 2048 --sequence 4096 --global-batch 15360 --precision fp8_blockwise",
     "-p 16 -d 128 --expert-parallel 64 -b 1 --schedule dualpipe --recompute-ops mla_up_proj,layernorm,moe_act --data-sharding zero1"),
    ("MT-NLG 530B, 2240 GPUs (2201.11990)",
     "mt-nlg-530b --system dgx-a100-80g --software megatron-deepspeed-2022 --devices 2240 --sequence 2048 --global-batch 1920",
     "-t 8 -p 35 -d 8 -b 1 --recompute full --data-sharding zero1"),
    ("BLOOM 176B, 384 GPUs (2211.05100)",
     "gpt3-175b --set hidden=14336 --set heads=112 --set head_size=128 --set feedforward=57344 --set layers=70 "
     "--set vocabulary=250880 --system jean-zay-a100-80g --software megatron-deepspeed-2022 --devices 384 --sequence 2048 "
     "--global-batch 2048",
     "-t 4 -p 12 -d 8 -b 2 --recompute full --stage-layers 5,6*10,5 --data-sharding zero1"),
    ("GPT-3 175B of MLPerf 3.0, 512 GPUs",
     "gpt3-175b --system dgx-h100-80g --software nemo-2025 --devices 512 --sequence 2048 --global-batch 2048 --precision fp8_delayed",
     "-t 4 -p 8 -m 12 -d 16 -b 1 --sp --recompute none --data-sharding zero1"),
    ("SC21 530B, 2520 GPUs (2104.04473)",
     "sc21-529.6b --system dgx-a100-80g --software megatron-2021 --devices 2520 --sequence 2048 --global-batch 2520",
     "-t 8 -p 35 -m 3 -d 9 -b 1 --recompute full"),
    ("SC21 145B, 1536 GPUs (2104.04473)",
     "sc21-145.6b --system dgx-a100-80g --software megatron-2021 --devices 1536 --sequence 2048 --global-batch 2304",
     "-t 8 -p 8 -m 2 -d 24 -b 2 --recompute full"),
    ("K22 1T, 512 GPUs (2205.05198)",
     "gpt-1t --system dgx-a100-80g --software megatron-2022 --devices 512 --sequence 2048 --global-batch 512",
     "-t 8 -p 64 -d 1 -b 1 --sp --recompute selective"),
    ("Mixtral 8x22B folded, 128 GPUs (2504.14960)",
     "mixtral-8x22b --system dgx-h100-80g --software megatron-core-2025 --devices 128 --sequence 4096 --global-batch 256",
     "-t 2 -p 8 -m 7 -d 8 --expert-parallel 8 --expert-tensor-parallel 1 -b 1 --sp --recompute none --data-sharding zero1"),
    ("Llama 2 7B by fms-fsdp, 128 GPUs",
     "llama-2-7b --system dgx-a100-80g --software fms-fsdp-2024 --devices 128 --sequence 4096 --global-batch 256",
     "-d 128 -b 2 --recompute none --data-sharding zero3"),
    ("Llama 3 70B on MI325X, 64 GPUs",
     "llama-3-70b --system mi325x --software torchtitan-2025 --devices 64 --sequence 8192 --global-batch 256 --precision fp8",
     "-d 64 -b 4 --recompute full --recompute-layers 72 --data-sharding zero3"),
]


def asked(words, why=None):
    """Returns the JSON answer of a command, or nothing if it has none; appends why."""
    run = subprocess.run([*words, "--format", "json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode in (0, 3) and run.stdout:
        return json.loads(run.stdout)
    if why is not None:
        why.append(" ".join(run.stderr.split())[:160])
    return None


def question_of(recipe):
    return recipe["recipe"] + "@" + recipe["releases"][-1]


def chosen(recipes, count):
    """Returns recipes: of each stack and model, one for each of some systems, with precisions in turn."""
    newest = {(recipe["family"], recipe["recipe"]): recipe for recipe in recipes}  # releases ascend
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for recipe in newest.values():
        groups[recipe["family"], recipe["model"]][recipe.get("system", "")].append(recipe)
    picked = []
    for systems in groups.values():
        names = sorted(systems)
        step = max(len(names) / count, 1)
        for index in range(min(count, len(names))):
            # the start turns, so that models of as many systems do not all take the same ones
            of_system = systems[names[int((len(picked) + index * step) % len(names))]]
            last = max(recipe["releases"][-1] for recipe in of_system)
            shipped = [recipe for recipe in of_system if recipe["releases"][-1] == last]
            picked.append(shipped[len(picked) % len(shipped)])
    return list({question_of(recipe): recipe for recipe in picked}.values())


def layout(reply):
    """Returns whether every stage holds as many layers."""
    return reply["layout"]["kind"] == "even" or len(set(reply["layout"]["stage_layers"])) == 1


def size(strategy, name):
    return max(strategy[name], 1)


def axes(strategy):
    return {short for name, short in AXES.items() if size(strategy, name) > 1}


def text_of(strategy, reply):
    """Returns sizes and recomputation as text: TP 4 PP 2 VP 4 CP 2 DP 4 MBS 1, none."""
    shown = ["tensor_parallel", "pipeline_parallel", "virtual_pipeline", "context_parallel", "expert_parallel", "expert_tensor_parallel"]
    parts = [f"{AXES[name]} {strategy[name]}" for name in shown if size(strategy, name) > 1]
    parts += [f"DP {strategy['data_parallel']}", f"MBS {strategy['micro_batch']}"]
    if strategy["data_sharding"] not in ("zero1", "none"):
        parts.append(strategy["data_sharding"])
    if size(strategy, "shard_size") > 1:
        parts.append(f"HSDP {strategy['shard_size']}")
    recompute = strategy["recompute"]
    policy = ",".join(recompute["ops"]) if recompute["policy"] == "ops" else recompute["policy"]
    if policy != "none":
        parts.append(policy + (f" of {recompute['layers']} layers" if recompute["layers"] else ""))
    if strategy["expert_parallel"] > 1 and strategy["moe_dispatcher"] != "alltoall":
        parts.append(strategy["moe_dispatcher"])
    if strategy["schedule"] not in ("1f1b", "interleaved"):
        parts.append(strategy["schedule"])
    if reply and not layout(reply):
        parts.append("uneven")
    return " ".join(parts)


def place(plans, own, names):
    """Returns the place, from 1, of the first plan with as many of each name, or 0."""
    same = [index for index, plan in enumerate(plans, 1) if all(size(plan["strategy"], name) == size(own, name) for name in names)]
    return same[0] if same else 0


def drawbacks(plan, own, per_node):
    """Returns what an engineer would edit or ask about in the first plan, beside the expert's strategy."""
    strategy, found = plan["strategy"], []
    if not layout(plan):
        found.append("uneven layout")
    more = sorted(axes(strategy) - axes(own))
    if len(axes(strategy)) > len(axes(own)):
        found.append("more axes: " + ",".join(more))
    elif more:
        found.append("other axes: " + ",".join(more))
    if strategy["tensor_parallel"] > per_node:
        found.append("TP between nodes")
    if size(strategy, "virtual_pipeline") > 2 * size(own, "virtual_pipeline") and strategy["virtual_pipeline"] > 8:
        found.append(f"VP {strategy['virtual_pipeline']}")
    if strategy["micro_batch"] & (strategy["micro_batch"] - 1):
        found.append(f"MBS {strategy['micro_batch']}")
    recompute = strategy["recompute"]
    if len(recompute["ops"]) > 2:
        found.append(f"recomputes {len(recompute['ops'])} modules")
    if recompute["layers"]:
        found.append(f"recomputes {recompute['layers']} layers")
    if strategy["data_sharding"] != own["data_sharding"]:
        found.append(f"{strategy['data_sharding']} for {own['data_sharding']}")
    if strategy["schedule"] not in ("1f1b", "interleaved", own["schedule"]):
        found.append(strategy["schedule"])
    if any(warning["code"] == "no_launcher_flag" for warning in plan["warnings"]):
        found.append("no launcher flag")
    return found


def announced(reply):
    """Yields the times of other strategies that an answer names."""
    one = reply.get("choice", {}).get("fastest")
    for other in [*reply.get("left_out", []), *([one] if one else []), reply.get("faster_but_marginal")]:
        if other:
            yield other["iteration_seconds"], other.get("verdict", "fits")


class Result:
    """What the expert and the program say about one question."""

    def __init__(self, program, name, question, strategy):
        self.name, self.words = name, {"estimate": [*question, *strategy], "plan": question}
        why = []
        start = time.monotonic()
        self.expert = asked([program, "estimate", *question, *strategy, "--no-suggestions"], why)
        self.more = []  # what Megatron-LM's launcher needs with moments of fewer bits, and recipes leave out
        own = self.expert["strategy"] if self.expert else None
        if own and own["exp_avg_dtype"] != "fp32" and own["main_params_dtype"] == "fp32":
            self.more = ["--main-params-dtype", "remainder"]
            question = self.words["plan"] = [*question, *self.more]
            self.words["estimate"] = [*question, *strategy]
            self.expert = asked([program, "estimate", *question, *strategy, "--no-suggestions"], why)
        self.reply = asked([program, "plan", *question], why)
        self.elapsed = time.monotonic() - start
        self.why = "; ".join(why)
        self.plans = self.reply["plans"] if self.reply else []

    def command(self, verb):
        return "headroom " + shlex.join([verb, *self.words[verb]])

    def compare(self):
        own, first = self.expert["strategy"], self.plans[0]
        self.seconds, self.verdict = self.expert["time"]["iteration_seconds"], self.expert["memory"]["verdict"]
        self.first, self.first_verdict = first["time"]["iteration_seconds"], first["memory"]["verdict"]
        fastest = self.reply.get("choice", {}).get("fastest")
        self.fastest = fastest["iteration_seconds"] if fastest else self.first
        self.regret = self.seconds / self.first - 1
        self.place, self.exact_place = place(self.plans, own, GROUPS), place(self.plans, own, SIZES)
        self.even, self.few = layout(first), len(axes(first["strategy"])) <= len(axes(own))
        self.odd = drawbacks(first, own, self.reply["system"]["devices_per_node"])
        fits = VERDICTS.index(self.verdict) <= VERDICTS.index(self.first_verdict)
        self.beaten = fits and self.seconds < FASTER * self.first
        marginal = self.verdict == "marginal"
        named = any(FASTER * other <= self.seconds and (marginal or verdict == "fits") for other, verdict in announced(self.reply))
        launched = not any(warning["code"] == "no_launcher_flag" for warning in self.expert["warnings"])
        self.fault = self.beaten and not named and launched

    def print(self):
        own, first = self.expert["strategy"], self.plans[0]
        print(f"{self.name}  ({self.elapsed:.1f} s)")
        print(f"  expert {self.seconds:9.3f} s {self.verdict:12} {text_of(own, self.expert)}")
        gap = f", fastest {self.fastest:.3f} s" if self.fastest < self.first else ""
        print(f"  first  {self.first:9.3f} s {self.first_verdict:12} {text_of(first['strategy'], first)}{gap}")
        where = f"place of TP, CP, PP, EP {self.place or 'none'}, of all sizes {self.exact_place or 'none'}"
        flags = f"{'even' if self.even else 'uneven'}, {'no more axes' if self.few else 'more axes'}"
        print(f"  regret {100 * self.regret:+.1f}%; {where}; first is {flags}" + (": " + "; ".join(self.odd) if self.odd else ""))
        if self.beaten:
            print("  BEATEN" if self.fault else "  beaten, but named or not launchable")
        sys.stdout.flush()


def share(count, total):
    return f"{count} of {total}"


def summarize(results, refused):
    legal = [one for one in results if one.expert]
    compared = [one for one in legal if one.plans]
    fit = [one for one in compared if one.verdict == "fits"]
    faults = [one for one in compared if one.fault]
    print(f"\n{len(results)} questions; legal {len(legal)}; compared {len(compared)}")
    for verdict in VERDICTS:
        print(f"  expert {verdict}: {sum(one.verdict == verdict for one in compared)}")
    if fit:
        regrets = sorted(one.regret for one in fit)
        low, high = regrets[len(regrets) // 10], regrets[len(regrets) * 9 // 10]
        print(f"regret of experts that fit: median {100 * statistics.median(regrets):+.1f}%, 10% to 90% {100 * low:+.1f}% to {100 * high:+.1f}%")
        print("of these, by at most 5%: " + share(sum(regret <= 0.05 for regret in regrets), len(fit)))
        print("expert's TP, CP, PP, EP in the first three plans: " + share(sum(0 < one.place <= 3 for one in fit), len(fit)))
        print("  in the first ten: " + share(sum(0 < one.place <= 10 for one in fit), len(fit)))
    print("first plan even: " + share(sum(one.even for one in compared), len(compared)))
    print("first plan with no more axes: " + share(sum(one.few for one in compared), len(compared)))
    print("first plan as it is (even, no more axes, nothing odd): " + share(sum(not one.odd for one in compared), len(compared)))
    print(f"first plan beaten by more than half a percent: {sum(one.beaten for one in compared)}, unnamed {len(faults)}")
    print(f"asked with --main-params-dtype remainder: {sum(bool(one.more) for one in results)}")
    for one in faults:
        print(f"  {100 * one.regret:+.1f}% {one.name}\n    {one.command('estimate')}\n    {one.command('plan')}")
    for one in refused:
        print(f"refused: {one.name}: {one.why}")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--systems", type=int, default=2, help="systems of each stack and model (2)")
    parser.add_argument("--model", default="", help="only models whose name holds this")
    parser.add_argument("--recipe", action="append", default=[], help="these recipes alone")
    parser.add_argument("--no-runs", action="store_true", help="recipes alone")
    parser.add_argument("--list", action="store_true", help="print the questions, and ask none")
    options = parser.parse_args()
    questions = [(name, ["--recipe", name], []) for name in options.recipe]
    if not options.recipe:
        listed = asked([options.program, "list", "recipes"])["recipes"]
        for recipe in chosen([one for one in listed if options.model in one["model"]], options.systems):
            name = question_of(recipe)
            questions.append((name, ["--recipe", name, *([] if "system" in recipe else ["--system", SYSTEM])], []))
    if not options.recipe and not options.no_runs:
        questions += [(name, shlex.split(asks), shlex.split(how)) for name, asks, how in RUNS if options.model in asks]
    if options.list:
        print("\n".join(name for name, _, _ in questions))
        return 0
    results, refused = [], []
    for name, question, strategy in questions:
        one = Result(options.program, name, question, strategy)
        results.append(one)
        if one.expert and one.plans:
            one.compare()
            one.print()
        else:
            refused.append(one)
            print(f"{name}: {'no plan' if one.expert else 'refused'}: {one.why}", flush=True)
    return summarize(results, refused)


if __name__ == "__main__":
    sys.exit(main())
