#include "plan/account.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "headroom/core/counts.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/memory/stage.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/edits.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/interval.hpp"
#include "headroom/schedule/shape.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {
namespace {

// Returns whether a plan uses the rates of a group. Rates of a narrow type serve only GEMMs of that type, and those of
// a dispatcher only that dispatcher.
bool uses(std::string_view group, bool flash, Dispatcher dispatcher, const Extrapolations& beyond) {
  if (group == "flash_attention") return flash;
  if (group.starts_with("collectives.hybridep")) return dispatcher == Dispatcher::hybridep;
  if (group.starts_with("collectives.deepep")) return dispatcher == Dispatcher::deepep;
  if (group == "grouped_products") return beyond.grouped_products;
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    const NarrowType& type = narrow_types[i];
    const bool used = ((beyond.narrow_types >> i) & 1U) != 0;
    if (group == type.products || group == type.quantization || group == type.quantization_alone) return used;
    if (group == type.grouped) return used && beyond.grouped_products;
  }
  return true;
}

// Names the inputs of the time model without evidence: rates that nobody fitted, and an assumed network.
std::string assumed_rates(const Request& request, const Extrapolations& beyond) {
  std::string names;
  const Performance& performance = *request.system.performance;
  const Software& software = request.software;
  const bool flash = any_flash_attention(request.model);
  const bool launches_apart = any_experts(request.model) || software.launches == Launches::compiled;
  const auto append = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  visit_rates(performance.rates, [&](std::string_view group, std::string_view name, const auto& rate) {
    if (rate.origin != Origin::assumed || !uses(group, flash, request.strategy.moe_dispatcher, beyond))
      return;
    if (name == "pytorch_speed" && software.attention_kernels == AttentionKernels::fitted) return;
    if (name == "fp8_speed" && !request.strategy.precision_scope.attention) return;
    if (group == "host" && name == "launch" && !launches_apart) return;
    append(std::string(group) + "." + std::string(name));
  });
  const Network& network = performance.network;
  if (network.origin == Origin::assumed) append("network");
  if (network.rails.origin == Origin::assumed) append("network.rails");
  if (network.oversubscription.origin == Origin::assumed) append("network.oversubscription");
  return names;
}

// Names the GEMM types that have no rates of their own.
std::string scaled_types(const Rates& rates, std::uint32_t used_types) {
  std::string names;
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    if (((used_types >> i) & 1U) == 0 || rates.products_by_dtype[i]) continue;
    names += (names.empty() ? "" : ", ") + std::string(name_of(narrow_types[i].dtype));
  }
  return names;
}

// Returns why an interval is as wide as it is; empty for rates that were fitted to training steps.
std::string_view assumed_of_step(StepRates rates, const Strategy& strategy) {
  switch (rates) {
    case StepRates::own_runs:
    case StepRates::fitted: return {};
    case StepRates::kernels:
      return "the clock of a training step, or flash attention, is assumed on this GPU";
    case StepRates::experts:
      return strategy.precision_scope.attention
                 ? "the rates of FP8 attention are rough"
                 : "expert kernels are timed by rates of their forward pass with balanced routing";
    case StepRates::scaled:
      return "rates for this GPU were not measured; they are another GPU's, scaled by data-sheet figures";
  }
  EXPECTS(!"unknown rates");
  return {};
}

// Warns of predictions outside the range on which the rates were fitted, by stable code.
void warn_of_extrapolation(const Plan& plan, bool reduction_within_fit, std::vector<Warning>& warnings) {
  const Extrapolations beyond = headroom::beyond(plan.timing->iteration.cost);
  const auto warn = [&](bool applies, std::string code, std::string text) {
    if (applies) warnings.push_back({std::move(code), std::move(text)});
  };
  warn(beyond.product_size, "extrapolated_product_size",
       "a GEMM is larger or smaller than those that the rates were fitted on");
  warn(beyond.message_size, "extrapolated_message_size",
       "a collective moves more or fewer bytes than those that the rates were fitted on");
  warn(beyond.group_size, "extrapolated_group_size",
       "a collective spans more ranks than those that the rates were fitted on");
  warn(beyond.unaligned_heads, "unaligned_heads",
       "the head size is not a multiple of 8: attention is timed without tensor cores");
  const auto& [model, system, software, strategy, workload, detail, margin, insisted] = plan.request;
  warn(beyond.attention_size, "extrapolated_flash_attention",
       "flash attention runs at a sequence length or head size that its rates were not fitted on");
  warn(beyond.flash_attention && any_assumed(system.performance->rates.flash_attention),
       "flash_attention_assumed",
       "some rates of flash attention are assumed: no kernels of this GPU, or none of its backward pass, "
       "were measured");
  for_each_mixer([&, &request = plan.request](const auto& row, auto mixer) {
    warn(beyond.scan && any_mixer(request.model, mixer), std::string(row.warning.code),
         std::string(row.warning.text));
  });
  warn(strategy.precision_scope.attention, "fp8_attention_rates",
       "a single rate gives the speedup of FP8 attention; measured forward kernels differ from it by 6 to "
       "17% at the median and 23 to 42% at the 90th percentile, and no backward kernel was measured");
  warn(!reduction_within_fit, "extrapolated_data_parallel",
       "gradients are reduced over more ranks, or in larger messages, than the rates were fitted on");
  const StepRates rates = step_rates(plan.request);
  warn(transferred(rates), "transferred_step_rates",
       std::string(assumed_of_step(rates, strategy)) +
           ": the interval of the iteration time is as wide as the errors of such predictions");
  const std::string scaled = scaled_types(system.performance->rates, beyond.narrow_types);
  warn(!scaled.empty(), "scaled_product_rates",
       "GEMMs in " + scaled +
           " have no rates on this system: 16-bit rates are assumed, scaled by the ratio of the GPU's peaks");
  const std::string assumed = assumed_rates(plan.request, beyond);
  warn(!assumed.empty(), "assumed_rates",
       "the time relies on assumed rates, not fitted ones (sources: --format json): " + assumed);
}

// Fraction of an iteration above which launch overhead is reported as a limit.
constexpr double held_back = 0.05;

std::optional<Warning> launch_bound(const Plan& plan) {
  const IterationTime& iteration = plan.timing->iteration;
  const double part = iteration.breakdown.launch_overhead / iteration.total;
  if (part < held_back) return std::nullopt;
  std::string text = "the host launches kernels more slowly than the GPU runs them, or waits for the GPU: " +
                     std::to_string(std::lround(100 * part)) + "% of the iteration.";
  if (plan.request.software.cuda_graphs == CudaGraphs::none)
    text += " Use CUDA graphs (--cuda-graphs layers) or larger microbatches";
  return Warning{"launch_bound", std::move(text)};
}

// Returns whether compiled launches run the kernels of a model that eager launches run.
bool fuses_nothing(const Transformer& model, Software software) {
  StackKernels compiled = kernels_of(software);
  software.launches = Launches::eager;
  const StackKernels eager = kernels_of(software);
  compiled.compiled_layers = false;
  const auto unused = [&](const auto& uses, auto StackKernels::*kernel) {
    if (!any_layer(model, uses)) compiled.*kernel = eager.*kernel;
  };
  unused([](const Architecture& layer) { return layer.experts && layer.linear_bias; },
         &StackKernels::expert_bias);
  unused([](const Architecture& layer) { return layer.clamped_activation; }, &StackKernels::clamp);
  unused([](const Architecture& layer) { return layer.scaled_rotary; }, &StackKernels::scaled_rotary);
  return compiled == eager;
}

// Returns whether a job has so few nodes of an oversubscribed network that no ring crosses the switches above
// the leaves.
bool keeps_to_leaves(const Performance& performance, std::int64_t job, std::int64_t connected) {
  const Network& network = performance.network;
  return network.oversubscription.value > 1 && network.rails.value == Rails::aligned && job > connected &&
         ceiling(job, connected) <= nodes_of_leaf(network);
}

}  // namespace

std::vector<Warning> warnings_of(const Plan& plan, const ModelActivations& activations,
                                 const KindCounts& counts, bool reduction_within_fit) {
  const auto& [model, system, software, strategy, workload, detail, margin, insisted] = plan.request;
  std::vector<Warning> warnings;
  const auto warn = [&](std::string code, std::string text) {
    warnings.push_back({std::move(code), std::move(text)});
  };
  for (const Problem& gap : launcher_gaps(software, model, strategy, workload))
    warn(std::string(no_launcher_flag), "the stack's launcher cannot run this: " + by_flag(gap).rule);
  const std::int64_t job = devices(strategy);
  const std::int64_t connected = connected_devices(system, job);
  if (strategy.tensor_parallel > connected) {
    warn("tensor_parallel_across_nodes",
         "tensor-parallel groups of " + std::to_string(strategy.tensor_parallel) + " cross nodes of " +
             std::to_string(connected) + " GPUs: their collectives run over the network");
  }
  if (strategy.tensor_parallel < connected && connected % strategy.tensor_parallel != 0) {
    warn(
        "tensor_parallel_straddles_nodes",
        "nodes of " + std::to_string(connected) +
            " GPUs do not hold a whole number of tensor-parallel groups of " +
            std::to_string(strategy.tensor_parallel) +
            ": some groups cross nodes, and their collectives run over the network. Use fewer GPUs per node");
  }
  const std::int64_t host = host_size(system);
  if (job > host && job % host != 0) {
    warn("hosts_not_filled", std::to_string(job) + " GPUs do not fill hosts of " + std::to_string(host) +
                                 " GPUs, which launchers allocate whole: times assume full hosts");
  }
  if (strategy.sequence_parallel && strategy.tensor_parallel == 1) {
    warn("sequence_parallel_without_tensor_parallel",
         "sequence parallelism has no effect with one tensor-parallel rank");
  }
  if (!is_even(workload.moe_imbalance) &&
      (!any_experts(model) || strategy.expert_parallel == 1 || strategy.moe_pad_to_capacity)) {
    warn("moe_imbalance_without_effect",
         !any_experts(model) ? "moe_imbalance has no effect: the model has no experts"
         : strategy.moe_pad_to_capacity
             ? "moe_imbalance has no effect: all experts are padded to their capacity (moe_pad_to_capacity)"
             : "moe_imbalance has no effect with one expert-parallel rank (expert_parallel 1)");
  }
  if (software.launches == Launches::compiled && fuses_nothing(model, software)) {
    warn("compile_changes_launches_alone",
         "torch.compile fuses nothing more on the stack " + software.name +
             ", whose kernels are fused already: it shortens launches alone");
  }
  if (system.performance && keeps_to_leaves(*system.performance, job, connected)) {
    const Network& network = system.performance->network;
    warn(
        "oversubscription_above_leaf",
        fmt::format(
            "the {} nodes share a leaf switch on each rail (nodes_per_leaf {}): oversubscription {:g} of the "
            "switches above slows only traffic that leaves its rail, such as an all-to-all",
            ceiling(job, connected), nodes_of_leaf(network), network.oversubscription.value));
  }
  const MoeImbalance& imbalance = workload.moe_imbalance;
  const double load = std::max(fullest_rank(imbalance, model, strategy.expert_parallel), 1.0);
  if (any_experts(model) && imbalance.factor > load && strategy.expert_parallel > 1 &&
      !strategy.moe_pad_to_capacity) {
    warn("moe_imbalance_capped", fmt::format("no expert-parallel rank can receive more than {:.4g}x the mean "
                                             "here: moe_imbalance {:g} is capped at that",
                                             load, imbalance.factor));
  }
  if (model.architecture.positions == Positions::learned && workload.sequence > model.max_positions) {
    warn("sequence_exceeds_positions",
         "the sequence of " + std::to_string(workload.sequence) + " exceeds the model's " +
             std::to_string(model.max_positions) +
             " learned positions: the position table is assumed to be that much longer");
  }
  if (plan.timing) {
    if (auto warning = launch_bound(plan)) warnings.push_back(*std::move(warning));
    warn_of_extrapolation(plan, reduction_within_fit, warnings);
  }
  if (strategy.recompute.policy == RecomputePolicy::selective) {
    constexpr double worth_recomputing = 0.05;
    Bytes plain;
    Bytes recomputed;
    for (std::size_t i = 0; i < activations.kinds.size(); ++i) {
      const KindActivations& kind = activations.kinds[i];
      if (kind.position != KindPosition::layer) continue;
      plain += static_cast<double>(counts[i]) * kind.plain.kept;
      recomputed += static_cast<double>(counts[i]) * kind.recomputed.kept;
    }
    if (plain - recomputed < worth_recomputing * plain) {
      const AttentionKernel kernel =
          any_flash_attention(model) ? AttentionKernel::flash : model.architecture.kernels.attention;
      warn("selective_saves_little",
           "selective recomputation recomputes core attention but frees almost no memory: " +
               std::string(name_of(kernel)) + " attention does not save the scores");
    }
  }
  return warnings;
}

HostMemory host_memory(const System& system, std::int64_t devices, Bytes on_host) {
  const std::int64_t of_host = std::min(devices, host_size(system));
  return {.devices = of_host, .needed = real(of_host) * on_host, .available = system.host->memory};
}

std::vector<Assumption> assumptions_of(const System& system, const Software& software,
                                       const Strategy& strategy) {
  std::vector<Assumption> assumptions;
  for (const Reserve& reserve : system.reserves) {
    const Bytes bytes = reserved(reserve, software, strategy);
    if (reserve.origin != Origin::assumed || bytes == Bytes()) continue;
    const auto mebibytes = static_cast<std::int64_t>(bytes.count() / mebi);
    assumptions.push_back(
        {std::to_string(mebibytes) + " MiB of non-torch memory: " + reserve.name, reserve.source});
  }
  assumptions.push_back(
      {software.memory.backward_buffers
           ? "not counted: temporary kernel buffers, memory that the allocator holds beyond tensors"
           : "not counted: temporary kernel buffers, gradients in flight between ops, memory that the "
             "allocator holds beyond tensors",
       "a plan with less than 5% of capacity free is called marginal to allow for them"});
  return assumptions;
}

std::size_t peak_rank(const std::vector<RankMemory>& ranks) {
  std::size_t peak = 0;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (total(ranks[rank]) > total(ranks[peak])) peak = rank;
  }
  return peak;
}

}  // namespace headroom
