#!/usr/bin/env python3
"""Runs the sweep of sweep_slurm.sh on a Dask cluster. Computes only the missing parts.

    examples/sweep_dask.py [FOLDER]                       on the cores of this machine; writes FOLDER/sweep.csv
    examples/sweep_dask.py FOLDER tcp://scheduler:8786    on the workers of a scheduler

Needs `headroom` on PATH here and on all workers, and a folder that all of them share.
"""
import pathlib
import subprocess
import sys

from distributed import Client

PARTS = 8
SWEEP = """headroom sweep plan --vary model=llama-3-8b,llama-3-70b,gpt3-175b --vary system=dgx-a100-80g,dgx-h100-80g
--vary devices=64:512:x2 --global-batch 1024 --recompute selective,full --no-recompute-layers --threads 1""".split()


def compute(shard, file):
    """Computes a part unless its file exists. Parts are written whole or not at all, so that file is complete."""
    if not file.exists():
        subprocess.run([*SWEEP, "--shard", shard, "-o", file], check=True)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "sweep").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    shards = [f"{part}/{PARTS}" for part in range(1, PARTS + 1)]
    files = [folder / f"part-{part}.json" for part in range(1, PARTS + 1)]
    with Client(*sys.argv[2:], set_as_default=False) as cluster:
        cluster.gather(cluster.map(compute, shards, files))
    subprocess.run(["headroom", "merge", *files, "--format", "csv", "-o", folder / "sweep.csv"], check=True)


if __name__ == "__main__":
    main()
