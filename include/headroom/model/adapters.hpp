// Trains low-rank adapters in place of weights (LoRA). The base weights may be quantized to NF4 (QLoRA). A
// policy rewrites the op table of a layer once, before anything reads it:
//
//   frozen        every op with weights. It has no weight gradient, so a linear does not save its input for
//                 one. It still saves what its input gradient needs: normalizations and activations save
//                 their input.
//   LORA_dropout  in training with dropout: drops the input for each adapter separately and saves the mask
//                 [PEFT, tuners/lora/layer.py, lora_dropout; Megatron-Bridge, peft/utils.py,
//                 ParallelLinearAdapter, dropout_position pre]
//   LORA_a        [tokens x in] [in x R] beside an adapted linear; saves the input, after dropout if any
//   LORA_b        [tokens x R] [R x out]; saves the R numbers of each token
//   LORA_add      scales the result and adds it to the linear's output
//
// Tensor parallelism divides R in LORA_a beside a column-parallel linear. There LORA_a reads, and saves
// whole, the input that was gathered for the linear. Beside a row-parallel linear, LORA_a divides its input.
// LORA_b divides its output beside both. Exchanges of R numbers a token are not counted [Megatron-Bridge,
// peft/utils.py, ParallelLinearAdapter]. Each expert has adapters of its own. The embedding and the output
// layer are frozen and have no adapters. No gradient leaves the first layer, so the embedding saves nothing.
// The savings that this allows inside the first layer are not modelled.
#pragma once

#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/lora.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

// Returns whether the op is a linear that the target names. A linear that is not gated has no gate.
bool adapts(const OpTable& table, const Op& op, const LoraTarget& target);

// Returns whether the target names a linear of any layer.
bool adapts(const ModelLayers& layers, const LoraTarget& target);

// Returns the table of a layer with adapters (`adapted`), or of an end of the model, which is only frozen. If
// all linears are adapted at once, q, k, v, gate and up have an adapter each where q, k and v are linears of
// their own. A linear that is fused has one adapter. With `autocast`, adapters are FP32. Each
// saves a 16-bit copy of its input and of its weights [PEFT, tuners/lora/layer.py, _cast_input_dtype]. With
// `keeps_inputs`, linears of 4 bits keep their inputs, though nothing needs them [bitsandbytes before its pull
// request 1270, autograd/_functions.py, MatMul4Bit]. Linears of 8 bits always do [the same file, MatMul8bitLt].
OpTable with_adapters(const OpTable& table, CrossEntropy loss, const Lora& lora, bool adapted,
                      bool autocast = false, bool keeps_inputs = false);

// Returns the layers with adapters, or unchanged if the weights are trained.
ModelLayers with_adapters(ModelLayers layers, CrossEntropy loss, const Lora& lora, bool autocast = false,
                          bool keeps_inputs = false);

}  // namespace headroom
