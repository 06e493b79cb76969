#include "headroom/calibrate/measured_run.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/plan/plan.hpp"
#include "precision_words.hpp"
#include "run_model.hpp"
#include "setting_words.hpp"

namespace headroom {
namespace {

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Returns the settings of a run: its own override those of its source.
RunSettings settings_of(const MeasuredRun& run, const PublishedSource* source) {
  if (source == nullptr) return laid_over(run.settings, settings_of_words(run.overlap, run.caveats));
  RunSettings settings = source->settings;
  for (const SettingsVariant& variant : source->variants) {
    const bool matches = (!variant.dtype || *variant.dtype == run.dtype) &&
                         (!variant.overlap || *variant.overlap == run.overlap);
    if (matches) settings = laid_over(variant.settings, settings);
  }
  return laid_over(run.settings, settings);
}

// Returns the recomputation of "modules: layernorm, moe_act", in Megatron-Core's names.
std::optional<Recomputation> recomputed_modules(std::string_view words) {
  constexpr std::string_view start = "modules: ";
  if (!words.starts_with(start)) return std::nullopt;
  Recomputation recompute{.policy = RecomputePolicy::ops};
  for (std::string_view name : parts_of(words.substr(start.size()))) {
    while (name.starts_with(' ')) name.remove_prefix(1);
    if (find_module(name) == nullptr) return std::nullopt;
    recompute.ops.emplace_back(name);
  }
  return recompute;
}

std::optional<Recomputation> recomputation_of(const MeasuredRun& run, const RunSettings& settings) {
  const auto whole = [](std::optional<RecomputePolicy> policy) -> std::optional<Recomputation> {
    if (!policy || policy == RecomputePolicy::ops) return std::nullopt;
    return Recomputation{.policy = *policy};
  };
  if (!run.recompute) return whole(settings.recompute);
  if (auto modules = recomputed_modules(*run.recompute)) return modules;
  if (holds(*run.recompute, "torchtitan per-op")) return whole(RecomputePolicy::selective_op);
  return whole(from_name<RecomputePolicy>(*run.recompute));
}

std::optional<ScheduleKind> schedule_of(const MeasuredRun& run) {
  const std::string schedule = run.schedule.value_or("1F1B");
  const bool interleaved = run.virtual_pipeline.value_or(1) > 1;
  if (const auto named = from_name<ScheduleKind>(schedule)) {
    const bool counted =
        *named == ScheduleKind::one_forward_one_backward || *named == ScheduleKind::interleaved;
    if (!counted) return named;
    return interleaved ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
  }
  if (schedule == "GPipe") return ScheduleKind::gpipe;
  if (!holds(schedule, "1F1B") && !holds(schedule, "1f1b")) return std::nullopt;
  return interleaved ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
}

std::optional<CpComm> cp_comm_of(const MeasuredRun& run) {
  return run.cp_comm ? from_name<CpComm>(*run.cp_comm) : CpComm::p2p;
}

// Reads "flex (hybridep)": a type, and its backend in parentheses.
std::optional<Dispatcher> dispatcher_of(const MeasuredRun& run) {
  if (!run.dispatcher) return Dispatcher::alltoall;
  const std::optional<Dispatcher> type =
      from_name<Dispatcher>(run.dispatcher->substr(0, run.dispatcher->find(' ')));
  const bool has_backends = type == Dispatcher::deepep;
  return has_backends && holds(*run.dispatcher, "hybridep") ? Dispatcher::hybridep : type;
}

// Returns the precision that the recipe names, or else the one in the words of its type.
std::optional<Precision> precision_of(const MeasuredRun& run) {
  return run.recipe ? from_name<Precision>(*run.recipe) : precision_of_words(run.dtype);
}

bool has_16_bits(const std::string& dtype) {
  return dtype.empty() || holds(dtype, "16") || holds(dtype, "half");
}

void collect_unmodelled(const MeasuredRun& run, std::vector<std::string>& reasons) {
  const auto add = [&](std::string_view what) {
    std::string reason = "not modelled yet: " + std::string(what);
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(std::move(reason));
  };
  const std::size_t others = reasons.size();
  for (const std::string& what : run.unmodelled) add(what);
  if (!dispatcher_of(run)) add("dispatch by '" + *run.dispatcher + "'");
  if (!cp_comm_of(run)) add("context parallelism by '" + *run.cp_comm + "'");
  if (run.recipe && !precision_of(run)) add("GEMMs of recipe '" + *run.recipe + "'");
  const bool half = !run.recipe && precision_of(run) == Precision::bf16;
  if (reasons.size() == others && half && !has_16_bits(run.dtype)) add("GEMMs in '" + run.dtype + "'");
}

bool has_experts(const MeasuredRun& run) {
  return run.model ? any_experts(*run.model) : run.experts.has_value();
}

// A hybrid model needs as many letters as layers, and the members that the letters require.
template <class Add>
void collect_of_hybrid(const MeasuredRun& run, const Add& add) {
  const auto has = [&](HybridLayer layer) {
    return std::find(run.hybrid_layers.begin(), run.hybrid_layers.end(), layer) != run.hybrid_layers.end();
  };
  if (has_mixer(run.mixers) && run.hybrid_layers.empty()) add("model.hybrid_pattern");
  for_each_mixer([&](const auto& row, auto mixer) {
    if (has(from_name<HybridLayer>(row.name).value()) && !(run.mixers.*mixer))
      add("model." + std::string(row.name));
  });
  if (has(HybridLayer::experts) && !run.experts) add("model.moe");
  if (!run.hybrid_layers.empty() && static_cast<std::int64_t>(run.hybrid_layers.size()) != run.layers)
    add("model.hybrid_pattern of as many letters as layers");
}

void collect_lacking(const MeasuredRun& run, const RunSettings& settings, std::vector<std::string>& reasons) {
  const auto add = [&](const std::string& member) { reasons.push_back("not stated: " + member); };
  for (const std::string& member : run.lacking) add(member);
  if (!run.iteration && !run.memory) add("an iteration time or a peak memory");
  if (!run.model && !run.vocabulary && !settings.vocabulary) add("model.vocab");
  if (!run.recompute && !settings.recompute) add("recompute");
  if (!run.recipe && !precision_of(run)) add("precision.recipe");
  if (run.tensor_parallel > 1 && !run.sequence_parallel) add("parallel.sp");
  if (!run.dense && !has_experts(run)) add("model.moe");
  collect_of_hybrid(run, add);
}

// Embedding and output layer count as layers of their virtual stages: the first and the last chunk have one
// less.
std::vector<std::int64_t> layers_counting_ends(std::int64_t layers, std::int64_t chunks) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < chunks; ++i) {
    result.push_back((layers + 2) / chunks + (i < (layers + 2) % chunks ? 1 : 0));
  }
  --result.front();
  --result.back();
  return result;
}

// Linears at 16 bits beside a precision of fewer. Megatron-Bridge builds what predicts further ahead of Nemotron-H so
// [models/nemotronh/nemotron_h_bridge.py, keep_mtp_spec_in_bf16], and with NVFP4 and latent experts reads a file of patterns
// [perf_recipes/nemotronh, te_quant.cfg], which leaves attention and the latent projections at 16 bits [Nemotron 3 Super,
// arXiv:2604.12374, the table of its NVFP4 recipe; that output projections of state-space mixers are in MXFP8 there is not modelled].
PrecisionModules bf16_modules_of(const MeasuredRun& run, Precision precision) {
  PrecisionModules modules;
  for (const PrecisionModule module : run.bf16_modules) modules.insert(module);
  if (!run.bf16_modules.empty() || run.hybrid_layers.empty()) return modules;
  if (run.mtp_layers > 0) modules.insert(PrecisionModule::mtp);
  if (precision == Precision::nvfp4 && run.experts && run.experts->latent > 0) {
    modules.insert(PrecisionModule::attention);
    modules.insert(PrecisionModule::latent_proj);
  }
  return modules;
}

Strategy strategy_of(const MeasuredRun& run, const RunSettings& settings, const Software& software) {
  Strategy strategy{.tensor_parallel = run.tensor_parallel,
                    .pipeline_parallel = run.pipeline_parallel,
                    .virtual_pipeline = run.virtual_pipeline.value_or(1),
                    .context_parallel = run.context_parallel,
                    .data_parallel = run.data_parallel,
                    .expert_parallel = run.expert_parallel,
                    .expert_tensor_parallel =
                        has_experts(run) ? run.expert_tensor_parallel.value_or(run.tensor_parallel) : 1,
                    .moe_dispatcher = has_experts(run) ? *dispatcher_of(run) : Dispatcher::alltoall,
                    .moe_pad_to_capacity = run.moe_pad_to_capacity,
                    .micro_batch = run.micro_batch,
                    .sequence_parallel = run.sequence_parallel.value_or(false),
                    .schedule = *schedule_of(run),
                    .cp_comm = *cp_comm_of(run),
                    .overlap_expert_all_to_all = run.overlap_expert_all_to_all};
  strategy.recompute = *recomputation_of(run, settings);
  if (run.zero_stage) strategy.data_sharding = static_cast<DataSharding>(*run.zero_stage);
  if (run.fully_sharded) strategy.data_sharding = DataSharding::zero3;
  // One rank has nothing to share, whatever its run says.
  const bool has = contains(software.sharding.modes, strategy.data_sharding);
  if (replicas(strategy) == 1 && (software.sharding.plain_alone || !has))
    strategy.data_sharding = sharding_of_one(software, strategy);
  if (run.shard_copies)
    strategy.shard_size = std::max<std::int64_t>(1, replicas(strategy) / *run.shard_copies);
  const Transformer model = model_of(run, settings);
  strategy = with_stack_defaults(strategy, software, model);
  strategy.gradient_dtype = settings.gradient_dtype.value_or(strategy.gradient_dtype);
  strategy.precision = *precision_of(run);
  if (is_narrow(strategy.precision)) {
    strategy.fp8_param_gather = run.fp8_param_gather;
    strategy.precision_scope.attention = run.fp8_attention;
    strategy.precision_scope.bf16_layers_at_start = run.bf16_layers.front();
    strategy.precision_scope.bf16_layers_at_end = run.bf16_layers.back();
    strategy.precision_scope.bf16_modules = bf16_modules_of(run, strategy.precision);
  }
  strategy.lora = run.lora;
  strategy.offload = run.offload;
  const auto set = [](auto& choice, const auto& stated) { choice = stated.value_or(choice); };
  set(strategy.optimizer.exp_avg, run.exp_avg);
  set(strategy.optimizer.exp_avg_sq, run.exp_avg_sq);
  strategy.optimizer.main_params = default_main_params(strategy, software, model);
  set(strategy.optimizer.main_params, run.main_params);
  // Megatron-Core starts no other way, whatever the run states.
  if (needs_sharded_optimizer(software, strategy) && !shards_optimizer(strategy))
    strategy.data_sharding = least_sharding(software, strategy);
  strategy.stage_layers = run.stage_layers;
  const std::int64_t chunks = strategy.pipeline_parallel * strategy.virtual_pipeline;
  const std::int64_t layers = run.model ? run.model->layers : run.layers;
  const bool has_enough = layers + 2 >= chunks;  // where it has not, the strategy is not legal anyway
  const bool counts_ends = settings.ends_count_as_layers.value_or(false) && run.stage_layers.empty();
  if (counts_ends && chunks > 1 && has_enough) strategy.stage_layers = layers_counting_ends(layers, chunks);
  return strategy;
}

// Returns the strategy, with shards within a node if the run says only that [PyTorch FSDP, HYBRID_SHARD].
Strategy strategy_on(const System& system, const Software& software, const MeasuredRun& run,
                     const RunSettings& settings) {
  Strategy strategy = strategy_of(run, settings, software);
  if (run.shards_in_node && !run.shard_copies) {
    strategy.shard_size = std::min(
        replicas(strategy), std::max<std::int64_t>(1, system.devices_per_node / strategy.tensor_parallel));
  }
  return strategy;
}

// NeMo logs max_memory_reserved() as peak_memory_usage [nemo/lightning/pytorch/strategies/megatron_strategy.py].
Measure memory_measure(const std::string& unit, const std::string& caveats, const Software& software) {
  const std::string& words = unit.empty() ? caveats : unit;
  if (holds(words, "nvidia-smi")) return Measure::device_bytes;
  if (holds(unit, "reserved") || holds(words, "peak_memory_usage")) return Measure::reserved_bytes;
  if (holds(unit, "allocated")) return Measure::allocated_bytes;
  return software.memory.logs_reserved ? Measure::reserved_bytes : Measure::allocated_bytes;
}

Figure memory_of(const MeasuredRun& run, const RunSettings& settings, const Software& software) {
  const std::string unit = run.memory_unit.empty() ? settings.memory_unit.value_or("") : run.memory_unit;
  return {.measure = memory_measure(unit, run.caveats, software),
          .value = *run.memory * (holds(unit, "GiB") ? gibi : 1e9)};
}

}  // namespace

std::string label_of(const MeasuredRun& run, const PublishedSource* source) {
  if (source != nullptr) return source->label;
  // Quoted, so that no title looks like a source whose targets would apply.
  return run.source.empty() ? "own runs" : "'" + run.source + "'";
}

std::vector<std::string> reasons_to_skip(const MeasuredRun& run, const PublishedSource* source,
                                         const Software& software) {
  std::vector<std::string> reasons;
  for (const auto& [where, rule] : run.mistakes)
    reasons.push_back(where.empty() ? rule : where + ": " + rule);
  if (!reasons.empty()) return reasons;
  const RunSettings settings = settings_of(run, source);
  collect_lacking(run, settings, reasons);
  collect_unmodelled(run, reasons);
  if (!schedule_of(run)) reasons.push_back("not modelled yet: schedule " + *run.schedule);
  if (run.recompute && !recomputation_of(run, settings))
    reasons.push_back("not modelled yet: recompute '" + *run.recompute + "'");
  const bool divides = run.heads > 0 && run.hidden % run.heads == 0;
  if (run.lacking.empty() && !run.model && !run.head_size && !divides) {
    reasons.push_back("not stated: model.head_dim, and hidden " + std::to_string(run.hidden) +
                      " is no multiple of heads " + std::to_string(run.heads));
  }
  if (!reasons.empty()) return reasons;
  const Workload workload{.global_batch = run.global_batch, .sequence = run.sequence};
  for (const auto& [where, rule] : illegalities(model_of(run, settings), strategy_of(run, settings, software),
                                                workload, with_settings(software, settings))) {
    reasons.push_back(where + " " + rule);
  }
  return reasons;
}

RunCase case_of(const MeasuredRun& run, const PublishedSource* source, const System& system,
                const Software& software) {
  std::vector<std::string> reasons = reasons_to_skip(run, source, software);
  if (!system.performance) reasons.push_back("system " + system.name + " has no performance figures");
  if (!reasons.empty()) return reasons;
  const RunSettings settings = settings_of(run, source);
  Request request{.model = model_of(run, settings),
                  .system = system,
                  .software = with_settings(software, settings),
                  .strategy = strategy_on(system, software, run, settings),
                  .workload = {.global_batch = run.global_batch, .sequence = run.sequence}};
  if (run.cuda_graphs) {
    request.software.cuda_graphs = *run.cuda_graphs;
    request.software.cuda_graph_modules = run.cuda_graph_modules;
  }
  for (const auto& [where, rule] : illegalities(request, request.strategy))
    reasons.push_back(where + " " + rule);
  if (!reasons.empty()) return reasons;
  MeasuredCase result{.source = label_of(run, source), .name = run.name, .request = std::move(request)};
  if (run.iteration)
    result.figures.push_back({.measure = Measure::iteration_seconds, .value = run.iteration->count()});
  if (run.memory) result.figures.push_back(memory_of(run, settings, software));
  if (run.reserved_gib)
    result.figures.push_back({.measure = Measure::reserved_bytes, .value = *run.reserved_gib * gibi});
  return result;
}

}  // namespace headroom
