#!/usr/bin/env python3
"""scripts/intervals --check: the stated intervals are those of the development runs, and others are told."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = pathlib.Path(os.environ.get("HEADROOM_SHARED_DIR", ROOT / "../shared")) / "data/measured/runs_2026.json"


def check(headroom, runs):
    return subprocess.run([ROOT / "scripts/intervals", runs, "--headroom", headroom, "--check"], capture_output=True, text=True, check=False)


def main():
    if not RUNS.is_file():
        print(f"skipped: no {RUNS}")
        sys.exit(77)
    done = check(sys.argv[1], RUNS)
    assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory() as folder:
        runs = json.loads(RUNS.read_text())
        twice = pathlib.Path(folder) / "twice.json"
        twice.write_text(json.dumps(runs + [{**run, "id": run["id"] + " again"} for run in runs]))
        assert check(sys.argv[1], twice).stdout == done.stdout, "a run that is listed twice counts once"
        slow = pathlib.Path(folder) / "runs.json"
        for run in runs:
            if run["measured"].get("iteration_time_s"):
                run["measured"]["iteration_time_s"] *= 1.5
            if (run.get("derived") or {}).get("iteration_time_s"):
                run["derived"]["iteration_time_s"] *= 1.5
        slow.write_text(json.dumps(runs))
        done = check(sys.argv[1], slow)
        assert done.returncode == 1 and "kernels: the spread of these runs is" in done.stderr, done


main()
