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
//   LORA_add      scales the result and adds it to the linear's output. A stack that first pads the result to
//                 the width of q, k and v keeps it (AdapterChoices::pads_adapters)
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

// How a training stack adapts and quantizes linears.
struct AdapterChoices {
  // Adapters are FP32. Each saves a 16-bit copy of its input and of its weights [PEFT, tuners/lora/layer.py,
  // _cast_input_dtype].
  bool autocast = false;
  // Frozen linears of 4 bits keep their inputs, though nothing needs them [bitsandbytes before its pull request
  // 1270, autograd/_functions.py, MatMul4Bit]. Linears of 8 bits always do [the same file, MatMul8bitLt].
  bool keeps_quantized_inputs = false;
  // The output layer is quantized too, unless the embedding is tied to it [Lightning,
  // fabric/plugins/precision/bitsandbytes.py, which replaces every torch.nn.Linear].
  bool quantizes_output_layer = false;
  // Weights are dequantized to FP16 and cast to BF16 from there [the same file, quantize: dtype=torch.half].
  bool dequantizes_through_fp16 = false;
  // Adapters of q, k and v share one dropped input [litgpt/lora.py, LoRAQKVLinear.forward]. Where some of the
  // three have none, index_copy pads the results of the others and keeps what it copied [the same file,
  // zero_pad; PyTorch, tools/autograd/derivatives.yaml, index_copy].
  bool pads_adapters = false;
};

// Returns the table of a layer with adapters (`adapted`), or of an end of the model, which is only frozen. If
// all linears are adapted at once, q, k, v, gate and up have an adapter each where q, k and v are linears of
// their own. A linear that is fused has one adapter.
OpTable with_adapters(const OpTable& table, CrossEntropy loss, const Lora& lora, bool adapted,
                      const AdapterChoices& choices = {});

// Returns the layers with adapters, or unchanged if the weights are trained.
ModelLayers with_adapters(ModelLayers layers, CrossEntropy loss, const Lora& lora,
                          const AdapterChoices& choices = {});

}  // namespace headroom
