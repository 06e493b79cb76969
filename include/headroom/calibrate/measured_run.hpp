// A training run as somebody published or measured it: its configuration, as far as it is known, its
// iteration time and its memory, or one of the two. And the request that replays it as a prediction.
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

// Absent members were not published.
struct MeasuredRun {
  // What a prediction needs and the run does not state: its members by name, whose values here mean nothing.
  std::vector<std::string> lacking;
  std::vector<std::string> unmodelled;  // what it has that no prediction knows yet
  std::vector<std::string> unread;      // members that say how it ran and that no prediction depends on
  // What its file has wrong, by places within the run ("/parallel/tp"). Such a run is not predicted.
  std::vector<Problem> mistakes;

  std::string name;
  std::string key;     // of the publication that it is of (PublishedSource); empty without
  std::string source;  // a title, which is shown and decides nothing; empty where the runs are the user's own
  std::string model_name;  // what the run calls its model beside its sizes; may be empty
  std::string device;      // "A100-SXM4-80GB"
  std::string dtype;
  std::optional<std::string> recipe;  // of the precision of linears: the name of one
  bool fp8_param_gather = false;
  bool fp8_attention = false;
  std::array<std::int64_t, 2> bf16_layers{};  // at the start of the model and at its end
  std::vector<PrecisionModule> bf16_modules;  // empty: those that the recipe of its model names
  std::string overlap;  // what overlaps or is sharded how, in words that only a source's variants read
  bool dense = true;

  std::optional<Transformer>
      model;  // where the run names one; then the sizes below say nothing, except the sequence
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::optional<std::int64_t> feedforward;
  std::int64_t heads = 0;
  std::optional<std::int64_t> key_value_heads;
  std::optional<std::int64_t> head_size;
  std::optional<std::int64_t> vocabulary;
  std::int64_t sequence = 0;
  bool gated = false;
  std::optional<Experts> experts;  // of the layers from `dense_layers` on, or of every so-manieth of them
  std::int64_t dense_layers = 0;   // at the start, before those with experts
  std::int64_t expert_layer_every =
      1;  // a layer with experts, counted so that the last of each so many has them
  std::optional<Normalization> normalization;
  std::optional<bool> qkv_bias;
  std::optional<bool> linear_bias;
  std::optional<LatentAttention> latent_attention;
  std::int64_t window = 0;  // of sliding attention; 0: all layers see all tokens
  std::int64_t full_attention_every =
      0;  // with a window: the last of each so many layers has none; 0: all have it
  bool attention_sinks = false;
  std::optional<bool> clamped_activation;
  std::optional<bool> scaled_rotary;
  bool qk_norm = false;  // per head
  std::int64_t mtp_layers = 0;
  std::optional<Mamba> mamba;
  std::vector<HybridLayer> hybrid_layers;  // where each layer is of one part; else empty

  std::int64_t tensor_parallel = 1;
  std::optional<bool> sequence_parallel;
  std::int64_t pipeline_parallel = 1;
  std::optional<std::int64_t> virtual_pipeline;
  std::int64_t context_parallel = 1;
  std::optional<std::string> cp_comm;  // p2p without
  std::int64_t expert_parallel = 1;
  std::optional<std::int64_t> expert_tensor_parallel;  // Megatron-LM's is tensor_parallel
  bool moe_pad_to_capacity = false;                    // as of a strategy
  std::optional<std::string> dispatcher;               // its name, with any words behind it; alltoall without
  bool overlap_expert_all_to_all = false;
  std::int64_t data_parallel = 1;
  std::optional<std::int64_t> zero_stage;
  bool fully_sharded = false;
  bool shards_in_node = false;
  std::optional<std::int64_t> shard_copies;
  std::optional<std::string> sharding_stack;  // that its software or its sharding is of, where it states none
  std::optional<std::string> schedule;
  std::vector<std::int64_t>
      stage_layers;  // of virtual stages; empty: as even as can be, or as `settings` say
  std::int64_t global_batch = 1;
  std::int64_t micro_batch = 1;
  std::optional<std::string> recompute;
  std::optional<bool> flash_attention;
  Lora lora;  // adapters that it trains; none without
  Offload offload;
  std::optional<MainParams> main_params;
  std::optional<MomentDtype> exp_avg;
  std::optional<MomentDtype> exp_avg_sq;
  std::optional<CudaGraphs> cuda_graphs;  // over the stack's
  std::vector<GraphModule> cuda_graph_modules;
  std::optional<std::string> stack;  // name of a training stack
  RunSettings settings;              // laid over those of its source

  bool fit = false;  // marked as one to fit efficiencies to (calibrate/fit_runs.hpp)
  std::optional<Seconds> iteration;
  std::optional<double> memory;  // in its unit
  // "GB" unless it says "GiB"; of the whole device where it says "nvidia-smi", of the allocator where it says "reserved", of
  // tensors where it says "allocated"; else as its stack logs memory.
  std::string memory_unit;
  std::optional<double> reserved_gib;  // that the allocator held, beside `memory`
  std::optional<std::int64_t> devices_per_node;
  std::string interconnect;  // in words (calibrate/network_words.hpp)
  std::string
      caveats;  // in words, which may name nvidia-smi or NeMo's peak_memory_usage where memory_unit is empty
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

// What the rows of a source are called together: the label of `source`, which is null for a run without a key, here and
// below; or else the run's title in quotes.
std::string label_of(const MeasuredRun& run, const PublishedSource* source);

// Every reason why the run is not one that can be predicted on this stack, on whichever system; none where it is.
std::vector<std::string> reasons_to_skip(const MeasuredRun& run, const PublishedSource* source,
                                         const Software& software);

// The run as a case, or those reasons, and the system's, where it has no performance figures.
using RunCase = std::variant<MeasuredCase, std::vector<std::string>>;

RunCase case_of(const MeasuredRun& run, const PublishedSource* source, const System& system,
                const Software& software);

}  // namespace headroom
