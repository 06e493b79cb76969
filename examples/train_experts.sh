#!/bin/bash
# A mixture of experts: bash train_experts.sh NODES GLOBAL_BATCH
NODES=$1
GLOBAL_BATCH=${2:-512}
EP=8

MODEL="--num-layers 24 --hidden-size 2048 --ffn-hidden-size 8192 --num-attention-heads 16 \
  --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type rope \
  --normalization RMSNorm --swiglu --disable-bias-linear --attention-dropout 0 --hidden-dropout 0"
EXPERTS="--num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1024 \
  --moe-layer-freq '([0]*1+[1]*23)' --moe-router-dtype fp32 \
  --moe-token-dispatcher-type alltoall --expert-model-parallel-size $EP"
CMD="torchrun --nnodes $NODES --nproc_per_node 8 pretrain_gpt.py $MODEL $EXPERTS \
  --micro-batch-size 1 --global-batch-size $GLOBAL_BATCH --bf16 --vocab-size 64000 \
  --use-distributed-optimizer --recompute-granularity selective"
echo "$CMD"
eval "$CMD"
