#!/usr/bin/env python3
"""The commands that `plan` prints give its plans: also of a launch file, whose own settings they take back, and with what
is no part of a strategy."""
import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 30 --hidden-size 2048 \\
  --ffn-hidden-size 8192 --num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 \\
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --vocab-size 32000 \\
  --micro-batch-size 1 --global-batch-size 64 --bf16 --use-distributed-optimizer --use-mcore-models \\
  --attention-dropout 0 --hidden-dropout 0 --tensor-model-parallel-size 4 --sequence-parallel \\
  --pipeline-model-parallel-size 2 --num-layer-list 14,16 --recompute-granularity full --recompute-method block \\
  --recompute-num-layers 3
"""


def answer(command):
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def seconds_of(reply):
    return reply["time"]["iteration_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, required=True, help="folder of the program")
    program = str(parser.parse_args().bin / "headroom")
    wrong = commands = 0
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "run.sh"
        script.write_text(SCRIPT)
        for question in (f"{script} --fast",
                         "llama-3-8b --devices 8 --global-batch 32 --software nemo-2025 --reference-model --fast"):
            code, text, errors = answer([program, "plan", *shlex.split(question), "--system", "dgx-h100-80g"])
            if code != 0:
                sys.exit(f"plan {question}: exit code {code}: {errors}")
            for plan in json.loads(text)["plans"][:6]:
                commands += 1
                code, text, errors = answer([program, *shlex.split(plan["command"])[1:]])
                same = code in (0, 3) and abs(seconds_of(json.loads(text)) / seconds_of(plan) - 1) < 1e-9
                if not same:
                    wrong += 1
                    print(f"not the plan: {plan['command']}\n{errors}")
    print(f"{commands} commands, {wrong} of them do not give their plan")
    sys.exit(1 if wrong or commands < 8 else 0)


if __name__ == "__main__":
    main()
