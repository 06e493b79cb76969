# Runs the sweep of sweep_slurm.sh under Snakemake, which computes only the missing parts:
#
#   snakemake --snakefile examples/sweep.smk --cores 4 [--config folder=FOLDER]     writes FOLDER/sweep.csv
#
# Needs `headroom` on PATH on every machine that computes parts, and a folder that they share.
folder = config.get("folder", "sweep")
parts = 8

rule join:
    input: expand(folder + "/part-{i}.json", i=range(1, parts + 1))
    output: folder + "/sweep.csv"
    shell: "headroom merge {input:q} --format csv -o {output:q}"

rule part:
    output: folder + "/part-{i}.json"
    shell:
        "headroom sweep plan --vary model=llama-3-8b,llama-3-70b,gpt3-175b --vary system=dgx-a100-80g,dgx-h100-80g"
        " --vary devices=64:512:x2 --global-batch 1024 --recompute selective,full --no-recompute-layers"
        " --threads 1 --shard {wildcards.i}/{parts} -o {output:q}"
