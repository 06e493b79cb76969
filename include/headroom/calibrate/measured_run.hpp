// A training run as published or measured: its known configuration, with its iteration time, its memory or
// both. Also the request that predicts it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/published_source.hpp"
#include "headroom/core/error.hpp"
#include "headroom/model/hybrid_pattern.hpp"

namespace headroom {

// A measured run. Absent members were not published.
struct MeasuredRun {
  // Names of members that a prediction needs and the run does not state. The values of these members mean
  // nothing.
  std::vector<std::string> lacking;
  std::vector<std::string> unmodelled;  // features that no prediction models yet
  std::vector<std::string> unread;      // members about how it ran that no prediction depends on
  // Errors in its file, by places within the run ("/parallel/tp"). A run with errors is not predicted.
  std::vector<Problem> mistakes;

  std::string name;
  std::string key;         // key of its publication (PublishedSource); empty: none
  std::string source;      // a title, only shown; empty for the user's own runs
  std::string model_name;  // the run's name for its model; may be empty
  std::string device;      // "A100-SXM4-80GB"
  std::string dtype;
  std::optional<std::string> recipe;  // name of the precision recipe of linear layers
  bool fp8_param_gather = false;
  bool fp8_attention = false;
  std::array<std::int64_t, 2> bf16_layers{};  // at the start and at the end of the model
  std::vector<PrecisionModule> bf16_modules;  // empty: those of the model's recipe
  std::string overlap;  // overlap and sharding, in words that only a source's variants read
  bool dense = true;

  std::optional<Transformer>
      model;  // if the run names one; the sizes below are then ignored, except the sequence
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::optional<std::int64_t> feedforward;
  std::int64_t heads = 0;
  std::optional<std::int64_t> key_value_heads;
  std::optional<std::int64_t> head_size;
  std::optional<std::int64_t> vocabulary;
  std::int64_t sequence = 0;
  bool gated = false;
  // of the layers from `dense_layers` on, or of every expert_layer_every-th of them
  std::optional<Experts> experts;
  std::int64_t dense_layers = 0;        // layers at the start, before those with experts
  std::int64_t expert_layer_every = 1;  // layers in a period with one MoE layer, the last of the period
  std::optional<Normalization> normalization;
  std::optional<bool> qkv_bias;
  std::optional<bool> linear_bias;
  std::optional<LatentAttention> latent_attention;
  std::int64_t window = 0;  // of sliding-window attention; 0: all layers see all tokens
  std::int64_t full_attention_every =
      0;  // with a window: the last of each so many layers has full attention; 0: none has
  bool attention_sinks = false;
  std::optional<bool> clamped_activation;
  std::optional<bool> scaled_rotary;
  bool qk_norm = false;  // per head
  std::int64_t mtp_layers = 0;
  Mixers mixers;
  std::vector<HybridLayer> hybrid_layers;  // if each layer has one part; else empty

  std::int64_t tensor_parallel = 1;
  std::optional<bool> sequence_parallel;
  std::int64_t pipeline_parallel = 1;
  std::optional<std::int64_t> virtual_pipeline;
  std::int64_t context_parallel = 1;
  std::optional<std::string> cp_comm;  // default: p2p
  std::int64_t expert_parallel = 1;
  std::optional<std::int64_t> expert_tensor_parallel;  // default in Megatron-LM: tensor_parallel
  bool moe_pad_to_capacity = false;                    // as in Strategy
  std::optional<std::string> dispatcher;               // its name, and any words after it; default: alltoall
  bool overlap_expert_all_to_all = false;
  std::int64_t data_parallel = 1;
  std::optional<std::int64_t> zero_stage;
  bool fully_sharded = false;
  bool shards_in_node = false;
  std::optional<std::int64_t> shard_copies;
  // stack that its software or sharding belongs to, if it states none
  std::optional<std::string> sharding_stack;
  std::optional<std::string> schedule;
  std::vector<std::int64_t>
      stage_layers;  // layers of virtual stages; empty: as even as can be, or by `settings`
  std::int64_t global_batch = 1;
  std::int64_t micro_batch = 1;
  std::optional<std::string> recompute;
  std::optional<bool> flash_attention;
  Lora lora;  // adapters that it trains, if any
  Offload offload;
  std::optional<MainParams> main_params;
  std::optional<MomentDtype> exp_avg;
  std::optional<MomentDtype> exp_avg_sq;
  std::optional<CudaGraphs> cuda_graphs;  // instead of the stack's
  std::vector<GraphModule> cuda_graph_modules;
  std::optional<std::string> stack;  // name of a training stack
  RunSettings settings;              // override those of its source

  bool fit = false;  // to be fitted to (calibrate/fit_runs.hpp)
  std::optional<Seconds> iteration;
  std::optional<double> memory;  // in memory_unit
  // "GB" unless it says "GiB". Memory of the whole GPU if it says "nvidia-smi", of the allocator if it says
  // "reserved", of tensors if it says "allocated"; otherwise what the stack logs.
  std::string memory_unit;
  std::optional<double> reserved_gib;  // memory of the allocator, besides `memory`
  std::optional<std::int64_t> devices_per_node;
  std::string interconnect;  // in words (calibrate/network_words.hpp)
  std::string caveats;  // in words; may name nvidia-smi or NeMo's peak_memory_usage if memory_unit is empty
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

// Returns the group name of a source's rows: the label of `source`, or the run's title in quotes. Here and
// below, `source` is null for a run without a key.
std::string label_of(const MeasuredRun& run, const PublishedSource* source);

// Returns every reason why the run cannot be predicted on this stack, whatever the system; empty: it can be.
std::vector<std::string> reasons_to_skip(const MeasuredRun& run, const PublishedSource* source,
                                         const Software& software);

// A run as a case, or the reasons why it cannot be one, including a system without performance figures.
using RunCase = std::variant<MeasuredCase, std::vector<std::string>>;

RunCase case_of(const MeasuredRun& run, const PublishedSource* source, const System& system,
                const Software& software);

}  // namespace headroom
