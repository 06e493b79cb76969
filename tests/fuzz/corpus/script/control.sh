#args 4 fp8
f() { local n=$1; shift; case "$n" in [0-9]*|x) A+=("$@") ;; *) return 1 ;; esac; }
while [[ $# -gt 0 ]]; do f "$@"; shift 1; done
for ((i = 0; i < 3; i++)); do let X=i*2; done
for n in {1..3} $(seq 2); do declare -A M=([a]=1 [b]="$n"); done
X=${Y:-${Z:=$((1 << 3 | 2))}} W=${X%%/*} V=${A[@]:1:2} U=${X/a/b} T=${#A[@]}
cat <<EOF > ds.json
{"zero_optimization": {"stage": $X}}
EOF
( cd /tmp && { bash -c "deepspeed --num_gpus ${N:-8} pretrain_gpt.py --num-layers 2 --hidden-size 64 --deepspeed_config ds.json" | tee log; } )
