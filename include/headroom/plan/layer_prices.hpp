// What the layers, the embedding and the head of a model keep, hold and cost on a system, for one sharding and batch
// after another. Each is worked out once and kept: in symbols for all strategies that shard alike, in numbers for all
// that have t, context parallelism, the sharing of experts, b and sequence parallelism in common, and then for each set of ops that is recomputed.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "headroom/memory/backward.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

class LayerPrices {
 public:
  // Keeps a reference. The request's strategy plays no part.
  explicit LayerPrices(const Request& base);

  // The questions below are about strategies that shard and batch as this one does.
  void select(const Strategy& strategy);

  [[nodiscard]] const ModelLayers& layers() const {
    return now_ == nullptr ? several_ : *now_->symbolic->layers;
  }
  [[nodiscard]] const ModelParameters& parameters() const { return now_->parameters; }
  const ModelActivations& activations(const Recomputation& recompute);
  // What is held for passes for weights.
  const DeferredActivations& deferred();
  // Of a rank that holds so many of each kind, for the whole run.
  [[nodiscard]] Bytes dummy_gradients(const KindCounts& counts) const;
  // Expects a system whose performance is known.
  const ModelCost& cost(const Recomputation& recompute);
  // Op by op. Likewise.
  const PricedModel& prices();
  // What layers of a kind divide and are bound to.
  [[nodiscard]] const Sharding& sharding(std::size_t kind) const { return now_->symbolic->of_kinds[kind]; }
  [[nodiscard]] Bindings letters(std::size_t kind) const;

 private:
  // What is known for each of several recomputations. How many layers recompute, and by which method, plays no part.
  template <class T>
  struct ByRecomputation {
    std::array<std::optional<T>, spellings<RecomputePolicy>.size()> named;  // by policy alone
    std::deque<std::pair<Recomputation, T>> others;  // sets of ops, and checkpoints that ranks share
  };

  struct Symbolic {
    const ModelLayers* layers = nullptr;
    Sharding sharding;
    std::vector<Sharding> of_kinds;
    bool keep_pipeline_outputs = false;
    Dtype gradient_dtype = Dtype::fp32;
    bool sums_gradients = true;
    bool matrices = false;
    ModelParameterExprs parameters;
    ByRecomputation<ModelActivationExprs> activations;
    std::optional<ModelWork> work;
  };

  // What does not fit needs no time, so costs wait until they are asked for.
  struct Priced {
    Symbolic* symbolic = nullptr;
    ModelParameters parameters;
    ByRecomputation<ModelActivations> activations;
    KnownPeaks peaks;
    std::optional<DeferredActivations> deferred;
    std::optional<PricedModel> model;
    ByRecomputation<ModelCost> costs;
  };
  // How the groups of a stage lie over nodes: devices of the job, up to those of a node of it, and those.
  struct Nodes {
    std::int64_t used = 1;
    std::int64_t connected = 1;
    friend auto operator<=>(const Nodes&, const Nodes&) = default;
  };
  [[nodiscard]] Nodes nodes_of(const Strategy& strategy) const;

  // t, c, cp_comm, U, y, z, dispatcher, moe_router_padding, moe_pad_to_capacity, b, nodes, sequence_parallel, split_hidden, save_gathered_input, keep_pipeline_outputs, gradient_dtype, precision,
  // what else is in it, the ranks that agree on its scales, whether passes reduce gradients, and whether the optimizer steps matrices,
  // adapters, modules that are offloaded, whether whole layers are
  using Key =
      std::tuple<std::int64_t, std::int64_t, CpComm, std::int64_t, std::int64_t, std::int64_t, Dispatcher,
                 bool, bool, std::int64_t, Nodes, bool, bool, bool, bool, Dtype, Precision, PrecisionScope,
                 std::optional<Group>, bool, bool, Lora, std::vector<std::string>, bool>;

  const ModelLayers& layers_for(const Strategy& strategy);
  Symbolic& symbolic_of(const Strategy& strategy);

  const Request& base_;
  LayerChoices usual_;   // microbatches of several sequences, at 16 bits
  ModelLayers several_;  // of these
  std::map<std::pair<LayerChoices, Lora>, ModelLayers> others_;
  std::deque<Symbolic> symbolic_;
  std::map<Key, Priced> priced_;
  Strategy strategy_;
  Priced* now_ = nullptr;
};

}  // namespace headroom
