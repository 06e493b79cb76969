// Memory and time of one strategy after another, as plan.hpp's evaluate() has them to the last bit, and fast: every
// question is asked once of the knobs that decide it, and only the composition is done for each strategy, by the
// functions that evaluate() calls too.
//
//   sharding                   what a layer keeps and computes, in symbols
//   t, b, sequence parallelism its ops priced; with the policy, its bytes and its cost
//   layout (with p, m, d)      stage chunks, ranks, links, forward and backward times, the end of an iteration
//   recomputation              bytes of the ranks that can be fullest, replay times, the makespan
//   distributed optimizer      state of those ranks; the sums
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

struct RankPeak {
  std::size_t rank = 0;  // the fullest; the first of them
  Bytes bytes;
  friend bool operator==(const RankPeak&, const RankPeak&) = default;
};

class Composer {
 public:
  // Keeps a reference. The request's strategy only lends the fields that no question below sets.
  explicit Composer(const Request& base);

  // All strategies given to the questions below lie in the layout last set (recomputation and the distributed
  // optimizer may differ), and are legal. Of the recomputations, which must outlive the questions, some are timed
  // together where that takes little longer than one.
  void set_layout(const Strategy& layout, std::span<const Recomputation> recomputations = {});

  RankPeak peak(const Strategy& strategy);

  // Expects a system whose performance is known.
  Seconds iteration(const Strategy& strategy);
  // At most that, and in closed form for every schedule.
  Seconds least_iteration(const Strategy& strategy);
  [[nodiscard]] double mfu(const Strategy& strategy, Seconds iteration) const;

 private:
  static constexpr std::size_t policies = spellings<RecomputePolicy>.size();

  // What a model keeps and computes in symbols, for all strategies that shard it alike.
  struct Symbolic {
    Sharding sharding;
    ModelParameterExprs parameters;
    std::array<std::optional<ModelActivationExprs>, policies> activations;
    std::optional<ModelWork> work;
  };

  // The same in numbers. What does not fit needs no time, so costs wait until they are asked for.
  struct Priced {
    Symbolic* symbolic = nullptr;
    ModelParameters parameters;
    std::array<std::optional<ModelActivations>, policies> activations;
    std::optional<PricedModel> model;
    std::array<std::optional<ModelCost>, policies> costs;
  };
  using PricedKey = std::tuple<std::int64_t, std::int64_t, bool>;  // t, b, sequence parallelism

  // One of the few distinct places of a layout's stage chunks.
  struct Stage {
    StagePlace place;
    PassActivations activations;
    PassTimes times;
  };

  // The first of the ranks that hold the same stage chunks: none of them is fuller [memory/rank.hpp].
  struct RankKind {
    std::int64_t rank = 0;
    std::int64_t layers = 0;
    double parameters = 0;
    std::array<Bytes, 2> state;  // optimizer state whole, distributed
    Bytes activations;           // at their peak
    ChunkGroups groups;          // of the moments, where stage chunks differ
    const std::vector<LiveMoment>* moments = nullptr;
  };

  using MomentsKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, ChunkGroups>;

  Symbolic& symbolic_of(const Strategy& strategy);
  Priced& priced_of(const Strategy& strategy);
  const ModelActivations& activations_of(const Strategy& strategy);
  const ModelCost& cost_of(const Recomputation& recompute);
  void find_rank_kinds();
  void set_recompute(const Strategy& strategy);
  Bytes fullest(RankKind& kind);
  const EndTimes& end_of(const Strategy& strategy);
  EndTimes end_of(const Strategy& strategy, Seconds last_backward) const;
  Plan whole_plan(const Strategy& strategy) const;
  void time_layout();
  void fill_spans(const Recomputation& recompute, std::vector<ChunkSpans>& spans);
  Seconds makespan_of(const Recomputation& recompute);

  const Request& base_;
  Bytes reserved_;
  Flops model_flops_;
  std::deque<Symbolic> symbolic_;
  std::map<PricedKey, Priced> priced_;
  OpTable layer_;
  std::map<MomentsKey, std::vector<LiveMoment>> moments_;

  Strategy layout_;
  Priced* now_ = nullptr;
  ScheduleShape shape_;
  std::vector<Stage> stages_;          // distinct
  std::vector<std::size_t> stage_of_;  // by stage chunk of the model: which of them
  std::vector<RankKind> kinds_;
  bool layout_timed_ = false;
  std::vector<Seconds> links_;
  std::array<std::optional<EndTimes>, 2> ends_;  // optimizer state whole, distributed; nothing hidden

  std::optional<Recomputation> recompute_;
  bool filled_ = false;
  std::optional<Seconds> makespan_;
  std::span<const Recomputation> recomputations_;
  std::vector<std::optional<Seconds>> makespans_;  // of these recomputations, where they are known
  std::vector<std::vector<ChunkSpans>> spans_;
  std::vector<PassActivations> passes_;
};

}  // namespace headroom
