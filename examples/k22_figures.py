#!/usr/bin/env python3
"""K22 figures 1 and 7 as tables: do the four models of the paper fit an 80 GB A100, and what part of the baseline's
activations does each technique leave?

    examples/k22_figures.py            uses `headroom` from PATH
"""
import json
import subprocess

# K22 table 3, on t = 8: model, pipeline ranks, interleaving, microbatch, batch.
MODELS = [
    ("gpt-22b", 1, 1, 4, 4),
    ("gpt3-175b", 8, 3, 1, 64),
    ("mt-nlg-530b", 35, 3, 1, 280),
    ("gpt-1t", 64, 1, 1, 512),
]

TECHNIQUES = {
    "baseline": [],
    "sequence parallel": ["--sp"],
    "selective": ["--recompute", "selective"],
    "both": ["--sp", "--recompute", "selective"],
    "full": ["--recompute", "full"],
}


def headroom(command, model, flags):
    name, pipeline, virtual_pipeline, micro_batch, batch = model
    call = ["headroom", command, name, "-t", "8", "-p", str(pipeline), "-m", str(virtual_pipeline), "-b", str(micro_batch),
            "--global-batch", str(batch), "--format", "json", *flags]
    result = subprocess.run(call, capture_output=True, text=True)
    if result.returncode not in (0, 3):
        raise SystemExit(result.stderr)
    return json.loads(result.stdout)


def first_rank_gib(model, flags):
    """Weights, gradients and optimizer state; activations. The paper's 16 bytes a parameter, reserves left out."""
    rank = headroom("estimate", model, ["--gradients", "half", *flags])["memory"]["ranks"][0]
    state = rank["weights_bytes"] + rank["gradients_bytes"] + rank["optimizer_bytes"]
    return state / 2**30, rank["activation_bytes"] / 2**30


def layer_bytes(model, flags):
    return headroom("explain", model, flags)["layer"]["stored_bytes"]


def main():
    print("Figure 1: GiB on the first rank, of 80")
    print(f"{'model':<12} {'state':>7} {'activations':>12} {'baseline':>9} {'both':>7}")
    for model in MODELS:
        state, activations = first_rank_gib(model, TECHNIQUES["baseline"])
        _, present = first_rank_gib(model, TECHNIQUES["both"])
        print(f"{model[0]:<12} {state:>7.1f} {activations:>12.1f} {state + activations:>9.1f} {state + present:>7.1f}")

    print("\nFigure 7: activations of a layer, % of the baseline")
    print(f"{'model':<12} " + " ".join(f"{name:>17}" for name in TECHNIQUES if name != "baseline"))
    for model in MODELS:
        baseline = layer_bytes(model, TECHNIQUES["baseline"])
        parts = [100 * layer_bytes(model, flags) / baseline for name, flags in TECHNIQUES.items() if name != "baseline"]
        print(f"{model[0]:<12} " + " ".join(f"{part:>17.0f}" for part in parts))
    print("The paper prints 9 for full recomputation of 530B and 1T: 2/21 is 9.52%, which it cuts off.")


if __name__ == "__main__":
    main()
