// Tensors that passes through a table of ops allocate and free on one rank, in order, for an allocator to
// serve (memory/caching_allocator.hpp). They are the tensors that memory/forward.hpp and memory/backward.hpp
// count at their peak.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/memory/stage.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/recomputed_ops.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

// Allocation of a tensor, or its release if `bytes` is negative. Tensors of a pass are numbered from 0.
struct MemoryEvent {
  int tensor = 0;
  Bytes bytes = Bytes(-1);
  friend bool operator==(const MemoryEvent&, const MemoryEvent&) = default;
};
constexpr bool frees(const MemoryEvent& event) { return event.bytes < Bytes(0); }

// Why a pass allocates a tensor. saved: for the backward pass; recomputed: saved again by a backward pass;
// value: an output until its last reader; gradient: of a value; weight_gradient: of an op's weights;
// gathered: a value or a gradient of all tensor-parallel ranks' tokens; exchanged: by context parallelism;
// cast: a gradient in the dtype of a GEMM; dequantized: weights; temporary: of an op's backward pass.
enum class TensorUse : std::uint8_t {
  saved,
  recomputed,
  value,
  gradient,
  weight_gradient,
  gathered,
  exchanged,
  cast,
  dequantized,
  temporary
};

// What a tensor of a pass is: by op and value of the kind's table, either of which may be `nowhere`.
struct TensorSource {
  int op = nowhere;  // that allocates it
  ValueId value = nowhere;
  TensorUse use = TensorUse::value;
  Bytes bytes;
  friend bool operator==(const TensorSource&, const TensorSource&) = default;
};

struct PassEvents {
  std::vector<MemoryEvent> forward;   // the tensors it leaves are those the layer keeps
  std::vector<MemoryEvent> backward;  // frees all remaining tensors but `weight_gradients`
  std::vector<int> weight_gradients;  // stay until their unit is reduced, or the step
  int tensors = 0;
  std::vector<TensorSource> sources;  // by tensor, if asked for
};

enum class Sources : bool { none, listed };

// Returns the events of one pass through the table each way, with some ops recomputed. A layer's input is
// allocated with it. Its result is freed at the end of its forward pass, because the next layer allocates it
// again and gets the same block. `gradients`: see pass_gradients(). `sources`: also says what each tensor is.
PassEvents pass_events(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                       Detail detail, const Software& software, const Bindings& letters,
                       std::optional<PassGradients> gradients, Sources sources = Sources::none);

template <>
inline constexpr std::array<Spelling<TensorUse>, 10> spellings<TensorUse>{{
    {TensorUse::saved, "saved"},
    {TensorUse::recomputed, "recomputed"},
    {TensorUse::value, "value"},
    {TensorUse::gradient, "gradient"},
    {TensorUse::weight_gradient, "weight gradient"},
    {TensorUse::gathered, "gathered"},
    {TensorUse::exchanged, "exchanged"},
    {TensorUse::cast, "cast gradient"},
    {TensorUse::dequantized, "dequantized weights"},
    {TensorUse::temporary, "temporary"},
}};

}  // namespace headroom
