#include "headroom/calibrate/measured_run.hpp"

#include <algorithm>
#include <array>

#include "headroom/calibrate/sample.hpp"

namespace headroom {
namespace {

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Targets: the project's own, for development rows.
constexpr std::array known_sources{
    KnownSource{.title_part = "SC21",
                .label = "SC21",
                .system = "dgx-a100-80g",
                .software = "megatron-2021",
                .worst = 0.06},
    KnownSource{.title_part = "vTrain (MICRO 2024) measured validation data, multi-node",
                .label = "vTrain multi-node",
                .system = "vtrain-a100-80g",
                .software = "megatron-2021",
                .median = 0.08},
    KnownSource{.title_part = "vTrain (MICRO 2024) measured validation data, single-node",
                .label = "vTrain single-node",
                .system = "vtrain-a100-80g",
                .software = "megatron-2021",
                .median = 0.10},
    KnownSource{.title_part = "BigScience BLOOM",
                .label = "BLOOM",
                .system = "jean-zay-a100-80g",
                .software = "megatron-deepspeed-2022",
                .median = 0.08},
    KnownSource{.title_part = "Zero Bubble Pipeline Parallelism",
                .label = "Zero Bubble",
                .system = "zero-bubble-a100-80g",
                .software = "zero-bubble-2023",
                .worst = 0.08,
                .worst_memory = 0.05},
};

// The systems of the devices that users' own runs name.
struct DeviceSystem {
  std::string_view device;
  std::string_view system;
};
constexpr std::array device_systems{
    DeviceSystem{"A100-SXM4-80GB", "dgx-a100-80g"}, DeviceSystem{"A100-SXM4-40GB", "dgx-a100-40g"},
    DeviceSystem{"H100-SXM5-80GB", "dgx-h100-80g"}, DeviceSystem{"H200-SXM-141GB", "dgx-h200-141g"},
    DeviceSystem{"B200-SXM-180GB", "dgx-b200-180g"}};

bool is_from(const MeasuredRun& run, std::string_view label) {
  const KnownSource* source = known_source(run);
  return source != nullptr && source->label == label;
}

// Zero Bubble's paper states neither recomputation nor vocabulary. That nothing is recomputed follows from
// how its memory grows with the microbatches in flight; 32000 entries are assumed, as is common for the
// SentencePiece models that its script loads.
constexpr std::int64_t zero_bubble_vocabulary = 32000;

std::optional<RecomputePolicy> recomputation_of(const MeasuredRun& run) {
  if (!run.recompute)
    return is_from(run, "Zero Bubble") ? std::optional(RecomputePolicy::none) : std::nullopt;
  const auto policy = from_name<RecomputePolicy>(*run.recompute);
  return policy == RecomputePolicy::ops ? std::nullopt : policy;
}

std::optional<ScheduleKind> schedule_of(const MeasuredRun& run) {
  const std::string schedule = run.schedule.value_or("1F1B");
  const bool interleaved = run.virtual_pipeline.value_or(1) > 1;
  if (schedule == "GPipe" || schedule == "gpipe") return ScheduleKind::gpipe;
  if (!holds(schedule, "1F1B") && !holds(schedule, "1f1b") && schedule != "interleaved") return std::nullopt;
  return interleaved ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
}

// Empty when the run can be predicted.
std::string reason_to_skip(const MeasuredRun& run) {
  if (!run.iteration) return "no iteration time";
  if (!run.dense || run.expert_parallel > 1) return "mixture of experts";
  if (run.context_parallel > 1) return "context parallelism";
  if (run.fully_sharded || run.zero_stage.value_or(0) > 1) {
    return "gradients or parameters sharded over data-parallel ranks (ZeRO 2 and 3, FSDP)";
  }
  if (holds(run.dtype, "fp8") || holds(run.dtype, "float8") || holds(run.dtype, "FP8"))
    return "fp8 matrix products";
  if (!schedule_of(run)) return "schedule " + *run.schedule;
  if (!recomputation_of(run)) {
    return run.recompute ? "recomputation '" + *run.recompute + "'" : "recomputation not stated";
  }
  if (!run.vocabulary && !is_from(run, "Zero Bubble")) return "vocabulary not stated";
  if (run.tensor_parallel > 1 && !run.sequence_parallel) return "sequence parallelism not stated";
  return {};
}

Transformer model_of(const MeasuredRun& run) {
  Transformer model{.name = run.name,
                    .source = run.source,
                    .hidden = run.hidden,
                    .feedforward = run.feedforward.value_or(4 * run.hidden),
                    .heads = run.heads,
                    .key_value_heads = run.key_value_heads.value_or(run.heads),
                    .head_size = run.hidden / run.heads,
                    .layers = run.layers,
                    .vocabulary = run.vocabulary.value_or(zero_bubble_vocabulary),
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
  if (is_from(run, "BLOOM")) architecture.positions = Positions::alibi;
  if (is_from(run, "Zero Bubble")) architecture.tied_embeddings = false;  // its launch script
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

// Megatron-LM of 2021 reduces gradients in half precision, as Megatron-LM does for fp16 until told otherwise
// (which Zero Bubble's launch script does not); BLOOM's optimizer for bf16 accumulates in fp32.
Dtype gradients_of(const MeasuredRun& run) {
  if (is_from(run, "BLOOM")) return holds(run.dtype, "bf16") ? Dtype::fp32 : Dtype::half;
  return known_source(run) != nullptr ? Dtype::half : Dtype::fp32;
}

Strategy strategy_of(const MeasuredRun& run) {
  Strategy strategy{.tensor_parallel = run.tensor_parallel,
                    .pipeline_parallel = run.pipeline_parallel,
                    .virtual_pipeline = run.virtual_pipeline.value_or(1),
                    .data_parallel = run.data_parallel,
                    .micro_batch = run.micro_batch,
                    .sequence_parallel = run.sequence_parallel.value_or(false),
                    .schedule = *schedule_of(run)};
  strategy.recompute.policy = *recomputation_of(run);
  strategy.distributed_optimizer = run.zero_stage == 1;
  strategy.gradient_dtype = gradients_of(run);
  const bool ends_count = is_from(run, "Zero Bubble") ||
                          (holds(run.overlap, "partition type") && holds(run.overlap, "embedding"));
  const std::int64_t chunks = strategy.pipeline_parallel * strategy.virtual_pipeline;
  if (ends_count && chunks > 1) strategy.stage_layers = layers_counting_ends(run.layers, chunks);
  return strategy;
}

Figure memory_of(const MeasuredRun& run) {
  // BLOOM's notes give nvidia-smi's figures, which count MiB.
  const bool of_device = is_from(run, "BLOOM") || holds(run.memory_unit, "nvidia-smi");
  const double unit = is_from(run, "BLOOM") || holds(run.memory_unit, "GiB") ? gibi : 1e9;
  return {.measure = of_device ? Measure::device_bytes : Measure::allocated_bytes,
          .value = *run.memory * unit};
}

}  // namespace

const KnownSource* known_source(const MeasuredRun& run) {
  const auto* const found =
      std::find_if(known_sources.begin(), known_sources.end(),
                   [&](const KnownSource& source) { return holds(run.source, source.title_part); });
  return found == known_sources.end() ? nullptr : found;
}

std::vector<Target> targets_of(const KnownSource& source) {
  std::vector<Target> targets;
  const std::string label(source.label);
  if (source.median || source.worst) {
    targets.push_back({.group = label,
                       .source = label,
                       .measure = Measure::iteration_seconds,
                       .median = source.median,
                       .worst = source.worst});
  }
  if (source.worst_memory) {
    targets.push_back({.group = label + ", memory",
                       .source = label,
                       .measure = Measure::allocated_bytes,
                       .worst = source.worst_memory});
  }
  return targets;
}

std::string label_of(const MeasuredRun& run) {
  if (const KnownSource* source = known_source(run)) return std::string(source->label);
  return run.source.empty() ? "own runs" : run.source;
}

RunPresets presets_of(const MeasuredRun& run) {
  if (const KnownSource* source = known_source(run)) {
    return {.system = std::string(source->system), .software = std::string(source->software)};
  }
  RunPresets presets{.system = std::nullopt, .software = Software().name};
  if (!run.source.empty()) return presets;  // somebody else's cluster: its network is not known
  for (const auto& [device, system] : device_systems) {
    if (!same_device(run.device, std::string(device))) continue;
    presets.system = std::string(system);
    break;
  }
  return presets;
}

RunCase case_of(const MeasuredRun& run, const System& system, const Software& software) {
  if (std::string reason = reason_to_skip(run); !reason.empty()) return reason;
  if (!system.performance) return "system " + system.name + " has no performance figures";
  Request request{.model = model_of(run),
                  .system = system,
                  .software = software,
                  .strategy = strategy_of(run),
                  .workload = {.global_batch = run.global_batch, .sequence = run.sequence}};
  // Table 1 of SC21 ran without pipelines on PyTorch's data parallelism, which reduces gradients in the
  // backward pass.
  if (holds(run.overlap, "DDP-impl=torch")) request.software.overlaps_data_parallel = true;
  if (const auto problems = illegalities(request.model, request.strategy, request.workload);
      !problems.empty()) {
    return problems.front().where + " " + problems.front().rule;
  }
  MeasuredCase result{.source = label_of(run), .name = run.name, .request = std::move(request)};
  result.figures.push_back({.measure = Measure::iteration_seconds, .value = run.iteration->count()});
  if (run.memory) result.figures.push_back(memory_of(run));
  return result;
}

}  // namespace headroom
