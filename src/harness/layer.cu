#include <utility>

#include "elements.hpp"
#include "filling.cuh"
#include "layer.cuh"
#include "layer_kernels.cuh"

namespace headroom::harness {
namespace {

template <class T>
LayerParameters<Buffer> make_parameters(const LayerSize& size, std::int64_t shard, cudaStream_t stream) {
  LayerParameters<Buffer> made;
  std::int64_t array = 0;
  made.for_each(size, [&](Buffer& buffer, std::int64_t elements) {
    buffer = Buffer(static_cast<std::size_t>(elements) * sizeof(T));
    const Filling filling = filling_of(size, shard, array++);
    fill<T>(buffer, elements, filling.seed, stream, filling.scale);
  });
  return made;
}

LayerParameters<Buffer> make_gradients(const LayerSize& size, cudaStream_t stream) {
  LayerParameters<Buffer> made;
  made.for_each(size, [&](Buffer& buffer, std::int64_t elements) {
    buffer = Buffer(static_cast<std::size_t>(elements) * sizeof(float));
    check(cudaMemsetAsync(buffer, 0, buffer.bytes(), stream));
  });
  return made;
}

}  // namespace

template <class T>
Layer<T>::Layer(const LayerSize& size, std::int64_t shard, RecomputePolicy recompute, Pool& pool,
                const Library& library, ncclComm_t communicator, cudaStream_t stream)
    : size_(size),
      shard_(shard),
      recompute_(recompute),
      pool_(pool),
      communicator_(communicator),
      stream_(stream),
      parameters_(make_parameters<T>(size, shard, stream)),
      gradients_(make_gradients(size, stream)),
      products_(make_products(size, parameters_, library)) {}

template <class T>
void Layer<T>::all_reduce(const Tensor& tensor) {
  if (communicator_ == nullptr) return;
  T* const values = tensor;
  const auto count = static_cast<std::size_t>(size_.tokens() * size_.hidden);
  check(ncclAllReduce(values, values, count, HalfTraits<T>::nccl, ncclSum, communicator_, stream_));
}

template <class T>
void Layer<T>::forward(Tensor input, T* output) {
  kept_.input = std::move(input);
  run_forward(output, recompute_);
}

// `keeping` says what is freed as soon as nothing of the forward pass needs it.
template <class T>
void Layer<T>::run_forward(T* output, RecomputePolicy keeping) {
  const bool input_alone = keeping == RecomputePolicy::full;
  const std::int64_t rows = size_.tokens();
  const std::int64_t h = size_.hidden;
  const auto free_unless_kept = [&](auto&... tensors) {
    if (input_alone) (tensors.free(), ...);
  };

  kept_.statistics_1 = statistics();
  kept_.norm_1 = halves(rows * h);
  layer_norm<T>(kept_.input, parameters_.norm_1_scale, parameters_.norm_1_shift, kept_.norm_1,
                kept_.statistics_1, rows, h, stream_);
  kept_.qkv = halves(3 * rows * size_.shard_width());
  products_.qkv.run(kept_.norm_1, parameters_.qkv, kept_.qkv, stream_);
  free_unless_kept(kept_.statistics_1, kept_.norm_1);

  kept_.context = halves(rows * size_.shard_width());
  core_attention(kept_.context);
  if (keeping != RecomputePolicy::none) {
    kept_.weights.free();
    kept_.mask.free();
    kept_.dropped.free();
  }
  free_unless_kept(kept_.qkv);

  Tensor projected = halves(rows * h);
  products_.projection.run(kept_.context, parameters_.projection, projected, stream_);
  free_unless_kept(kept_.context);
  all_reduce(projected);
  kept_.mask_1 = bytes(rows * h);
  kept_.middle = halves(rows * h);
  bias_dropout_add<T>(projected, parameters_.projection_bias, kept_.input, kept_.middle, kept_.mask_1,
                      rows * h, h, residual_1_seed, stream_);
  projected.free();
  free_unless_kept(kept_.mask_1);

  kept_.statistics_2 = statistics();
  kept_.norm_2 = halves(rows * h);
  layer_norm<T>(kept_.middle, parameters_.norm_2_scale, parameters_.norm_2_shift, kept_.norm_2,
                kept_.statistics_2, rows, h, stream_);
  kept_.up = halves(rows * size_.feedforward());
  products_.up.run(kept_.norm_2, parameters_.up, kept_.up, stream_);
  free_unless_kept(kept_.statistics_2, kept_.norm_2);
  kept_.activated = halves(rows * size_.feedforward());
  gelu<T>(kept_.up, kept_.activated, rows * size_.feedforward(), stream_);
  free_unless_kept(kept_.up);
  Tensor lowered = halves(rows * h);
  products_.down.run(kept_.activated, parameters_.down, lowered, stream_);
  free_unless_kept(kept_.activated);
  all_reduce(lowered);
  kept_.mask_2 = bytes(rows * h);
  bias_dropout_add<T>(lowered, parameters_.down_bias, kept_.middle, output, kept_.mask_2, rows * h, h,
                      residual_2_seed, stream_);
  free_unless_kept(kept_.middle, kept_.mask_2);
}

// From the QKV rows to the context, leaving attention weights, mask and what dropout leaves of the weights.
template <class T>
void Layer<T>::core_attention(const Tensor& context) {
  const std::int64_t s = size_.sequence;
  const std::int64_t width = size_.head_width();
  const T* const qkv = kept_.qkv;
  Tensor scores = halves(size_.scores());
  products_.scores.run(qkv, qkv + width, scores, stream_);
  kept_.weights = halves(size_.scores());
  softmax<T>(scores, kept_.weights, size_.scores() / s, s, /*causal=*/true, stream_);
  scores.free();
  kept_.mask = bytes(size_.scores());
  kept_.dropped = halves(size_.scores());
  dropout<T>(kept_.weights, kept_.dropped, kept_.mask, size_.scores(), attention_seed(shard_), stream_);
  products_.context.run(kept_.dropped, qkv + 2 * width, context, stream_);
}

template <class T>
void Layer<T>::backward(const T* output_gradient, T* input_gradient) {
  if (recompute_ == RecomputePolicy::full) {
    const Tensor output = halves(size_.tokens() * size_.hidden);
    run_forward(output, RecomputePolicy::none);
  }
  const Tensor middle_gradient = halves(size_.tokens() * size_.hidden);
  mlp_backward(output_gradient, middle_gradient);
  attention_backward(middle_gradient, input_gradient);
  kept_ = Kept();
}

template <class T>
void Layer<T>::mlp_backward(const T* output_gradient, T* middle_gradient) {
  const std::int64_t rows = size_.tokens();
  const std::int64_t h = size_.hidden;
  const std::int64_t f = size_.feedforward();
  Tensor lowered = halves(rows * h);  // the gradient of what it is named after, as those below
  dropout_gradient<T>(output_gradient, kept_.mask_2, lowered, rows * h, stream_);
  kept_.mask_2.free();
  column_sums<T>(lowered, gradients_.down_bias, rows, h, stream_);
  Tensor activated = halves(rows * f);
  products_.down_data.run(lowered, parameters_.down, activated, stream_);
  products_.down_weight.run(lowered, kept_.activated, gradients_.down, stream_);
  lowered.free();
  kept_.activated.free();
  Tensor up = halves(rows * f);
  gelu_gradient<T>(activated, kept_.up, up, rows * f, stream_);
  activated.free();
  kept_.up.free();
  column_sums<T>(up, gradients_.up_bias, rows, f, stream_);
  Tensor norm_2 = halves(rows * h);
  products_.up_data.run(up, parameters_.up, norm_2, stream_);
  all_reduce(norm_2);
  products_.up_weight.run(up, kept_.norm_2, gradients_.up, stream_);
  up.free();
  kept_.norm_2.free();
  const float* const statistics_2 = kept_.statistics_2;
  const T* const middle = kept_.middle;
  layer_norm_gradient<T>(norm_2, middle, statistics_2, parameters_.norm_2_scale, output_gradient,
                         middle_gradient, rows, h, stream_);
  layer_norm_parameter_gradients<T>(norm_2, middle, statistics_2, gradients_.norm_2_scale,
                                    gradients_.norm_2_shift, rows, h, stream_);
  kept_.middle.free();
}

template <class T>
void Layer<T>::attention_backward(const T* middle_gradient, T* input_gradient) {
  const std::int64_t rows = size_.tokens();
  const std::int64_t h = size_.hidden;
  const std::int64_t w = size_.shard_width();
  Tensor projected = halves(rows * h);
  dropout_gradient<T>(middle_gradient, kept_.mask_1, projected, rows * h, stream_);
  kept_.mask_1.free();
  column_sums<T>(projected, gradients_.projection_bias, rows, h, stream_);
  Tensor context = halves(rows * w);
  products_.projection_data.run(projected, parameters_.projection, context, stream_);
  products_.projection_weight.run(projected, kept_.context, gradients_.projection, stream_);
  projected.free();
  kept_.context.free();
  Tensor qkv = halves(3 * rows * w);
  core_attention_backward(std::move(context), qkv);
  column_sums<T>(qkv, gradients_.qkv_bias, rows, 3 * w, stream_);
  Tensor norm_1 = halves(rows * h);
  products_.qkv_data.run(qkv, parameters_.qkv, norm_1, stream_);
  all_reduce(norm_1);
  products_.qkv_weight.run(qkv, kept_.norm_1, gradients_.qkv, stream_);
  qkv.free();
  kept_.norm_1.free();
  const float* const statistics_1 = kept_.statistics_1;
  const T* const input = kept_.input;
  layer_norm_gradient<T>(norm_1, input, statistics_1, parameters_.norm_1_scale, middle_gradient,
                         input_gradient, rows, h, stream_);
  layer_norm_parameter_gradients<T>(norm_1, input, statistics_1, gradients_.norm_1_scale,
                                    gradients_.norm_1_shift, rows, h, stream_);
}

template <class T>
void Layer<T>::core_attention_backward(Tensor context_gradient, const Tensor& qkv_gradient) {
  const std::int64_t s = size_.sequence;
  const std::int64_t width = size_.head_width();
  if (recompute_ == RecomputePolicy::selective) {
    const Tensor context =
        halves(size_.tokens() * size_.shard_width());  // again, though it was kept [K22 section 5]
    core_attention(context);
  }
  const T* const qkv = kept_.qkv;
  T* const query = qkv_gradient;
  Tensor dropped = halves(size_.scores());
  products_.dropped_gradient.run(context_gradient, qkv + 2 * width, dropped, stream_);
  products_.value_gradient.run(kept_.dropped, context_gradient, query + 2 * width, stream_);
  context_gradient.free();
  kept_.dropped.free();
  Tensor weights = halves(size_.scores());
  dropout_gradient<T>(dropped, kept_.mask, weights, size_.scores(), stream_);
  dropped.free();
  kept_.mask.free();
  Tensor scores = halves(size_.scores());
  causal_softmax_gradient<T>(weights, kept_.weights, scores, size_.scores() / s, s, stream_);
  weights.free();
  kept_.weights.free();
  products_.query_gradient.run(scores, qkv + width, query, stream_);
  products_.key_gradient.run(scores, qkv, query + width, stream_);
  scores.free();
  kept_.qkv.free();
}

template class Layer<__half>;
template class Layer<__nv_bfloat16>;

}  // namespace headroom::harness
