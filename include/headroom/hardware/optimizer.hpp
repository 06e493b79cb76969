// The optimizer that steps the weights, and the state it keeps.
//
//   adam       two moments a parameter [Adam and AdamW, which keep the same state]
//   sgd        one moment a parameter, its momentum
//   adafactor  for a matrix, means of squared gradients by row and by column, in FP32; for any other
//              parameter, a mean for each element; no first moment [torch.optim.Adafactor]
//   muon       for a matrix, one moment, whose update Newton-Schulz iterations orthogonalize; Adam steps the
//              embedding, the output layer and parameters that are not matrices
//              [Megatron-LM, core/optimizer/emerging_optimizers.py]
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/expects.hpp"
#include "headroom/core/names.hpp"

namespace headroom {

enum class OptimizerKind : std::uint8_t { adam, sgd, adafactor, muon };

// Main parameters, which the optimizer steps in place of 16-bit weights.
// fp32, fp16: a copy of the weights.
// remainder: the low 16 bits of an FP32 copy, whose high bits are the BF16 weights [Transformer Engine,
// FusedAdam, store_param_remainders].
// none: the optimizer steps the weights themselves.
enum class MainParams : std::uint8_t { fp32, fp16, remainder, none };

// Dtype of a moment.
// fp8: has a scale for each tensor, which is not counted [Transformer Engine, FusedAdam].
// int8: has an FP32 scale for every 256 values [bitsandbytes, optim.AdamW8bit, blocks of 256].
enum class MomentDtype : std::uint8_t { fp32, bf16, fp16, fp8, int8 };

// Return bytes for each parameter.
constexpr double size_of(MainParams main) {
  switch (main) {
    case MainParams::fp32: return 4;
    case MainParams::fp16:
    case MainParams::remainder: return 2;
    case MainParams::none: return 0;
  }
  EXPECTS(!"unknown main parameters");
  return 0;
}
constexpr double size_of(MomentDtype moment) {
  switch (moment) {
    case MomentDtype::fp32: return 4;
    case MomentDtype::bf16:
    case MomentDtype::fp16: return 2;
    case MomentDtype::fp8: return 1;
    case MomentDtype::int8: return 1 + 4.0 / 256;
  }
  EXPECTS(!"unknown moment");
  return 0;
}

struct Optimizer {
  MainParams main_params = MainParams::fp32;
  MomentDtype exp_avg = MomentDtype::fp32;
  MomentDtype exp_avg_sq = MomentDtype::fp32;
  OptimizerKind kind = OptimizerKind::adam;
  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

// Returns whether all optimizer state is FP32, so that a step runs FP32 kernels only.
constexpr bool keeps_fp32(const Optimizer& optimizer) {
  return optimizer.main_params == MainParams::fp32 && optimizer.exp_avg == MomentDtype::fp32 &&
         optimizer.exp_avg_sq == MomentDtype::fp32;
}

// Returns whether a moment is an 8-bit integer.
constexpr bool has_int8(const Optimizer& optimizer) {
  return optimizer.exp_avg == MomentDtype::int8 || optimizer.exp_avg_sq == MomentDtype::int8;
}

// Returns whether the optimizer treats matrices differently from other parameters.
constexpr bool steps_matrices(OptimizerKind kind) {
  return kind == OptimizerKind::adafactor || kind == OptimizerKind::muon;
}

// Return whether the optimizer keeps a first or a second moment for every parameter.
constexpr bool has_first_moment(OptimizerKind kind) { return kind != OptimizerKind::adafactor; }
constexpr bool has_second_moment(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::muon;
}

// Returns the optimizer with FP32 for the moments that its kind does not keep. Their dtypes may be left over
// from another kind.
constexpr Optimizer without_idle_moments(Optimizer optimizer) {
  if (!has_first_moment(optimizer.kind)) optimizer.exp_avg = MomentDtype::fp32;
  if (!has_second_moment(optimizer.kind)) optimizer.exp_avg_sq = MomentDtype::fp32;
  return optimizer;
}

// Returns bytes of the moments of one parameter, outside the matrices that Muon steps.
constexpr double moments_size(const Optimizer& optimizer) {
  return (has_first_moment(optimizer.kind) ? size_of(optimizer.exp_avg) : 0) +
         (has_second_moment(optimizer.kind) ? size_of(optimizer.exp_avg_sq) : 0);
}

// Returns how many numbers of each parameter Transformer Engine's FusedAdam copies to FP32 in a step: moments
// in FP8 or FP16, a moment in BF16 unless both are, and main parameters in FP16 [pytorch/optimizers/
// fused_adam.py, get_unscaled_state].
constexpr int widened_state(const Optimizer& optimizer) {
  if (optimizer.kind != OptimizerKind::adam) return 0;
  const bool in_place = optimizer.exp_avg == MomentDtype::bf16 && optimizer.exp_avg_sq == MomentDtype::bf16;
  const auto is_copied = [&](MomentDtype moment) {
    return !in_place && moment != MomentDtype::fp32 && moment != MomentDtype::int8;
  };
  return (is_copied(optimizer.exp_avg) ? 1 : 0) + (is_copied(optimizer.exp_avg_sq) ? 1 : 0) +
         (optimizer.main_params == MainParams::fp16 ? 1 : 0);
}

constexpr double matrix_moment_size(const Optimizer& optimizer) { return size_of(optimizer.exp_avg); }

template <>
inline constexpr std::array<Spelling<OptimizerKind>, 4> spellings<OptimizerKind>{{
    {OptimizerKind::adam, "adam"},
    {OptimizerKind::sgd, "sgd"},
    {OptimizerKind::adafactor, "adafactor"},
    {OptimizerKind::muon, "muon"},
}};
// Names in PyTorch, Megatron-LM and Hugging Face's trainer.
template <>
inline constexpr std::array<Spelling<OptimizerKind>, 7> other_spellings<OptimizerKind>{{
    {OptimizerKind::adam, "adamw"},
    {OptimizerKind::adam, "Adam"},
    {OptimizerKind::adam, "AdamW"},
    {OptimizerKind::adam, "adamw_torch"},
    {OptimizerKind::adam, "adamw_torch_fused"},
    {OptimizerKind::adafactor, "Adafactor"},
    {OptimizerKind::muon, "dist_muon"},
}};
template <>
inline constexpr std::array<Spelling<MainParams>, 4> spellings<MainParams>{{
    {MainParams::fp32, "fp32"},
    {MainParams::fp16, "fp16"},
    {MainParams::remainder, "remainder"},
    {MainParams::none, "none"},
}};
template <>
inline constexpr std::array<Spelling<MomentDtype>, 5> spellings<MomentDtype>{{
    {MomentDtype::fp32, "fp32"},
    {MomentDtype::bf16, "bf16"},
    {MomentDtype::fp16, "fp16"},
    {MomentDtype::fp8, "fp8"},
    {MomentDtype::int8, "int8"},
}};

}  // namespace headroom
