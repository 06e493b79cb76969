// Choices of a training stack that change time and memory, but neither the model nor the parallelism. The
// defaults are those of Megatron-LM when K22 was measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/axis.hpp"
#include "headroom/core/dtype.hpp"
#include "headroom/core/names.hpp"
#include "headroom/core/on_heap.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/data_sharding.hpp"
#include "headroom/hardware/launch_mode.hpp"
#include "headroom/hardware/optimizer.hpp"
#include "headroom/hardware/recompute_policy.hpp"
#include "headroom/hardware/schedule_kind.hpp"
#include "headroom/hardware/sourced.hpp"
#include "headroom/model/exchange.hpp"
#include "headroom/model/kernels.hpp"
#include "headroom/model/precision.hpp"
#include "headroom/model/vocabulary.hpp"

namespace headroom {

// How the weight gradient of a microbatch is added to the sum over microbatches.
// fused: the weight-gradient GEMM adds to FP32 gradients; with 16-bit gradients it acts as `separate`.
// separate: a kernel of its own adds it.
enum class GradientAccumulation : std::uint8_t { fused, separate };

// How the backward pass of a normalization reads its values.
// one_pass: one reading yields the gradients of input and parameters [Apex FastLayerNorm].
// two_kernels: one reading each.
enum class NormBackward : std::uint8_t { one_pass, two_kernels };

// Collective that reduces gradients when optimizer state is sharded over data-parallel ranks.
// reduce_scatter: each rank gets the sums it needs.
// all_reduce: every rank gets all sums [DeepSpeed ZeRO stage 1 of 2022].
enum class GradientReduction : std::uint8_t { reduce_scatter, all_reduce };

// Weight gradient that the backward pass of a linear layer returns under fused accumulation. The real
// gradient is already in the sum.
// none: nothing.
// transient: an empty tensor of the weight's shape and dtype, freed when the layer's backward pass ends.
// kept_by_shape: the library of the layers keeps one tensor for each distinct shape for the whole run. The
// output layer is not of that library and makes its own.
enum class DummyGradients : std::uint8_t { none, transient, kept_by_shape };

// Whether the optimizer steps one flat copy of a rank's gradients, in FP32 [DeepSpeed,
// runtime/zero/stage_1_and_2.py and stage3.py, step].
// at_step: it makes the moments at the first step. from_start: it makes them before the first iteration, by a
// step on a flat gradient of zeros [initialize_optimizer_states of 2022].
enum class FlatGradients : std::uint8_t { none, at_step, from_start };

// Memory in use at the peak, beside weights, gradients, optimizer state and saved activations. The defaults
// count none of it, as in K22.
struct StackMemory {
  bool backward_buffers = false;  // gradients between ops, 16-bit logits, gathered inputs
  DummyGradients dummy_gradients = DummyGradients::none;
  // The training loop keeps a microbatch's logits alive during its backward pass.
  bool holds_logits = false;
  // The model casts its logits to FP32 itself. A compiled loss then saves FP32 logits.
  bool fp32_logits = false;
  bool expandable_segments = false;  // a mode of PyTorch's allocator (memory/caching_allocator.hpp)
  // The stack's logs report memory that PyTorch's allocator reserves.
  bool logs_reserved = false;
  // GEMM workspaces that PyTorch's allocator holds for the whole run.
  std::optional<Bytes> workspaces;
  std::optional<Bytes>
      expert_workspaces;  // likewise, of streams that multiply experts of a model that has them
  FlatGradients flat_gradients = FlatGradients::none;
  // A step makes FP32 copies of narrower moments and main parameters (widened_state()), of all dense
  // parameters or of all experts at once [Transformer Engine, pytorch/optimizers/fused_adam.py, step].
  bool widens_state = false;
  // 16-bit gradients stay beside their FP32 sums until the next backward pass.
  bool keeps_half_gradients = false;
  // Each optimizer step frees the gradients, and the backward pass after it makes them again.
  bool frees_gradients = false;
  // With 8-bit moments, the word embedding keeps FP32 ones [transformers, trainer.py, create_optimizer:
  // GlobalOptimManager.register_module_override of each nn.Embedding].
  bool fp32_embedding_moments = false;
  bool steps_in_backward = false;  // the stack has a switch for Strategy::step_in_backward
  bool keeps_outputs = false;      // default of Strategy::keep_pipeline_outputs
  // The last pipeline stage keeps the logits of every microbatch until the iteration ends
  // [torch/distributed/pipelining/stage.py, forward_one_chunk, output_chunks].
  bool keeps_logits = false;
  // PyTorch's flash attention writes its result in the order of the queries. Where these lie one head after
  // another, the projection reads a copy.
  bool copies_context = false;
  // A saved view keeps its whole allocation, as in PyTorch, at every --detail.
  bool keeps_views = false;
  // How frozen linears are quantized and adapted (model/adapters.hpp, AdapterChoices).
  bool keeps_quantized_inputs = false;
  bool quantizes_output_layer = false;
  bool dequantizes_through_fp16 = false;
  bool pads_adapters = false;
  std::optional<Bytes> cuda_context;  // in place of the system's
  std::string source = "None of it is counted, as in K22";
  friend bool operator==(const StackMemory&, const StackMemory&) = default;
};

// Weights that a sharded stack stores.
// main_params: FP32 weights, which the optimizer steps and a gather casts to 16 bits; gradients stay in FP32
// too [FSDP2, MixedPrecisionPolicy].
// copies: 16-bit weights beside those that the optimizer steps [Megatron-FSDP, DeepSpeed].
enum class ShardedWeights : std::uint8_t { copies, main_params };

// Buffer of gradients until they are reduced to shards.
// unit: gradients of the current layer, and those that its reduction reads.
// bucket: a bucket of gradients, or two if the reduction overlaps the backward pass [DeepSpeed,
// contiguous_gradients].
enum class ReductionBuffer : std::uint8_t { unit, bucket };

// Choices of a strategy that older releases of training stacks lack. context_parallel: of sequences of any
// length. shard_size: groups of ranks that shard together (HSDP). recompute_modules: modules of dense layers.
// gradient_dtype and cuda_graphs change the arithmetic or what a launch needs, and are priced rather than tried.
enum class WideChoice : std::uint8_t {
  context_parallel,
  cp_comm,
  moe_dispatcher,
  shard_size,
  no_reshard_after_forward,
  recompute_modules,
  gradient_dtype,
  cuda_graphs
};

template <>
inline constexpr std::array<Spelling<WideChoice>, 8> spellings<WideChoice>{{
    {WideChoice::context_parallel, "context_parallel"},
    {WideChoice::cp_comm, "cp_comm"},
    {WideChoice::moe_dispatcher, "moe_dispatcher"},
    {WideChoice::shard_size, "shard_size"},
    {WideChoice::no_reshard_after_forward, "no_reshard_after_forward"},
    {WideChoice::recompute_modules, "recompute_modules"},
    {WideChoice::gradient_dtype, "gradient_dtype"},
    {WideChoice::cuda_graphs, "cuda_graphs"},
}};

// How a stack shards weights, gradients and optimizer state over data-parallel ranks.
struct StackSharding {
  std::vector<DataSharding> modes{DataSharding::none, DataSharding::zero1};  // offered by the stack
  // The stack offers zero3 with pipeline ranks, which then gather their weights once an iteration.
  bool with_pipeline = false;
  ShardedWeights weights = ShardedWeights::copies;
  ReductionBuffer reduction_buffer = ReductionBuffer::unit;
  // Gathered weights and gradients are copied from and to the buffers of collectives.
  bool copies_units = false;
  // Embedding and output layer form one unit, which stays gathered for the whole of both passes.
  bool ends_in_root = false;
  // If nothing is sharded, gradients are copied to the buckets that are reduced, and back. The buckets stay
  // for the whole run [PyTorch, torch/nn/parallel/distributed.py, gradient_as_bucket_view=False].
  bool copies_gradients = false;
  // If nothing is sharded, weights and adapters are FP32, and torch.autocast casts them at each use.
  bool autocast = false;
  // For stacks without `none`: a single device has no units, while tensor-parallel ranks have units even if
  // no other rank holds their weights. If false, every rank has units.
  bool plain_alone = false;
  bool sums_before_reduction = false;  // sums full gradients of several microbatches first
  // All parameters of a unit are one tensor. If some are trained, all have gradients, whole and reduced
  // [FSDP1 with use_orig_params, torch/distributed/fsdp/fully_sharded_data_parallel.py].
  bool flat_parameters = false;
  // Weights are prefetched for the next unit even without `overlap_param_gather`, which then governs only the
  // gather after a step [DeepSpeed, stage3_prefetch_bucket_size].
  bool prefetches_units = false;
  // The stack has a switch that reduces gradients in every microbatch (Strategy::sync_each_batch).
  bool sync_each_batch = false;
  std::string source = "Megatron-LM, megatron/core/optimizer/distrib_optimizer.py";
  friend bool operator==(const StackSharding&, const StackSharding&) = default;
};

// Tensor-parallel collectives that run beside GEMMs.
// backward: overlaps the input-gradient reduction with the weight-gradient GEMM.
// full: also splits each gather and scatter into pieces, which overlap the GEMM that reads or makes them.
// Applies to sequence parallelism within a node [Transformer Engine's userbuffers, --tp-comm-overlap].
enum class TensorOverlap : std::uint8_t { none, backward, full };

// Flash attention kernels of a stack.
// fitted: the kernels that a system's rates were fitted on, the fastest of their day (Transformer Engine's
// with cuDNN, FlashAttention 3).
// pytorch: the kernels of scaled_dot_product_attention or the flash-attn package. On Hopper they are
// FlashAttention 2, written for Ampere's instructions.
// triton: FlashAttention's algorithm in Triton, as it was before FlashAttention 2.
enum class AttentionKernels : std::uint8_t { fitted, pytorch, triton };

// How a rank's expert GEMMs run.
// per_expert: one after another, each a kernel of its own, even if a library spreads them over streams.
// grouped: all in one kernel.
enum class ExpertProducts : std::uint8_t { per_expert, grouped };

// State that a stack can offload to the host (parallel/offload.hpp).
// optimizer: optimizer state alone. parameters: also shards of weights and gradients.
// activations: activations by module. checkpoints: the inputs of checkpointed layers.
enum class Offloads : std::uint8_t { optimizer, parameters, activations, checkpoints };

// Launcher whose flags start a strategy on a stack (interop/launch_flags.hpp).
enum class Launcher : std::uint8_t {
  megatron_lm,
  megatron_bridge,
  zero_bubble,
  torchtitan,
  deepspeed,
  accelerate
};

// Choices of a stack, as its file names them. product_rate and expert_products are not listed, because they
// carry sources of their own.
inline constexpr std::array<std::string_view, 41> stack_choices{"overlap_tensor_parallel",
                                                                "copies_sequence_shards",
                                                                "overlap_grad_reduce",
                                                                "overlap_param_gather",
                                                                "overlap_p2p",
                                                                "overlap_expert_all_to_all",
                                                                "delay_weight_gradients",
                                                                "overlap_shared_experts",
                                                                "bucket_parameters",
                                                                "bucket_parameters_per_replica",
                                                                "gradient_accumulation",
                                                                "norm_backward",
                                                                "norm_kernel",
                                                                "activation_kernel",
                                                                "clamp_kernel",
                                                                "expert_bias_kernel",
                                                                "rotary_kernel",
                                                                "scaled_rotary_kernel",
                                                                "qkv_linear",
                                                                "kv_sharing",
                                                                "softmax_dtype",
                                                                "cross_entropy",
                                                                "compiles_loss",
                                                                "embedding_parallel",
                                                                "loss_parallel",
                                                                "gradient_reduction",
                                                                "uneven_stages",
                                                                "microbatch_groups",
                                                                "recompute",
                                                                "recompute_layers",
                                                                "serial_transfers",
                                                                "blocking_launches",
                                                                "launches",
                                                                "cuda_graphs",
                                                                "attention_kernel",
                                                                "attention_kernels",
                                                                "optimizer",
                                                                "main_params_dtype",
                                                                "exp_avg_dtype",
                                                                "exp_avg_sq_dtype",
                                                                "gradient_dtype"};

// Source of each choice, in the order of stack_choices.
using ChoiceSources = std::array<std::string, stack_choices.size()>;

struct Software {
  std::string name = "megatron-2022";
  std::string source;
  // Texts that identify runs of this stack. A run that names no stack belongs to it if the run's software
  // contains all words of a text.
  std::vector<std::string> runs_of;
  OnHeap<ChoiceSources> sources;  // present if `source` does not cover every choice
  TensorOverlap overlap_tensor_parallel = TensorOverlap::backward;
  // The sequence is not the first dimension of a tensor. What tensor-parallel ranks gather is reordered after
  // the collective, and what they scatter is reordered before it. Collectives in pieces avoid both copies
  // [PyTorch, torch/distributed/_functional_collectives.py].
  bool copies_sequence_shards = false;
  // Gradients are reduced, bucket by bucket, beside the last backward pass.
  bool overlap_grad_reduce = false;
  // Parameters that a step changed are gathered beside the next forward pass.
  bool overlap_param_gather = false;
  // The stack can run forward passes beside backward passes, if Strategy::overlap_expert_all_to_all asks for
  // it.
  bool overlap_expert_all_to_all = false;
  // With forward passes beside backward passes, weight gradients are delayed and run beside any exchange that
  // nothing else hides [Megatron-Core, --delay-wgrad-compute].
  bool delay_weight_gradients = false;
  // Shared experts run beside the all-to-alls of routed experts, on a stream of their own [Megatron-Core,
  // --moe-shared-expert-overlap].
  bool overlap_shared_experts = false;
  bool overlap_p2p = false;  // transfers between virtual pipeline stages run beside compute
  // A bucket holds bucket_parameters, or bucket_parameters_per_replica times the data-parallel ranks if that
  // is more [Megatron-LM, --ddp-bucket-size].
  std::int64_t bucket_parameters = 40'000'000;
  std::int64_t bucket_parameters_per_replica = 1'000'000;
  GradientAccumulation gradient_accumulation = GradientAccumulation::fused;
  NormBackward norm_backward = NormBackward::one_pass;
  // Kernels of models that state none. Compiled launches fuse what framework operators would run one after
  // another.
  NormKernel norm_kernel = NormKernel::fused;
  Fusion activation_kernel = Fusion::fused;
  Fusion clamp_kernel = Fusion::fused;          // for models that clamp activations
  Fusion expert_bias_kernel = Fusion::unfused;  // for models whose experts have biases
  RotaryKernel rotary_kernel = RotaryKernel::fused;
  RotaryKernel scaled_rotary_kernel = RotaryKernel::fused;  // for models that scale cosines and sines
  QkvLinear qkv_linear = QkvLinear::one;
  KvSharing kv_sharing = KvSharing::grouped;
  Dtype softmax_dtype = Dtype::half;  // of unfused attention
  CrossEntropy cross_entropy = CrossEntropy::vocabulary_parallel;
  bool compiles_loss = false;     // compiles a plain cross entropy, if launches are compiled
  VocabularyParallel vocabulary;  // embedding_parallel, loss_parallel
  GradientReduction gradient_reduction = GradientReduction::reduce_scatter;
  bool uneven_stages = false;  // pipeline stages may hold unequal numbers of layers
  // Interleaved schedules can run groups of more microbatches than pipeline ranks. The ranks then need not
  // divide the microbatches.
  bool microbatch_groups = false;
  // Recomputation policies that the stack has flags for, and that a search tries. `ops` stands for
  // recomputing modules. recompute_layers: the stack can recompute only some layers of a stage.
  std::vector<RecomputePolicy> recompute{RecomputePolicy::none, RecomputePolicy::selective,
                                         RecomputePolicy::full, RecomputePolicy::ops};
  bool recompute_layers = true;
  bool serial_transfers = false;   // pipeline ranks send and receive one at a time [DeepSpeed pipe engine]
  bool blocking_launches = false;  // CUDA_LAUNCH_BLOCKING=1: CPU and GPU take turns
  Launches launches = Launches::eager;
  CudaGraphs cuda_graphs = CudaGraphs::none;
  // Modules that graphs of layers record. Empty: all but `moe`, as fits routing that drops no token.
  std::vector<GraphModule> cuda_graph_modules;
  AttentionKernel attention_kernel = AttentionKernel::unfused;  // for models that state none (with_attention)
  AttentionKernels attention_kernels = AttentionKernels::fitted;
  // Defaults of strategies that state nothing else (parallel/stack_defaults.hpp). gradient_dtype is the dtype
  // in which gradients of microbatches and of data-parallel ranks are summed.
  Optimizer optimizer;
  Dtype gradient_dtype = Dtype::fp32;
  Sourced<double> product_rate{1, Origin::exact,
                               "the libraries that the rates were fitted on"};  // factor on GEMM rates
  std::optional<Sourced<ExpertWeighting>> expert_weighting;                     // absent: in the activation
  // Absent: indexed. A stack that masks pads every expert to its capacity where the model gives one.
  std::optional<Sourced<ExpertRouting>> expert_routing;
  std::vector<NarrowPart> fp8_parts;  // of layers in fewer than 16 bits: what else is stored or sent so
  Sourced<ExpertProducts> expert_products{ExpertProducts::per_expert, Origin::assumed,
                                          "What stacks do that say nothing else: a product for each expert"};
  StackMemory memory;
  StackSharding sharding;
  std::vector<ParallelAxis> axes;       // parallelism offered by the stack; empty: all
  std::vector<ScheduleKind> schedules;  // offered by the stack; empty: all
  std::vector<Offloads> offloads;       // offered by the stack; empty: all, of a release none
  // Context-parallel exchanges, dispatchers of expert tokens and precisions of linears that the stack offers;
  // empty: all.
  std::vector<CpComm> cp_comm;
  std::vector<Dispatcher> moe_dispatchers;
  std::vector<Precision> precisions;
  std::vector<CudaGraphs> cuda_graph_kinds;  // CUDA graphs that the stack offers; empty: all
  bool sequence_parallel = true;             // the stack has sequence parallelism
  bool optimizer_dtypes = true;              // the stack can keep optimizer state in dtypes other than FP32
  // Day of the release that this stack is ("2026-04-16"). A release refuses recomputation that `recompute` does
  // not list; other stacks leave it to their launcher.
  std::optional<std::string> released;
  // Choices that the release and its launcher have, and that a wide search tries or prices (search/widen.hpp).
  std::vector<WideChoice> searches;
  // With separate weight-gradient passes, a pipeline rank steps its optimizer when its passes are done. It
  // does not wait for the norm of all gradients, and rolls back a step that clipping turns out to scale
  // [arXiv 2401.10241, section 4].
  bool post_validation = false;
  std::optional<Launcher> launcher;  // present if its flags are known
  friend bool operator==(const Software&, const Software&) = default;
};

// Returns whether GEMMs with one-hot masks move tokens to padded experts.
inline bool routes_by_masks(const Software& software) {
  return software.expert_routing && software.expert_routing->value == ExpertRouting::masked;
}

// Returns the kernels that a stack runs for the layers and the loss of a model that states none.
inline StackKernels kernels_of(const Software& software) {
  NarrowParts fp8_parts;
  for (const NarrowPart part : software.fp8_parts) {
    switch (part) {
      case NarrowPart::activation_input: fp8_parts.activation_input = true; break;
      case NarrowPart::context: fp8_parts.context = true; break;
      case NarrowPart::dispatch: fp8_parts.dispatch = true; break;
    }
  }
  const bool compiled = software.launches == Launches::compiled;
  const bool compiles_loss =
      compiled && software.compiles_loss && software.cross_entropy == CrossEntropy::plain;
  return {.normalization = compiled ? NormKernel::fused : software.norm_kernel,
          .activation = compiled ? Fusion::fused : software.activation_kernel,
          .clamp = compiled ? Fusion::fused : software.clamp_kernel,
          .expert_bias = compiled ? Fusion::fused : software.expert_bias_kernel,
          .expert_weighting =
              software.expert_weighting ? software.expert_weighting->value : ExpertWeighting::activation,
          .expert_routing = software.expert_routing ? software.expert_routing->value : ExpertRouting::indexed,
          .rotary = compiled ? RotaryKernel::fused : software.rotary_kernel,
          .scaled_rotary = compiled ? RotaryKernel::fused : software.scaled_rotary_kernel,
          .qkv = software.qkv_linear,
          .kv_sharing = software.kv_sharing,
          .softmax_dtype = software.softmax_dtype,
          .cross_entropy = !compiles_loss                ? software.cross_entropy
                           : software.memory.fp32_logits ? CrossEntropy::compiled_fp32
                                                         : CrossEntropy::compiled,
          .holds_logits = software.memory.holds_logits,
          .copies_context = software.memory.copies_context,
          .compiled_layers = compiled,
          .fp8_parts = fp8_parts};
}

template <>
inline constexpr std::array<Spelling<Launcher>, 6> spellings<Launcher>{{
    {Launcher::megatron_lm, "Megatron-LM"},
    {Launcher::megatron_bridge, "Megatron-Bridge"},
    {Launcher::zero_bubble, "zero-bubble-pipeline-parallelism"},
    {Launcher::torchtitan, "torchtitan"},
    {Launcher::deepspeed, "DeepSpeed"},
    {Launcher::accelerate, "accelerate"},
}};
template <>
inline constexpr std::array<Spelling<Offloads>, 4> spellings<Offloads>{{
    {Offloads::optimizer, "optimizer"},
    {Offloads::parameters, "parameters"},
    {Offloads::activations, "activations"},
    {Offloads::checkpoints, "checkpoints"},
}};
template <>
inline constexpr std::array<Spelling<ExpertProducts>, 2> spellings<ExpertProducts>{{
    {ExpertProducts::per_expert, "per_expert"},
    {ExpertProducts::grouped, "grouped"},
}};
template <>
inline constexpr std::array<Spelling<TensorOverlap>, 3> spellings<TensorOverlap>{{
    {TensorOverlap::none, "none"},
    {TensorOverlap::backward, "backward"},
    {TensorOverlap::full, "full"},
}};
template <>
inline constexpr std::array<Spelling<AttentionKernels>, 3> spellings<AttentionKernels>{{
    {AttentionKernels::fitted, "fitted"},
    {AttentionKernels::pytorch, "pytorch"},
    {AttentionKernels::triton, "triton"},
}};
template <>
inline constexpr std::array<Spelling<GradientAccumulation>, 2> spellings<GradientAccumulation>{{
    {GradientAccumulation::fused, "fused"},
    {GradientAccumulation::separate, "separate"},
}};
template <>
inline constexpr std::array<Spelling<DummyGradients>, 3> spellings<DummyGradients>{{
    {DummyGradients::none, "none"},
    {DummyGradients::transient, "transient"},
    {DummyGradients::kept_by_shape, "kept_by_shape"},
}};
template <>
inline constexpr std::array<Spelling<FlatGradients>, 3> spellings<FlatGradients>{{
    {FlatGradients::none, "none"},
    {FlatGradients::at_step, "at_step"},
    {FlatGradients::from_start, "from_start"},
}};
template <>
inline constexpr std::array<Spelling<ShardedWeights>, 2> spellings<ShardedWeights>{{
    {ShardedWeights::copies, "copies"},
    {ShardedWeights::main_params, "main_params"},
}};
template <>
inline constexpr std::array<Spelling<ReductionBuffer>, 2> spellings<ReductionBuffer>{{
    {ReductionBuffer::unit, "unit"},
    {ReductionBuffer::bucket, "bucket"},
}};
template <>
inline constexpr std::array<Spelling<NormBackward>, 2> spellings<NormBackward>{{
    {NormBackward::one_pass, "one_pass"},
    {NormBackward::two_kernels, "two_kernels"},
}};
template <>
inline constexpr std::array<Spelling<GradientReduction>, 2> spellings<GradientReduction>{{
    {GradientReduction::reduce_scatter, "reduce_scatter"},
    {GradientReduction::all_reduce, "all_reduce"},
}};

}  // namespace headroom
