// Memory and time of one strategy after another, as plan.hpp's evaluate() has them to the last bit, and fast: what few
// knobs decide is computed once (a layer's cost and bytes by t, b, sequence parallelism and policy; the stages of a
// layout), and only the composition is done for each strategy, by the functions that evaluate() calls too.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

struct RankPeak {
  std::size_t rank = 0;  // the fullest; the first of them
  Bytes bytes;
  friend bool operator==(const RankPeak&, const RankPeak&) = default;
};

class Evaluator {
 public:
  // Keeps a reference. The request's strategy only lends the fields that no question below sets.
  explicit Evaluator(const Request& base);

  // All strategies given to the questions below lie in the layout last set (recomputation and the distributed
  // optimizer may differ), and are legal.
  void set_layout(const Strategy& layout);

  RankPeak peak(const Strategy& strategy);

  // Expects a system whose performance is known.
  Seconds iteration(const Strategy& strategy);
  // At most that, and in closed form for every schedule.
  Seconds least_iteration(const Strategy& strategy);
  [[nodiscard]] double mfu(const Strategy& strategy, Seconds iteration) const;

 private:
  // What a model's parts keep, hold and cost under the knobs that they depend on.
  struct Parts {
    ModelActivations activations;
    ModelParameters parameters;
    std::optional<ModelCost> cost;  // when first asked for: what does not fit needs no time
  };
  using PartsKey = std::tuple<std::int64_t, std::int64_t, bool, RecomputePolicy>;

  // One of the few distinct places of a layout's stage chunks under the recomputation last asked for.
  struct Stage {
    StagePlace place;
    PassActivations activations;
    PassTimes times;
  };

  Parts& parts_of(const Strategy& strategy);
  const ModelCost& cost_now();
  void set_recompute(const Strategy& strategy);
  EndTimes end_of(const Strategy& strategy, Seconds last_backward) const;
  Plan whole_plan(const Strategy& strategy) const;
  const std::vector<ChunkSpans>& spans();

  const Request& base_;
  Bytes reserved_;
  Flops model_flops_;
  std::map<PartsKey, Parts> parts_;

  Strategy layout_;
  ScheduleShape shape_;
  std::vector<Stage> stages_;          // distinct
  std::vector<std::size_t> stage_of_;  // by stage chunk of the model: which of them
  std::vector<std::int64_t> rank_layers_;
  std::vector<Seconds> links_;

  Parts* now_ = nullptr;
  std::optional<Recomputation> recompute_;
  bool timed_ = false;
  std::vector<ChunkSpans> spans_;
  std::optional<Seconds> makespan_;
  std::vector<PassActivations> passes_;
};

}  // namespace headroom
