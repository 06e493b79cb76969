#!/bin/bash
# A dense model of 8 billion parameters on two nodes, started by Slurm.
#SBATCH --nodes=2
#SBATCH --gres=gpu:h100:8
#SBATCH --ntasks-per-node=1
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
DATA=${DATA:-/data/tokens}
TP=2
PP=2
SEQUENCE=8192

MODEL=(
  --num-layers 32
  --hidden-size 4096
  --ffn-hidden-size 14336
  --num-attention-heads 32
  --group-query-attention --num-query-groups 8
  --seq-length $SEQUENCE
  --max-position-embeddings $SEQUENCE
  --position-embedding-type rope
  --normalization RMSNorm
  --swiglu
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --attention-dropout 0 --hidden-dropout 0
  --tokenizer-type Llama3Tokenizer
)
TRAINING=(
  --micro-batch-size 1
  --global-batch-size 128
  --bf16
  --lr 3e-4
  --data-path "$DATA"
  --tensor-model-parallel-size $TP
  --pipeline-model-parallel-size $PP
  --use-distributed-optimizer
  --overlap-grad-reduce
)
# One process holds a whole sequence of activations: split it where TP does.
if [ $TP -gt 1 ]; then
  TRAINING+=(--sequence-parallel)
fi

srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 \
  pretrain_gpt.py "${MODEL[@]}" "${TRAINING[@]}"
