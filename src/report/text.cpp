#include "report/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/parallel/data_shards.hpp"

namespace headroom {
namespace {

std::string first_layers(std::int64_t layers) {
  return layers == 1 ? "first layer" : fmt::format("first {} layers", layers);
}

std::string policy_text(const Recomputation& recompute) {
  std::string text;
  switch (recompute.policy) {
    case RecomputePolicy::none: return "no recomputation";
    case RecomputePolicy::selective: return "selective recomputation (core attention)";
    case RecomputePolicy::selective_op: return "selective recomputation by op";
    case RecomputePolicy::ops: text = fmt::format("recomputing {}", fmt::join(recompute.ops, ", ")); break;
    case RecomputePolicy::full: text = "full recomputation"; break;
  }
  if (recompute.method == RecomputeMethod::uniform) {
    text += fmt::format(", an input saved every {} layers", recompute.layers);
  } else if (recompute.layers > 0) {
    text += fmt::format(" of the {} of each virtual stage", first_layers(recompute.layers));
  }
  if (recompute.distribute_saved_activations) text += ", saved activations distributed over TP ranks";
  return text;
}

// As SGR parameters [ECMA-48].
constexpr int red = 31;
constexpr int green = 32;
constexpr int yellow = 33;

std::string in_colour(const std::string& text, int colour, const Style& style) {
  if (!style.colour || style.format != Format::table) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
}

// Of the rank whose experts are wanted most; nothing of the default.
std::string load_text(const MoeImbalance& imbalance) {
  if (imbalance.load != ExpertLoad::balanced)
    return fmt::format(", {} load of experts", name_of(imbalance.load));
  return imbalance.factor == 1 ? "" : fmt::format(", fullest expert rank {:g} x mean", imbalance.factor);
}

std::string recompute_text(const Recomputation& recompute) {
  return policy_text(recompute) + (recompute.window ? " outside a window of microbatches" : "");
}

}  // namespace

std::string parameters_text(const ParameterCounts& counts) {
  std::string text = human_count(counts.all) + " parameters";
  if (counts.predictors > 0)
    text += fmt::format(" and {} of multi-token prediction", human_count(counts.predictors));
  if (counts.active == counts.all) return text;
  text += fmt::format(", {} active", human_count(counts.active));
  if (counts.active_without_embedding == counts.active) return text;
  return text +
         fmt::format(", {} of them without the embedding", human_count(counts.active_without_embedding));
}

double in_flight(const Plan& plan, const RankMemory& rank) {
  return static_cast<double>(rank.activations.chunks_in_flight) /
         static_cast<double>(plan.request.strategy.virtual_pipeline);
}

std::string layout_line(const Strategy& strategy, const Workload& workload) {
  std::string text =
      fmt::format("{} GPU{} = TP {} x PP {} x ", devices(strategy), devices(strategy) == 1 ? "" : "s",
                  strategy.tensor_parallel, strategy.pipeline_parallel);
  if (strategy.context_parallel > 1) {
    text +=
        fmt::format("CP {}{} x ", strategy.context_parallel,
                    strategy.cp_comm == CpComm::p2p ? "" : fmt::format(" ({})", name_of(strategy.cp_comm)));
  }
  text += fmt::format("DP {}", strategy.data_parallel);
  if (strategy.virtual_pipeline > 1) text += fmt::format(", VP {}", strategy.virtual_pipeline);
  if (strategy.expert_parallel > 1) text += fmt::format(", EP {}", strategy.expert_parallel);
  if (strategy.expert_tensor_parallel > 1) text += fmt::format(", ETP {}", strategy.expert_tensor_parallel);
  if (strategy.moe_dispatcher != Dispatcher::alltoall)
    text += fmt::format(" ({})", name_of(strategy.moe_dispatcher));
  if (strategy.expert_parallel > 1) text += load_text(workload.moe_imbalance);
  const std::int64_t n = microbatches(strategy, workload);
  return text + fmt::format("; GBS {} x {} tokens = {} microbatch{} of {} on each pipeline{}",
                            workload.global_batch, workload.sequence, n, n == 1 ? "" : "es",
                            strategy.micro_batch, workload.reference_model ? ", with a reference model" : "");
}

namespace {

// ", FSDP (ZeRO 3) over 8 of 64 ranks, weights kept after a forward pass"; nothing where nothing is divided.
std::string sharding_text(const Strategy& strategy) {
  std::string text;
  switch (strategy.data_sharding) {
    case DataSharding::none: return text;
    case DataSharding::zero1: text = ", distributed optimizer (ZeRO 1)"; break;
    case DataSharding::zero2: text = ", sharded gradients and optimizer (ZeRO 2)"; break;
    case DataSharding::zero3: text = ", fully sharded (ZeRO 3)"; break;
  }
  if (strategy.shard_size > 0)
    text += fmt::format(" over {} of {} ranks", strategy.shard_size, replicas(strategy));
  if (strategy.no_reshard_after_forward) text += ", weights kept after a forward pass";
  if (strategy.sync_each_batch) text += ", gradients reduced in every microbatch";
  return text;
}

std::string exposed_text(Seconds exposed) { return exposed > Seconds(0) ? human(exposed) : "nothing"; }

}  // namespace

std::string more_sharding(const std::vector<std::string>& stacks) {
  if (stacks.empty()) return {};
  return fmt::format(
      "Stacks that shard weights over DP ranks (FSDP, ZeRO 3) have plans that fit: --software {}.\n",
      fmt::join(stacks, " or "));
}

std::string policy_line(const Strategy& strategy, const Software& software) {
  std::string text = fmt::format("{} schedule, ", name_of(strategy.schedule));
  if (strategy.sequence_parallel)
    text += strategy.split_hidden ? "norms split along the hidden dimension, " : "sequence parallelism, ";
  text += recompute_text(strategy.recompute);
  text += sharding_text(strategy);
  if (strategy.overlap_expert_all_to_all) text += ", expert exchanges beside other passes";
  if (strategy.save_gathered_input) text += ", gathered inputs saved";
  if (strategy.keep_pipeline_outputs) text += ", pipeline outputs kept";
  if (is_narrow(strategy.precision)) text += fmt::format(", {} linears", name_of(strategy.precision));
  if (strategy.precision_scope.attention) text += ", attention in it too";
  if (strategy.precision_scope.output_layer) text += ", the output layer in it too";
  if (strategy.precision_scope.activation_input) text += ", inputs of SwiGLU saved in FP8";
  if (has_bf16_layers(strategy.precision_scope)) {
    text +=
        fmt::format(", {} first and {} last layers in BF16", strategy.precision_scope.bf16_layers_at_start,
                    strategy.precision_scope.bf16_layers_at_end);
  }
  if (!strategy.precision_scope.bf16_modules.empty())
    text +=
        fmt::format(", those of {} in BF16", fmt::join(names_of(strategy.precision_scope.bf16_modules), " "));
  if (routes_padded(strategy) && is_narrow(strategy.precision)) text += ", rows of experts padded as routed";
  if (strategy.moe_pad_to_capacity) text += ", rows of experts padded to their capacity";
  if (strategy.tp_only_amax_red) text += ", amax reduced over TP and CP alone";
  if (strategy.fp8_param_gather) text += ", weights of layers in that type alone";
  text += fmt::format(", {} gradients", name_of(reduced_gradient_dtype(strategy, software)));
  const auto& [main_params, exp_avg, exp_avg_sq, optimizer] = strategy.optimizer;
  if (const double offloaded = strategy.offload.optimizer.value; offloaded > 0) {
    text += fmt::format(", {:.3g}% of the optimizer on the host{}", 100 * offloaded,
                        strategy.offload.overlaps ? ", overlapped" : "");
  }
  if (strategy.offload.parameters) text += ", weights and gradients there too";
  if (!strategy.offload.modules.empty()) {
    text += fmt::format(", saved activations of {} offloaded", fmt::join(strategy.offload.modules, " "));
  }
  if (strategy.offload.layers > 0)
    text += fmt::format(", saved activations of the {} offloaded", first_layers(strategy.offload.layers));
  if (strategy.step_in_backward) text += ", each weight stepped in the backward pass";
  const Lora& lora = strategy.lora;
  if (trains_adapters(lora)) {
    text += fmt::format(", LoRA of rank {}{}{} beside frozen {} weights", lora.rank,
                        lora.dropout.value > 0 ? " with dropout" : "",
                        lora.targets.empty() ? "" : fmt::format(" on {}", fmt::join(lora.targets, " ")),
                        name_of(lora.base));
  }
  if (optimizer != OptimizerKind::adam) text += fmt::format(", {}", name_of(optimizer));
  if (main_params != MainParams::fp32) {
    text += main_params == MainParams::none        ? ", no main params"
            : main_params == MainParams::remainder ? ", main params as 16-bit remainders"
                                                   : fmt::format(", {} main params", name_of(main_params));
  }
  if (exp_avg != MomentDtype::fp32) text += fmt::format(", {} exp_avg", name_of(exp_avg));
  if (exp_avg_sq != MomentDtype::fp32) text += fmt::format(", {} exp_avg_sq", name_of(exp_avg_sq));
  return text;
}

std::string exchanges_line(const Plan& plan) {
  const ExchangeTimes& times = plan.timing->iteration.exchanges;
  const double n = static_cast<double>(plan.timing->iteration.shape.microbatches);
  std::string text;
  const bool gathers = times.gather > Seconds(0);
  const bool reduces = times.reduction > Seconds(0);
  if (gathers || reduces) {
    text += fmt::format("DP ranks {}{}{}, of which {} is exposed.\n",
                        gathers ? "gather weights for " + human(n * times.gather) : "",
                        gathers && reduces ? " and " : "",
                        reduces ? "reduce gradients for " + human(n * times.reduction) : "",
                        exposed_text(n * (times.exposed_forward + times.exposed_backward)));
  }
  if (times.host > Seconds(0)) {
    const Seconds exposed = times.exposed_host_forward + times.exposed_host_backward;
    text += fmt::format("Passes send to the host and fetch from it for {}, of which {} is exposed.\n",
                        human(n * times.host), exposed_text(n * exposed));
  }
  return text;
}

std::vector<std::string> change_texts(const Alternative& alternative) {
  std::vector<std::string> texts;
  texts.reserve(alternative.changes.size());
  for (const Edits& change : alternative.changes) texts.push_back(flags_of(change));
  return texts;
}

std::string changes_text(const Alternative& alternative) {
  return fmt::format("{}", fmt::join(change_texts(alternative), " "));
}

std::string words(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> spoken{{
      {"gemm", "GEMMs"},
      {"memory_bound", "memory-bound kernels"},
      {"tensor_communication", "exposed TP communication"},
      {"expert_communication", "exposed EP communication"},
      {"context_communication", "exposed CP communication"},
      {"scale_communication", "exposed amax reduction"},
      {"pipeline_communication", "exposed PP communication"},
      {"data_communication", "exposed DP communication"},
      {"host_communication", "exposed transfers with the host"},
      {"head", "output layer"},
      {"outputs", "pipeline outputs"},
      {"non_torch", "non-torch memory"},
  }};
  for (const auto& [known, text] : spoken) {
    if (known == name) return std::string(text);
  }
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string more_time(const Plan& best, const Plan& other, std::size_t most, const char* word) {
  const Breakdown& x = best.timing->iteration.breakdown;
  const Breakdown& y = other.timing->iteration.breakdown;
  const auto more = [&](const BreakdownPart& part) { return y.*part.part - x.*part.part; };
  std::vector<BreakdownPart> parts(breakdown_parts.begin(), breakdown_parts.end());
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const BreakdownPart& one, const BreakdownPart& two) { return more(one) > more(two); });
  std::string text;
  for (std::size_t i = 0; i < std::min(most, parts.size()); ++i) {
    constexpr double worth_a_word = 1e-6;  // of the iteration; less is rounding
    if (more(parts[i]) <= worth_a_word * other.timing->iteration.total) break;
    text += fmt::format("{}{} {} for {}", text.empty() ? "" : ", ", human(more(parts[i])), word,
                        words(parts[i].name));
  }
  return text;
}

bool across(const Plan& before, const Plan& after) {
  return before.request.software.name != after.request.software.name ||
         before.request.system.name != after.request.system.name;
}

std::string across_text(const Plan& before, const Plan& after) {
  if (!before.timing || !after.timing) return {};
  const auto name = [&](const Plan& plan) {
    const auto& [model, system, software, strategy, workload, detail, margin, insisted] = plan.request;
    if (before.request.system.name == after.request.system.name) return software.name;
    return before.request.software.name == after.request.software.name ? system.name
                                                                       : software.name + " on " + system.name;
  };
  const double ratio = after.timing->iteration.total / before.timing->iteration.total;
  constexpr std::size_t most_terms = 3;
  const std::string more = more_time(before, after, most_terms);
  const std::string less = more_time(after, before, most_terms, "less");
  std::string text = fmt::format("{} takes {:.1f}% {} than {}", name(after), 100 * std::abs(ratio - 1),
                                 ratio < 1 ? "less" : "longer", name(before));
  if (!more.empty()) text += ": " + more;
  if (!less.empty()) text += (more.empty() ? ": " : "; ") + less;
  text += ".\n";
  for (const Plan* const plan : {&before, &after}) {
    if (const std::string line = exchanges_line(*plan); !line.empty())
      text += fmt::format("With {}: {}", name(*plan), line);
  }
  return text;
}

std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 < parts.size() ? ", " : " and ") + parts[i];
  return text;
}

std::string render_table(const Table& table, const Style& style) {
  switch (style.format) {
    case Format::table: return to_aligned(table, style.columns);
    case Format::markdown: return to_markdown(table);
    case Format::csv: return to_csv(table);
    case Format::json: break;
  }
  EXPECTS(!"JSON is not a table");
  return {};
}

std::string fitted(const std::string& text, const Style& style) {
  return style.format == Format::table ? in_lines(text, style.columns) : text;
}

std::string painted(const std::string& text, Verdict verdict, const Style& style) {
  switch (verdict) {
    case Verdict::fits: return in_colour(text, green, style);
    case Verdict::marginal: return in_colour(text, yellow, style);
    case Verdict::does_not_fit: return in_colour(text, red, style);
  }
  EXPECTS(!"unknown verdict");
  return {};
}

std::string painted(const std::string& text, bool good, const Style& style) {
  return in_colour(text, good ? green : red, style);
}

std::string heading_of(std::string_view field) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> short_names{{
      {"tensor_parallel", "TP"},
      {"pipeline_parallel", "PP"},
      {"virtual_pipeline", "VP"},
      {"context_parallel", "CP"},
      {"data_parallel", "DP"},
      {"expert_parallel", "EP"},
      {"expert_tensor_parallel", "ETP"},
      {"micro_batch", "MBS"},
      {"global_batch", "GBS"},
      {"devices", "GPUs"},
  }};
  for (const auto& [known, heading] : short_names) {
    if (known == field) return std::string(heading);
  }
  return std::string(field);
}

}  // namespace headroom
