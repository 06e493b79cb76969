// Parts that all layouts of a composer share: prices of layers, moments of schedules, and the ranks of the
// last layout.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "headroom/memory/rank.hpp"
#include "headroom/plan/layout_times.hpp"

namespace headroom {

// First of the ranks that hold the same virtual stages: no other holds more [memory/rank.hpp]. With separate
// weight-gradient passes, each rank is a kind of its own.
struct RankKind {
  std::int64_t rank = 0;
  std::int64_t layers = 0;
  KindCounts held;                  // layers of each kind
  bool has_head = false;            // on one of its virtual stages
  ChunkGroups groups;               // virtual stages in the same place are alike
  std::vector<std::size_t> stages;  // of each group: index among the distinct stages
};

// Virtual stages of a layout and the ranks that hold them.
struct PlacedStages {
  Strategy layout;
  LayoutStages stages;
  std::vector<RankKind> kinds;
  std::vector<std::size_t> kind_of;  // by rank: index into kinds
};

class ComposedParts {
 public:
  explicit ComposedParts(const Request& request) : base(request), layers(request) {}

  // Returns the stages of a layout. Successive layouts often differ only in the batch.
  const std::shared_ptr<const PlacedStages>& placed(const Strategy& layout, const ModelLayers& of_model,
                                                    const ScheduleShape& shape);
  // Returns the order of a shape. Shapes that differ in what is not laid out share the work.
  PipelineOrder order(const ScheduleShape& shape);
  const std::vector<LiveMoment>& moments(const ChunkGroups& groups, const ScheduleShape& shape,
                                         std::int64_t rank);
  // Returns the model FLOPs of an iteration, with causal attention.
  Flops model_flops(const ModelLayers& of_model);

  const Request& base;
  LayerPrices layers;

 private:
  using MomentsKey = std::tuple<ScheduleKind, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                std::int64_t, ChunkGroups>;

  std::shared_ptr<const PlacedStages> placed_;
  std::map<MomentsKey, std::vector<LiveMoment>> moments_;
  // By kind, ranks and microbatches that are laid out.
  std::map<std::tuple<ScheduleKind, std::int64_t, std::int64_t>, PipelineOrder> orders_;
  std::optional<Flops> model_flops_;
};

}  // namespace headroom
