#include "report/estimate_json.hpp"

#include <cmath>

#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "report/capacity.hpp"
#include "report/text.hpp"
#include "report/views_json.hpp"

namespace headroom {
namespace {

// The op of a pass that is under way at the peak, where the training stack counts
// such moments.
OrderedJson op_json(const ModelLayers& layers, const OpPlace& place) {
  if (place.op == nowhere) return {};
  const LayerKind& kind = layers.kinds[static_cast<std::size_t>(place.kind)];
  return {{"kind", kind.name},
          {"op", kind.ops.ops()[static_cast<std::size_t>(place.op)].name},
          {"pass", name_of(place.pass)}};
}

OrderedJson rank_json(const Plan& plan, const RankMemory& rank) {
  OrderedJson json{{"pipeline_rank", rank.activations.pipeline_rank},
                   {"layers", rank.activations.layers},
                   {"in_flight", number(in_flight(plan, rank))}};
  for (const MemoryPart& part : memory_parts) {
    if (part.activations && !json.contains("activations")) {
      json["activation_bytes"] = number(of_activations(rank.activations.at_peak));
      json["activations"] = OrderedJson::object();
    }
    OrderedJson& object = part.activations ? json["activations"] : json;
    object[fmt::format("{}_bytes", part.name)] = number(part.of(rank));
  }
  json["total_bytes"] = number(total(rank));
  json["peak"] = {{"pass", name_of(rank.activations.peak.pass)},
                  {"microbatch", rank.activations.peak.microbatch},
                  {"virtual_stage", rank.activations.peak.chunk},
                  {"during", op_json(*plan.layers.tables, rank.activations.during)}};
  return json;
}

OrderedJson pass_json(const PassCost& cost) {
  return {{"seconds", device_time(cost).count()},
          {"gemm_seconds", cost.gemm.count()},
          {"attention_seconds", cost.attention.count()},
          {"memory_bound_seconds", cost.memory_bound.count()},
          {"communication_seconds", cost.communication.count()},
          {"launches", cost.operations},
          {"host_launch_seconds", cost.host.count()},
          {"host_wait_seconds", cost.drained.count()}};
}

// GPU time of one microbatch through one layer or one end of the model.
OrderedJson cost_json(const LayerCost& cost) {
  return {{"forward_seconds", device_time(cost.forward).count()},
          {"backward_seconds", device_time(backward(cost)).count()},
          {"recompute_seconds", device_time(cost.recompute).count()},
          {"forward", pass_json(cost.forward)},
          {"backward_data", pass_json(cost.backward_data)},
          {"backward_weight", pass_json(cost.backward_weight)},
          {"recompute", pass_json(cost.recompute)}};
}

OrderedJson sourced_interval_json(const IterationInterval& interval, const IterationSpread& spread) {
  OrderedJson json = interval_json(interval);
  json["step_rates"] = name_of(spread.rates);
  json["source"] = spread.spread.source;
  return json;
}

OrderedJson allocated_json(const AllocatedInterval& allocated) {
  const auto& [predicted, low, high, source] = allocated;
  return {{"peak_bytes", number(predicted)},
          {"interval",
           {{"level", interval_level},
            {"low_bytes", number(low)},
            {"high_bytes", number(high)},
            {"source", source}}}};
}

OrderedJson allocator_json(const std::optional<AllocatorUse>& use) {
  if (!use) return nullptr;
  return {{"rank", use->rank},
          {"reserved_bytes", number(use->reserved)},
          {"expandable_bytes", number(use->expandable)},
          {"allocated_bytes", number(use->allocated)}};
}

OrderedJson tensors_json(const std::vector<PeakTensor>& tensors) {
  OrderedJson json = OrderedJson::array();
  for (const PeakTensor& tensor : tensors) {
    json.push_back({{"tensor", tensor.name},
                    {"op", tensor.op},
                    {"layers", tensor.layers},
                    {"dtype", name_of(tensor.dtype)},
                    {"bytes_expression", tensor.expression},
                    {"bytes", number(tensor.each)},
                    {"count", tensor.count},
                    {"freed_by", tensor.freed_by}});
  }
  return json;
}

OrderedJson time_json(const EstimateReply& report, const Plan& plan) {
  const IterationTime& iteration = plan.timing->iteration;
  OrderedJson breakdown = OrderedJson::object();
  for (const auto& [name, part] : breakdown_parts) {
    breakdown[std::string(name) + "_seconds"] = (iteration.breakdown.*part).count();
  }
  OrderedJson json = {{"iteration_seconds", iteration.total.count()},
                      {"interval", sourced_interval_json(*report.interval, *report.spread)},
                      {"critical_rank", iteration.critical_rank},
                      {"breakdown", std::move(breakdown)}};
  const ExchangeTimes& exchanges = iteration.exchanges;
  if (exchanges.gather + exchanges.reduction > Seconds(0)) {
    json["data_parallel_pass"] = {{"gather_seconds", exchanges.gather.count()},
                                  {"reduction_seconds", exchanges.reduction.count()},
                                  {"exposed_forward_seconds", exchanges.exposed_forward.count()},
                                  {"exposed_backward_seconds", exchanges.exposed_backward.count()}};
  }
  if (exchanges.host > Seconds(0)) {
    json["host_pass"] = {{"seconds", exchanges.host.count()},
                         {"exposed_forward_seconds", exchanges.exposed_host_forward.count()},
                         {"exposed_backward_seconds", exchanges.exposed_host_backward.count()}};
  }
  const ModelLayers& layers = *plan.layers.tables;
  const KindCounts counts = counts_of(layers);
  OrderedJson kinds = OrderedJson::array();
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    OrderedJson cost = cost_json(iteration.cost.kinds[i]);
    if (layers.kinds[i].position != KindPosition::layer || layer_kind_count(layers) == 1) {
      json[layers.kinds[i].name] = std::move(cost);
      continue;
    }
    kinds.push_back({{"name", layers.kinds[i].name}, {"count", counts[i]}, {"cost", std::move(cost)}});
  }
  if (!kinds.empty()) json["layer_kinds"] = std::move(kinds);
  return json;
}

OrderedJson throughput_json(const Timing& timing, const Request& request) {
  const Throughput& rates = timing.throughput;
  const Dtype dtype = compute_dtype(request.strategy.precision);
  const FlopsPerSecond peak = peak_of(request.system.performance->device, dtype);
  // Eq. 8 speaks of selective recomputation; counting other recomputations three times would mean nothing.
  const RecomputePolicy policy = request.strategy.recompute.policy;
  const bool eq_8 = policy == RecomputePolicy::none || policy == RecomputePolicy::selective;
  return {{"tokens_per_second", rates.tokens_per_second},
          {"tokens_per_second_per_device", rates.tokens_per_second_per_device},
          {"samples_per_second", rates.samples_per_second},
          {"tflops_per_device", rates.flops_per_device.count() / 1e12},
          {"mfu", rates.mfu},
          {"hfu", rates.hfu},
          {"attention_flops", "causal"},
          {"mfu_full", rates.mfu_full},
          {"hfu_full", rates.hfu_full},
          {"hfu_paper", eq_8 ? OrderedJson(rates.hfu_paper) : OrderedJson()},
          {"peak_tflops", peak.count() / 1e12},
          {"peak_dtype", name_of(dtype)},
          {"mfu_half", rates.mfu_half},
          {"model_flops", number(timing.flops.model.count())},
          {"model_causal_flops", number(timing.flops.model_causal.count())},
          {"hardware_flops", number(timing.flops.hardware.count())},
          {"hardware_causal_flops", number(timing.flops.hardware_causal.count())},
          {"hardware_flops_paper", eq_8 ? number(timing.flops.hardware_paper.count()) : OrderedJson()}};
}

OrderedJson layout_json(const Request& request) {
  const std::vector<std::int64_t> by_stage = layers_by_stage(request.model, request.strategy);
  const StageLayout layout = stage_layout(request.model.layers, request.strategy);
  OrderedJson json{{"kind", name_of(layout)}, {"stage_layers", by_stage}};
  if (layout == StageLayout::uneven) json["megatron"] = megatron_layout(by_stage, request.model.mtp_layers);
  return json;
}

// Null if nothing is offloaded.
OrderedJson host_json(const Plan& plan) {
  if (!plan.host) return nullptr;
  return {{"devices", plan.host->devices},
          {"needed_bytes", number(plan.host->needed)},
          {"capacity_bytes", number(plan.host->available)}};
}

}  // namespace

OrderedJson interval_json(const IterationInterval& interval) {
  return {{"level", interval_level},
          {"low_seconds", interval.low.count()},
          {"high_seconds", interval.high.count()}};
}

OrderedJson warnings_json(const Plan& plan) {
  OrderedJson warnings = OrderedJson::array();
  for (const Warning& warning : plan.warnings)
    warnings.push_back({{"code", warning.code}, {"text", warning.text}});
  return warnings;
}

OrderedJson launch_json(const Launch& launch) {
  OrderedJson files = OrderedJson::object();
  for (const auto& [name, text] : launch.files) files[name] = text;
  OrderedJson environment = OrderedJson::object();
  for (const auto& [name, value] : launch.environment) {
    if (value.empty()) {
      environment[name] = nullptr;
    } else {
      environment[name] = value;
    }
  }
  return {{"launcher", name_of(launch.target)},
          {"release", launch.release},
          {"files", std::move(files)},
          {"environment", std::move(environment)},
          {"command", launch.command},
          {"flags", launch.flags},
          {"lacks", launch.lacks}};
}

OrderedJson estimate_json(const EstimateReply& report) {
  const Plan& plan = account(report.evaluation);
  const Request& request = plan.request;
  OrderedJson ranks = OrderedJson::array();
  for (const RankMemory& rank : plan.ranks) ranks.push_back(rank_json(plan, rank));
  OrderedJson memory{{"detail", name_of(request.detail)},
                     {"capacity_bytes", number(request.system.memory)},
                     {"peak_bytes", number(peak(plan))},
                     {"peak_rank", plan.peak_rank},
                     {"allocated", allocated_json(report.allocated)},
                     {"allocator", allocator_json(plan.allocator)},
                     {"headroom_bytes", number(headroom_of(plan))},
                     {"verdict", name_of(plan.verdict)},
                     {"host", host_json(plan)},
                     {"ranks", std::move(ranks)}};
  if (report.peak_tensors) memory["tensors"] = tensors_json(*report.peak_tensors);
  OrderedJson assumptions = OrderedJson::array();
  for (const auto& [text, source] : plan.assumptions)
    assumptions.push_back({{"text", text}, {"source", source}});
  OrderedJson json{{"format", 2},
                   {"model", to_json(request.model, request.workload)},
                   {"parameters", to_json(parameter_counts(request.model))},
                   {"system", to_json(request.system)},
                   {"software", to_json(request.software)},
                   {"strategy", to_json(request.strategy)},
                   {"workload", to_json(request.workload, request.strategy)},
                   {"layout", layout_json(request)},
                   {"memory", std::move(memory)}};
  if (plan.timing) {
    json["time"] = time_json(report, plan);
    json["throughput"] = throughput_json(*plan.timing, request);
    if (report.cost) json["budget"] = training_json(report.training, *report.cost);
  }
  if (const auto* infeasible = std::get_if<Infeasible>(&report.evaluation)) {
    json["infeasible"] = {{"limit", infeasible->limit},
                          {"needed_bytes", number(infeasible->needed)},
                          {"available_bytes", number(infeasible->available)}};
  }
  if (report.routing) {
    OrderedJson loads = OrderedJson::array();
    for (const LoadedPlan& loaded : report.routing->loads) {
      OrderedJson entry{{"quantile", loaded.quantile},
                        {"memory_load", loaded.memory_load},
                        {"time_load", loaded.time_load},
                        {"peak_bytes", number(loaded.peak)},
                        {"verdict", name_of(loaded.verdict)}};
      if (loaded.iteration) entry["iteration_seconds"] = loaded.iteration->count();
      loads.push_back(std::move(entry));
    }
    json["routing"] = {{"balancing", name_of(report.routing->balancing)},
                       {"layers", report.routing->layers},
                       {"steps", report.routing->steps},
                       {"out_of_memory", report.routing->out_of_memory},
                       {"out_of_memory_early", report.routing->out_of_memory_early},
                       {"loads", std::move(loads)}};
  }
  OrderedJson alternatives = OrderedJson::array();
  for (const Alternative& alternative : report.alternatives) {
    OrderedJson entry{{"changes", change_texts(alternative)},
                      {"devices", devices(alternative.plan.request.strategy)},
                      {"peak_bytes", number(peak(alternative.plan))},
                      {"verdict", name_of(alternative.plan.verdict)}};
    if (alternative.plan.timing)
      entry["iteration_seconds"] = alternative.plan.timing->iteration.total.count();
    alternatives.push_back(std::move(entry));
  }
  json["alternatives"] = std::move(alternatives);
  if (report.launch) {
    json["launch"] = launch_json(*report.launch);
  }
  if (report.views) json["views"] = views_json(*report.views, static_cast<std::int64_t>(plan.peak_rank));
  json["assumptions"] = std::move(assumptions);
  json["warnings"] = warnings_json(plan);
  return json;
}

}  // namespace headroom
