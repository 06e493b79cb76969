#!/usr/bin/env python3
"""Each field of a strategy and a workload through the program and back: its flag sets the member of the JSON output
that the table names, whatever the flag is called; a sweep over the field finds what the flag does; and the flags that
the program prints of the strategy make the same strategy again.

usage: field_round_trips.py --bin DIR
"""
import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

MODEL = "gpt2-small"
PIPELINE = ["--pipeline-parallel", "2"]
# For each field a value that it does not have by itself, and what it takes beside it to be legal.
EXAMPLES = {
    "tensor_parallel": ("4", []),
    "pipeline_parallel": ("3", []),
    "virtual_pipeline": ("3", PIPELINE),
    "context_parallel": ("2", []),
    "cp_comm": ("a2a", ["--context-parallel", "2"]),
    "hierarchical_cp_sizes": ("2,1", ["--context-parallel", "2", "--cp-comm", "a2a_p2p"]),
    "data_parallel": ("4", []),
    "micro_batch": ("2", []),
    "global_batch": ("48", []),
    "sequence": ("512", []),
    "schedule": ("gpipe", PIPELINE),
    "stage_layers": ("5,7", PIPELINE),
    "microbatch_group_size": ("3", [*PIPELINE, "--virtual-pipeline", "2"]),
    "sequence_parallel": ("yes", ["--tensor-parallel", "2"]),
    "split_hidden": ("yes", ["--tensor-parallel", "2", "--sequence-parallel"]),
    "recompute": ("full", []),
    "recompute_ops": ("norm_1,activation", []),
    "recompute_layers": ("2", ["--recompute", "full"]),
    "recompute_method": ("uniform", ["--recompute", "full", "--recompute-layers", "2"]),
    "recompute_window": ("yes", ["--recompute", "full", *PIPELINE]),
    "distribute_saved_activations": ("yes", ["--recompute", "full", "--tensor-parallel", "2"]),
    "save_gathered_input": ("yes", ["--sequence-parallel", "--tensor-parallel", "2"]),
    "keep_pipeline_outputs": ("yes", PIPELINE),
    "data_sharding": ("zero3", ["--data-parallel", "2", "--software", "nemo-2025"]),
    "shard_size": ("2", ["--data-parallel", "4", "--data-sharding", "zero1"]),
    "no_reshard_after_forward": ("yes", ["--data-parallel", "2", "--data-sharding", "zero3", "--software", "nemo-2025"]),
    "sync_each_batch": ("yes", ["--data-parallel", "2", "--data-sharding", "zero3", "--software", "hf-trainer"]),
    "gradient_dtype": ("half", []),
    "precision": ("fp8", ["--system", "dgx-h100-80g"]),
    "fp8_param_gather": ("yes", ["--system", "dgx-h100-80g", "--precision", "fp8", "--distributed-optimizer"]),
    "bf16_layers_at_start": ("2", ["--system", "dgx-h100-80g", "--precision", "fp8"]),
    "bf16_layers_at_end": ("3", ["--system", "dgx-h100-80g", "--precision", "fp8"]),
    "fp8_attention": ("yes", ["--system", "dgx-h100-80g", "--precision", "fp8"]),
    "fp8_activation_input": ("yes", []),
    "fp8_output_layer": ("yes", ["--system", "dgx-b200-180g", "--precision", "mxfp8"]),
    "bf16_modules": ("attention", ["--system", "dgx-h100-80g", "--precision", "fp8"]),
    "tp_only_amax_red": ("yes", ["--system", "dgx-h100-80g", "--precision", "fp8_delayed"]),
    "optimizer": ("muon", []),
    "main_params_dtype": ("none", []),
    "exp_avg_dtype": ("int8", []),
    "exp_avg_sq_dtype": ("bf16", []),
    "step_in_backward": ("yes", ["--software", "torchtune", "--data-parallel", "96", "--data-sharding", "zero3"]),
    "optimizer_offload_fraction": ("0.5", []),
    "offload_parameters": ("yes", ["--optimizer-offload-fraction", "1", "--data-sharding", "zero3", "--data-parallel", "4", "--software", "deepspeed-2025"]),
    "offload_modules": ("core_attn,attn_proj", []),
    "offload_layers": ("2", ["--data-parallel", "4"]),
    "overlap_cpu_optimizer": ("yes", ["--optimizer-offload-fraction", "0.5"]),
    "lora_rank": ("16", []),
    "lora_targets": ("linear_qkv,linear_fc2", ["--lora-rank", "8"]),
    "lora_dropout": ("0.1", ["--lora-rank", "8"]),
    "base_dtype": ("nf4", ["--lora-rank", "8"]),
    "expert_parallel": ("4", ["--data-parallel", "4"]),
    "expert_tensor_parallel": ("2", ["--data-parallel", "4"]),
    "moe_dispatcher": ("hybridep", ["--data-parallel", "4", "--expert-parallel", "4"]),
    "moe_router_padding": ("yes", ["--system", "dgx-h100-80g", "--precision", "fp8"]),
    "moe_pad_to_capacity": ("yes", ["--set", "experts.capacity_factor=1.5"]),
    "moe_imbalance": ("1.5", []),
    "moe_balancing": ("loss_free", []),
    "reference_model": ("yes", []),
    "overlap_expert_all_to_all": ("yes", ["--data-parallel", "4", "--expert-parallel", "4"]),
}
# Fields of models with experts.
MODELS = {name: "mixtral-8x7b" for name in ("expert_parallel", "expert_tensor_parallel", "moe_dispatcher", "moe_router_padding", "moe_pad_to_capacity", "moe_imbalance", "moe_balancing", "overlap_expert_all_to_all")}
# And of models with flash attention.
MODELS.update({name: "llama-3-8b" for name in ("context_parallel", "cp_comm", "hierarchical_cp_sizes", "fp8_attention",
                                               "fp8_output_layer", "fp8_activation_input")})
# No frontier has strategies with these, nor has a search that is not asked for them.
NEVER_PRINTED = {"recompute_method", "distribute_saved_activations", "overlap_expert_all_to_all"}


class Program:
    def __init__(self, path):
        self.path = path

    def report(self, command, *arguments):
        call = [str(self.path), command, *arguments, "--format", "json"]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise SystemExit(f"{shlex.join(call[1:])}: {done.stderr}")
        return json.loads(done.stdout)


def member(report, pointer):
    for key in pointer.strip("/").split("/"):
        report = report[key]
    return report


def text_of(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def workload_flags(report):
    reference = "--reference-model " if report["workload"]["reference_model"] else ""
    return reference + "".join(f"--{key.replace('_', '-')}={report['workload'][key]} "
                               for key in ("global_batch", "sequence", "moe_imbalance", "moe_balancing"))


def flag(name, value):
    return [name] if value == "yes" else [name, value]


def check_field(program, field, mistakes):
    value, beside = EXAMPLES[field["name"]]
    model = MODELS.get(field["name"], MODEL)
    if "global_batch" != field["name"]:
        beside = [*beside, "--global-batch", "96"]

    def wrong(what):
        mistakes.append(f"{field['name']}: {what}")

    arguments = [model, *beside, *flag(field["flag"], value)]
    report = program.report("estimate", *arguments)
    if text_of(member(report, field["json"])) != value:
        wrong(f"{field['flag']} {value} makes {field['json']} {member(report, field['json'])}")
    if text_of(member(program.report("estimate", model, *beside), field["json"])) == value:
        wrong("its example is what it is without the flag")
    for alias in field["aliases"]:
        if program.report("estimate", model, *beside, *flag(alias, value)) != report:
            wrong(f"{alias} is another flag than {field['flag']}")

    values = f"{value};{value}" if "," in value else value  # of lists semicolons part the values
    row = program.report("sweep", model, *beside, "--vary", f"{field['name']}={values}")["rows"][0]
    found = (row.get("peak_bytes"), row.get("iteration_seconds"))
    if found != (report["memory"]["peak_bytes"], report["time"]["iteration_seconds"]):
        wrong(f"a sweep finds {row}")

    if field["name"] in NEVER_PRINTED:
        return
    told = 0
    for flags, found in printed(program, field, report, arguments):
        again = program.report("estimate", model, *system_or_model_of(beside), *shlex.split(flags))
        told += text_of(member(again, field["json"])) != field["default"]
        if not found.items() <= summary(again).items():
            wrong(f"'{flags}' is printed for {found}, and makes {summary(again)}")
        if told == 3:
            break
    if told == 0:
        wrong("nothing that is printed has it")


def system_or_model_of(arguments):
    return arguments[:2] if arguments[:1] in (["--system"], ["--set"]) else []


def summary(report):
    return {"strategy": report["strategy"], "workload": report["workload"],
            "peak_bytes": report["memory"]["peak_bytes"], "iteration_seconds": report["time"]["iteration_seconds"]}


def printed(program, field, report, arguments):
    """Flags that the program prints of strategies with the field, and what it says of each."""
    searches = {
        "global_batch": ["--devices", "1", "--global-batch", "48"],
        "sequence": ["--devices", "1", "--global-batch", "96", "--sequence", "512"],
        "recompute_window": ["--devices", "2", "--global-batch", "96", "--recompute", "full", "--recompute-window",
                             "--no-recompute-layers", "-p", "2", "-m", "1"],
    }
    if field["name"] in searches:
        plans = program.report("plan", MODEL, *searches[field["name"]])["plans"]
        return [(plan["command"].split(MODEL, 1)[1], summary(plan)) for plan in plans]
    if field["name"].startswith("offload_"):  # nor such that offload what passes need
        plans = program.report("plan", MODEL, "--devices", "4", "-t", "1", "-p", "1",
                               *arguments[1:])["plans"]
        return [(plan["command"].split(MODEL, 1)[1], summary(plan)) for plan in plans]
    # No frontier has strategies whose weights are sharded.
    for stack, sequences, asked in (("nemo-2025", "1", ["--no-reshard-after-forward", "yes"]),
                                    ("hf-trainer", "1", ["--sync-each-batch", "yes"]),
                                    ("torchtune", "24", ["--step-in-backward"])):  # of one microbatch
        if stack not in arguments:
            continue
        pinned = ["--devices", "4", "--global-batch", "96", "-t", "1", "-p", "1", "-b", sequences, "--software", stack,
                  "--data-sharding", "zero3", *asked]
        plans = program.report("plan", MODEL, *pinned)["plans"]
        return [(plan["command"].split(MODEL, 1)[1], summary(plan)) for plan in plans]
    if not field["name"].startswith("recompute"):
        # A flash kernel has fewer ops to choose from, which takes a third of the time.
        kernel = [] if "--attention" in arguments else ["--attention", "flash"]
        policies = program.report("frontier", *arguments, *kernel)["policies"]
        return [(workload_flags(report) + policies[0]["flags"], {"strategy": report["strategy"]})]
    frontier = program.report("frontier", MODEL, "--global-batch", "96")
    return [(workload_flags(report) + point["flags"], {key: point[key] for key in ("peak_bytes", "iteration_seconds")})
            for point in frontier["policies"] + frontier["points"]]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    program = Program((parser.parse_args().bin / "headroom").resolve())
    fields = program.report("list", "fields")["fields"]
    names = [field["name"] for field in fields]
    mistakes = [f"{name}: has no example here" for name in names if name not in EXAMPLES]
    mistakes += [f"{name}: is no field" for name in EXAMPLES if name not in names]
    for field in fields:
        if field["name"] in EXAMPLES:
            check_field(program, field, mistakes)
    print("\n".join(mistakes) or f"{len(fields)} fields")
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
