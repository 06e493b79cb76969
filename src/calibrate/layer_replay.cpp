#include "headroom/calibrate/layer_replay.hpp"

#include "headroom/parallel/legality.hpp"
#include "headroom/time/layer_cost.hpp"

namespace headroom {

std::optional<Seconds> layer_time(const MeasuredLayer& layer, std::int64_t ranks,
                                  const Performance& performance) {
  const Transformer model{.name = "layer",
                          .source = "a sample",
                          .hidden = layer.hidden,
                          .feedforward = 4 * layer.hidden,
                          .heads = layer.heads,
                          .key_value_heads = layer.heads,
                          .head_size = layer.hidden / layer.heads,
                          .layers = 1,
                          .vocabulary = layer.tensor_parallel,  // plays no part
                          .sequence = layer.sequence,
                          .max_positions = layer.sequence};
  const Strategy strategy{.tensor_parallel = layer.tensor_parallel,
                          .micro_batch = layer.micro_batch,
                          .recompute = {.policy = layer.recompute}};
  const Workload workload{.global_batch = layer.micro_batch, .sequence = layer.sequence};
  const Software software{.overlap_tensor_parallel = TensorOverlap::none,
                          .norm_backward = NormBackward::two_kernels};
  if (layer.hidden % layer.heads != 0 || !illegalities(model, strategy, workload, software).empty())
    return std::nullopt;
  const LayerCost cost = layer_cost(
      model, strategy, setting_of(model, strategy, workload, layer.tensor_parallel, performance, software));
  PassCost pass = layer.pass == LayerPass::forward ? cost.forward : cost.recompute + backward(cost);
  if (ranks == 0) pass.communication = Seconds(0);
  return device_time(pass);
}

}  // namespace headroom
