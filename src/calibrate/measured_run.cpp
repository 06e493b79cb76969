#include "headroom/calibrate/measured_run.hpp"

namespace headroom {
namespace {

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// What holds for a run beyond its members: its own settings over those of its source.
RunSettings settings_of(const MeasuredRun& run, const PublishedSource* source) {
  if (source == nullptr) return run.settings;
  RunSettings settings = source->settings;
  for (const SettingsVariant& variant : source->variants) {
    const bool matches = (!variant.dtype || *variant.dtype == run.dtype) &&
                         (!variant.overlap || *variant.overlap == run.overlap);
    if (matches) settings = laid_over(variant.settings, settings);
  }
  return laid_over(run.settings, settings);
}

std::optional<RecomputePolicy> recomputation_of(const MeasuredRun& run, const RunSettings& settings) {
  if (!run.recompute) return settings.recompute;
  const auto policy = from_name<RecomputePolicy>(*run.recompute);
  return policy == RecomputePolicy::ops ? std::nullopt : policy;
}

std::optional<ScheduleKind> schedule_of(const MeasuredRun& run) {
  const std::string schedule = run.schedule.value_or("1F1B");
  const bool interleaved = run.virtual_pipeline.value_or(1) > 1;
  // Not ZB-1p, whose order the paper's search finds anew for each run.
  if (schedule == "ZB-H1" || schedule == "zero-bubble-h1") return ScheduleKind::zero_bubble_h1;
  if (schedule == "GPipe" || schedule == "gpipe") return ScheduleKind::gpipe;
  if (!holds(schedule, "1F1B") && !holds(schedule, "1f1b") && schedule != "interleaved") return std::nullopt;
  return interleaved ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
}

// Empty when the run can be predicted.
std::string reason_to_skip(const MeasuredRun& run, const RunSettings& settings) {
  if (!run.iteration) return "no iteration time";
  if (!run.dense || run.expert_parallel > 1) return "mixture of experts";
  if (run.context_parallel > 1) return "context parallelism";
  if (run.fully_sharded || run.zero_stage.value_or(0) > 1) {
    return "gradients or parameters sharded over data-parallel ranks (ZeRO 2 and 3, FSDP)";
  }
  if (holds(run.dtype, "fp8") || holds(run.dtype, "float8") || holds(run.dtype, "FP8"))
    return "fp8 matrix products";
  if (!schedule_of(run)) return "schedule " + *run.schedule;
  if (!recomputation_of(run, settings)) {
    return run.recompute ? "recomputation '" + *run.recompute + "'" : "recomputation not stated";
  }
  if (!run.vocabulary && !settings.vocabulary) return "vocabulary not stated";
  if (run.tensor_parallel > 1 && !run.sequence_parallel) return "sequence parallelism not stated";
  return {};
}

Transformer model_of(const MeasuredRun& run, const RunSettings& settings) {
  Transformer model{.name = run.name,
                    .source = run.source,
                    .hidden = run.hidden,
                    .feedforward = run.feedforward.value_or(4 * run.hidden),
                    .heads = run.heads,
                    .key_value_heads = run.key_value_heads.value_or(run.heads),
                    .head_size = run.hidden / run.heads,
                    .layers = run.layers,
                    .vocabulary = run.vocabulary ? *run.vocabulary : settings.vocabulary.value(),
                    .vocabulary_multiple = 128,  // Megatron-LM's default
                    .sequence = run.sequence,
                    .max_positions = run.sequence};
  Architecture& architecture = model.architecture;
  if (run.flash_attention.value_or(false)) architecture.kernels.attention = AttentionKernel::flash;
  if (run.gated) {  // those that are published are relatives of Llama
    architecture.activation = Activation::swiglu;
    architecture.normalization = Normalization::rms_norm;
    architecture.positions = Positions::rotary;
    architecture.linear_bias = architecture.qkv_bias = false;
    architecture.hidden_dropout = architecture.attention_dropout = false;
    architecture.tied_embeddings = false;
  }
  if (settings.positions) architecture.positions = *settings.positions;
  if (settings.tied_embeddings) architecture.tied_embeddings = *settings.tied_embeddings;
  return model;
}

// Embedding and head are stage chunks' layers like the others: the first and the last chunk hold one less.
std::vector<std::int64_t> layers_counting_ends(std::int64_t layers, std::int64_t chunks) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < chunks; ++i) {
    result.push_back((layers + 2) / chunks + (i < (layers + 2) % chunks ? 1 : 0));
  }
  --result.front();
  --result.back();
  return result;
}

Strategy strategy_of(const MeasuredRun& run, const RunSettings& settings) {
  Strategy strategy{.tensor_parallel = run.tensor_parallel,
                    .pipeline_parallel = run.pipeline_parallel,
                    .virtual_pipeline = run.virtual_pipeline.value_or(1),
                    .data_parallel = run.data_parallel,
                    .micro_batch = run.micro_batch,
                    .sequence_parallel = run.sequence_parallel.value_or(false),
                    .schedule = *schedule_of(run)};
  strategy.recompute.policy = *recomputation_of(run, settings);
  strategy.distributed_optimizer = run.zero_stage == 1;
  strategy.gradient_dtype = settings.gradient_dtype.value_or(Dtype::fp32);
  const std::int64_t chunks = strategy.pipeline_parallel * strategy.virtual_pipeline;
  const bool has_enough = run.layers + 2 >= chunks;  // where it has not, the strategy is not legal anyway
  if (settings.ends_count_as_layers.value_or(false) && chunks > 1 && has_enough)
    strategy.stage_layers = layers_counting_ends(run.layers, chunks);
  return strategy;
}

Figure memory_of(const MeasuredRun& run, const RunSettings& settings) {
  const std::string unit = run.memory_unit.empty() ? settings.memory_unit.value_or("") : run.memory_unit;
  return {.measure = holds(unit, "nvidia-smi") ? Measure::device_bytes : Measure::allocated_bytes,
          .value = *run.memory * (holds(unit, "GiB") ? gibi : 1e9)};
}

}  // namespace

std::string label_of(const MeasuredRun& run, const PublishedSource* source) {
  if (source != nullptr) return source->label;
  // In quotes, so that no title passes for a source whose targets it would be held to.
  return run.source.empty() ? "own runs" : "'" + run.source + "'";
}

RunCase case_of(const MeasuredRun& run, const PublishedSource* source, const System& system,
                const Software& software) {
  const RunSettings settings = settings_of(run, source);
  if (std::string reason = reason_to_skip(run, settings); !reason.empty()) return reason;
  if (!system.performance) return "system " + system.name + " has no performance figures";
  Request request{.model = model_of(run, settings),
                  .system = system,
                  .software = software,
                  .strategy = strategy_of(run, settings),
                  .workload = {.global_batch = run.global_batch, .sequence = run.sequence}};
  const auto set = [](auto& choice, const auto& stated) { choice = stated.value_or(choice); };
  set(request.software.overlap_tensor_parallel, settings.overlap_tensor_parallel);
  set(request.software.overlap_grad_reduce, settings.overlap_grad_reduce);
  set(request.software.overlap_param_gather, settings.overlap_param_gather);
  set(request.software.overlap_p2p, settings.overlap_p2p);
  if (const auto problems = illegalities(request.model, request.strategy, request.workload);
      !problems.empty()) {
    return problems.front().where + " " + problems.front().rule;
  }
  MeasuredCase result{.source = label_of(run, source), .name = run.name, .request = std::move(request)};
  result.figures.push_back({.measure = Measure::iteration_seconds, .value = run.iteration->count()});
  if (run.memory) result.figures.push_back(memory_of(run, settings));
  return result;
}

}  // namespace headroom
