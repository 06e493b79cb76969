#!/usr/bin/env python3
"""Runs the commands that documents show, and compares what they print with what the documents say.

usage: run_console_blocks.py [--update] [--bin DIR] FILE...

In a Markdown file, blocks fenced with ```console are run; a *.console file is one such block.

    $ headroom list models        a command, run by bash in the current folder, with DIR first on PATH;
    gpt3-175b                     a trailing backslash continues it on the next line
    ...                           stands for any number of lines, none included
    [exit 2]                      the exit status, stated unless it is 0

$SCRATCH names a folder that lasts for the file's commands.

What precedes the first command of a block is a comment. Output is compared exactly but for empty lines at
its end; stderr comes after stdout. Tables and texts for reading must not be wider than a usual screen. --update writes what the commands print into the files, where it differs.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND_SECONDS = 300
WIDEST = 100  # columns of a line for reading


def console_blocks(lines, whole_file):
    """Yields (first, end) of each console block, as positions in lines, fences left out."""
    if whole_file:
        yield 0, len(lines)
        return
    first = fence = None
    for position, line in enumerate(lines):
        opening = re.match(r"\s*(`{3,})\s*(\w*)", line)
        if fence is None and opening:
            fence, first = opening[1], position + 1 if opening[2] == "console" else None
        elif fence is not None and line.strip() == fence:
            if first is not None:
                yield first, position
            fence = None


def commands(lines, first, end):
    """Yields (position of the command, of its output, end of its output)."""
    position = first
    while position < end:
        if not lines[position].startswith("$ "):
            position += 1
            continue
        start = position
        while lines[position].endswith("\\") and position + 1 < end:
            position += 1
        output = position = position + 1
        while position < end and not lines[position].startswith("$ "):
            position += 1
        stop = position
        while stop > output and not lines[stop - 1].strip():
            stop -= 1
        yield start, output, stop


def run(command, bin_dir, scratch):
    """What the command prints, as lines."""
    path = os.environ["PATH"]
    environment = {**{name: value for name, value in os.environ.items() if name != "COLUMNS"},
                   "PATH": f"{bin_dir}{os.pathsep}{path}" if bin_dir else path, "SCRATCH": scratch,
                   "LC_ALL": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(["bash", "-c", command], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines + [f"[exit {done.returncode}]"] * (done.returncode != 0)


def too_wide(command, lines):
    """The lines of a table or a text for reading that no usual screen shows whole."""
    if re.search(r"--format[ =](json|csv|markdown)|--(csv|json|markdown|columns|shard)\b|\b(cat|cmp|grep|python3|sort)\b", command):
        return []
    return [line for line in lines if len(line) > WIDEST and not line.startswith("headroom: ")]


def matches(expected, actual):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def check_file(path, bin_dir, update, scratch):
    """Runs the commands of a file. Returns how many there are and how many printed something else."""
    lines = path.read_text().splitlines()
    found = [command for block in console_blocks(lines, path.suffix == ".console")
             for command in commands(lines, *block)]
    wrong = []
    for start, output, end in found:
        expected = lines[output:end]
        actual = run("\n".join(lines[start:output])[2:], bin_dir, scratch)
        wide = too_wide("\n".join(lines[start:output]), actual)
        for line in wide:
            print(f"{path}:{start + 1}: prints a line of more than {WIDEST} columns: {line}")
        if wide or not matches(expected, actual):
            wrong.append((output, end, actual))
            print(f"{path}:{start + 1}: {lines[start]}")
            print("\n".join(difflib.unified_diff(expected, actual, "expected", "actual", lineterm="", n=2)))
    if update and wrong:
        for output, end, actual in reversed(wrong):  # from the end, so that positions stay true
            lines[output:end] = actual
        path.write_text("\n".join(lines) + "\n")
    return len(found), len(wrong)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--bin", type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    bin_dir = options.bin and options.bin.resolve()
    failed = False
    for path in options.files:
        with tempfile.TemporaryDirectory() as scratch:
            count, wrong = check_file(path, bin_dir, options.update, scratch)
        print(f"{path}: {count} commands, {wrong} {'updated' if options.update else 'wrong'}")
        empty = count == 0 and path.suffix == ".console"
        failed |= empty or (wrong > 0 and not options.update)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
