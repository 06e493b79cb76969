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
  fields.optional("overlaps_data_parallel", settings.overlaps_data_parallel);
};

}  // namespace headroom
