// Memory of a pipeline rank by its parts, as values: weights, gradients and optimizer state (state.hpp works
// them out), activations at the peak (step.hpp and rank.hpp), and what the training stack and the device
// take.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "headroom/model/detail.hpp"
#include "headroom/schedule/shape.hpp"

namespace headroom {

struct ModelState {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;  // master weights and moments
  Bytes on_host;    // in host memory, not part of the others
  friend bool operator==(const ModelState&, const ModelState&) = default;
};

constexpr Bytes total(const ModelState& state) { return state.weights + state.gradients + state.optimizer; }

// Kind of pass through an op: its forward pass, its recomputation, or its backward pass.
enum class OpPass : std::uint8_t { forward, recomputation, backward };

// An op of a kind of layer, as indices into ModelLayers::kinds and OpTable::ops(), or no op.
struct OpPlace {
  int kind = nowhere;
  int op = nowhere;
  OpPass pass = OpPass::backward;
  friend bool operator==(const OpPlace&, const OpPlace&) = default;
};

// Memory in use at one moment. The total is the sum of the parts minus `absent_gradients`.
struct Activations {
  Bytes layers;
  Bytes embedding;
  Bytes head;
  Bytes outputs;    // sent outputs that were not deallocated
  Bytes recompute;  // working set of the checkpoint under recomputation
  // Memory of the op whose backward runs, if the training stack counts it (memory/backward.hpp).
  Bytes gradients;  // gradients of activations
  Bytes logits;     // gradients of logits, in the precision of the output layer
  Bytes gathered;   // inputs and gradients of all sequence shards
  Bytes weight_gradients;
  Bytes dequantized_weights;
  Bytes fetched;         // from the host, for the current layer and the one before it
  Bytes forward_values;  // unsaved values of a forward pass (memory/forward.hpp)
  // Sharded weights and gradients that are whole for the current unit (memory/units.hpp).
  Bytes gathered_weights;
  Bytes unit_gradients;
  Bytes absent_gradients;  // gradients of the state that the backward pass has yet to make
  friend bool operator==(const Activations&, const Activations&) = default;

  friend constexpr Activations operator+(const Activations& x, const Activations& y) {
    return {x.layers + y.layers,
            x.embedding + y.embedding,
            x.head + y.head,
            x.outputs + y.outputs,
            x.recompute + y.recompute,
            x.gradients + y.gradients,
            x.logits + y.logits,
            x.gathered + y.gathered,
            x.weight_gradients + y.weight_gradients,
            x.dequantized_weights + y.dequantized_weights,
            x.fetched + y.fetched,
            x.forward_values + y.forward_values,
            x.gathered_weights + y.gathered_weights,
            x.unit_gradients + y.unit_gradients,
            x.absent_gradients + y.absent_gradients};
  }
  friend constexpr Activations operator-(const Activations& x, const Activations& y) {
    return {x.layers - y.layers,
            x.embedding - y.embedding,
            x.head - y.head,
            x.outputs - y.outputs,
            x.recompute - y.recompute,
            x.gradients - y.gradients,
            x.logits - y.logits,
            x.gathered - y.gathered,
            x.weight_gradients - y.weight_gradients,
            x.dequantized_weights - y.dequantized_weights,
            x.fetched - y.fetched,
            x.forward_values - y.forward_values,
            x.gathered_weights - y.gathered_weights,
            x.unit_gradients - y.unit_gradients,
            x.absent_gradients - y.absent_gradients};
  }
  friend constexpr Activations operator*(double k, const Activations& x) {
    return {k * x.layers,
            k * x.embedding,
            k * x.head,
            k * x.outputs,
            k * x.recompute,
            k * x.gradients,
            k * x.logits,
            k * x.gathered,
            k * x.weight_gradients,
            k * x.dequantized_weights,
            k * x.fetched,
            k * x.forward_values,
            k * x.gathered_weights,
            k * x.unit_gradients,
            k * x.absent_gradients};
  }
};

constexpr Bytes total(const Activations& parts) {
  return parts.layers + parts.embedding + parts.head + parts.outputs + parts.recompute + parts.gradients +
         parts.logits + parts.gathered + parts.weight_gradients + parts.dequantized_weights + parts.fetched +
         parts.forward_values + parts.gathered_weights + parts.unit_gradients - parts.absent_gradients;
}

// Returns the bytes of activations, without subtracting absent gradients.
constexpr Bytes of_activations(const Activations& parts) { return total(parts) + parts.absent_gradients; }

struct StepActivations {
  Step step;
  bool stored = false;  // saved in full, within the rank's window
  // Highest memory of the step. forward: at its end. backward: at its start, during the largest
  // recomputation, or at its end, when all memory for a weight-gradient pass is held. backward_weight: at its
  // start.
  Activations highest;
  Activations after;
  // The op of a backward pass at its peak, if the stack counts peaks within passes.
  OpPlace during;
  friend bool operator==(const StepActivations&, const StepActivations&) = default;
};

struct RankActivations {
  std::int64_t pipeline_rank = 0;
  std::int64_t layers = 0;  // layers of the rank
  // Largest number of forward passes through virtual stages in flight; m of them are one microbatch.
  std::int64_t chunks_in_flight = 0;
  Activations at_peak;
  Bytes grown_gradients;  // gradients in the state that a backward pass makes (grows_gradients)
  Bytes kept_logits;      // part of the outputs at the peak, kept until the iteration ends
  Step peak;              // forward: at its end; backward: during its last recomputation, or during an op
  OpPlace during;         // the op, if the training stack counts peaks within passes
  friend bool operator==(const RankActivations&, const RankActivations&) = default;
};

struct RankMemory {
  ModelState state;
  RankActivations activations;
  Bytes activations_on_host;
  std::int64_t window = 0;  // passes saved in full under Recomputation::window
  Bytes dummy_gradients;    // kept by the training stack for the whole run
  Bytes workspaces;         // of GEMMs, kept for the whole run
  Bytes reserved;
  friend bool operator==(const RankMemory&, const RankMemory&) = default;
};

// Returns the bytes that the rank keeps in host memory.
constexpr Bytes on_host(const RankMemory& rank) { return rank.state.on_host + rank.activations_on_host; }

// Returns the rank's total bytes: weights, gradients, optimizer state, activations at their peak, what the
// training stack keeps, and non-torch memory.
Bytes total(const RankMemory& rank);

// Returns the gradients that a rank holds at its peak. Those that its backward pass has yet to make are not
// there.
constexpr Bytes gradients_at_peak(const RankMemory& rank) {
  return std::max(rank.state.gradients - rank.activations.at_peak.absent_gradients, Bytes(0));
}

// Part of a rank's memory. The table memory_parts serves every report; its parts add up to total().
struct MemoryPart {
  std::string_view name;   // in JSON and CSV, before "_bytes"
  std::string_view words;  // for readers
  bool activations;        // whether the part belongs to the activations at the rank's peak
  Bytes (*of)(const RankMemory& rank);
};
inline constexpr std::array memory_parts{
    MemoryPart{"weights", "weights", false, [](const RankMemory& rank) { return rank.state.weights; }},
    MemoryPart{"gradients", "gradients", false,
               [](const RankMemory& rank) { return gradients_at_peak(rank); }},
    MemoryPart{"optimizer", "optimizer state", false,
               [](const RankMemory& rank) { return rank.state.optimizer; }},
    MemoryPart{"layers", "layer activations", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.layers; }},
    MemoryPart{"embedding", "embedding", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.embedding; }},
    MemoryPart{"head", "output layer", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.head; }},
    MemoryPart{"outputs", "pipeline outputs", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.outputs; }},
    MemoryPart{"recompute", "recompute working set", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.recompute; }},
    MemoryPart{"activation_gradients", "activation gradients", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.gradients; }},
    MemoryPart{"logits", "gradients of logits", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.logits; }},
    MemoryPart{"gathered", "gathered sequence shards", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.gathered; }},
    MemoryPart{"weight_gradients", "weight gradients of the op", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.weight_gradients; }},
    MemoryPart{"dequantized_weights", "dequantized weights of the op", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.dequantized_weights; }},
    MemoryPart{"fetched", "fetched from the host", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.fetched; }},
    MemoryPart{"forward_values", "values of the forward pass", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.forward_values; }},
    MemoryPart{"gathered_weights", "gathered weights", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.gathered_weights; }},
    MemoryPart{"unit_gradients", "gradients being reduced", true,
               [](const RankMemory& rank) { return rank.activations.at_peak.unit_gradients; }},
    MemoryPart{"dummy_gradients", "dummy weight gradients", false,
               [](const RankMemory& rank) { return rank.dummy_gradients; }},
    MemoryPart{"workspaces", "GEMM workspaces", false,
               [](const RankMemory& rank) { return rank.workspaces; }},
    MemoryPart{"non_torch", "non-torch memory", false, [](const RankMemory& rank) { return rank.reserved; }},
};

// Largest part of a rank's memory; all activations at their peak count as one part.
struct Component {
  std::string name;
  Bytes bytes;
  friend bool operator==(const Component&, const Component&) = default;
};
Component largest_component(const RankMemory& rank);

template <>
inline constexpr std::array<Spelling<OpPass>, 3> spellings<OpPass>{{
    {OpPass::forward, "forward"},
    {OpPass::recomputation, "recomputation"},
    {OpPass::backward, "backward"},
}};

}  // namespace headroom
