// K22 as the tests need it: its specialisations of the symbols, and the four models of its table 3.
#pragma once

#include <array>

#include "headroom/core/units.hpp"
#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom::k22 {

// The paper's letters only: feed-forward 4h wide, as many key/value heads as heads, heads of h/a.
constexpr Expr in_its_letters(const Expr& expr) {
  using namespace symbols;
  return expr.substitute(Symbol::feedforward, 4 * h)
      .substitute(Symbol::key_value_heads, a)
      .substitute(Symbol::head_size, h / a);
}

// The columns of table 2.
inline constexpr Sharding alone{};
inline constexpr Sharding tensor{.tensor = true};
inline constexpr Sharding tensor_sequence{.tensor = true, .sequence = true};

inline constexpr RecomputedOps nothing{};
constexpr RecomputedOps selective() { return {.ops = core_attention_ops(layer_ops({}))}; }
constexpr RecomputedOps full() { return {.ops = every_op(layer_ops({}))}; }

constexpr Expr layer_bytes(const Sharding& sharding, const RecomputedOps& recomputed = {}) {
  return in_its_letters(kept_bytes(stored_tensors(layer_ops({}), sharding, recomputed)));
}
constexpr Expr embedding_bytes(const Sharding& sharding) {
  return in_its_letters(kept_bytes(stored_tensors(embedding_ops({}), sharding)));
}
constexpr Expr head_bytes(const Sharding& sharding) {
  return in_its_letters(kept_bytes(stored_tensors(head_ops({}), sharding)));
}

// A row of table 3: the model, and how the paper runs it without sequence parallelism and recomputation.
struct Run {
  Transformer model;
  Strategy strategy;
  Workload workload;
};

inline Transformer transformer(const char* name, std::int64_t heads, std::int64_t hidden,
                               std::int64_t layers) {
  return {.name = name,
          .source = "K22 table 3",
          .hidden = hidden,
          .feedforward = 4 * hidden,
          .heads = heads,
          .key_value_heads = heads,
          .head_size = hidden / heads,
          .layers = layers,
          .vocabulary = 51200,
          .sequence = 2048,
          .max_positions = 2048};
}

inline Strategy strategy(std::int64_t pipeline_parallel, std::int64_t virtual_pipeline,
                         std::int64_t micro_batch) {
  return {
      .tensor_parallel = 8,
      .pipeline_parallel = pipeline_parallel,
      .virtual_pipeline = virtual_pipeline,
      .micro_batch = micro_batch,
      .schedule = virtual_pipeline > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward};
}

inline Run gpt_22b() { return {transformer("22B", 64, 6144, 48), strategy(1, 1, 4), {4, 2048}}; }
inline Run gpt3_175b() { return {transformer("175B", 96, 12288, 96), strategy(8, 3, 1), {64, 2048}}; }
inline Run mt_nlg_530b() { return {transformer("530B", 128, 20480, 105), strategy(35, 3, 1), {280, 2048}}; }
inline Run gpt_1t() { return {transformer("1T", 160, 25600, 128), strategy(64, 1, 1), {512, 2048}}; }

inline std::array<Run, 4> table_3() { return {gpt_22b(), gpt3_175b(), mt_nlg_530b(), gpt_1t()}; }

inline double evaluate(const Expr& expr, const Run& run) {
  return expr.evaluate(bindings(run.model, run.strategy, run.workload));
}

// The paper's "present work": sequence parallelism and selective recomputation.
inline Run with_both_techniques(Run run) {
  run.strategy.sequence_parallel = true;
  run.strategy.recompute.policy = RecomputePolicy::selective;
  return run;
}

}  // namespace headroom::k22
