#!/usr/bin/env python3
"""Every command, and every thread of one, runs in 128 KB of stack, as a thread or a browser may have.

Sanitizers and unoptimised code have larger frames, so that a program with a sanitizer is skipped.
"""
import argparse
import resource
import subprocess
import sys
import unittest
from pathlib import Path

from sanitized import has_sanitizer

SKIPPED = 77
STACK = 128 * 1024
ROOT = Path(__file__).resolve().parents[2]
H100 = ("--system", "dgx-h100-80g")
PARALLEL = ("-t", "8", "-p", "8", "--global-batch", "64", "--sp")
COMMANDS = [
    ("estimate", "gpt3-175b", *PARALLEL),
    ("estimate", "deepseek-v3", *H100, "-p", "8", "--expert-parallel", "8", "-d", "8", "--global-batch", "512", "--precision", "fp8"),
    ("estimate", "nemotron-h-56b", *H100, "-t", "8", "-d", "8", "--global-batch", "64", "--sp", "--timeline"),
    ("estimate", "llama-3-8b", *H100, "-p", "4", "-m", "2", "--schedule", "zero-bubble-v", "--software", "zero-bubble-2023"),
    ("estimate", "llama-3-8b", *H100, "-d", "8", "--lora-rank", "8", "--base-dtype", "nf4"),
    ("explain", "deepseek-v3"),
    ("explain", "nemotron-3-super-120b-a12b", "--precision", "fp8", *H100),
    ("compare", "gpt3-175b", *PARALLEL, "--to", "--recompute full"),
    ("frontier", "qwen3-30b-a3b", *H100, "--expert-parallel", "8", "-d", "8", "--global-batch", "64"),
    ("plan", "gpt3-175b", "--devices", "64", "--global-batch", "64"),
    ("plan", "mixtral-8x7b", *H100, "--devices", "64", "--global-batch", "64", "--launch", "--threads", "4"),
    ("plan", "llama-3-8b", *H100, "--devices", "8", "--global-batch", "64", "--why", "-t 8"),
    ("plan", "llama-3-8b", *H100, "--global-batch", "64", "--find", "min-devices"),
    ("sweep", "gpt3-175b", *PARALLEL, "--vary", "sequence=1024:8192:x2", "--threads", "2"),
    ("sweep", "plan", "llama-3-8b", *H100, "--devices", "8", "--vary", "global_batch=64,128"),
    ("trace", "gpt3-175b", *PARALLEL),
    ("validate",),
    ("validate", "--runs", ROOT / "examples/my-runs.json"),
    ("calibrate", "--from-runs", ROOT / "examples/cluster-runs.json", "--base", "dgx-a100-80g"),
    ("check", ROOT / "models/deepseek-v3.json", ROOT / "presets/systems/dgx-h100-80g.json"),
    ("list", "models"),
    ("system", "new", "--from", "dgx-h100-80g", "--set", "memory=96 GiB"),
    ("man", "plan"),
    ("completions", "bash"),
]


class SmallStack(unittest.TestCase):
    program = ""

    def test_commands(self):
        for arguments in COMMANDS:
            with self.subTest(arguments=arguments):
                done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK)))
                self.assertIn(done.returncode, (0, 3), done.stderr)  # it does not fit: an answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True)
    program = parser.parse_args().bin / "headroom"
    SmallStack.program = str(program)
    if has_sanitizer(program):
        print("skipped: the program has a sanitizer")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
