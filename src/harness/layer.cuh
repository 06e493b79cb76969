// One rank's share of a transformer layer on the device, forward and backward [K22 section 4]: cuBLASLt's products and
// the kernels of layer_kernels.cuh, with Megatron's layouts, unfused core attention, and two all-reduces each way where
// there is a communicator. Weights are in half precision, their gradients added up in fp32.
#pragma once

#include <optional>

#include "half.cuh"
#include "headroom/parallel/strategy.hpp"
#include "layer_reference.hpp"
#include "matmul.cuh"
#include "pool.cuh"

namespace headroom::harness {

template <class T>
class Layer {
 public:
  // `communicator`: of size.shards ranks, this one being `shard`; null for a rank alone, whose partial sums then stand
  // for whole ones. Everything runs in `stream`.
  Layer(const LayerSize& size, std::int64_t shard, RecomputePolicy recompute, Pool& pool,
        const Library& library, ncclComm_t communicator, cudaStream_t stream);

  // Keeps what the backward pass needs, with the input [tokens][h]; writes the output.
  void forward(Tensor input, T* output);
  // Recomputes what was not kept; writes the input's gradient, adds to those of the parameters, and frees all that was
  // kept. After one forward().
  void backward(const T* output_gradient, T* input_gradient);

  // On the device, valid while the layer is; T for parameters, fp32 for gradients.
  [[nodiscard]] const LayerParameters<Buffer>& parameters() const { return parameters_; }
  [[nodiscard]] const LayerParameters<Buffer>& gradients() const { return gradients_; }

 private:
  void run_forward(T* output, RecomputePolicy keeping);
  void core_attention(const Tensor& context);
  void mlp_backward(const T* output_gradient, T* middle_gradient);
  void attention_backward(const T* middle_gradient, T* input_gradient);
  void core_attention_backward(Tensor context_gradient, const Tensor& qkv_gradient);
  void all_reduce(const Tensor& tensor);
  [[nodiscard]] Tensor halves(std::int64_t elements) { return Tensor(pool_, elements * 2); }
  [[nodiscard]] Tensor bytes(std::int64_t count) { return Tensor(pool_, count); }
  [[nodiscard]] Tensor statistics() {
    return Tensor(pool_, size_.tokens() * 2 * std::int64_t{sizeof(float)});
  }

  // What lives from the forward to the backward pass.
  struct Kept {
    Tensor input, statistics_1, norm_1, qkv, weights, mask, dropped, context, mask_1;
    Tensor middle, statistics_2, norm_2, up, activated, mask_2;
  };
  struct Products {
    Matmul qkv, scores, context, projection, up, down;
    Matmul down_data, down_weight, up_data, up_weight, projection_data, projection_weight;
    Matmul dropped_gradient, value_gradient, query_gradient, key_gradient, qkv_data, qkv_weight;
  };
  static Products make_products(const LayerSize& size, const LayerParameters<Buffer>& parameters,
                                const Library& library);

  LayerSize size_;
  std::int64_t shard_;
  RecomputePolicy recompute_;
  Pool& pool_;
  ncclComm_t communicator_;
  cudaStream_t stream_;
  LayerParameters<Buffer> parameters_, gradients_;
  Products products_;
  Kept kept_;
};

}  // namespace headroom::harness
