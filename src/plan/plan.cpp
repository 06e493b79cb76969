#include "headroom/plan/plan.hpp"

#include <algorithm>
#include <array>

#include "headroom/plan/interval.hpp"

namespace headroom {
namespace {

// What the time model takes from nowhere: rates that nobody fitted, and an assumed network.
std::string assumed_rates(const Performance& performance, bool flash) {
  std::string names;
  const auto append = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  visit_rates(performance.rates, [&](std::string_view group, std::string_view name, const auto& rate) {
    if (rate.origin != Origin::assumed || (group == "flash_attention" && !flash)) return;
    append(std::string(group) + "." + std::string(name));
  });
  if (performance.network.origin == Origin::assumed) append("network");
  return names;
}

// Predictions beyond what the rates were fitted on, by stable code.
void warn_of_extrapolation(Plan& plan, const Extrapolations& beyond) {
  const auto warn = [&](bool applies, std::string code, std::string text) {
    if (applies) plan.warnings.push_back({std::move(code), std::move(text)});
  };
  warn(beyond.product_size, "extrapolated_product_size",
       "a matrix product is larger or smaller than those that the rates were fitted on");
  warn(beyond.message_size, "extrapolated_message_size",
       "a collective moves more or fewer bytes than those that the rates were fitted on");
  warn(beyond.group_size, "extrapolated_group_size",
       "a collective spans more ranks than those that the rates were fitted on");
  warn(beyond.unaligned_heads, "unaligned_heads",
       "the head size is no multiple of 8: attention products are priced without tensor cores");
  const auto& [model, system, software, strategy, workload, detail] = plan.request;
  const FlashRates& flash_rates = system.performance->rates.flash_attention;
  const bool flash_assumed =
      flash_rates.forward.origin == Origin::assumed || flash_rates.backward.origin == Origin::assumed;
  warn(beyond.flash_attention && flash_assumed, "flash_attention_assumed",
       "flash attention is priced by assumed shares of peak, which no samples were fitted to");
  const std::vector<double> parameters = parameters_by_rank(model, strategy, workload);
  warn(!data_parallel_times(*std::max_element(parameters.begin(), parameters.end()), strategy,
                            system.devices_per_node, *system.performance, software)
            .within_fit,
       "extrapolated_data_parallel",
       "gradients are reduced over more ranks, or in larger messages, than the rates were fitted on");
  warn(step_rates(plan.request) == StepRates::transferred, "transferred_step_rates",
       "the clock of a training step, or flash attention, is assumed on this device: the interval of the "
       "iteration time is as wide as such predictions were off");
  const bool flash = model.architecture.kernels.attention == AttentionKernel::flash;
  const std::string assumed = assumed_rates(*system.performance, flash);
  warn(!assumed.empty(), "assumed_rates",
       "time rests on rates that are assumed, not fitted (sources: --format json): " + assumed);
}

void warn_of(Plan& plan) {
  const auto& [model, system, software, strategy, workload, detail] = plan.request;
  const auto warn = [&](std::string code, std::string text) {
    plan.warnings.push_back({std::move(code), std::move(text)});
  };
  if (strategy.tensor_parallel > system.devices_per_node) {
    warn("tensor_parallel_across_nodes", "tensor parallelism of " + std::to_string(strategy.tensor_parallel) +
                                             " crosses nodes of " + std::to_string(system.devices_per_node) +
                                             " devices: its collectives run over the network");
  }
  if (strategy.sequence_parallel && strategy.tensor_parallel == 1) {
    warn("sequence_parallel_without_tensor_parallel",
         "sequence parallelism splits over tensor-parallel ranks: with one of them it changes nothing");
  }
  if (model.architecture.positions == Positions::learned && workload.sequence > model.max_positions) {
    warn("sequence_exceeds_positions", "the sequence of " + std::to_string(workload.sequence) +
                                           " exceeds the model's " + std::to_string(model.max_positions) +
                                           " learned positions: the table is taken as that much longer");
  }
  if (plan.timing) warn_of_extrapolation(plan, beyond(plan.timing->iteration.cost));
  if (strategy.recompute.policy == RecomputePolicy::selective) {
    constexpr double worth_a_replay = 0.05;
    const LayerActivations plain = layer_activations(model, strategy, workload, {}, detail);
    const LayerActivations selective =
        layer_activations(model, strategy, workload, strategy.recompute, detail);
    if (plain.kept - selective.kept < worth_a_replay * plain.kept) {
      warn("selective_saves_little",
           "selective recomputation replays core attention but saves almost nothing: " +
               std::string(name_of(model.architecture.kernels.attention)) +
               " attention already keeps no scores");
    }
  }
}

std::vector<Assumption> assumptions_of(const System& system, const Strategy& strategy) {
  std::vector<Assumption> assumptions;
  for (const Reserve& reserve : system.reserves) {
    const Bytes bytes = reserved(reserve, strategy);
    if (reserve.origin != Origin::assumed || bytes == Bytes()) continue;
    const auto mebibytes = static_cast<std::int64_t>(bytes.count() / mebi);
    assumptions.push_back({std::to_string(mebibytes) + " MiB reserved for " + reserve.name, reserve.source});
  }
  assumptions.push_back(
      {"left out: temporary buffers of a kernel, gradients in flight between ops, fragmentation",
       "less than 5% of capacity to spare is called marginal for their sake"});
  return assumptions;
}

// Memory of every rank, and the fullest of them.
void fill_ranks(Plan& plan) {
  const auto& [model, system, software, strategy, workload, detail] = plan.request;
  const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, workload));
  const std::vector<StageActivations> stages = stage_activations(model, strategy, workload, detail);
  std::vector<StageActivations> full = stages;
  if (strategy.recompute.window) {
    Strategy everything = strategy;
    everything.recompute = {};
    full = stage_activations(model, everything, workload, detail);
  }
  const std::vector<std::int64_t> layers = layers_by_stage(model, strategy);
  const std::vector<double> parameters = parameters_by_rank(model, strategy, workload);
  for (std::int64_t rank = 0; rank < strategy.pipeline_parallel; ++rank) {
    RankMemory memory{.state = model_state(model, strategy, parameters[static_cast<std::size_t>(rank)]),
                      .reserved = reserved(system, strategy)};
    if (strategy.recompute.window) {
      const Bytes available = (1 - marginal_fraction) * system.memory - total(memory);
      memory.window = largest_window(stages, full, shape, rank, available);
    }
    memory.activations = rank_activations(stages, full, memory.window, shape, rank);
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      memory.activations.layers += layers[static_cast<std::size_t>(stage_of(shape, rank, chunk))];
    }
    plan.ranks.push_back(memory);
    if (total(plan.ranks.back()) > peak(plan)) plan.peak_rank = static_cast<std::size_t>(rank);
  }
}

// The part of all layer passes whose backward pass recomputes.
double replayed_part(const Plan& plan, const ReplayedSchedule& schedule) {
  const auto& [model, system, software, strategy, workload, detail] = plan.request;
  const ScheduleShape shape = schedule_shape(strategy, microbatches(strategy, workload));
  const std::vector<std::int64_t> layers = layers_by_stage(model, strategy);
  const auto passes = static_cast<double>(shape.microbatches * shape.chunks);
  double replayed = 0;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    const auto stored = static_cast<double>(schedule.ranks[static_cast<std::size_t>(rank)].stored_forwards);
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const auto stage = static_cast<std::size_t>(stage_of(shape, rank, chunk));
      replayed +=
          (1 - stored / passes) * static_cast<double>(replayed_layers(layers[stage], strategy.recompute));
    }
  }
  return replayed / static_cast<double>(model.layers);
}

Timing timing_of(const Plan& plan) {
  const auto& [model, system, software, strategy, workload, detail] = plan.request;
  std::vector<std::int64_t> windows;
  for (const RankMemory& rank : plan.ranks) {
    if (strategy.recompute.window) windows.push_back(rank.window);
  }
  Timing timing{.iteration = iteration_time(model, strategy, workload, system.devices_per_node,
                                            *system.performance, software, windows)};
  timing.flops = iteration_flops(model, strategy, workload, replayed_part(plan, timing.iteration.schedule));
  timing.throughput = throughput(timing.flops, timing.iteration.total, strategy, workload,
                                 system.performance->device.half_peak);
  return timing;
}

}  // namespace

Bytes total(const RankMemory& rank) {
  return total(rank.state) + total(rank.activations.at_peak) + rank.reserved;
}

Bytes peak(const Plan& plan) { return total(plan.ranks[plan.peak_rank]); }

Bytes headroom_of(const Plan& plan) { return plan.request.system.memory - peak(plan); }

Component largest_component(const RankMemory& rank) {
  const std::array<Component, 5> components{{{"weights", rank.state.weights},
                                             {"gradients", rank.state.gradients},
                                             {"optimizer state", rank.state.optimizer},
                                             {"activations", total(rank.activations.at_peak)},
                                             {"reserves", rank.reserved}}};
  return *std::max_element(components.begin(), components.end(),
                           [](const Component& x, const Component& y) { return x.bytes < y.bytes; });
}

Evaluation evaluate(const Request& request) {
  const System& system = request.system;
  if (std::vector<Problem> problems = illegalities(request.model, request.strategy, request.workload);
      !problems.empty()) {
    throw InputError(std::move(problems));
  }

  Plan plan{.request = request, .assumptions = assumptions_of(system, request.strategy)};
  fill_ranks(plan);
  if (system.performance) plan.timing = timing_of(plan);
  warn_of(plan);

  if (headroom_of(plan) < Bytes(0)) {
    plan.verdict = Verdict::does_not_fit;
    const Bytes needed = peak(plan);
    return Infeasible{
        .attempt = std::move(plan), .limit = "device_memory", .needed = needed, .available = system.memory};
  }
  if (headroom_of(plan) < marginal_fraction * system.memory) plan.verdict = Verdict::marginal;
  return plan;
}

const Plan& account(const Evaluation& evaluation) {
  const auto* infeasible = std::get_if<Infeasible>(&evaluation);
  return infeasible != nullptr ? infeasible->attempt : std::get<Plan>(evaluation);
}

Plan account(Evaluation&& evaluation) {
  auto* infeasible = std::get_if<Infeasible>(&evaluation);
  return infeasible != nullptr ? std::move(infeasible->attempt) : std::get<Plan>(std::move(evaluation));
}

}  // namespace headroom
