// Where a layer's bytes come from: the question of `headroom explain`. The op table as one rank sees it under a
// strategy, in symbols and in numbers, and what that makes of the first pipeline stage.
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
  // On which the copies of weights in FP8 depend; absent: not known, two copies are counted.
  std::optional<Device> device = {};
};

// A number and the expression that it is the value of.
struct Derived {
  Expr expression;
  double value = 0;
};

struct ExplainedTensor {
  std::string name;
  std::string why;
  Dtype dtype = Dtype::half;
  Placement placement = Placement::boundary;
  bool kept = true;  // false: dropped, and made again by a recomputation
  Derived bytes;
};

struct ExplainedOp {
  std::string name;
  OpKind kind = OpKind::elementwise;
  Placement region = Placement::boundary;
  bool recomputed = false;
  std::vector<ExplainedTensor> tensors;
  Derived kept;                    // bytes of the tensors that are kept
  Derived forward_flops;           // of matrix products, one rank, one microbatch
  std::vector<Collective> before;  // f or g
  std::vector<Collective> after;   // f_bar or g_bar
};

struct LetterValue {
  Symbol letter = Symbol::feedforward;
  double value = 0;
  friend bool operator==(const LetterValue&, const LetterValue&) = default;
};

// A kind of layer as the policy keeps it (with --recompute-layers, one that is recomputed), or an end of the model.
struct ExplainedTable {
  std::string name;  // "layer", "embedding", "head"
  KindPosition position = KindPosition::layer;
  std::int64_t count = 1;               // of the model
  std::vector<LetterValue> sizes;       // letters that stand for other numbers here
  std::vector<std::string> equalities;  // of its sizes, where it has its own
  std::vector<ExplainedOp> ops;
  Derived kept;
  Derived dropped;
  Derived plain;  // bytes where it keeps everything
};

// The first pipeline stage at its peak: how many layers' and microbatches' worth it holds.
struct ExplainedStage {
  std::int64_t layers = 0;      // that the first rank holds
  Derived layers_in_flight;     // layers times microbatches; from the schedule
  Derived layer_bytes;          // all of them
  double embedding_copies = 0;  // microbatches that still need the embedding
  double head_copies = 0;
  RankActivations rank;
};

// What a rank keeps for a parameter of a kind: "parameters", "experts".
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
  std::vector<ExplainedState> state;  // bytes a parameter
  Parameters first_rank;              // that the first pipeline rank holds
  ModelState first_rank_state;
};

// Throws InputError when the strategy is not legal.
ExplainReply answer(const ExplainQuestion& question);
// Of a model that is put together of such layers.
ExplainReply answer(const ExplainQuestion& question, const ModelLayers& layers);

}  // namespace headroom
