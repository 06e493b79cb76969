#include <cmath>

#include "layer.cuh"

namespace headroom::harness {
namespace {

// Y = X W' of all tokens, its data gradient dX = dY W and its weight gradient dW += dY' X; W is [out][in].
Matmul linear(cudaDataType_t type, std::int64_t rows, std::int64_t in, std::int64_t out, const Buffer* bias,
              const Library& library) {
  return Matmul({.size = {.rows = rows, .columns = out, .inner = in},
                 .type = type,
                 .b_transposed = true,
                 .a = {in},
                 .b = {in},
                 .c = {out},
                 .bias = bias == nullptr ? nullptr : bias->as<void>()},
                library);
}
Matmul data_gradient(cudaDataType_t type, std::int64_t rows, std::int64_t in, std::int64_t out,
                     const Library& library) {
  return Matmul(
      {.size = {.rows = rows, .columns = in, .inner = out}, .type = type, .a = {out}, .b = {in}, .c = {in}},
      library);
}
Matmul weight_gradient(cudaDataType_t type, std::int64_t rows, std::int64_t in, std::int64_t out,
                       const Library& library) {
  return Matmul({.size = {.rows = out, .columns = in, .inner = rows, .result_bytes = 8},
                 .type = type,
                 .a_transposed = true,
                 .a = {out},
                 .b = {in},
                 .c = {in}},
                library);
}

}  // namespace

// Of the heads of every sequence: queries x width, keys x width and queries x keys, where they lie.
template <class T>
typename Layer<T>::Products Layer<T>::make_products(const LayerSize& size,
                                                    const LayerParameters<Buffer>& parameters,
                                                    const Library& library) {
  constexpr cudaDataType_t type = HalfTraits<T>::cuda;
  const std::int64_t rows = size.tokens();
  const std::int64_t h = size.hidden;
  const std::int64_t w = size.shard_width();
  const std::int64_t f = size.feedforward();
  const std::int64_t s = size.sequence;
  const std::int64_t width = size.head_width();
  const std::int64_t heads = size.micro_batch * size.shard_heads();
  const Strides in_qkv{heads * 3 * width, 3 * width};  // of one of q, k and v
  const Strides in_context{heads * width, width};
  const Strides in_scores{s, s * s};
  constexpr std::uint32_t alignment = 16;  // of k and v within a row
  const Gemm to_scores{.batch = heads, .rows = s, .columns = s, .inner = width};
  const Gemm from_scores{.batch = heads, .rows = s, .columns = width, .inner = s};
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
  const auto attention = [&](const Gemm& gemm, bool a_transposed, bool b_transposed, Strides a, Strides b,
                             Strides c, float alpha) {
    return Matmul({.size = gemm,
                   .type = type,
                   .a_transposed = a_transposed,
                   .b_transposed = b_transposed,
                   .a = a,
                   .b = b,
                   .c = c,
                   .alpha = alpha,
                   .alignment = alignment},
                  library);
  };
  return {
      .qkv = linear(type, rows, h, 3 * w, &parameters.qkv_bias, library),
      .scores = attention(to_scores, false, true, in_qkv, in_qkv, in_scores, scale),
      .context = attention(from_scores, false, false, in_scores, in_qkv, in_context, 1),
      .projection = linear(type, rows, w, h, nullptr, library),
      .up = linear(type, rows, h, f, &parameters.up_bias, library),
      .down = linear(type, rows, f, h, nullptr, library),
      .down_data = data_gradient(type, rows, f, h, library),
      .down_weight = weight_gradient(type, rows, f, h, library),
      .up_data = data_gradient(type, rows, h, f, library),
      .up_weight = weight_gradient(type, rows, h, f, library),
      .projection_data = data_gradient(type, rows, w, h, library),
      .projection_weight = weight_gradient(type, rows, w, h, library),
      .dropped_gradient = attention(to_scores, false, true, in_context, in_qkv, in_scores, 1),
      .value_gradient = attention(from_scores, true, false, in_scores, in_context, in_qkv, 1),
      .query_gradient = attention(from_scores, false, false, in_scores, in_qkv, in_qkv, scale),
      .key_gradient = attention(from_scores, true, false, in_scores, in_qkv, in_qkv, scale),
      .qkv_data = data_gradient(type, rows, h, 3 * w, library),
      .qkv_weight = weight_gradient(type, rows, h, 3 * w, library),
  };
}

template Layer<__half>::Products Layer<__half>::make_products(const LayerSize&,
                                                              const LayerParameters<Buffer>&, const Library&);
template Layer<__nv_bfloat16>::Products Layer<__nv_bfloat16>::make_products(const LayerSize&,
                                                                            const LayerParameters<Buffer>&,
                                                                            const Library&);

}  // namespace headroom::harness
