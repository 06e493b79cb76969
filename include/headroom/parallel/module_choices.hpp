// Sets of Megatron-Core's modules that are worth recomputing in models with mixtures of experts, latent
// attention or another mixer than attention. With experts or latent attention, recomputing only core
// attention saves nothing, and recomputing whole layers sends tokens to their experts twice.
#pragma once

#include <string>
#include <vector>

#include "headroom/model/precision.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// Returns sets of modules, from the least recomputation to the most. Returns none for other models. Returns
// none for FP8 with delayed scaling, which recomputes neither activations nor normalizations [Megatron-LM,
// transformer_config.py].
std::vector<std::vector<std::string>> module_choices(const Transformer& model, Precision precision);

// Returns the sets of modules that a model without any of those recomputes, likewise: normalizations, MLPs, and
// core attention with them where it saves its scores.
std::vector<std::vector<std::string>> dense_module_choices(const Transformer& model, Precision precision);

}  // namespace headroom
