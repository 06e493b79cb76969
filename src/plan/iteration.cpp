#include "headroom/plan/iteration.hpp"

namespace headroom {

Seconds replay_time(const StageCost& stage, Seconds backward, const HostRates& rates,
                    const Software& software) {
  if (stage.replay == PassCost{}) return Seconds(0);
  return pass_time(stage.replay + stage.backward, rates, software) - backward;
}

PassTimes pass_times(const StageCost& stage, const HostRates& rates, const Software& software) {
  const Seconds backward = pass_time(stage.backward, rates, software);
  return {.forward = pass_time(stage.forward, rates, software),
          .replay = replay_time(stage, backward, rates, software),
          .backward = backward};
}

IterationEnd iteration_end(const Transformer& model, const Strategy& strategy, double parameters,
                           std::int64_t devices_per_node, const Performance& performance,
                           const Software& software) {
  return {.replicas = data_parallel_times(parameters, strategy, devices_per_node, performance, software),
          .tied_embeddings = tied_embedding_time(model, strategy, devices_per_node, performance),
          .optimizer = optimizer_time(parameters, strategy, performance)};
}

}  // namespace headroom
