#!/usr/bin/env python3
"""Bad values in every place where a user can write one: whole commands end with exit code 0, 2 or 3 (4 of validate),
and a refusal names the field or the flag.

- Files: each leaf of each shipped file (models/, presets/ and examples/, and samples), with seven bad values, is read by
  `check`, many files a command. Models, systems and software that it accepts are evaluated by `estimate`. What is
  refused of them is asked once more as `--set`, `--set-system` or `--set-software`.
- Flags: each flag of each command that takes a value, and what stands alone on its line, with seven bad values.

--all tries every leaf of every file and every flag of every command. Without it, the same field of many files, and the
same flag of many commands, is tried in one of them, another for each value. Of a program with a sanitizer, which takes
ten minutes for these, one pair in sixteen is tried.

usage: bad_values.py --bin DIR [--all]
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from sanitized import has_sanitizer

ROOT = Path(__file__).resolve().parents[2]
FILE_VALUES = [0, -1, 0.5, 2**63 - 1, 1e300, "nonsense", None]
FLAG_VALUES = ["0", "-1", "0.5", "9223372036854775807", "1e300", "nonsense", ""]
FILES = ["models/*.json", "presets/*/*.json", "examples/*.json", "tests/io/samples/*.json"]
SET_FLAGS = {"models": "--set", "systems": "--set-system", "software": "--set-software"}
FILES_PER_CHECK = 50
SECONDS = 120  # no command takes as long, even under sanitizers
MODEL = "gpt2-small"
# A quick command that works, to which the flag is added.
WORKING = {
    "plan": [MODEL, "--devices", "4", "--global-batch", "16"],
    "sweep plan": [MODEL, "--devices", "4", "--global-batch", "16", "--vary", "sequence=512"],
    "sweep": [MODEL, "--global-batch", "8", "--vary", "micro_batch=1,2"],
    "compare": [MODEL, "--global-batch", "8", "--to", "--micro-batch 2"],
    "estimate": [MODEL, "--global-batch", "8"],
    "frontier": [MODEL, "--global-batch", "8", "--attention", "flash"],
    "trace": [MODEL, "--global-batch", "8"],
    "explain": [MODEL],
    "memory": [f"{ROOT}/tests/cli/memory.console"],
    "merge": ["part.json"],
    "calibrate": ["--from-runs", f"{ROOT}/examples/cluster-runs.json"],
    "validate": ["--runs", f"{ROOT}/examples/my-runs.json"],
    "check": [f"{ROOT}/models/gpt2-small.json"],
    "import": ["config.json"],
    "report": ["reply.json", "-o", "page.html"],
    "man": ["plan"],
    "completions": ["bash"],
    "serve": ["--stdio"],
    "system new": ["--from", "dgx-a100-80g"],
}
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
          "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 512}
# Messages may have the other long name of a flag.
OTHER_NAMES = {"--sequence-parallel": "--sp", "--runs": "--from-runs", "--system": "--base",
               "--profile": "--from-runs"}


class Program:
    def __init__(self, path, folder):
        self.path = path
        self.folder = folder  # where commands are run, since some write files
        self.mistakes = []
        self.asked = 0

    def run(self, arguments):
        """The exit code and the messages of a command, None for a hang."""
        self.asked += 1
        try:
            done = subprocess.run([self.path, *arguments], capture_output=True, check=False, cwd=self.folder, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stderr.decode(errors="replace")

    def ask(self, arguments, names):
        """Whether the command was refused. `names`: words of which a refusal has one."""
        code, said = self.run(arguments)
        allowed = (0, 2, 3, 4) if arguments[0] == "validate" else (0, 2, 3)
        if code is None:
            self.wrong(arguments, f"ran for {SECONDS} s")
        elif code not in allowed:
            self.wrong(arguments, f"ended with {code}: {said[-600:]}")
        elif code == 2 and not any(name in said for name in names):
            self.wrong(arguments, f"names none of {names}: {said[:300]}")
        return code == 2

    def wrong(self, arguments, what):
        self.mistakes.append(f"{' '.join(arguments)}: {what}")


def leaves(json_value, path=()):
    """The places of all texts, numbers and truth values, as tuples of keys and indexes."""
    if isinstance(json_value, dict):
        for key, value in json_value.items():
            yield from leaves(value, (*path, key))
    elif isinstance(json_value, list):
        for i, value in enumerate(json_value):
            yield from leaves(value, (*path, i))
    else:
        yield path


def with_leaf(json_value, path, leaf):
    """A copy that differs in one leaf, sharing the rest."""
    if not path:
        return leaf
    copy = json_value.copy()
    copy[path[0]] = with_leaf(json_value[path[0]], path[1:], leaf)
    return copy


def sample(places, of_kind, values, one_in):
    """One pair in so many of a place and one of the values. The places of one kind take turns. 0: all pairs."""
    if one_in == 0:
        return [(place, value) for place in places for value in values]
    kinds = collections.defaultdict(list)
    for place in places:
        kinds[of_kind(place)].append(place)
    return [(same[(drawn + turn) % len(same)], value)
            for kind, same in kinds.items() for drawn in [zlib.crc32(repr(kind).encode())]
            for turn, value in enumerate(values) if (drawn + turn) % one_in == 0]


def field_of(place):
    """What sort of file, and the keys on the way to the leaf."""
    file, path = place
    return file.parent.name, tuple(key for key in path if isinstance(key, str))


def last_key(path):
    return next((key for key in reversed(path) if isinstance(key, str)), "")


def is_note(place):
    """Free text, which any text may be."""
    return not place[1] or place[1][-1] in ("source", "note", "title")


class Files:
    def __init__(self, program):
        self.program = program
        self.originals = {}

    def places(self):
        for pattern in FILES:
            for file in sorted(ROOT.glob(pattern)):
                self.originals[file] = json.loads(file.read_text())
                for path in leaves(self.originals[file]):
                    yield file, path

    def check(self, numbered):
        """Those of (number, (place, value)) that `check` accepts. All must be read."""
        copies = {}
        for number, ((file, path), value) in numbered:
            name = Path(self.program.folder) / f"file{number}" / file.name
            name.parent.mkdir()
            name.write_text(json.dumps(with_leaf(self.originals[file], path, value)))
            copies[str(name)] = (file, path), value
        code, said = self.program.run(["check", *copies])
        if code not in (0, 2):
            if len(copies) > 1:  # which of them?
                for name in copies:
                    Path(name).unlink()
                    Path(name).parent.rmdir()
                return [one for each in numbered for one in self.check([each])]
            self.program.wrong(["check", *map(str, copies.values())], f"ended with {code}: {said[-600:]}")
            return []
        accepted = []
        for name, ((file, path), value) in copies.items():
            lines = [line for line in said.split("\n") if f" {name}:" in line]
            if not lines:
                accepted.append((name, (file, path), value))
            elif not any(last_key(path) in line for line in lines):
                self.program.wrong(["check", str(file), "/".join(map(str, path)), json.dumps(value)],
                                   f"does not name the field: {' '.join(lines)[:300]}")
        return accepted

    def evaluate(self, accepted):
        name, (file, path), value = accepted
        sort = file.parent.name
        if sort not in SET_FLAGS or is_note((file, path)):
            return
        flag = {"models": [name], "systems": [MODEL, "--system", name], "software": [MODEL, "--software", name]}[sort]
        self.program.ask(["estimate", *flag], [last_key(path), "--"])

    def override(self, place, value):
        """The same as a flag of a command."""
        file, path = place
        sort = file.parent.name
        if sort not in SET_FLAGS or not all(isinstance(key, str) for key in path) or path[0] == "base":
            return
        base = {"models": [file.stem], "systems": [MODEL, "--system", file.stem],
                "software": [MODEL, "--software", file.stem]}[sort]
        text = value if isinstance(value, str) else json.dumps(value)
        self.program.ask(["estimate", *base, SET_FLAGS[sort], ".".join(path) + "=" + text], [path[-1]])


def flags_of(program):
    """The flags that take a value, each with its command, as the program tells fish; "" is what stands alone."""
    text = subprocess.run([program, "completions", "fish"], capture_output=True, check=True, text=True).stdout
    for line in text.splitlines():
        command = re.match(r"complete -c headroom -n '__headroom_command headroom([a-z ]*)'", line)
        flag = re.search(r" -l (\S+) -[xr]", line)
        if command and flag:
            yield command[1].strip(), "--" + flag[1]
    for command, arguments in WORKING.items():
        if not arguments[0].startswith("--"):
            yield command, ""


def ask_flag(program, place, value):
    command, flag = place
    arguments = WORKING.get(command, [])
    if not flag:
        program.ask([*command.split(), value, *arguments[1:]], [value or "must not be empty"])
        return
    if flag in arguments:  # given twice is another mistake
        at = arguments.index(flag)
        arguments = arguments[:at] + arguments[at + 2:]
    # A file that cannot be read is named, without the flag.
    program.ask([*command.split(), *arguments, flag, value], [flag, OTHER_NAMES.get(flag, flag), f"error: {value}:"])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    path = (arguments.bin / "headroom").resolve()
    one_in = 0 if arguments.all else 16 if has_sanitizer(path) else 1
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        program = Program(path, folder)
        Path(folder, "config.json").write_text(json.dumps(CONFIG))
        program.ask(["plan", *WORKING["plan"], "--shard", "1/1", "-o", "part.json"], [])
        program.ask(["estimate", *WORKING["estimate"], "--format", "json", "-o", "reply.json"], [])
        for command, working in WORKING.items():
            if program.ask([*command.split(), *working], ["headroom"]):
                program.wrong([command, *working], "must work")

        def took(what):
            print(f"{what}: {program.asked} commands, {time.monotonic() - start:.0f} s", flush=True)

        files = Files(program)
        pairs = sample(list(files.places()), field_of, FILE_VALUES, one_in)
        numbered = list(enumerate(pairs))
        batches = [numbered[i:i + FILES_PER_CHECK] for i in range(0, len(numbered), FILES_PER_CHECK)]
        accepted = list(itertools.chain.from_iterable(pool.map(files.check, batches)))
        took(f"{len(pairs)} files")
        list(pool.map(files.evaluate, accepted))
        took(f"{len(accepted)} of them accepted")
        # They are read by the same reader: two values of each field are enough.
        some = pairs if arguments.all else [pair for i, pair in enumerate(pairs) if (i + i // len(FILE_VALUES)) % len(FILE_VALUES) in (0, 3)]
        list(pool.map(lambda pair: files.override(*pair), some))
        took("fields as flags")
        flags = sample(list(flags_of(path)), lambda place: place[1] or place, FLAG_VALUES, one_in)
        list(pool.map(lambda pair: ask_flag(program, *pair), flags))
        took(f"{len(flags)} flags")
    print("\n".join(program.mistakes))
    sys.exit(1 if program.mistakes else 0)


if __name__ == "__main__":
    main()
