#!/usr/bin/env python3
"""What large questions take of memory: a GiB at the most, and what would take more is refused before it starts, by name.

Sanitizers take memory of their own, so that a program with one is skipped.

usage: memory_limits.py --bin DIR
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

from sanitized import has_sanitizer

SKIPPED = 77
# A command, the MiB that it may take, its exit codes, and what a message must have.
QUESTIONS = [
    # Tens of millions of mixes of two sets of ops, of which few thousand are not beaten.
    ("frontier qwen3-235b-a22b --system mi355x -d 8 --global-batch 256 --precision fp8_blockwise --detail exact", 512,
     (0, 3), ""),
    # 280 MB of text.
    ("trace gpt2-small -p 4 --global-batch 100000 -o /dev/null", 128, (0, 3), ""),
    ("trace gpt2-small -p 12 --global-batch 1000000 -o /dev/null", 64, (2,), "--global-batch: makes a trace of 24000000 steps"),
    ("estimate gpt2-small -p 8 --global-batch 100000 --timeline", 64, (2,), "--timeline: cannot draw 1600000 steps"),
    ("estimate gpt2-small --set layers=100000 -p 1000 -m 100", 64, (2,), "--virtual-pipeline: 100 on each of 1000 ranks"),
]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    program = (parser.parse_args().bin / "headroom").resolve()
    if has_sanitizer(program):
        print("skipped: the program has a sanitizer")
        sys.exit(SKIPPED)
    wrong = 0
    for question, mebibytes, codes, message in QUESTIONS:
        child = subprocess.Popen([program, *question.split()], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        taken = usage.ru_maxrss / 1024
        good = child.returncode in codes and message in said and taken <= mebibytes
        wrong += not good
        print(f"{'ok' if good else 'WRONG'}: {taken:.0f} MiB of {mebibytes}, exit code {child.returncode}: {question}"
              + (f": {said.strip()}" if not good else ""))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
