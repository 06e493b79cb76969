#include "headroom/memory/units.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "memory/kept_layers.hpp"

namespace headroom {
namespace {

// Units of a virtual stage in the order of the model: one for each layer, and the ends.
class UnitOrder {
 public:
  UnitOrder(const ModelUnits& units, const StagePlace& place) : units_(units) {
    for (std::size_t i = 0; i < units.kinds.size(); ++i) {
      const KindUnit& kind = units.kinds[i];
      if (kind.position == KindPosition::layer || place.of_kind[i] == 0) continue;
      add(kind.position == KindPosition::first ? embedding_ : head_, kind);
    }
    if (!units.ends_in_root) return;
    add(root_, embedding_);
    add(root_, head_);
    embedding_ = head_ = {};
  }

  // Returns the unit bytes during the backward pass of a unit. `before` and `after` are its neighbours in the
  // order of the model. `so_far` are the gathered bytes of the unit and all units before it, `made` are
  // the gradients of all units after it.
  [[nodiscard]] UnitBytes during(const KindUnit& unit, const KindUnit& before, const KindUnit& after,
                                 Bytes so_far, Bytes made, bool gradients_counted) const {
    UnitBytes bytes{.gathered = units_.keeps_gathered ? so_far : unit.gathered + before.gathered,
                    .gradients = units_.buckets,
                    .made = made};
    bytes.gathered += root_.gathered;
    if (units_.buckets == Bytes(0)) {
      if (!gradients_counted) bytes.gradients += unit.gradients;
      bytes.gradients += after.reduction + after.stepped;
      if (&unit != &head_) bytes.gradients += units_.tied;
      // The output layer's gradients are among those of the current unit.
      if (&unit != &head_ || !gradients_counted) bytes.gradients += root_.gradients;
    }
    return bytes;
  }

  [[nodiscard]] const KindUnit& embedding() const { return embedding_; }
  [[nodiscard]] const KindUnit& head() const { return head_; }
  // Gradients of the ends that stay until the step; and of those in the root, which is reduced last.
  [[nodiscard]] Bytes all_kept() const { return embedding_.kept + head_.kept + root_.kept; }
  [[nodiscard]] Bytes root_kept() const { return root_.kept; }
  [[nodiscard]] const KindUnit& root() const { return root_; }

  // Returns the unit bytes after the backward pass, while the gradients of the last unit are reduced.
  [[nodiscard]] UnitBytes at_end(const KindUnit& last, Bytes grown) const {
    if (last.reduction <= Bytes(0)) return {.made = grown};
    // The root's weights are free by then; those of another unit are freed after its reduction starts.
    return {.gathered = units_.ends_in_root ? Bytes(0) : last.gathered,
            .gradients = last.gradients + last.reduction + last.stepped,
            .made = grown - last.kept};
  }

 private:
  static void add(KindUnit& sum, const KindUnit& part) {
    sum.gathered += part.gathered;
    sum.gradients += part.gradients;
    sum.reduction += part.reduction;
    sum.kept += part.kept;
    sum.stepped += part.stepped;
  }

  const ModelUnits& units_;
  KindUnit embedding_;
  KindUnit head_;
  KindUnit root_;
};

}  // namespace

namespace {

// Returns the gradients of a rank's parameters that stay until the step.
Bytes kept_gradients(const Parameters& held, bool fp32_weights, const Strategy& strategy,
                     const Workload& workload, const Software& software) {
  if (strategy.offload.parameters) return Bytes(0);  // they are on the host
  const Parameters stepped = with_gradients(held, strategy, software);
  const double each =
      real(size_of(fp32_weights ? Dtype::fp32 : kept_gradient_dtype(strategy, workload, software)));
  const bool shards_them = reduces_in_passes(strategy, workload, software);
  const auto shards_of = [&](WeightClass of) { return shards_them ? real(shards(strategy, of)) : 1; };
  return Bytes(each * (stepped.dense / shards_of(WeightClass::dense) +
                       stepped.expert / shards_of(WeightClass::expert)));
}

}  // namespace

ModelUnits model_units(const ModelLayers& layers, const ModelParameters& parameters, const Strategy& strategy,
                       const Workload& workload, const Software& software) {
  EXPECTS(has_unit_bytes(strategy, workload, software));
  constexpr auto half = static_cast<double>(size_of(Dtype::half));
  const bool units_apart = has_units(strategy, workload, software);
  const bool reduces = reduces_in_passes(strategy, workload, software);
  const bool grows = grows_gradients(strategy, workload, software);
  const bool by_bucket = software.sharding.reduction_buffer == ReductionBuffer::bucket;
  ModelUnits units{.kinds = {},
                   .keeps_gathered = keeps_gathered(strategy),
                   .ends_in_root = units_apart && software.sharding.ends_in_root,
                   .buckets = {},
                   .tied = {}};
  double all = 0;
  const KindCounts counts = counts_of(layers);
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    const bool last = i + 1 == layers.kinds.size();  // the head
    const Parameters held = last ? without_shared(parameters.kinds[i], parameters) : parameters.kinds[i];
    KindUnit& unit = units.kinds.emplace_back();
    unit.position = layers.kinds[i].position;
    if (gathers_in_passes(strategy)) unit.gathered = gathered_bytes(held, strategy);
    all += real(counts[i]) * total(with_gradients(held, strategy, software));
    const bool fp32_weights = layers.kinds[i].fp32_weights;
    if (grows) unit.kept = kept_gradients(held, fp32_weights, strategy, workload, software);
    if (reduces && strategy.step_in_backward)
      unit.stepped = kept_gradients(held, fp32_weights, strategy, workload, software);
    if (by_bucket) continue;
    unit.gradients = Bytes(total(with_gradients(held, strategy, software)) * half);
    if (reduces)
      unit.reduction =
          Bytes(total(with_gradients(held, strategy, software)) * real(size_of(strategy.gradient_dtype)));
  }
  if (!units_apart && parameters.shared > 0 && !trains_adapters(strategy.lora)) {
    // The output layer makes the first gradient of the weights that it shares with the embedding.
    const Bytes of_shared =
        kept_gradients({parameters.shared}, layers.kinds.back().fp32_weights, strategy, workload, software);
    if (strategy.step_in_backward) units.tied = of_shared;
    if (!grows) return units;
    const auto embedding = std::find_if(units.kinds.begin(), units.kinds.end(), [](const KindUnit& unit) {
      return unit.position == KindPosition::first;
    });
    embedding->kept -= of_shared;
    units.kinds.back().kept += of_shared;
  }
  if (reduces && by_bucket) {
    const double buffers = software.overlap_grad_reduce ? 2 : 1;
    units.buckets = Bytes(std::min(real(software.bucket_parameters), all) * half * buffers);
  }
  return units;
}

void set_units(StageActivations& stage, const ModelUnits& units, const StagePlace& place,
               const Recomputation& recompute) {
  const UnitOrder order(units, place);
  struct Run {
    const KindUnit* unit;
    std::int64_t layers;
  };
  std::vector<Run> runs;
  visit_kept_layers(place, recompute, [&](const KeptLayers& of) {
    if (!of.joins) runs.push_back({&units.kinds[of.kind], 0});
    runs.back().unit = &units.kinds[of.kind];
    runs.back().layers += of.count * of.members;
  });
  EXPECTS(runs.size() == stage.layers.size());
  stage.grown_gradients = order.all_kept();
  for (const Run& run : runs) stage.grown_gradients += real(run.layers) * run.unit->kept;
  Bytes so_far = order.embedding().gathered;
  Bytes to_make = order.embedding().kept;  // of the units before the first layer
  const auto made_before = [&](Bytes of_units) {
    return stage.grown_gradients - order.root_kept() - of_units;
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const KindUnit& unit = *runs[i].unit;
    const KindUnit& before = i > 0 ? *runs[i - 1].unit : order.embedding();
    const KindUnit& after = i + 1 < runs.size() ? *runs[i + 1].unit : order.head();
    CheckpointRun& run = stage.layers[i];
    const bool alone = runs[i].layers == 1;
    const bool counted = run.peaks.backward.during.op != nowhere;
    const Bytes with_all = so_far + real(runs[i].layers) * unit.gathered;
    const Bytes all_kept = to_make + real(runs[i].layers) * unit.kept;
    run.units.last =
        order.during(unit, alone ? before : unit, after, with_all, made_before(all_kept), counted);
    run.units.inner =
        order.during(unit, unit, unit, with_all - unit.gathered, made_before(all_kept - unit.kept), counted);
    run.units.first = order.during(unit, before, alone ? after : unit, so_far + unit.gathered,
                                   made_before(to_make + unit.kept), counted);
    so_far = with_all;
    to_make = all_kept;
  }
  if (!units.ends_in_root) {
    const KindUnit& last_reduced =
        order.embedding().gradients > Bytes(0) || runs.empty() ? order.embedding() : *runs.front().unit;
    stage.end_units = order.at_end(last_reduced, stage.grown_gradients);
  } else {
    stage.end_units = order.at_end(order.root(), stage.grown_gradients);
  }
  const KindUnit none;
  const KindUnit& first = runs.empty() ? order.head() : *runs.front().unit;
  const KindUnit& last = runs.empty() ? order.embedding() : *runs.back().unit;
  stage.head_units = order.during(order.head(), last, none, so_far + order.head().gathered, Bytes(0),
                                  stage.head_peaks.backward.during.op != nowhere);
  stage.embedding_units =
      order.during(order.embedding(), none, first, order.embedding().gathered,
                   made_before(order.embedding().kept), stage.embedding_peaks.backward.during.op != nowhere);
}

}  // namespace headroom
