#!/usr/bin/env bash
# On what should these models be trained, and how? A plan for every model, system and number of devices, searched by a
# Slurm job array and joined by a job behind it:
#
#   examples/sweep_slurm.sh [FOLDER]      on the login node: submits both; the answer will be FOLDER/sweep.csv
#
# Needs `headroom` on PATH and a folder that all nodes share.
#SBATCH --job-name=headroom
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --time=01:00:00
set -euo pipefail

folder=${1:-sweep}
# Not SLURM_ARRAY_TASK_COUNT: that is 1 when a failed part is run again by itself (sbatch --array=3 ...).
parts=8

# Outside of Slurm: submit the array to it, and the job that waits for all of its parts.
if [[ -z ${SLURM_ARRAY_TASK_ID-} ]]; then
  mkdir -p "$folder"
  array=$(sbatch --parsable --array="1-$parts" --output="$folder/part-%a.log" "$0" "$folder")
  mapfile -t files < <(seq -f "$folder/part-%.0f.json" "$parts")
  printf -v merge '%q ' headroom merge "${files[@]}" --format csv -o "$folder/sweep.csv"
  sbatch --parsable --dependency="afterok:${array%%;*}" --kill-on-invalid-dep=yes --job-name=headroom-merge \
    --output="$folder/merge.log" --wrap="$merge"
  exit
fi

# A part is written whole or not at all. Points are handed out in turns, so that parts take about as long as each other.
headroom sweep plan --vary model=llama-3-8b,llama-3-70b,gpt3-175b --vary system=dgx-a100-80g,dgx-h100-80g \
  --vary devices=64:512:x2 --global-batch 1024 --recompute selective,full --no-recompute-layers \
  --threads "${SLURM_CPUS_PER_TASK:-1}" --shard "$SLURM_ARRAY_TASK_ID/$parts" -o "$folder/part-$SLURM_ARRAY_TASK_ID.json"
