#include "headroom/plan/throughput.hpp"

#include "headroom/core/counts.hpp"
#include "headroom/parallel/flops.hpp"

namespace headroom {

double replayed_part(const Transformer& model, const Strategy& strategy, const ScheduleShape& shape,
                     const ReplayedSchedule& schedule) {
  const std::vector<std::int64_t> layers = layers_by_stage(model, strategy);
  const double passes = real(shape.microbatches * shape.chunks);
  double replayed = 0;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    const double stored = real(schedule.ranks[index(rank)].stored_forwards);
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const std::int64_t held = layers[index(stage_of(shape, rank, chunk))];
      replayed += (1 - stored / passes) * real(replayed_layers(held, strategy.recompute));
    }
  }
  return replayed / real(model.layers);
}

IterationFlops iteration_flops(const Transformer& model, const Strategy& strategy, const Workload& workload,
                               double replayed) {
  return iteration_flops(model, layers_of(model), strategy, workload, replayed);
}

IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers, const Strategy& strategy,
                               const Workload& workload, double replayed) {
  // Padding is no work that the model needs.
  Bindings letters = bindings(model, strategy, workload);
  letters.bind(Symbol::vocabulary, static_cast<double>(model.vocabulary));
  const auto count = [&](const Expr& flops) { return Flops(flops.evaluate(letters)); };
  const auto replay = [&](const LayerKind& kind) { return replay_of(kind, strategy.recompute).ops; };
  const auto core = [](const LayerKind& kind) { return core_attention_ops(kind.ops); };

  const Flops needed = count(model_flops_of(layers));
  const Flops masked = 0.5 * 3 * count(forward_flops(layers, core));
  const Flops once = replayed * count(forward_flops(layers, replay));
  const Flops masked_once =
      0.5 * replayed *
      count(forward_flops(layers, [&](const LayerKind& kind) { return core(kind) & replay(kind); }));
  return {.model = needed,
          .model_causal = needed - masked,
          .hardware = needed + once,
          .hardware_causal = needed - masked + once - masked_once,
          .hardware_paper = needed + 3 * once};
}

Throughput throughput(const IterationFlops& flops, Seconds iteration, const Strategy& strategy,
                      const Workload& workload, FlopsPerSecond peak) {
  const auto ranks = static_cast<double>(devices(strategy));
  const double samples = static_cast<double>(workload.global_batch) / iteration.count();
  const double tokens = samples * static_cast<double>(workload.sequence);
  const auto part_of_peak = [&](Flops done) { return utilization(done, iteration, devices(strategy), peak); };
  return {.tokens_per_second = tokens,
          .tokens_per_second_per_device = tokens / ranks,
          .samples_per_second = samples,
          .flops_per_device = flops.model / iteration / ranks,
          .mfu = part_of_peak(flops.model),
          .mfu_causal = part_of_peak(flops.model_causal),
          .hfu = part_of_peak(flops.hardware),
          .hfu_causal = part_of_peak(flops.hardware_causal),
          .hfu_paper = part_of_peak(flops.hardware_paper)};
}

}  // namespace headroom
