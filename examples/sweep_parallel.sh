#!/usr/bin/env bash
# The sweep of sweep_slurm.sh under GNU parallel: on the cores of this machine, or on several that share the folder.
#
#   examples/sweep_parallel.sh [FOLDER]                             the answer will be FOLDER/sweep.csv
#   PARALLEL='--sshloginfile hosts --wd .' examples/sweep_parallel.sh
#
# Needs `headroom` on PATH, on all machines.
set -euo pipefail

folder=${1:-sweep}
parts=8
mkdir -p "$folder"

# -q: words reach headroom as they stand here, {} aside.
seq "$parts" | parallel -q --halt now,fail=1 headroom sweep plan \
  --vary model=llama-3-8b,llama-3-70b,gpt3-175b --vary system=dgx-a100-80g,dgx-h100-80g \
  --vary devices=64:512:x2 --global-batch 1024 --recompute selective,full --no-recompute-layers \
  --threads 1 --shard "{}/$parts" -o "$folder/part-{}.json"
mapfile -t files < <(seq -f "$folder/part-%.0f.json" "$parts")
headroom merge "${files[@]}" --format csv -o "$folder/sweep.csv"
