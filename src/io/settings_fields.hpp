// The members of RunSettings, which sources and runs files share.
#pragma once

#include "headroom/calibrate/published_source.hpp"
#include "object_reader.hpp"

namespace headroom {

inline constexpr auto run_settings_fields = [](auto& fields, auto& settings) {
  fields.optional("vocabulary", settings.vocabulary, Range{1, 1 << 28});
  fields.optional("recompute", settings.recompute,
                  OneOf{RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full});
  fields.optional("memory_unit", settings.memory_unit);
  fields.optional("gradient_dtype", settings.gradient_dtype, OneOf{dtypes_that<is_floating>});
  fields.optional("positions", settings.positions);
  fields.optional("tied_embeddings", settings.tied_embeddings);
  fields.optional("ends_count_as_layers", settings.ends_count_as_layers);
  fields.optional("overlap_tensor_parallel", settings.overlap_tensor_parallel);
  fields.optional("overlap_grad_reduce", settings.overlap_grad_reduce);
  fields.optional("overlap_param_gather", settings.overlap_param_gather);
  fields.optional("overlap_p2p", settings.overlap_p2p);
  fields.optional("delay_weight_gradients", settings.delay_weight_gradients);
  fields.optional("overlap_shared_experts", settings.overlap_shared_experts);
  fields.optional("launches", settings.launches);
  fields.optional("clamp_kernel", settings.clamp_kernel);
  fields.optional("expert_bias_kernel", settings.expert_bias_kernel);
};

}  // namespace headroom
