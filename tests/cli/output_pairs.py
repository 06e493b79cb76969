#!/usr/bin/env python3
"""No command loses a file that it reads to one that it writes, whatever the two are called: pairs of an input and an
output of one command, by folder, link, hard link, pipe and device. Each must end with exit code 2, name the file, and
leave every file as it was.

usage: output_pairs.py --bin DIR
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
          "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 512}
PROFILE = {"traceEvents": [], "deviceProperties": []}
BATCH = ["--global-batch", "8"]
# The name of each: a command, the output's flag and name, and what of the two the message names.
PAIRS = {
    # A folder stands for the config.json in it.
    "import of a folder": ("import D -o D/config.json", "D/config.json"),
    "of a folder with a slash": ("import D/ -o D/config.json", "D/config.json"),
    "of a folder, by a longer way": ("import D -o D/../D/./config.json", "D/config.json"),
    "of a link to a folder": ("import L -o D/config.json", "L/config.json"),
    "of a folder, written by a link to it": ("import D -o L/config.json", "D/config.json"),
    "of a folder, written by a link to its file": ("import D -o config_link.json", "D/config.json"),
    "of a folder, written by a hard link": ("import D -o config_hard.json", "D/config.json"),
    "of a folder whose config.json is a link": ("import E -o D/config.json", "E/config.json"),
    "of the folder that one is in": ("import . -o config.json", "./config.json"),
    "by an absolute name": ("import D -o {folder}/D/config.json", "D/config.json"),
    "estimate of a folder": ("estimate D -o D/config.json", "D/config.json"),
    "explain of a folder": ("explain D -o D/config.json", "D/config.json"),
    "trace of a folder": ("trace D -o D/config.json", "D/config.json"),
    "plan of a folder": ("plan D --devices 8 --global-batch 8 -o D/config.json", "D/config.json"),
    "frontier of a folder": ("frontier D -o D/config.json", "D/config.json"),
    "frontier's page": ("frontier D --html D/config.json", "D/config.json"),
    "compare of a folder": ("compare D --to --sp -o D/config.json", "D/config.json"),
    "sweep of a folder": ("sweep D --global-batch 8 --vary micro_batch=1,2 -o D/config.json", "D/config.json"),
    "sweep over folders": ("sweep --global-batch 8 --vary model=m.json,D -o D/config.json", "D/config.json"),
    "sweep over a file": ("sweep --global-batch 8 --vary model=D,m.json -o m.json", "m.json"),
    "sweep plan of a folder": ("sweep plan D --vary devices=8,16 --global-batch 8 -o D/config.json", "D/config.json"),
    "a part of a sweep": ("sweep D --global-batch 8 --vary micro_batch=1,2 --shard 1/2 -o D/config.json", "D/config.json"),
    "a part of a plan": ("plan D --devices 8 --global-batch 8 --shard 1/2 -o D/config.json", "D/config.json"),
    # Files of other kinds.
    "a model": ("estimate m.json -o m.json", "m.json"),
    "a model by a link": ("estimate m.json -o m_link.json", "m.json"),
    "a model by a hard link": ("estimate m_hard.json -o m.json", "m_hard.json"),
    "a model in a folder without a config.json": ("estimate F/m.json -o F/m.json", "F/m.json"),
    "a model on standard input": ("estimate /dev/stdin -o m.json < m.json", "/dev/stdin"),
    "a model by its descriptor": ("estimate /dev/fd/3 -o m.json 3< m.json", "/dev/fd/3"),
    "a model, written by its descriptor": ("estimate m.json -o /dev/fd/3 3>> m.json", "m.json"),
    "a system": ("estimate m.json --system s.json -o s.json", "s.json"),
    "a system that a sweep has": ("sweep m.json --global-batch 8 --vary system=dgx-a100-80g,s.json -o s.json", "s.json"),
    "a system's base": ("system new --from s.json -o s.json", "s.json"),
    "a stack": ("estimate m.json --software w.json -o w.json", "w.json"),
    "a stack by a link": ("estimate m.json --software w.json -o w_link.json", "w.json"),
    "a system's own stack": ("estimate m.json --set-system default_software=w.json -o w.json", "w.json"),
    "a system and a stack of the other of two": ("compare m.json --to '--software w.json' -o w.json", "w.json"),
    "runs": ("validate --runs r.json -o r.json", "r.json"),
    "runs and a picture": ("validate --runs r_link.svg --plot r_link.svg", "r_link.svg"),
    "runs to calibrate by": ("calibrate --from-runs r.json -o r.json", "r.json"),
    "samples": ("calibrate c.json --base dgx-h100-80g -o c_link.json", "c.json"),
    "samples and a picture": ("validate --samples c.svg --system dgx-h100-80g --plot c.svg", "c.svg"),
    "a profile": ("calibrate --profile t.json -o t.json", "t.json"),
    "a database": ("calibrate --profile n.sqlite -o n.sqlite", "n.sqlite"),
    "a part that is joined": ("merge p1 p2 -o p2", "p2"),
    "a part by a link": ("merge p1 p2 -o p_link", "p1"),
    # Pipes: who reads one waits for whoever writes it.
    "a pipe": ("estimate pipe -o pipe", "pipe"),
    "a pipe by a link": ("estimate pipe -o pipe_link", "pipe"),
    # Two outputs.
    "a page and a table": ("frontier m.json --html new -o ./new", "./new"),
    "a page and a table, by a link": ("frontier m.json --html w.json -o w_link.json", "w_link.json"),
    "pages and a page": ("man --all pages -o pages/headroom.1", "--all"),
    "pages of which two are one file": ("man --all twice", "twice/headroom-"),
}
# That what is like them works.
ALLOWED = ["import D -o D/model.json", "estimate D -o D/estimate.txt", "estimate m.json -o w.json",
           "man --all pages", "estimate m.json -o /dev/null", "frontier m.json --html new -o other",
           "estimate /dev/stdin -o copy.json < m.json", "merge p1 p2 -o joined"]


def make_files(program, folder):
    for name in ("D", "E", "F", "pages", "twice"):
        (folder / name).mkdir()
    for name in ("D/config.json", "config.json"):
        (folder / name).write_text(json.dumps(CONFIG))
    for name, source in (("m.json", "models/gpt2-small.json"), ("F/m.json", "models/gpt2-small.json"),
                         ("s.json", "presets/systems/dgx-a100-80g.json"), ("w.json", "presets/software/megatron-2022.json"),
                         ("r.json", "examples/cluster-runs.json"), ("c.json", "tests/io/samples/headroom_measure.json")):
        (folder / name).write_bytes((ROOT / source).read_bytes())
    (folder / "t.json").write_text(json.dumps(PROFILE))
    (folder / "n.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    os.mkfifo(folder / "pipe")
    for link, target in (("L", "D"), ("config_link.json", "D/config.json"), ("E/config.json", "../D/config.json"),
                         ("m_link.json", "m.json"), ("w_link.json", "w.json"), ("r_link.svg", "r.json"),
                         ("c_link.json", "c.json"), ("c.svg", "c.json"), ("p_link", "p1"), ("pipe_link", "pipe"),
                         ("twice/headroom-plan.1", "headroom-sweep.1")):
        (folder / link).symlink_to(target)
    (folder / "twice/headroom-sweep.1").write_text("a page")
    for link, target in (("config_hard.json", "D/config.json"), ("m_hard.json", "m.json")):
        os.link(folder / target, folder / link)
    for i in ("1", "2"):
        subprocess.run([program, "plan", "m.json", "--devices", "8", *BATCH, "--shard", f"{i}/2", "-o", f"p{i}"],
                       cwd=folder, check=True)


def state_of(folder):
    """Every file below, its inode, and what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        text = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (status.st_ino, status.st_mode, text)
    return found


def run(program, folder, command):
    """The exit code and the messages. Whoever opens the pipe finds a model in it."""
    feeder = subprocess.Popen(["sh", "-c", "cat m.json > pipe"], cwd=folder) if " pipe" in command else None
    line = f"{program} {command.replace('{folder}', str(folder))}"
    try:
        done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        return None, "it hangs"
    finally:
        if feeder:
            feeder.kill()
            feeder.wait()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    program = (parser.parse_args().bin / "headroom").resolve()
    mistakes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_files(program, folder)
        before = state_of(folder)
        for title, (command, named) in PAIRS.items():
            code, said = run(program, folder, command)
            if code != 2 or named not in said:
                mistakes.append(f"{title}: '{command}' ended with {code}: {said[:300]}")
            after = state_of(folder)
            if after != before:
                changed = {file for file in before.keys() | after.keys() if before.get(file) != after.get(file)}
                mistakes.append(f"{title}: '{command}' changed {', '.join(sorted(changed))}")
                before = after
        for command in ALLOWED:
            code, said = run(program, folder, command)
            if code not in (0, 3):
                mistakes.append(f"'{command}' ended with {code}: {said[:300]}")
        if any(".partial" in path.name for path in folder.rglob("*")):
            mistakes.append("a half-written file is left")
    print("\n".join(mistakes) or f"{len(PAIRS)} pairs")
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
