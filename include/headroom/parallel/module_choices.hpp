// Sets of Megatron-Core's modules that are worth recomputing in a model: those of its mixtures of experts and of latent attention,
// where recomputing core attention alone saves nothing and recomputing whole layers sends tokens to their experts twice.
#pragma once

#include <string>
#include <vector>

#include "headroom/model/precision.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// From the least recomputed to the most; none for a model that has neither. FP8 with delayed scaling recomputes no activation and
// no normalization [Megatron-LM, transformer_config.py], so it has none either.
std::vector<std::vector<std::string>> module_choices(const Transformer& model, Precision precision);

}  // namespace headroom
