#include "headroom/plan/throughput.hpp"

#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/flops.hpp"

namespace headroom {

IterationFlops iteration_flops(const Transformer& model, const Strategy& strategy, const Workload& workload,
                               double replayed) {
  const OpTable layer = layer_ops(model.architecture);
  const Replay replay = replay_of(layer, strategy.recompute);
  // Padding is no work that the model needs.
  Bindings letters = bindings(model, strategy, workload);
  letters.bind(Symbol::vocabulary, static_cast<double>(model.vocabulary));
  const auto count = [&](const Expr& flops) { return Flops(flops.evaluate(letters)); };

  const Flops needed = count(model_flops(model.architecture));
  const Flops core = count(3 * symbols::L * detail::iteration_flops(layer, core_attention_ops(layer)));
  const Flops once = replayed * count(detail::replay_flops(model.architecture, replay));
  return {.model = needed,
          .model_causal = needed - 0.5 * core,
          .hardware = needed + once,
          .hardware_k22 = needed + 3 * once};
}

Throughput throughput(const IterationFlops& flops, Seconds iteration, const Strategy& strategy,
                      const Workload& workload, FlopsPerSecond peak) {
  const auto ranks = static_cast<double>(devices(strategy));
  const double samples = static_cast<double>(workload.global_batch) / iteration.count();
  const double tokens = samples * static_cast<double>(workload.sequence);
  const auto utilization = [&](Flops done) { return done / iteration / ranks / peak; };
  return {.tokens_per_second = tokens,
          .tokens_per_second_per_device = tokens / ranks,
          .samples_per_second = samples,
          .flops_per_device = flops.model / iteration / ranks,
          .mfu = utilization(flops.model),
          .mfu_causal = utilization(flops.model_causal),
          .hfu = utilization(flops.hardware),
          .hfu_k22 = utilization(flops.hardware_k22)};
}

}  // namespace headroom
