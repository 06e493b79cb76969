// Where a layer's bytes come from: the question of `headroom explain`. The op table as one rank sees it under a strategy,
// in symbols and in numbers, and what that makes of the first pipeline stage.
#pragma once

#include <string>
#include <vector>

#include "headroom/memory/rank.hpp"
#include "headroom/parallel/collectives.hpp"

namespace headroom {

struct ExplainQuestion {
  Transformer model;
  Strategy strategy;
  Workload workload;
  Detail detail = Detail::paper;
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
  bool kept = true;  // false: dropped, and made again by a replay
  Derived bytes;
};

struct ExplainedOp {
  std::string name;
  OpKind kind = OpKind::elementwise;
  Placement region = Placement::boundary;
  bool replayed = false;
  std::vector<ExplainedTensor> tensors;
  Derived kept;                    // bytes of the tensors that are kept
  Derived forward_flops;           // of matrix products, one rank, one microbatch
  std::vector<Collective> before;  // f or g
  std::vector<Collective> after;   // f_bar or g_bar
};

struct ExplainedTable {
  std::string name;  // "layer", "embedding", "head"
  std::vector<ExplainedOp> ops;
  Derived kept;
  Derived dropped;
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

struct ExplainReply {
  Transformer model;
  Strategy strategy;
  Workload workload;
  Detail detail = Detail::paper;
  std::vector<std::string> equalities;  // "f = 4 h": relations of this model that the expressions use
  ExplainedTable layer;  // as the policy keeps it; with --recompute-layers, a layer that is recomputed
  Derived plain_layer;   // bytes of a layer that keeps everything
  ExplainedTable embedding;
  ExplainedTable head;
  ExplainedStage first_stage;
};

// Throws InputError when the strategy is not legal.
ExplainReply answer(const ExplainQuestion& question);

}  // namespace headroom
