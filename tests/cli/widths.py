"""No line of a table or a text for readers is wider than the screen, and a wide screen hides nothing for want of room.

Widths come from COLUMNS, as a shell gives them.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = """
plan gpt3-175b --devices 64 --global-batch 64
plan llama-3-70b --devices 64 --system dgx-h100-80g,dgx-b200-180g --tokens 15T --price h100=2.50,b200=4.10 --fast
plan llama-3-8b --devices 8,16,32 --global-batch 128 --fast --tokens 1T --price-per-gpu-hour 2.50
plan llama-3-8b --devices 8 --global-batch 128:256:64 --fast
plan deepseek-v2-lite --devices 16 --system dgx-h100-80g --global-batch 256 --fast
plan gpt3-175b --devices 64 --global-batch 64 --fast --why '-t 8 -p 8 --recompute none'
plan gpt3-175b --devices 64 --global-batch 64 --fast --find max-sequence
plan llama-3-8b --devices 8 --global-batch 64 --fast --launch
plan llama-3-70b --devices 8 --global-batch 64 --fast -t 1
estimate gpt3-175b -t 8 -p 8 -m 3 --global-batch 64 --sp --recompute selective --timeline --peak -v
estimate gpt3-175b -t 8 -p 32 --global-batch 64 --sp --timeline --no-suggestions
estimate llama-3-70b -t 8 -p 4 --devices 64 --sp --tokens 15T --price-per-gpu-hour 2.5 --mtbf 50000h --checkpoint-time 30s --restart-time 10min
estimate deepseek-v3 -t 2 -p 16 --devices 1024 --expert-parallel 64 --sp --system dgx-h100-80g --peak
estimate llama-3-8b --devices 8 --zero 3 --system dgx-h100-80g --software torchtitan-2025 --launch
estimate gpt3-175b
compare gpt3-175b -t 8 -p 8 -m 3 --global-batch 64 --recompute full --to '--sp --recompute selective'
compare llama-3-70b -t 8 -p 4 --devices 64 --sp --to '--system dgx-b200-180g'
explain gpt3-175b -t 8 --sp --recompute selective
explain deepseek-v3 -t 4 --sp --expert-parallel 8 -d 2
explain nemotron-h-8b -t 2 --sp
explain llama-3-8b --precision fp8 --system dgx-b200-180g --detail exact
frontier gpt3-175b -t 8 -p 8 -m 3 --global-batch 64 --sp
frontier gpt-22b -t 8 -b 4 --global-batch 4 --sp --budget '40 GiB,60 GiB'
sweep gpt3-175b -t 8 -p 8 --sp --vary sequence=1024:16384:x2 --vary recompute=none,selective,full
sweep plan --vary model=llama-3-8b,llama-3-70b --vary devices=64,128 --global-batch 1024 --fast
sweep plan llama-3-70b --vary devices=512,1024 --tokens 15T --vary price_per_gpu_hour=2.50,4.10 --fast
sweep llama-3-8b --vary system=dgx-a100-80g,dgx-h100-80g --vary tensor_parallel=1,2,3 --devices 8
validate
validate --all
validate --runs examples/my-runs.json
validate --runs examples/cluster-runs.json --group-by gpu,model
validate --profile tests/fuzz/corpus/profile/step.json --system dgx-a100-80g
calibrate --profile tests/fuzz/corpus/profile/step.json --base dgx-a100-80g
calibrate --from-runs examples/cluster-runs.json
check examples/train_dense.sh
check examples/train_dense.sh --devices 24
check examples/axolotl-qlora.yaml --system dgx-h100-80g
list models
list systems
list software
list releases
list recipes
list sources
list fields
schema
"""

# Launches are files to copy, which no screen may break.
IS_FILE = "Launch "


def run(program, command, columns):
    """What a command prints on a screen, up to the files of a launch."""
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"}
    done = subprocess.run([program, *shlex.split(command)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    file = next((i for i, line in enumerate(lines) if line.startswith(IS_FILE)), len(lines))
    return lines[:file]


def asked_columns(lines):
    """The widths at which hidden columns would be shown."""
    text = " ".join(line.strip() for line in lines)
    return [int(columns) for columns in re.findall(r"Hidden columns: [^()]*(?:\([^()]*\)[^()]*)*\(--columns (\d+)\)", text)]


class Widths(unittest.TestCase):
    program = ""

    def test_no_line_is_wider_than_the_screen(self):
        asked = [(command, columns) for command in COMMANDS.split("\n") if command for columns in (80, 120)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (command, columns), lines in zip(asked, pool.map(lambda it: run(self.program, *it), asked)):
                with self.subTest(command=command, columns=columns):
                    self.assertGreater(len(lines), 0)
                    self.assertEqual([line for line in lines if len(line) > columns], [])
                    self.assertEqual([width for width in asked_columns(lines) if width <= columns], [])

    def test_what_is_hidden_is_shown_where_there_is_room(self):
        command = "sweep llama-3-8b --vary tensor_parallel=1,2 --devices 8"
        wanted = asked_columns(run(self.program, command, 80))
        self.assertEqual(len(wanted), 1)
        self.assertEqual(asked_columns(run(self.program, command, wanted[0])), [])

    def test_plans_stay_in_rows(self):
        for command in COMMANDS.split("\n"):
            if command.startswith("plan "):
                with self.subTest(command=command):
                    self.assertNotIn("#: 1", run(self.program, command, 80))

    def test_a_narrow_screen_turns_tables_on_their_side(self):
        lines = run(self.program, "list sources", 40)
        self.assertIn("source: bloom", lines)
        self.assertEqual([line for line in lines if len(line) > 40], [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    arguments = parser.parse_args()
    Widths.program = str(Path(arguments.bin).resolve() / "headroom")
    unittest.main(argv=sys.argv[:1])
