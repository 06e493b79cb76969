#!/usr/bin/env python3
"""Parts of a command, joined, are the bytes of one run; an interrupted run leaves nothing but what Ctrl-C asks for; the examples do what they say.

usage: sharded_commands.py --bin DIR
"""
import argparse
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PLAN = ["plan", "gpt2-xl", "--devices", "16", "--global-batch", "32"]
COMMANDS = [
    PLAN + ["--why", "-t 8 --recompute full", "--top", "3", "--gradients", "half"],
    ["plan", "gpt-1t", "--devices", "16", "--global-batch", "16", "-t", "8"],  # nothing fits
    ["sweep", "gpt3-175b", "-t", "8", "-p", "8", "--sp", "--vary", "recompute=none,selective",
     "--vary", "micro_batch=1:3:1", "--vary", "memory=40 GiB,0.1 TiB"],
    ["sweep", "gpt3-175b", "--vary", "sequence=1024,2048", "--vary", "hidden=12288,12289,x"],  # nothing fits or is legal
    ["sweep", "plan", "--vary", "model=gpt2-small,gpt2-xl", "--vary", "devices=4:16:x2", "--vary", "global_batch=8:32:x2",
     "--zip", "devices,global_batch"],
]
FORMATS = ["table", "json", "csv", "markdown"]


def run(*arguments, **options):
    return subprocess.run(arguments, capture_output=True, check=False, **options)


def check(holds, what):
    if not holds:
        sys.exit(f"wrong: {what}")


def parts_join_to_the_same_bytes(program, folder):
    for command in COMMANDS:
        whole = {format: run(program, *command, "--format", format) for format in FORMATS}
        check(whole["csv"].returncode in (0, 3) and whole["csv"].stdout, f"{command}: {whole['csv'].stderr}")
        for count in (1, 2, 3, 7):
            parts = [folder / f"{i}.json" for i in range(1, count + 1)]
            for i, part in enumerate(parts):
                done = run(program, *command, "--shard", f"{i + 1}/{count}", "-o", part, "--threads", str(i % 3 + 1))
                check(done.returncode == 0, f"{command} part {i + 1}/{count}: {done.stderr}")
            for format in FORMATS:
                joined = run(program, "merge", *reversed(parts), "--format", format)
                same = (joined.returncode, joined.stdout) == (whole[format].returncode, whole[format].stdout)
                check(same and not joined.stderr, f"{command} in {count} parts as {format}: {joined.stderr}")
        print(f"{' '.join(command)}: the same bytes in 1, 2, 3 and 7 parts")


def threads_change_nothing(program):
    for command in COMMANDS[2:]:
        outputs = {run(program, *command, "--format", "json", "--threads", threads).stdout for threads in "1238"}
        check(len(outputs) == 1, f"{command}: differs by threads")


def an_interrupt_leaves_no_file(program, folder):
    long = ["sweep", "gpt3-175b", "-t", "8", "--vary", "sequence=1:1000000:1", "--vary", "micro_batch=1,2"]
    target = folder / "rows.csv"
    for threads, ending in (("1", signal.SIGINT), ("2", signal.SIGINT), ("2", signal.SIGTERM), ("2", signal.SIGHUP)):
        target.write_text("old")
        child = subprocess.Popen([program, *long, "--threads", threads, "--format", "csv", "-o", target])
        while not any("partial" in entry.name and entry.stat().st_size for entry in folder.iterdir()):
            time.sleep(0.01)
        child.send_signal(ending)
        code = child.wait()
        check([entry.name for entry in folder.iterdir()] == ["rows.csv"], "an interrupted run leaves a file")
        if ending == signal.SIGINT:
            rows = target.read_text().splitlines(keepends=True)
            check(code == 3 and len(rows) > 1, f"Ctrl-C ends a sweep, of which nothing fits, with the rows so far: {code}")
            check(all(row.endswith("\n") and row.count(",") == rows[0].count(",") for row in rows), "rows are whole")
        else:
            check(code == -ending, "an interrupted run ends by the signal")
            check(target.read_text() == "old", "an interrupted run overwrites")
    child = subprocess.Popen([program, *long, "--format", "csv"], stdout=subprocess.PIPE)
    rows = [child.stdout.readline() for _ in range(100)]
    child.send_signal(signal.SIGINT)
    rest = child.stdout.read()
    child.wait()
    check(all(row.endswith(b"\n") and row.count(b",") == rows[0].count(b",") for row in rows), "rows are streamed whole")
    check(not rest or rest.endswith(b"\n"), "an interrupted run ends with a whole row")


def progress_is_for_terminals(program):
    points = ["sweep", "gpt3-175b", "-t", "8", "--vary", "sequence=1:1000000:1", "--format", "csv"]
    shown = b""
    try:
        terminal, other_end = pty.openpty()
    except OSError as error:
        return print(f"progress: skipped, there is no terminal to be had here: {error}")
    child = subprocess.Popen([program, *points], stdout=subprocess.DEVNULL, stderr=other_end)
    while b"left" not in shown:
        shown += os.read(terminal, 1000)
    child.send_signal(signal.SIGINT)
    child.wait()
    check(b"point " in shown and b" of 1000000, " in shown, f"progress: {shown}")


# Runs what is submitted at once, in the environment that Slurm gives a job, and prints the job's number.
SBATCH = """#!/usr/bin/env bash
set -euo pipefail
[[ ${1-} != --version ]] || exit 0
array=() wrap= id=$(($(cat "$0.id" 2>/dev/null || echo 100) + 1))
echo "$id" > "$0.id"
while [[ ${1-} == --* ]]; do
  case $1 in
    --array=1-*) mapfile -t array < <(seq "${1#--array=1-}") ;;
    --wrap=*) wrap=${1#--wrap=} ;;
    --dependency=afterok:101 | --kill-on-invalid-dep=yes | --job-name=* | --output=* | --parsable) ;;
    *) echo "not an option of sbatch: $1" >&2; exit 1 ;;
  esac
  shift
done
if [[ -n $wrap ]]; then sh -c "$wrap"; fi
for i in "${array[@]}"; do
  SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=${#array[@]} SLURM_CPUS_PER_TASK=2 bash "$@"
done
echo "$id;cluster"
"""


def examples_join_their_parts(program, folder):
    stand_in = folder / "sbatch"
    stand_in.write_text(SBATCH)
    stand_in.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{program.parent}:{os.environ['PATH']}"}
    results = []
    smk = ["snakemake", "--quiet", "all", "--cores", "2", "--directory", folder, "--snakefile", ROOT / "examples/sweep.smk"]
    for name, needs, command in (("sweep_slurm.sh", "sbatch --version", []), ("sweep_parallel.sh", "parallel --version", []),
                                 ("sweep.smk", "snakemake --version", [*smk, "--config"]),
                                 ("sweep_dask.py", "python3 -c 'import distributed'", [])):
        if subprocess.run(needs, shell=True, env=environment, capture_output=True, check=False).returncode != 0:
            print(f"examples/{name}: skipped, '{needs}' fails here")
            continue
        into = folder / f"a {name}"
        argument = f"folder={into}" if command else into
        done = run(*(command or [ROOT / "examples" / name]), argument, env=environment)
        check(done.returncode == 0, f"{name}: {done.stderr}")
        results.append((into / "sweep.csv").read_text())
        check(results[-1].count("\n") == 1 + 3 * 2 * 4 and results[-1] == results[0], f"{name}: {results[-1]}")
        print(f"examples/{name}: {results[-1].splitlines()[-1]}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=Path, required=True)
    program = (parser.parse_args().bin / "headroom").resolve()
    for test in (parts_join_to_the_same_bytes, an_interrupt_leaves_no_file, examples_join_their_parts):
        with tempfile.TemporaryDirectory() as folder:
            test(program, Path(folder))
    threads_change_nothing(program)
    progress_is_for_terminals(program)


if __name__ == "__main__":
    main()
