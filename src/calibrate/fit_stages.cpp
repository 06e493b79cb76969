#include "fit_stages.hpp"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

// Relative errors from which on a sample counts as an outlier: the best that each model's equations reach.
constexpr double product_scale = 0.05;
constexpr double attention_scale = 0.08;
constexpr double expert_scale = 0.1;
constexpr double collective_scale = 0.1;
constexpr double streaming_scale = 0.1;

// Returns whether a sample is a large all-reduce over more GPUs than a ring serves as well: (1 + 1/r) of the
// bytes against 2 (r - 1)/r.
bool tells_nvls(const Sample& sample) {
  return sample.kind == SampleKind::all_reduce && sample.ranks > 4 && sample.bytes >= 64_MiB;
}

// Returns the steps of rings for collectives that no switch sums and, on a GPU with such switches, the steps
// of switches.
std::vector<Parameter> step_parameters(const std::vector<Sample>& samples, const Performance& base) {
  const bool nvls = base.rates.collectives.nvls.has_value();
  std::vector<Parameter> parameters;
  if (!nvls || !std::all_of(samples.begin(), samples.end(), tells_nvls))
    parameters = ring_bandwidth_parameters(base.device);
  if (nvls && std::any_of(samples.begin(), samples.end(), tells_nvls))
    parameters.push_back(switch_bandwidth_parameter(base.device));
  return parameters;
}

}  // namespace

RatesOf rates_of(const Sample& sample) {
  if (sample.kind == SampleKind::matrix_product) {
    const std::optional<std::size_t> narrow = narrow_index(sample.product.dtype);
    if (!narrow && !is_half(sample.product.dtype)) return {};
    return {sample.load == Load::burst ? RateKind::products : RateKind::sustained, narrow};
  }
  if (sample.kind == SampleKind::attention) {
    if (sample.attention_pass == AttentionPass::backward)
      return is_narrow(sample.attention.dtype) ? RatesOf{}
                                               : RatesOf{RateKind::attention_backward, std::nullopt};
    if (is_narrow(sample.attention.dtype) && sample.load == Load::sustained) return {};
    if (sample.load == Load::sustained) return {RateKind::attention_sustained, std::nullopt};
    return {is_narrow(sample.attention.dtype) ? RateKind::attention_fp8 : RateKind::attention, std::nullopt};
  }
  if (sample.kind == SampleKind::expert_block) {
    const std::optional<std::size_t> narrow = narrow_index(sample.dtype);
    return narrow || is_half(sample.dtype) ? RatesOf{RateKind::experts, narrow} : RatesOf{};
  }
  // Rates of collectives are those within a node.
  if (is_collective(sample.kind) && sample.nodes > 1) return {};
  const bool of_bandwidth = is_collective(sample.kind) || sample.kind == SampleKind::streaming;
  if (of_bandwidth && sample.load == Load::sustained) {
    if (!tells_bandwidth(sample)) return {};
    return {is_collective(sample.kind) ? RateKind::collectives_in_steps : RateKind::streaming_in_steps,
            std::nullopt};
  }
  if (is_collective(sample.kind)) return {RateKind::collectives, std::nullopt};
  const bool streams = sample.kind == SampleKind::streaming || sample.kind == SampleKind::empty_kernel;
  return {streams ? RateKind::streaming : RateKind::none, std::nullopt};
}

std::vector<Stage> stages_of(const SortedSamples& samples, const Performance& base) {
  const Device& device = base.device;
  std::vector<Stage> stages;
  const auto add = [&](Stage stage) {
    if (!stage.samples->empty()) stages.push_back(std::move(stage));
  };
  // GEMMs come first: they determine the launch, which is part of the time of memory-bound kernels.
  add({{RateKind::products, std::nullopt},
       product_parameters(device),
       &samples.products,
       product_scale,
       "matrix products",
       {"products, m n k >= 1024", "products, shortest side 512 to 1023",
        "products, shortest side 128 to 511", "products, shortest side below 128", "products, batched"}});
  add({{RateKind::sustained, std::nullopt},
       sustained_parameters(),
       &samples.sustained,
       product_scale,
       "matrix products under sustained load",
       {"products, sustained load"}});
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    const SortedSamples::Narrow& of_type = samples.narrow[i];
    const std::string type(name_of(narrow_types[i].dtype));
    add({{RateKind::products, i},
         narrow_product_parameters(device, i, of_type.quantizes),
         &of_type.products,
         product_scale,
         type + " matrix products" + (of_type.quantizes ? ", quantization of a factor included," : ""),
         {"products, " + type + ", m n k >= 1024", "products, " + type + ", shortest side below 1024"}});
    add({{RateKind::sustained, i},
         narrow_sustained_parameters(i),
         &of_type.sustained,
         product_scale,
         type + " matrix products under sustained load",
         {"products, " + type + ", sustained load"}});
  }
  add({{RateKind::attention, std::nullopt},
       attention_parameters(device, samples.attention),
       &samples.attention,
       attention_scale,
       "forward kernels of attention",
       {"attention, forward, device filled", "attention, forward, few tiles"}});
  add({{RateKind::attention_fp8, std::nullopt},
       attention_fp8_parameters(),
       &samples.attention_fp8,
       attention_scale,
       "kernels of fp8 attention",
       {"attention, fp8, device filled", "attention, fp8, few tiles"}});
  add({{RateKind::attention_sustained, std::nullopt},
       attention_sustained_parameters(),
       &samples.attention_sustained,
       attention_scale,
       "kernels of attention under sustained load",
       {"attention, sustained load"}});
  add({{RateKind::attention_backward, std::nullopt},
       attention_backward_parameters(),
       &samples.attention_backward,
       attention_scale,
       "backward kernels of attention",
       {"attention, backward"}});
  add({{RateKind::experts, std::nullopt},
       expert_parameters(device, Dtype::half),
       &samples.experts,
       expert_scale,
       "blocks of experts",
       {"experts, 0.2 ms and longer", "experts, shorter"}});
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    const std::string type(name_of(narrow_types[i].dtype));
    add({{RateKind::experts, i},
         expert_parameters(device, narrow_types[i].dtype),
         &samples.narrow[i].experts,
         expert_scale,
         type + " blocks of experts",
         {"experts, " + type + ", 0.2 ms and longer", "experts, " + type + ", shorter"}});
  }
  add({{RateKind::collectives, std::nullopt},
       collective_parameters(
           device, samples.one_rank_count,
           base.rates.collectives.nvls &&
               std::any_of(samples.collectives.begin(), samples.collectives.end(), tells_nvls)),
       &samples.collectives,
       collective_scale,
       "collectives",
       {"collectives, from 1 MiB", "collectives, below 1 MiB"}});
  add({{RateKind::streaming, std::nullopt},
       streaming_parameters(),
       &samples.streaming,
       streaming_scale,
       "streaming kernels",
       {"streaming, from 1 MiB", "streaming, below 1 MiB", "empty kernels"}});
  add({{RateKind::collectives_in_steps, std::nullopt},
       step_parameters(samples.collectives_in_steps, base),
       &samples.collectives_in_steps,
       collective_scale,
       "collectives of training steps",
       {"collectives, in training steps, from 16 MiB"}});
  add({{RateKind::streaming_in_steps, std::nullopt},
       bandwidth_share_parameters(),
       &samples.streaming_in_steps,
       streaming_scale,
       "streaming kernels of training steps",
       {"streaming, in training steps, from 64 MiB"}});
  return stages;
}

}  // namespace headroom
