#include "plan/composed_parts.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/plan/iteration_flops.hpp"
#include "headroom/plan/throughput.hpp"

namespace headroom {
namespace {

bool places_alike(const Strategy& x, const Strategy& y) {
  return x.pipeline_parallel == y.pipeline_parallel && x.virtual_pipeline == y.virtual_pipeline &&
         x.stage_layers == y.stage_layers && x.schedule == y.schedule && same_layer_kinds(x, y);
}

std::shared_ptr<const PlacedStages> place_stages(const Strategy& layout, const ModelLayers& of_model,
                                                 const ScheduleShape& shape) {
  auto placed = std::make_shared<PlacedStages>();
  placed->layout = layout;
  LayoutStages& stages = placed->stages;
  visit_stage_places(of_model, layout, [&](const StagePlace& place) {
    const auto same = std::find(stages.distinct.begin(), stages.distinct.end(), place);
    stages.of.push_back(index(same - stages.distinct.begin()));
    if (same == stages.distinct.end()) stages.distinct.push_back(place);
  });
  const auto stage = [&](std::int64_t rank, std::int64_t chunk) {
    return stages.of[index(stage_of(shape, rank, chunk))];
  };
  const auto same = [&](std::int64_t x, std::int64_t y) {
    if (has_weight_passes(shape)) return false;  // later ranks may hold more
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      if (stage(x, chunk) != stage(y, chunk)) return false;
    }
    return true;
  };
  std::vector<RankKind>& kinds = placed->kinds;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    const auto known =
        std::find_if(kinds.begin(), kinds.end(), [&](const RankKind& kind) { return same(kind.rank, rank); });
    placed->kind_of.push_back(index(known - kinds.begin()));
    if (known != kinds.end()) continue;
    RankKind& kind = kinds.emplace_back();
    kind.rank = rank;
    kind.groups.reserve(index(shape.chunks));
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const std::size_t held_stage = stage(rank, chunk);
      const StagePlace& place = stages.distinct[held_stage];
      kind.layers += place.layers;
      kind.has_head = kind.has_head || place.last;
      kind.held = chunk == 0 ? place.of_kind : kind.held + place.of_kind;
      const auto group = std::find(kind.stages.begin(), kind.stages.end(), held_stage);
      kind.groups.push_back(index(group - kind.stages.begin()));
      if (group == kind.stages.end()) kind.stages.push_back(held_stage);
    }
  }
  return placed;
}

}  // namespace

const std::shared_ptr<const PlacedStages>& ComposedParts::placed(const Strategy& layout,
                                                                 const ModelLayers& of_model,
                                                                 const ScheduleShape& shape) {
  if (!placed_ || !places_alike(layout, placed_->layout)) placed_ = place_stages(layout, of_model, shape);
  return placed_;
}

PipelineOrder ComposedParts::order(const ScheduleShape& shape) {
  const std::optional<ScheduleShape> all = laid_out(shape);
  if (!all) return shape;
  return {shape, orders_.try_emplace({all->kind, all->ranks, all->microbatches}, *all).first->second};
}

const std::vector<LiveMoment>& ComposedParts::moments(const ChunkGroups& groups, const ScheduleShape& shape,
                                                      std::int64_t rank) {
  const ScheduleShape alike = same_liveness(shape);
  const auto [entry, added] = moments_.try_emplace({alike.kind, alike.in_pairs, alike.ranks, alike.chunks,
                                                    alike.microbatches, group_size(alike), rank, groups});
  if (added) entry->second = live_moments(groups, alike, rank);
  return entry->second;
}

Flops ComposedParts::model_flops(const ModelLayers& of_model) {
  if (!model_flops_) model_flops_ = iteration_flops(base.model, of_model, base.workload).model_causal;
  return *model_flops_;
}

}  // namespace headroom
