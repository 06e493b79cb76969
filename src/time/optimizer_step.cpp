#include "headroom/time/optimizer_step.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/time/op_cost.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

constexpr auto half = static_cast<double>(size_of(Dtype::half));
constexpr auto fp32 = static_cast<double>(size_of(Dtype::fp32));

// Returns bytes of reading gradients for their norm and scaling them in place. A step in the backward pass knows
// no norm of all gradients.
double norm_and_clip_bytes(const Strategy& strategy, double gradient) {
  return strategy.step_in_backward ? 0 : gradient + 2 * gradient;
}

// Returns bytes that a step moves for each parameter, if one kernel reads gradients, master weights and
// moments of any dtype and also writes 16-bit weights [Transformer Engine, FusedAdam].
double precision_aware_bytes(const Strategy& strategy, const Software& software) {
  const auto gradient = real(size_of(stepped_gradient_dtype(strategy, software)));
  const MainParams main_params = strategy.optimizer.main_params;
  const double norm_and_clip = norm_and_clip_bytes(strategy, gradient);
  // A remainder needs the high bits, which are the weight. Without main parameters, the weight itself is
  // stepped.
  const bool reads_weight = main_params == MainParams::remainder || main_params == MainParams::none;
  const double weight = reads_weight ? half + half : half;
  return norm_and_clip + gradient + weight + 2 * (size_of(main_params) + moments_size(strategy.optimizer));
}

// Returns bytes of the kernels around the step: gradients are cast to FP32, unscaled, and clipped by their
// norm; weights are cast to 16 bits. If weights and gradients are FP32 shards, only the norm and the clipping
// remain.
double bytes_around(const Strategy& strategy, const Software& software) {
  const double norm_and_clip = norm_and_clip_bytes(strategy, fp32);
  if (shards_main_params(software, strategy.optimizer)) return norm_and_clip;
  const double to_fp32 =
      is_half(stepped_gradient_dtype(strategy, software)) ? half + fp32 : 0;  // read, written
  constexpr double unscale = fp32 + fp32;
  constexpr double to_half = fp32 + half;
  return to_fp32 + unscale + norm_and_clip + to_half;
}

// Returns bytes of Adam and SGD, in one kernel [torch.optim.AdamW, fused], or kernel by kernel with FP32
// state [Megatron-LM, Float16OptimizerWithFloat16Params].
double elementwise_bytes(const Strategy& strategy, const Software& software) {
  const double moments = moments_size(strategy.optimizer);
  const bool steps_shards = shards_main_params(software, strategy.optimizer);
  if (!steps_shards && !keeps_fp32(strategy.optimizer)) return precision_aware_bytes(strategy, software);
  return bytes_around(strategy, software) + fp32 + 2 * (fp32 + moments);
}

// Returns bytes of Adafactor, kernel by kernel [torch/optim/_adafactor.py, _single_tensor_adafactor]. Its
// means by row and column are too few to count.
double adafactor_bytes(const Strategy& strategy, const Software& software) {
  constexpr double in_place = fp32 + fp32;
  constexpr double weight_norm_and_decay = fp32 + in_place;
  constexpr double row_and_column_norms = fp32 + fp32;
  constexpr double estimate = fp32 + in_place;  // the product of row and column, divided by their mean
  constexpr double update = in_place + in_place + (fp32 + in_place);  // clamped, 1/sqrt, times the gradient
  constexpr double norm_and_add = fp32 + (fp32 + in_place);
  return bytes_around(strategy, software) + weight_norm_and_decay + row_and_column_norms + estimate + update +
         norm_and_add;
}

// Returns bytes of Muon beside its GEMMs [Emerging-Optimizers,
// orthogonalized_optimizers/orthogonalized_optimizer.py].
double muon_bytes(const Strategy& strategy, const Software& software) {
  constexpr double in_place = fp32 + fp32;
  const double momentum = fp32 + 2 * matrix_moment_size(strategy.optimizer);
  constexpr double to_unit_norm = (fp32 + half) + half + (half + half);  // cast, its norm, divided
  constexpr double decay_and_add = in_place + (half + in_place);
  return bytes_around(strategy, software) + momentum + to_unit_norm + decay_and_add;
}

// Returns bytes that casting a weight to fewer than 16 bits moves, once an iteration. The cast reads 16 bits.
// If only a first copy was gathered, it makes the second copy from that.
double cast_bytes(const Strategy& strategy, const Device& device, bool gathered_in_type) {
  const PrecisionRow& row = row_of(strategy.precision);
  const int copies = copies_of_factor(device, row.dtype);
  const double copy = weight_size(row.dtype);
  if (gathered_in_type && strategy.precision != Precision::mxfp8) return copies == 1 ? 0 : 2 * copy;
  const int reads = quantization_passes(row.dtype, row.scale_known);
  return real(reads * size_of(Dtype::half)) + real(copies) * copy;
}

// Returns the GEMMs of a Newton-Schulz step: X with X^T, the result with itself, and the polynomial with X.
// The last two add to a matrix that they read.
std::array<Gemm, 3> newton_schulz_products(double rows, double columns) {
  const auto p = static_cast<std::int64_t>(std::min(rows, columns));
  const auto q = static_cast<std::int64_t>(std::max(rows, columns));
  constexpr std::int64_t adds = 2 * size_of(Dtype::half);
  return {Gemm{.rows = p, .columns = p, .inner = q},
          Gemm{.rows = p, .columns = p, .inner = p, .result_bytes = adds},
          Gemm{.rows = p, .columns = q, .inner = p, .result_bytes = adds}};
}

// Returns bytes of what every rank does: zero gradients that stay, and cast weights to fewer bits.
Bytes unstepped_bytes(const Parameters& held, const Strategy& strategy, const Workload& workload,
                      const Performance& performance, const Software& software) {
  const Parameters steps = trained(held);
  const bool shards_sums = reduces_in_passes(strategy, workload, software);
  Bytes moved;
  if (!strategy.step_in_backward)
    moved = Bytes((shards_sums ? stepped_by_rank(held, strategy) : total(steps)) *
                  real(size_of(kept_gradient_dtype(strategy, workload, software))));
  const double narrow = steps.narrow_dense + steps.narrow_expert;
  // Weights that are stored in fewer bits alone and that no step changes stay as they are.
  const bool kept = strategy.fp8_param_gather && trains_adapters(strategy.lora);
  if (narrow > 0 && !kept)
    moved += Bytes(narrow * cast_bytes(strategy, performance.device, strategy.fp8_param_gather));
  if (steps.narrow_output > 0)
    moved += Bytes(steps.narrow_output * cast_bytes(strategy, performance.device, false));
  return moved;
}

}  // namespace

Flops newton_schulz_flops(double rows, double columns) {
  Flops sum;
  for (const Gemm& gemm : newton_schulz_products(rows, columns)) sum += newton_schulz_steps * flops(gemm);
  return sum;
}

Seconds newton_schulz_time(double rows, double columns, const Performance& performance,
                           const Software& software) {
  const double clock = training_clock(performance, software, Dtype::half);
  Seconds sum;
  for (const Gemm& gemm : newton_schulz_products(rows, columns)) {
    sum += newton_schulz_steps * gemm_time(gemm, performance.device, performance.rates, clock);
  }
  return sum;
}

Seconds unstepped_time(const Parameters& held, const Strategy& strategy, const Workload& workload,
                       const Performance& performance, const Software& software) {
  return unstepped_bytes(held, strategy, workload, performance, software) / streaming_bandwidth(performance);
}

Seconds optimizer_time(const Parameters& held, const Strategy& strategy, const Workload& workload,
                       const Performance& performance, const Software& software, const MatrixList& matrices) {
  const auto shard = [&](double count, WeightClass weights) {
    return count / real(shards(strategy, weights));
  };
  const double stepped = stepped_by_rank(held, strategy);
  Bytes moved = unstepped_bytes(held, strategy, workload, performance, software);
  Seconds products;
  if (strategy.optimizer.kind == OptimizerKind::muon) {
    double others = stepped;
    for (const WeightClass weights : {WeightClass::dense, WeightClass::expert}) {
      const MatrixList hidden = hidden_matrices(of_class(matrices, weights));
      const MatrixList share = fullest_share(hidden, shards(strategy, weights));
      others -= shard(parameters_in(hidden), weights);
      moved += Bytes(parameters_in(share) * muon_bytes(strategy, software));
      for (const WeightMatrices& alike : share) {
        products += alike.count * newton_schulz_time(alike.rows, alike.columns, performance, software);
      }
    }
    moved += Bytes(others * elementwise_bytes(strategy, software));
  } else {
    moved += Bytes(stepped * (strategy.optimizer.kind == OptimizerKind::adafactor
                                  ? adafactor_bytes(strategy, software)
                                  : elementwise_bytes(strategy, software)));
  }
  return products + moved / streaming_bandwidth(performance);
}

}  // namespace headroom
