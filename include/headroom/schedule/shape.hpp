// Shape of a pipeline schedule, which decides its steps (order.hpp), and where virtual stages lie on the
// ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "headroom/core/names.hpp"
#include "headroom/hardware/schedule_kind.hpp"
#include "headroom/schedule/rounds.hpp"

namespace headroom {

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::one_forward_one_backward;
  std::int64_t ranks = 1;         // p
  std::int64_t chunks = 1;        // virtual stages per rank: m for each copy of the model
  std::int64_t microbatches = 1;  // n
  // Interleaved: microbatches that go through a chunk in a row. 0: p, which then divides n.
  std::int64_t group = 0;
  // 1F1B and interleaved: after the warm-up, a forward pass overlaps with the backward pass after it, and a
  // rank runs one more forward pass ahead.
  bool in_pairs = false;
  friend bool operator==(const ScheduleShape&, const ScheduleShape&) = default;
};

constexpr std::int64_t group_size(const ScheduleShape& shape) {
  if (shape.kind == ScheduleKind::looped_bfs) return shape.microbatches;
  return shape.group > 0 ? shape.group : shape.ranks;
}

constexpr bool has_weight_passes(const ScheduleShape& shape) { return has_weight_passes(shape.kind); }

// Returns whether passes overlap.
constexpr bool overlaps_passes(const ScheduleShape& shape) {
  return overlaps_passes(shape.kind) || shape.in_pairs;
}

// Returns whether the makespan needs a replay because the times of a rank's passes alone do not determine it.
constexpr bool needs_replay(const ScheduleShape& shape) {
  return has_weight_passes(shape) || overlaps_passes(shape);
}

// Returns the number of virtual stages of the model.
constexpr std::int64_t stages_of(const ScheduleShape& shape) {
  return shape.ranks * shape.chunks / model_copies(shape.kind);
}

// Returns the microbatches that go through each chunk: those of its copy of the model.
constexpr std::int64_t microbatches_of_chunk(const ScheduleShape& shape) {
  return shape.microbatches / model_copies(shape.kind);
}

// One step of a rank: a pass of one microbatch through a chunk. Microbatches count within the copy of the
// model that the chunk belongs to.
struct Step {
  Pass pass = Pass::forward;
  std::int64_t microbatch = 0;
  std::int64_t chunk = 0;
  bool whole = false;   // see RoundMove
  bool beside = false;  // see RoundMove; the step after or before this one has it too
  friend bool operator==(const Step&, const Step&) = default;
};

// Returns the virtual stage, counted along the model, that a rank holds as chunk c: c p + rank. In a V,
// stages go down the ranks and come back up. With two copies of the model, the stages of one go down the
// ranks and those of the other go up. A rank's chunks are then in the order of the model, so that both halves
// of the ranks do the same.
constexpr std::int64_t stage_of(const ScheduleShape& shape, std::int64_t rank, std::int64_t chunk) {
  if (model_copies(shape.kind) > 1) {
    const std::int64_t mirrored = shape.ranks - 1 - rank;
    return chunk == 0 ? std::min(rank, mirrored) : std::max(rank, mirrored);
  }
  if (runs_in_v(shape.kind)) return chunk == 0 ? rank : 2 * shape.ranks - 1 - rank;
  return chunk * shape.ranks + rank;
}

// Returns whether a rank holds both the first and the last virtual stage of a copy of the model.
constexpr bool holds_both_ends(const ScheduleShape& shape, std::int64_t rank) {
  return shape.ranks == 1 || (runs_in_v(shape.kind) && rank == 0);
}

// A virtual stage of a copy of the model. The first copy goes down the ranks.
struct PlaceOfCopy {
  std::int64_t copy = 0;
  std::int64_t stage = 0;
  friend bool operator==(const PlaceOfCopy&, const PlaceOfCopy&) = default;
};
constexpr PlaceOfCopy place_of(const ScheduleShape& shape, std::int64_t rank, std::int64_t chunk) {
  const std::int64_t stage = stage_of(shape, rank, chunk);
  return {.copy = model_copies(shape.kind) > 1 && stage != rank ? 1 : 0, .stage = stage};
}
constexpr std::int64_t rank_of(const ScheduleShape& shape, const PlaceOfCopy& place) {
  if (place.copy == 1) return shape.ranks - 1 - place.stage;
  if (runs_in_v(shape.kind)) return std::min(place.stage, 2 * shape.ranks - 1 - place.stage);
  return place.stage % shape.ranks;
}

// Returns the link between a virtual stage and the next one of its copy, named by the rank where it starts on
// the way around the ranks. Returns nothing if one rank holds both stages.
constexpr std::optional<std::int64_t> link_after(const ScheduleShape& shape, const PlaceOfCopy& place) {
  const std::int64_t from = rank_of(shape, place);
  const std::int64_t to = rank_of(shape, {place.copy, place.stage + 1});
  if (from == to) return std::nullopt;
  const bool around = !runs_in_v(shape.kind) && model_copies(shape.kind) == 1;
  return around ? from : std::min(from, to);
}

template <>
inline constexpr std::array<Spelling<Pass>, 3> spellings<Pass>{{
    {Pass::forward, "forward"},
    {Pass::backward, "backward"},
    {Pass::backward_weight, "backward_weight"},
}};

}  // namespace headroom
