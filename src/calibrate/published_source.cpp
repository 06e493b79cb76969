#include "headroom/calibrate/published_source.hpp"

namespace headroom {

std::vector<Target> targets_of(const PublishedSource& source) {
  std::vector<Target> targets;
  for (const auto& [measure, median, worst] : source.targets) {
    targets.push_back({.group = is_bytes(measure) ? source.label + ", memory" : source.label,
                       .source = source.label,
                       .measure = measure,
                       .median = median,
                       .worst = worst});
  }
  return targets;
}

RunSettings laid_over(const RunSettings& above, const RunSettings& below) {
  RunSettings result = above;
  const auto fill = [](auto& value, const auto& other) {
    if (!value) value = other;
  };
  fill(result.vocabulary, below.vocabulary);
  fill(result.recompute, below.recompute);
  fill(result.memory_unit, below.memory_unit);
  fill(result.gradient_dtype, below.gradient_dtype);
  fill(result.positions, below.positions);
  fill(result.tied_embeddings, below.tied_embeddings);
  fill(result.ends_count_as_layers, below.ends_count_as_layers);
  fill(result.overlap_tensor_parallel, below.overlap_tensor_parallel);
  fill(result.overlap_grad_reduce, below.overlap_grad_reduce);
  fill(result.overlap_param_gather, below.overlap_param_gather);
  fill(result.overlap_p2p, below.overlap_p2p);
  fill(result.delay_weight_gradients, below.delay_weight_gradients);
  fill(result.overlap_shared_experts, below.overlap_shared_experts);
  fill(result.launches, below.launches);
  fill(result.clamp_kernel, below.clamp_kernel);
  fill(result.expert_bias_kernel, below.expert_bias_kernel);
  return result;
}

Software with_settings(Software software, const RunSettings& settings) {
  const auto set = [](auto& choice, const auto& stated) { choice = stated.value_or(choice); };
  set(software.overlap_tensor_parallel, settings.overlap_tensor_parallel);
  set(software.overlap_grad_reduce, settings.overlap_grad_reduce);
  set(software.overlap_param_gather, settings.overlap_param_gather);
  set(software.overlap_p2p, settings.overlap_p2p);
  set(software.delay_weight_gradients, settings.delay_weight_gradients);
  set(software.overlap_shared_experts, settings.overlap_shared_experts);
  set(software.launches, settings.launches);
  set(software.clamp_kernel, settings.clamp_kernel);
  set(software.expert_bias_kernel, settings.expert_bias_kernel);
  return software;
}

}  // namespace headroom
