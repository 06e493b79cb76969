// What a training stack does that changes time and memory but neither the model nor the layout: a named bundle of choices,
// such as those of Megatron-LM when K22 was measured (which are the defaults).
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

// How the weight gradient of a microbatch joins the sum over microbatches. fused: its product adds to fp32 gradients
// (where gradients are half, as separate). separate: a kernel of its own.
enum class GradientAccumulation : std::uint8_t { fused, separate };

// one_pass: gradients of input and parameters from one reading [Apex FastLayerNorm]. two_kernels: a reading each.
enum class NormBackward : std::uint8_t { one_pass, two_kernels };

// With optimizer state split over data-parallel ranks. reduce_scatter: each rank gets the sums it needs.
// all_reduce: every rank gets all sums [DeepSpeed ZeRO stage 1 of 2022].
enum class GradientReduction : std::uint8_t { reduce_scatter, all_reduce };

// With fused accumulation, what a linear layer's backward pass returns for a weight gradient that is in the sum already.
// none: nothing. transient: an empty tensor of the weight's shape and dtype, while its backward pass runs.
// kept_by_shape: the library of the layers keeps one for each distinct shape for the whole run, and the output layer,
// which is not of that library, makes its own.
enum class DummyGradients : std::uint8_t { none, transient, kept_by_shape };

// What is alive at the peak beside weights, gradients, optimizer state and what forward passes saved. The defaults count
// none of it, as K22 did.
struct StackMemory {
  bool backward_buffers = false;  // gradients between ops, half-precision logits, gathered inputs
  DummyGradients dummy_gradients = DummyGradients::none;
  bool holds_logits = false;  // the training loop refers to those of a microbatch during its backward pass
  bool expandable_segments = false;  // of PyTorch's allocator (memory/caching_allocator.hpp)
  bool logs_reserved = false;        // as memory, the stack's logs give what that allocator holds
  std::optional<Bytes> workspaces;   // of matrix products, that PyTorch's allocator holds for the whole run
  std::string source = "None of it is counted, as in K22";
  friend bool operator==(const StackMemory&, const StackMemory&) = default;
};

// Of weights of which every rank has a shard. main_params: the fp32 weights that the optimizer steps, cast to 16 bits when
// they are gathered; gradients are kept in fp32 like them [FSDP2, MixedPrecisionPolicy]. copies: 16-bit weights beside those that
// the optimizer steps [Megatron-FSDP, DeepSpeed].
enum class ShardedWeights : std::uint8_t { copies, main_params };

// Of gradients until they are reduced to their shards. unit: those of the layer under way, and what its reduction reads.
// bucket: as many as a bucket has, twice where the reduction runs beside the backward pass [DeepSpeed, contiguous_gradients].
enum class ReductionBuffer : std::uint8_t { unit, bucket };

// How a stack divides weights, gradients and optimizer state over data-parallel ranks.
struct StackSharding {
  std::vector<DataSharding> modes{DataSharding::none, DataSharding::zero1};  // that it has
  bool with_pipeline = false;  // zero3 on pipeline ranks, which gather their weights once an iteration
  ShardedWeights weights = ShardedWeights::copies;
  ReductionBuffer reduction_buffer = ReductionBuffer::unit;
  bool copies_units =
      false;  // gathered weights and gradients are copied from and to the buffers of collectives
  bool ends_in_root =
      false;  // embedding and head are one unit, which is gathered for the whole of both passes
  // Where nothing is divided: gradients are copied to the buckets that are reduced, which stay for the whole run, and back [PyTorch,
  // torch/nn/parallel/distributed.py, gradient_as_bucket_view=False].
  bool copies_gradients = false;
  // Of stacks without `none`: a single device has no units, and tensor-parallel ranks have units also where no other rank holds their
  // weights. Otherwise all have.
  bool plain_alone = false;
  bool sums_before_reduction = false;  // gradients of several microbatches are summed whole and reduced once
  // Weights are gathered ahead of their unit whatever `overlap_param_gather` says, which then is of the gather behind a step [DeepSpeed,
  // stage3_prefetch_bucket_size].
  bool prefetches_units = false;
  bool sync_each_batch = false;  // has a switch that reduces them in every microbatch (Strategy)
  std::string source = "Megatron-LM, megatron/core/optimizer/distrib_optimizer.py";
  friend bool operator==(const StackSharding&, const StackSharding&) = default;
};

// Which collectives of tensor parallelism run beside matrix products. backward: the reduction of an input gradient,
// beside the product for the weight gradient. full: besides, with sequence parallelism in a node, each gather and
// scatter in pieces beside the product that reads or makes it [Transformer Engine's userbuffers, --tp-comm-overlap].
enum class TensorOverlap : std::uint8_t { none, backward, full };

// Which kernels of flash attention a stack runs. fitted: those that the rates of a system were fitted on, the fastest of
// their day (Transformer Engine's with cuDNN, FlashAttention 3). pytorch: those that scaled_dot_product_attention or the
// flash-attn package take, which on Hopper are FlashAttention 2, written for the instructions of Ampere. triton: FlashAttention's
// algorithm in Triton, as it was before FlashAttention 2.
enum class AttentionKernels : std::uint8_t { fitted, pytorch, triton };

// How the products of a rank's experts run. per_expert: one after another, each a kernel of its own, also where a library
// spreads them over streams. grouped: all in one kernel.
enum class ExpertProducts : std::uint8_t { per_expert, grouped };

// What a stack can leave to the host (parallel/offload.hpp): the optimizer alone; shards of weights and gradients with it; activations
// by module; the inputs of checkpoints.
enum class Offloads : std::uint8_t { optimizer, parameters, activations, checkpoints };

// Whose flags launch a strategy on a stack (interop/launch_flags.hpp).
enum class Launcher : std::uint8_t {
  megatron_lm,
  megatron_bridge,
  zero_bubble,
  torchtitan,
  deepspeed,
  accelerate
};

// The choices of a stack, as its file names them; product_rate and expert_products have sources of their own.
inline constexpr std::array<std::string_view, 39> stack_choices{"overlap_tensor_parallel",
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
                                                                "kv_sharing",
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

// Where each of them is documented, in that order.
using ChoiceSources = std::array<std::string, stack_choices.size()>;

struct Software {
  std::string name = "megatron-2022";
  std::string source;
  // Words of runs: one whose software has all words of a text, and which names no stack, is of this one.
  std::vector<std::string> runs_of;
  std::optional<ChoiceSources> sources;  // where `source` does not say it of all
  TensorOverlap overlap_tensor_parallel = TensorOverlap::backward;
  // Sequences are not the first dimension of a tensor, so that what tensor-parallel ranks gather is put in order behind a collective,
  // and what they scatter before it, unless both run in pieces [PyTorch, torch/distributed/_functional_collectives.py].
  bool copies_sequence_shards = false;
  bool overlap_grad_reduce = false;  // gradients are reduced, bucket by bucket, beside the last backward pass
  bool overlap_param_gather =
      false;  // parameters that the step changed are gathered beside the next forward pass
  bool overlap_expert_all_to_all =
      false;  // it can run forward passes beside backward passes, as the strategy's field of this name
  // Of forward passes beside backward passes: weight gradients wait, and run beside whichever exchange nothing else hides
  // [Megatron-Core, --delay-wgrad-compute].
  bool delay_weight_gradients = false;
  // Shared experts run beside the exchanges of the others, on a stream of their own [Megatron-Core,
  // --moe-shared-expert-overlap].
  bool overlap_shared_experts = false;
  bool overlap_p2p = false;  // transfers between virtual pipeline stages run beside compute
  // A bucket holds the larger of the two, the second for each data-parallel rank [Megatron-LM, --ddp-bucket-size].
  std::int64_t bucket_parameters = 40'000'000;
  std::int64_t bucket_parameters_per_replica = 1'000'000;
  GradientAccumulation gradient_accumulation = GradientAccumulation::fused;
  NormBackward norm_backward = NormBackward::one_pass;
  // Of models that state none. What operators of the framework run one after another is one kernel where launches are compiled.
  NormKernel norm_kernel = NormKernel::fused;
  Fusion activation_kernel = Fusion::fused;
  Fusion clamp_kernel = Fusion::fused;          // of models whose activations are clamped
  Fusion expert_bias_kernel = Fusion::unfused;  // of models whose experts have biases
  RotaryKernel rotary_kernel = RotaryKernel::fused;
  RotaryKernel scaled_rotary_kernel = RotaryKernel::fused;  // of models whose cosines and sines are scaled
  KvSharing kv_sharing = KvSharing::grouped;
  CrossEntropy cross_entropy = CrossEntropy::vocabulary_parallel;
  bool compiles_loss = false;     // where launches are compiled: a plain one
  VocabularyParallel vocabulary;  // embedding_parallel, loss_parallel
  GradientReduction gradient_reduction = GradientReduction::reduce_scatter;
  bool uneven_stages = false;  // pipeline stages may hold unequal numbers of layers
  // Interleaved schedules run groups of more microbatches than pipeline ranks, which then need not divide them.
  bool microbatch_groups = false;
  // What it has flags for, which is what is searched: policies, `ops` those of modules; and some layers of a stage alone.
  std::vector<RecomputePolicy> recompute{RecomputePolicy::none, RecomputePolicy::selective,
                                         RecomputePolicy::full, RecomputePolicy::ops};
  bool recompute_layers = true;
  bool serial_transfers = false;   // pipeline ranks send and receive one at a time [DeepSpeed pipe engine]
  bool blocking_launches = false;  // CUDA_LAUNCH_BLOCKING=1: host and device take turns
  Launches launches = Launches::eager;
  CudaGraphs cuda_graphs = CudaGraphs::none;
  // Of graphs of layers; empty: all but `moe`, as it is where routing drops no token.
  std::vector<GraphModule> cuda_graph_modules;
  AttentionKernel attention_kernel = AttentionKernel::unfused;  // of models that state none (with_attention)
  AttentionKernels attention_kernels = AttentionKernels::fitted;
  // Of strategies that say no more (parallel/stack_defaults.hpp): what is stepped, and the dtype in which gradients of microbatches and
  // of data-parallel ranks are summed.
  Optimizer optimizer;
  Dtype gradient_dtype = Dtype::fp32;
  Sourced<double> product_rate{1, Origin::exact, "the libraries that the rates were fitted on"};  // factor
  Sourced<ExpertProducts> expert_products{ExpertProducts::per_expert, Origin::assumed,
                                          "What stacks do that say nothing else: a product for each expert"};
  StackMemory memory;
  StackSharding sharding;
  std::vector<ParallelAxis> axes;       // that the stack divides a run along; empty: all
  std::vector<ScheduleKind> schedules;  // that it runs pipelines by; empty: all
  std::vector<Offloads> offloads;       // that it has; empty: all
  // How ranks exchange keys and values, or tokens of experts, and what linears multiply in; empty: any.
  std::vector<CpComm> cp_comm;
  std::vector<Dispatcher> moe_dispatchers;
  std::vector<Precision> precisions;
  // Where weights have passes of their own: pipeline ranks step their optimizers when they are done, without waiting for the norm
  // of all gradients, and take back a step that it turns out to scale [arXiv 2401.10241, section 4].
  bool post_validation = false;
  std::optional<Launcher> launcher;  // where its flags are known
  friend bool operator==(const Software&, const Software&) = default;
};

// What the layers and the loss of a model that states none run.
inline StackKernels kernels_of(const Software& software) {
  const bool compiled = software.launches == Launches::compiled;
  const bool compiles_loss =
      compiled && software.compiles_loss && software.cross_entropy == CrossEntropy::plain;
  return {.normalization = compiled ? NormKernel::fused : software.norm_kernel,
          .activation = compiled ? Fusion::fused : software.activation_kernel,
          .clamp = compiled ? Fusion::fused : software.clamp_kernel,
          .expert_bias = compiled ? Fusion::fused : software.expert_bias_kernel,
          .rotary = compiled ? RotaryKernel::fused : software.rotary_kernel,
          .scaled_rotary = compiled ? RotaryKernel::fused : software.scaled_rotary_kernel,
          .kv_sharing = software.kv_sharing,
          .cross_entropy = compiles_loss ? CrossEntropy::compiled : software.cross_entropy,
          .holds_logits = software.memory.holds_logits,
          .compiled_layers = compiled};
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
