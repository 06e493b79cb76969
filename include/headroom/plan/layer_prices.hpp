// Memory and cost of a model's layers, embedding and output layer on a system, by sharding and batch. Each
// result is computed once and stored. Symbolic results serve all strategies that shard alike. Numeric
// results serve all strategies with the same t, context parallelism, expert sharding, b and sequence
// parallelism, and are stored for each set of recomputed ops.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "headroom/memory/backward.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/known_layers.hpp"
#include "headroom/parallel/sharding.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {

class PricedLayers;

class LayerPrices {
 public:
  // Keeps a reference to the request; ignores the request's strategy.
  explicit LayerPrices(const Request& base);
  LayerPrices(const LayerPrices&) = delete;  // what it returns refers to it
  LayerPrices& operator=(const LayerPrices&) = delete;

  // Returns the layers under the strategy's sharding and batch. The result refers to this object and to
  // `strategy`; both must outlive it.
  PricedLayers of(const Strategy& strategy);

  KnownLayers& known_layers() { return known_; }

 private:
  friend class PricedLayers;

  // Results by recomputation. The number of recomputed layers and the method are ignored.
  template <class T>
  struct ByRecomputation {
    std::array<std::optional<T>, spellings<RecomputePolicy>.size()> named;  // by policy alone
    std::deque<std::pair<Recomputation, T>> others;  // sets of ops, and checkpoints that ranks share
  };

  struct Symbolic {
    std::shared_ptr<const ModelLayers> layers;
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

  // Numeric results. Costs are computed on demand, since a strategy that does not fit needs no time.
  struct Priced {
    Symbolic* symbolic = nullptr;
    ModelParameters parameters;
    ByRecomputation<ModelActivations> activations;  // before anything is offloaded
    std::optional<ModelActivations> checkpoints;
    // By the modules offloaded, and whether whole layers are.
    std::map<std::pair<std::vector<std::string>, bool>, ByRecomputation<ModelActivations>> offloaded;
    KnownPeaks peaks;
    std::optional<DeferredActivations> deferred;
    std::vector<std::pair<KindCounts, Bytes>> dummy_gradients;  // by the kinds of layers that a rank has
    std::optional<PricedModel> model;
    ByRecomputation<ModelCost> costs;
  };
  // Placement of a stage's groups over nodes: GPUs of the job, up to the GPUs of a node, and GPUs of a node.
  struct Nodes {
    std::int64_t used = 1;
    std::int64_t connected = 1;
    friend auto operator<=>(const Nodes&, const Nodes&) = default;
  };
  [[nodiscard]] Nodes nodes_of(const Strategy& strategy) const;

  // Key of a numeric result: t, c, cp_comm, U, y, z, dispatcher, moe_router_padding, moe_pad_to_capacity, b,
  // nodes, sequence_parallel, split_hidden, save_gathered_input, keep_pipeline_outputs, gradient_dtype,
  // precision, the scope of the precision, the ranks that agree on its scales, whether passes reduce
  // gradients and make them, whether weights and adapters run under autocast, whether the optimizer steps
  // matrices, and adapters.
  using Key =
      std::tuple<std::int64_t, std::int64_t, CpComm, std::int64_t, std::int64_t, std::int64_t, Dispatcher,
                 bool, bool, std::int64_t, Nodes, bool, bool, bool, bool, Dtype, Precision, PrecisionScope,
                 std::optional<Group>, bool, bool, bool, bool, bool, bool, Lora>;

  Symbolic& symbolic_of(const Strategy& strategy);

  const Request& base_;
  KnownLayers known_;
  std::deque<Symbolic> symbolic_;
  std::map<Key, Priced> priced_;
};

// A model's layers under one sharding and batch.
class PricedLayers {
 public:
  [[nodiscard]] const ModelLayers& layers() const { return *symbolic().layers; }
  [[nodiscard]] const std::shared_ptr<const ModelLayers>& shared_layers() const { return symbolic().layers; }
  [[nodiscard]] const ModelParameters& parameters() const { return priced_->parameters; }
  [[nodiscard]] const ModelActivations& activations(const Recomputation& recompute) const;
  // Returns what layers save under full recomputation, without peaks within passes and before anything is
  // offloaded.
  [[nodiscard]] const ModelActivations& checkpoints() const;
  // Returns what is held for separate weight-gradient passes.
  [[nodiscard]] const DeferredActivations& deferred() const;
  // Returns the dummy gradients that a rank with `counts` layers of each kind keeps for the whole run.
  [[nodiscard]] Bytes dummy_gradients(const KindCounts& counts) const;
  // Returns the bytes of one microbatch's logits on the last stage.
  [[nodiscard]] Bytes logits() const;
  // Expects a system whose performance is known.
  [[nodiscard]] const ModelCost& cost(const Recomputation& recompute) const;
  // Returns the prices op by op. Expects a system whose performance is known.
  [[nodiscard]] const PricedModel& prices() const;
  // Return how layers of a kind are sharded, and the values that their symbols are bound to.
  [[nodiscard]] const Sharding& sharding(std::size_t kind) const { return symbolic().of_kinds[kind]; }
  [[nodiscard]] Bindings letters(std::size_t kind) const;

 private:
  friend class LayerPrices;
  using Offloaded = LayerPrices::ByRecomputation<ModelActivations>;
  PricedLayers(const Request& base, const Strategy& strategy, LayerPrices::Priced& priced,
               Offloaded* offloaded)
      : base_(&base), strategy_(&strategy), priced_(&priced), offloaded_(offloaded) {}

  [[nodiscard]] LayerPrices::Symbolic& symbolic() const { return *priced_->symbolic; }
  [[nodiscard]] Bindings letters() const;
  [[nodiscard]] const ModelActivationExprs& expressions(const Recomputation& recompute) const;
  [[nodiscard]] const ModelActivations& before_offloading(const Recomputation& recompute) const;

  const Request* base_;
  const Strategy* strategy_;
  LayerPrices::Priced* priced_;
  Offloaded* offloaded_;  // null: nothing is offloaded
};

}  // namespace headroom
