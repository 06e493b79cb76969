// Flags of other programs, and what they are here.
#pragma once

#include <array>
#include <string_view>

namespace headroom::cli {

// Another name of a flag that is no field of a strategy, or of a flag and its value. Fields have theirs in
// strategy_fields.
struct OtherName {
  std::string_view flag;
  std::string_view own;  // empty: it says what holds anyway
};

inline constexpr std::array other_names{
    OtherName{"--gpus", "--devices"},
    OtherName{"--num-gpus", "--devices"},
    OtherName{"--world-size", "--devices"},
    OtherName{"--stack", "--software"},
    OtherName{"--framework", "--software"},
    OtherName{"--gpu", "--system"},
    OtherName{"--cluster", "--system"},
    OtherName{"--seq-len", "--sequence"},
    OtherName{"--seqlen", "--sequence"},
    OtherName{"--sequence-length", "--sequence"},
    OtherName{"--max-seq-len", "--sequence"},
    OtherName{"--max-length", "--sequence"},
    OtherName{"--num-virtual-stages-per-pipeline-rank", "--virtual-pipeline"},
    OtherName{"--microbatch-group-size-per-virtual-pipeline-stage", "--microbatch-group-size"},
    OtherName{"--json", "--format=json"},
    OtherName{"--csv", "--format=csv"},
    OtherName{"--markdown", "--format=markdown"},
    OtherName{"--bf16", ""},
    OtherName{"--fp8", "--precision=fp8"},
    OtherName{"--fp8-hybrid", "--precision=fp8_delayed"},
    OtherName{"--fp4", "--precision=nvfp4"},
    OtherName{"--keep-mtp-spec-in-bf16", "--bf16-modules=mtp"},
    OtherName{"--grad-reduce-in-bf16", "--gradient-dtype=half"},
    OtherName{"--overlap-grad-reduce", "--set-software=overlap_grad_reduce=true"},
    OtherName{"--no-overlap-grad-reduce", "--set-software=overlap_grad_reduce=false"},
    OtherName{"--overlap-param-gather", "--set-software=overlap_param_gather=true"},
    OtherName{"--no-overlap-param-gather", "--set-software=overlap_param_gather=false"},
    OtherName{"--tp-comm-overlap", "--set-software=overlap_tensor_parallel=full"},
    OtherName{"--no-tp-comm-overlap", "--set-software=overlap_tensor_parallel=backward"},
    OtherName{"--no-async-tensor-model-parallel-allreduce", "--set-software=overlap_tensor_parallel=none"},
    OtherName{"--overlap-p2p-communication", "--set-software=overlap_p2p=true"},
    OtherName{"--no-overlap-p2p-communication", "--set-software=overlap_p2p=false"},
    OtherName{"--no-rope-fusion", "--set-software=rotary_kernel=rotate_chunks"},
    OtherName{"--torch-compile", "--set-software=launches=compiled"},
    OtherName{"--compile", "--set-software=launches=compiled"},
    OtherName{"--no-compile", "--set-software=launches=eager"},
    OtherName{"--eager", "--set-software=launches=eager"},
    OtherName{"--recompute-activations", "--recompute=selective"},
    OtherName{"--use-flash-attn", "--attention=flash"},
    OtherName{"--cross-entropy-loss-fusion", ""},  // the native one keeps as much
    OtherName{"--load-in-4bit", "--base-dtype=nf4"},
    OtherName{"--load-in-8bit", "--base-dtype=int8"},
    OtherName{"--zero3", "--data-sharding=zero3"},
    OtherName{"--use-torch-fsdp2", "--data-sharding=zero3"},
    OtherName{"--use-megatron-fsdp", "--data-sharding=zero3"},
    OtherName{"--use-custom-fsdp", "--data-sharding=zero3"},
};

// A size of something that there is one of as long as it is not modelled.
struct Unmodelled {
  std::string_view flag;
  std::string_view what;
};

inline constexpr std::array unmodelled{
    Unmodelled{"--fp8-multi-head-attention", "queries, keys and values that linears give in FP8"},
    Unmodelled{"--activation-func-fp8-input-store", "inputs of the activation that are kept in FP8"},
    Unmodelled{"--no-fp8-wgrad", "gradients of weights that are multiplied at 16 bits"},
};

// A flag that changes neither memory nor time, and what it sets.
struct Unplanned {
  std::string_view flag;
  std::string_view what;
};

inline constexpr std::array<Unplanned, 37> unplanned{{
    {"--lr", "the learning rate"},
    {"--learning-rate", "the learning rate"},
    {"--min-lr", "the learning rate"},
    {"--max-lr", "the learning rate"},
    {"--lr-decay-style", "the schedule of the learning rate"},
    {"--lr-decay-iters", "the schedule of the learning rate"},
    {"--lr-warmup-iters", "the schedule of the learning rate"},
    {"--lr-warmup-fraction", "the schedule of the learning rate"},
    {"--lr-warmup-samples", "the schedule of the learning rate"},
    {"--lr-scheduler", "the schedule of the learning rate"},
    {"--lr-scheduler-type", "the schedule of the learning rate"},
    {"--warmup-steps", "the schedule of the learning rate"},
    {"--warmup-ratio", "the schedule of the learning rate"},
    {"--weight-decay", "the decay of weights"},
    {"--adam-beta1", "a coefficient of the optimizer"},
    {"--adam-beta2", "a coefficient of the optimizer"},
    {"--adam-eps", "a coefficient of the optimizer"},
    {"--betas", "a coefficient of the optimizer"},
    {"--beta1", "a coefficient of the optimizer"},
    {"--beta2", "a coefficient of the optimizer"},
    {"--eps", "a coefficient of the optimizer"},
    {"--clip-grad", "the clipping of gradients"},
    {"--max-grad-norm", "the clipping of gradients"},
    {"--gradient-clipping", "the clipping of gradients"},
    {"--seed", "a seed"},
    {"--data-path", "where data and checkpoints lie"},
    {"--save", "where data and checkpoints lie"},
    {"--load", "where data and checkpoints lie"},
    {"--output-dir", "where data and checkpoints lie"},
    {"--checkpoint-dir", "where data and checkpoints lie"},
    {"--tokenizer-model", "where data and checkpoints lie"},
    {"--tokenizer-type", "where data and checkpoints lie"},
    {"--log-interval", "how often the run logs, evaluates or saves"},
    {"--eval-interval", "how often the run logs, evaluates or saves"},
    {"--eval-iters", "how often the run logs, evaluates or saves"},
    {"--save-interval", "how often the run logs, evaluates or saves"},
    {"--lora-alpha", "the scale of LoRA"},
}};

// A flag that Headroom has under another form, and what to write instead.
struct Otherwise {
  std::string_view flag;
  std::string_view rule;
};

inline constexpr std::array otherwise{
    Otherwise{"--train-iters", "use --tokens N, the length of the run, for its days and GPU-hours"},
    Otherwise{"--train-samples", "use --tokens N, the length of the run, for its days and GPU-hours"},
    Otherwise{"--max-steps", "use --tokens N, the length of the run, for its days and GPU-hours"},
    Otherwise{"--steps", "use --tokens N, the length of the run, for its days and GPU-hours"},
    Otherwise{"--epochs", "use --tokens N, the length of the run, for its days and GPU-hours"},
    Otherwise{"--num-train-epochs", "use --tokens N, the length of the run, for its days and GPU-hours"},
    Otherwise{"--cpu-offloading", "drop the flag: --offload-layers K says it"},
    Otherwise{"--moe-router-dtype", "is a field of the model: use --set experts.router_dtype=fp32 or half"},
    Otherwise{"--te-precision-config-file",
              "use --bf16-modules with the modules that its patterns keep in BF16"},
    Otherwise{"--moe-deepep-num-sms", "is not modelled: drop the flag"},
    Otherwise{"--moe-hybridep-num-sms", "is not modelled: drop the flag"},
    Otherwise{"--moe-flex-dispatcher-num-sms", "is not modelled: drop the flag"},
    Otherwise{"--fp32-residual-connection", "is a field of the model: use --set kernels.residual_dtype=fp32"},
    Otherwise{"--hybrid-override-pattern", "use `layers` and `layer_kinds` of a model file"},
    Otherwise{"--nodes", "use --devices N with the number of all GPUs: nodes times GPUs per node"},
    Otherwise{"--num-nodes", "use --devices N with the number of all GPUs: nodes times GPUs per node"},
    Otherwise{"--nnodes", "use --devices N with the number of all GPUs: nodes times GPUs per node"},
    Otherwise{"--gpus-per-node", "is a field of the system: use --set-system devices_per_node=N"},
    Otherwise{"--gradient-accumulation-steps",
              "use --global-batch N: this number times --micro-batch times --data-parallel"},
    Otherwise{"--num-microbatches",
              "use --global-batch N: this number times --micro-batch times --data-parallel"},
    Otherwise{"--num-layers-per-virtual-pipeline-stage",
              "use --virtual-pipeline N, the virtual stages of a PP rank"},
    Otherwise{"--moe-grouped-gemm",
              "is a choice of the training stack: use --set-software expert_products.value=grouped"},
    Otherwise{"--data-parallel-replicate-degree",
              "use --shard-size N, the GPUs that share the shards of a replica"},
    Otherwise{"--gradient-checkpointing", "use --recompute full"},
    Otherwise{"--per-device-train-batch-size", "use --micro-batch N, and --global-batch for all GPUs"},
    Otherwise{"--parallelism.disable_loss_parallel",
              "is a choice of the training stack: use --set-software loss_parallel=gathered"},
    Otherwise{"--fp16", "is modelled as BF16, which is as large and as fast: drop the flag"},
};

// Optimizers that are one here with moments of another dtype [Hugging Face's trainer, --optim; bitsandbytes].
inline constexpr std::array<std::string_view, 6> adam_of_int8{"adam8bit",       "adamw8bit", "adamw_8bit",
                                                              "adamw_bnb_8bit", "Adam8bit",  "AdamW8bit"};

// Megatron-LM's recipes, and the precisions that they are.
struct Fp8Recipe {
  std::string_view theirs;
  std::string_view own;
};
inline constexpr std::array fp8_recipes{
    Fp8Recipe{"delayed", "fp8_delayed"},
    Fp8Recipe{"tensorwise", "fp8"},
    Fp8Recipe{"blockwise", "fp8_blockwise"},
    Fp8Recipe{"mxfp8", "mxfp8"},
};

}  // namespace headroom::cli
