#include "headroom/answer/peak_tensors.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/fixed_vector.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/schedule/order.hpp"
#include "memory/kept_layers.hpp"

namespace headroom {
namespace {

// Returns the passes of each virtual stage of a rank that are in flight during a step.
std::vector<std::int64_t> passes_in_flight(const ScheduleShape& shape, const RankActivations& rank) {
  std::vector<std::int64_t> alive(index(shape.chunks), 0);
  const RankOrder order = PipelineOrder(shape).of(rank.pipeline_rank);
  for (Progress done; !finished(shape, order, done);) {
    const Step step = next_step(shape, order, done);
    count(shape, order, done, step);
    if (step.pass == Pass::forward) ++alive[index(step.chunk)];
    if (step == rank.peak) break;
    if (step.pass == Pass::backward) --alive[index(step.chunk)];
  }
  return alive;
}

// Recomputations that might free a tensor: of modules, where the stack has them, and of all.
std::vector<std::pair<std::string, Strategy>> other_recomputations(const Request& request) {
  std::vector<std::pair<std::string, Strategy>> others;
  const std::vector<RecomputePolicy>& has = request.software.recompute;
  const auto add = [&](std::string name, Recomputation recompute) {
    if (!has.empty() && !contains(has, recompute.policy)) return;
    Strategy strategy = request.strategy;
    strategy.recompute = std::move(recompute);
    const Recomputation& own = request.strategy.recompute;
    if (own.policy == RecomputePolicy::ops && strategy.recompute.policy == RecomputePolicy::ops)
      strategy.recompute.ops.insert(strategy.recompute.ops.end(), own.ops.begin(), own.ops.end());
    if (illegalities(request, strategy).empty()) others.emplace_back(std::move(name), std::move(strategy));
  };
  for (const RecomputeModule& part : recompute_modules)
    add(std::string(part.name), {.policy = RecomputePolicy::ops, .ops = {std::string(part.name)}});
  add("full", {.policy = RecomputePolicy::full});
  return others;
}

// Gathers the tensors of one plan.
class Gathering {
 public:
  explicit Gathering(const Plan& plan)
      : request_(plan.request),
        layers_(*plan.layers.tables),
        sharding_(sharding_of(request_.model, request_.strategy)),
        letters_(bindings(request_.model, request_.strategy, request_.workload)),
        others_(other_recomputations(request_)) {}

  void add(std::size_t of, bool recomputed, std::int64_t count) {
    if (count == 0) return;
    const LayerKind& kind = layers_.kinds[of];
    const Sharding shards = sharding_of(kind.sizes, sharding_, request_.strategy.tensor_parallel);
    const StoredTensors tensors = stored(kind, shards, request_.strategy.recompute, recomputed);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const StoredTensor& tensor = tensors[i];
      if (!tensor.kept) continue;
      const auto [place, is_new] = places_.try_emplace({of, recomputed, i}, found_.size());
      if (is_new) {
        found_.push_back({.name = std::string(tensor.name),
                          .op = std::string(kind.ops.ops()[index(tensor.op)].name),
                          .layers = kind.name,
                          .dtype = tensor.dtype,
                          .expression = to_string(Expr(tensor.bytes)),
                          .each = Bytes(Expr(tensor.bytes).evaluate(bindings_of(kind.sizes, letters_))),
                          .count = 0,
                          .freed_by = freed_by(kind, shards, tensor)});
      }
      found_[place->second].count += count;
    }
  }

  std::vector<PeakTensor> take() && {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const PeakTensor& one, const PeakTensor& two) { return total(one) > total(two); });
    return std::move(found_);
  }

 private:
  [[nodiscard]] StoredTensors stored(const LayerKind& kind, const Sharding& shards,
                                     const Recomputation& recompute, bool recomputed) const {
    return stored_tensors(kind.ops, shards,
                          recomputed ? recomputed_ops_of(kind, recompute, shards) : RecomputedOps{},
                          request_.detail);
  }

  [[nodiscard]] std::vector<std::string> freed_by(const LayerKind& kind, const Sharding& shards,
                                                  const StoredTensor& tensor) const {
    std::vector<std::string> names;
    if (!is_layer(kind)) return names;
    for (const auto& [name, strategy] : others_) {
      const StoredTensors left = stored(kind, shards, strategy.recompute, true);
      const bool stays = std::any_of(left.begin(), left.end(), [&](const StoredTensor& other) {
        return other.kept && other.value == tensor.value && other.received == tensor.received;
      });
      if (!stays) names.push_back(name);
    }
    return names;
  }

  const Request& request_;
  const ModelLayers& layers_;
  Sharding sharding_;
  Bindings letters_;
  std::vector<std::pair<std::string, Strategy>> others_;
  std::map<std::tuple<std::size_t, bool, std::size_t>, std::size_t> places_;
  std::vector<PeakTensor> found_;
};

}  // namespace

Bytes total(const PeakTensor& tensor) { return real(tensor.count) * tensor.each; }

std::vector<PeakTensor> peak_tensors(const Plan& plan) {
  const Strategy& strategy = plan.request.strategy;
  const Recomputation& recompute = strategy.recompute;
  if (recompute.window || (shares_checkpoints(recompute) && recompute.layers != 1)) return {};
  const RankActivations& rank = plan.ranks[plan.peak_rank].activations;
  const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, plan.request.workload));
  const std::vector<std::int64_t> alive = passes_in_flight(shape, rank);
  const ModelLayers& layers = *plan.layers.tables;
  const std::vector<StagePlace> places = stage_places(layers, strategy);
  Gathering gathering(plan);
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    const StagePlace& place = places[index(stage_of(shape, rank.pipeline_rank, chunk))];
    visit_kept_layers(place, recompute, [&](const KeptLayers& of) {
      gathering.add(of.kind, of.recomputed, of.count * alive[index(chunk)]);
    });
    for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
      if (layers.kinds[i].position == KindPosition::layer) continue;
      const bool again = is_layer(layers.kinds[i]) && recomputes_all_layers(recompute);
      gathering.add(i, again, place.of_kind[i] * alive[index(chunk)]);
    }
  }
  return std::move(gathering).take();
}

}  // namespace headroom
