// Question of `headroom explain`: the origin of a layer's bytes. Shows the op table of one rank under a
// strategy, in symbols and in numbers, and the resulting bytes of the first pipeline stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/hardware/device.hpp"
#include "headroom/memory/rank.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/collectives.hpp"

namespace headroom {

struct ExplainQuestion {
  Transformer model;
  Strategy strategy;
  Workload workload;
  Detail detail = Detail::paper;
  Software software = {};
  // Device that determines the copies of FP8 weights; absent: not known, and two copies are counted.
  std::optional<Device> device = {};
};

// An expression and its value.
struct Derived {
  Expr expression;
  double value = 0;
};

struct ExplainedTensor {
  std::string name;
  std::string why;
  Dtype dtype = Dtype::half;
  Placement placement = Placement::boundary;
  bool kept = true;  // false: dropped, and recomputed
  Derived bytes;
};

struct ExplainedOp {
  std::string name;
  OpKind kind = OpKind::elementwise;
  Placement region = Placement::boundary;
  bool recomputed = false;
  std::vector<ExplainedTensor> tensors;
  Derived kept;                    // bytes of the saved tensors
  Derived forward_flops;           // of GEMMs, for one rank and one microbatch
  std::vector<Collective> before;  // f or g [K22]
  std::vector<Collective> after;   // f_bar or g_bar [K22]
};

struct LetterValue {
  Symbol letter = Symbol::feedforward;
  double value = 0;
  friend bool operator==(const LetterValue&, const LetterValue&) = default;
};

// A kind of layer as the recomputation policy saves it, or an end of the model. With --recompute-layers, a
// layer that is recomputed.
struct ExplainedTable {
  std::string name;  // "layer", "embedding", "head"
  KindPosition position = KindPosition::layer;
  std::int64_t count = 1;               // layers of this kind in the model
  std::vector<LetterValue> sizes;       // letters with other values in this table
  std::vector<std::string> equalities;  // relations of its sizes, if it has its own
  std::vector<ExplainedOp> ops;
  Derived kept;
  Derived dropped;
  Derived plain;  // bytes if it saves everything
};

// The first pipeline stage at its peak, with the layers and microbatches that it holds.
struct ExplainedStage {
  std::int64_t layers = 0;      // of the first rank
  Derived layers_in_flight;     // layers times microbatches, by the schedule
  Derived layer_bytes;          // of all layers in flight
  double embedding_copies = 0;  // microbatches that still need the embedding
  double head_copies = 0;
  RankActivations rank;
};

// Bytes that a rank holds per parameter of a kind ("parameters", "experts").
struct ExplainedState {
  std::string of;
  std::string part;  // "weights", "gradients", "optimizer"
  Derived bytes;
  std::string what;  // "fp32 main params, fp32 exp_avg, fp32 exp_avg_sq"
};

struct ExplainReply {
  Transformer model;
  Strategy strategy;
  Workload workload;
  Software software;
  Detail detail = Detail::paper;
  std::vector<std::string> equalities;  // "f = 4 h": relations of this model that the expressions use
  std::vector<ExplainedTable> kinds;    // in the order of ModelLayers::kinds: layers before ends
  ExplainedStage first_stage;
  std::vector<ExplainedState> state;  // bytes per parameter
  Parameters first_rank;              // of the first pipeline rank
  ModelState first_rank_state;
};

// Explains a layer. Throws InputError if the strategy is not legal.
ExplainReply answer(const ExplainQuestion& question);
// Explains a model made of the given layers.
ExplainReply answer(const ExplainQuestion& question, const ModelLayers& layers);

}  // namespace headroom
