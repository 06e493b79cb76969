// torchtitan's TOML of v0.1 to v0.2.2 and before, and what its Python registry makes of the same settings.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/counts.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// Whether torch.compile takes the model, and not the loss alone.
bool compiles_model(TreeRun& run) {
  const Written* const compiled = run.find({"compile.enable", "training.compile"});
  const Written* const parts = run.find("compile.components");
  return compiled != nullptr && is_on(*compiled) &&
         (parts == nullptr || text_of_values(*parts).find("model") != std::string::npos);
}

// By op, or every n-th layer as a whole; every second where it is not written.
void take_selective_option(TreeRun& run, const RunScale& scale, const Written* mode, const Written* option) {
  RunBuilder& builder = run.builder();
  const std::string every = option == nullptr ? "2" : text_of_values(*option);
  const Written* const from = option != nullptr ? option : mode;
  if (mode == nullptr) builder.imply("activation_checkpoint.mode is selective where it is not written");
  if (option == nullptr)
    builder.imply("selective_ac_option is 2 where it is not written: every second layer is checkpointed",
                  mode);
  if (every == "op") return builder.set("recompute", "selective_op", from);
  const std::optional<std::int64_t> nth = whole_count(every);
  if (!nth || *nth < 1) return builder.problem(*option, "must be op or a number of layers");
  builder.set("recompute", "full", from);
  if (*nth == 1) return;
  const std::int64_t of_stage = scale.layers.value_or(0) / std::max<std::int64_t>(scale.pipeline, 1) / *nth;
  if (of_stage > 0) {
    builder.set("recompute_layers", std::to_string(of_stage), from);
    builder.imply(fmt::format("one layer of {} is checkpointed: {} of a stage", *nth, of_stage), from);
  } else {
    builder.assume(
        fmt::format("one layer of {} is checkpointed: read as all, since the model's layers are not known",
                    *nth),
        from);
  }
}

}  // namespace

void take_titan(TreeRun& run, RunScale& scale) {
  RunBuilder& builder = run.builder();
  const auto in = [](std::string_view name) {
    return std::array<std::string, 3>{"parallelism." + std::string(name), "training." + std::string(name),
                                      "experimental." + std::string(name)};
  };
  const auto size = [&](std::string_view field, std::string_view name) {
    const auto names = in(name);
    return run.size(field, {names[0], names[1], names[2]});
  };
  const auto find = [&](std::string_view name) {
    const auto names = in(name);
    return run.find({names[0], names[1], names[2]});
  };
  const auto count = [&](std::string_view name) {
    const auto names = in(name);
    return run.count({names[0], names[1], names[2]});
  };
  const auto above_zero = [&](std::string_view name) {
    const auto names = in(name);
    return run.above_zero({names[0], names[1], names[2]});
  };
  scale.tensor = size("tensor_parallel", "tensor_parallel_degree");
  scale.pipeline = size("pipeline_parallel", "pipeline_parallel_degree");
  scale.context = size("context_parallel", "context_parallel_degree");
  size("expert_parallel", "expert_parallel_degree");
  const std::int64_t expert_tensor = size("expert_tensor_parallel", "expert_tensor_parallel_degree");
  if (expert_tensor > 1 && expert_tensor != scale.tensor)
    builder.imply("torchtitan takes an expert tensor-parallel size of 1 or of TP",
                  find("expert_tensor_parallel_degree"));
  scale.shard = count("data_parallel_shard_degree");
  scale.replicate = count("data_parallel_replicate_degree");
  if (const auto old = count("data_parallel_degree")) scale.shard = old;
  const bool shards = !scale.shard || *scale.shard != 1 || scale.context > 1;
  builder.set("data_sharding", shards ? "zero3" : "none", find("data_parallel_shard_degree"));
  if (scale.tensor > 1) {
    const Written* const sequence = find("enable_sequence_parallel");
    const bool on = sequence == nullptr || is_on(*sequence);
    builder.set("sequence_parallel", on ? "yes" : "no", sequence);
    if (sequence == nullptr) builder.imply("tensor parallelism of torchtitan is with sequence parallelism");
  }
  if (const Written* const async = find("enable_async_tensor_parallel"); async != nullptr && is_on(*async))
    builder.choose("overlap_tensor_parallel", "full", async);
  if (const Written* const gathered = find("disable_loss_parallel"); gathered != nullptr && is_on(*gathered))
    builder.choose("loss_parallel", "gathered", gathered);
  if (const Written* const rotate = find("context_parallel_rotate_method")) {
    builder.set("cp_comm", text_of_values(*rotate) == "alltoall" ? "p2p" : "all_gather", rotate);
  } else if (scale.context > 1) {
    builder.set("cp_comm", "all_gather", nullptr);
    builder.imply("context_parallel_rotate_method is allgather where it is not written");
  }
  if (const Written* const reshard = find("fsdp_reshard_after_forward")) {
    const std::string word = text_of_values(*reshard);
    if (word != "default" && word != "always" && word != "never")
      builder.problem(*reshard, fmt::format("must be default, always or never, not '{}'", printable(word)));
    if (word == "never" || (word == "default" && scale.pipeline > 1))
      builder.set("no_reshard_after_forward", "yes", reshard);
  } else if (scale.pipeline > 1 && shards) {
    builder.set("no_reshard_after_forward", "yes", nullptr);
    builder.imply("weights stay gathered between passes of a pipeline (fsdp_reshard_after_forward default)");
  }
  if (const Written* const backend = find("expert_parallel_comm_backend");
      backend != nullptr && text_of_values(*backend) != "standard")
    builder.set("moe_dispatcher", text_of_values(*backend), backend);

  const Written* const length = run.find({"training.seq_len", "training.max_context_length"});
  if (length != nullptr) {
    builder.set("sequence", text_of_values(*length), length);
  } else {
    builder.set("sequence", "2048", nullptr);
    builder.imply("training.seq_len is 2048 where it is not written");
  }
  const auto local = run.above_zero({"training.local_batch_size", "training.batch_size"});
  const Written* const local_at = run.find({"training.local_batch_size", "training.batch_size"});
  std::int64_t of_rank = local.value_or(8);
  if (const auto tokens = run.count("training.num_tokens_per_microbatch_per_dp_rank");
      tokens && length != nullptr) {
    const std::int64_t sequence = whole_count(text_of_values(*length)).value_or(1);
    of_rank = std::max<std::int64_t>(*tokens / std::max<std::int64_t>(sequence, 1), 1);
    builder.imply(fmt::format("{} tokens of a data-parallel rank are {} sequences", *tokens, of_rank),
                  run.find("training.num_tokens_per_microbatch_per_dp_rank"));
  } else if (!local) {
    builder.imply("training.local_batch_size is 8 where it is not written");
  }
  scale.accumulation = 1;
  take_titan_stages(run, scale);
  if (scale.pipeline > 1) {
    const std::int64_t micro = above_zero("pipeline_parallel_microbatch_size").value_or(1);
    auto microbatches = above_zero("pipeline_parallel_microbatches");
    // Releases of 2024 send a batch through as one microbatch a stage [torchtitan/parallelisms/
    // pipelining_utils.py, build_pipeline_schedule].
    if (!microbatches && builder.software() == "torchtitan-2024" &&
        find("pipeline_parallel_microbatch_size") == nullptr)
      microbatches = product_of(scale.pipeline, builder.count("virtual_pipeline").value_or(1));
    if (local && !microbatches && of_rank % micro != 0) {
      const Written* const micro_at = find("pipeline_parallel_microbatch_size");
      builder.refuse(
          {.fields = {"micro_batch", "pipeline_parallel"},
           .rule = fmt::format("must divide the local batch ({} % {} = {})", of_rank, micro, of_rank % micro),
           .source = "torchtitan, torchtitan/distributed/pipeline_parallel.py",
           .written = micro_at == nullptr ? "" : micro_at->as_written,
           .at = micro_at == nullptr ? FilePlace{} : micro_at->at});
    }
    scale.micro = microbatches ? ceiling(of_rank, *microbatches) : micro;
    scale.accumulation = std::max<std::int64_t>(of_rank / *scale.micro, 1);
    if (of_rank % *scale.micro != 0)
      builder.assume(
          fmt::format("{} sequences do not divide into microbatches of {}: the smaller last one is left out",
                      of_rank, *scale.micro),
          local_at);
    builder.imply(fmt::format("a local batch of {} goes through the pipeline as microbatches of {}", of_rank,
                              *scale.micro),
                  local_at);
    builder.set("micro_batch", std::to_string(*scale.micro), find("pipeline_parallel_microbatch_size"));
  } else {
    scale.micro = of_rank;
    builder.set("micro_batch", std::to_string(of_rank), local_at);
  }
  if (const auto global = run.count("training.global_batch_size")) {
    scale.global = global;
    builder.set("global_batch", std::to_string(*global), run.find("training.global_batch_size"));
  }
  const Written* const mode = run.find({"activation_checkpoint.mode"});
  const std::string word = mode == nullptr ? "" : lower_case(text_of_values(*mode));
  const Written* const option =
      run.find({"activation_checkpoint.selective_ac_option", "activation_checkpoint.selective_ac_type"});
  if (word == "full" || word == "fullac") {
    builder.set("recompute", "full", mode);
  } else if (word == "none" || word == "noac") {
    builder.set("recompute", "none", mode);
  } else if (word == "memory_budget") {
    builder.set("recompute", "selective_op", mode);
    builder.leave_out(*mode, "what the compiler recomputes within a budget: read as selective by op");
  } else if (word.empty() || word == "selective" || word == "selectiveac") {
    take_selective_option(run, scale, mode, option);
  } else {
    builder.problem(*mode, fmt::format("must be none, selective, full or memory_budget, not '{}'",
                                       printable(text_of_values(*mode))));
  }
  const Written* const compiled = run.find({"compile.enable", "training.compile"});
  if (compiles_model(run))
    builder.choose("launches", "compiled", compiled);
  else if (compiled != nullptr && is_on(*compiled))
    builder.leave_out(*run.find("compile.components"),
                      "a loss that is compiled without the model: read as eager");
  if (const Written* const dtype = run.find("training.dtype");
      dtype != nullptr && text_of_values(*dtype) == "bfloat16") {
    builder.set("main_params_dtype", "none", dtype);
    builder.set("exp_avg_dtype", "bf16", dtype);
    builder.set("exp_avg_sq_dtype", "bf16", dtype);
  }
  if (const Written* const reduce = run.find("training.mixed_precision_reduce");
      reduce != nullptr && text_of_values(*reduce) == "bfloat16")
    builder.set("gradient_dtype", "bf16", reduce);
  if (const Written* const early = run.find("optimizer.early_step_in_backward");
      early != nullptr && is_on(*early))
    builder.set("step_in_backward", "yes", early);
  if (const Written* const offload = run.find("training.enable_cpu_offload");
      offload != nullptr && is_on(*offload)) {
    builder.set("optimizer_offload_fraction", "1", offload);
    builder.set("offload_parameters", "yes", offload);
  }
  if (const Written* const optimizer = run.find({"optimizer.name"})) {
    const std::string name = lower_case(text_of_values(*optimizer));
    if (name == "adam" || name == "adamw")
      builder.set("optimizer", "adam", optimizer);
    else if (name == "muon")
      builder.set("optimizer", "muon", optimizer);
    else
      builder.leave_out(*optimizer, "read as Adam");
  }
}

void take_titan_precision(TreeRun& run) {
  RunBuilder& builder = run.builder();
  if (const Written* const param = run.find("training.mixed_precision_param");
      param != nullptr && text_of_values(*param) == "float32")
    builder.take_fp32_as_bf16(param);
  const Written* const converters = run.find({"model.converters", "model.handlers"});
  const std::string names = converters == nullptr ? "" : text_of_values(*converters);
  const Written* const old =
      run.find({"float8.enable_float8_linear", "training.enable_float8_linear", "training.fp8_linear"});
  const bool eight = names.find("float8") != std::string::npos || (old != nullptr && is_on(*old));
  if (names.find("mx") != std::string::npos) {
    builder.set("precision", "mxfp8", converters);
  } else if (eight) {
    builder.set("precision", "fp8", names.empty() ? old : converters);
    for (const std::string_view name :
         {"quantize.linear.float8.enable_fsdp_float8_all_gather", "float8.enable_fsdp_float8_all_gather",
          "float8.enable_fsdp_fp8_all_gather"}) {
      if (const Written* const gather = run.find(name); gather != nullptr && is_on(*gather))
        builder.leave_out(*gather, "weights are gathered at 8 bits: gathers are counted at 16");
    }
  }
}

std::span<const LaunchKey> titan_keys() {
  static constexpr LaunchKey keys[] = {
      {"job.*"},
      {"profiling.*"},
      {"metrics.*"},
      {"comm.*"},
      {"debug.*"},
      {"checkpoint.*"},
      {"lr_scheduler.*"},
      {"validation.*"},
      {"fault_tolerance.*", LaunchUse::unmodelled, "fault tolerance"},
      {"memory_estimation.*"},
      {"experimental.custom_*"},
      {"experimental.enable_compiled_autograd", LaunchUse::unmodelled, "compiled autograd"},
      {"parallelism.enable_compiled_autograd", LaunchUse::unmodelled, "compiled autograd"},
      {"parallelism.pipeline_parallel_*"},
      {"experimental.pipeline_parallel_*"},
      {"parallelism.data_parallel_*"},
      {"parallelism.tensor_parallel_degree"},
      {"parallelism.context_parallel_*"},
      {"parallelism.expert_*"},
      {"parallelism.fsdp_reshard_after_forward"},
      {"parallelism.disable_loss_parallel"},
      {"parallelism.enable_sequence_parallel"},
      {"parallelism.enable_async_tensor_parallel"},
      {"parallelism.module_fqns_per_model_part"},
      {"optimizer.implementation"},
      {"optimizer.fused"},
      {"optimizer.foreach"},
      {"optimizer.name"},
      {"optimizer.lr"},
      {"optimizer.beta*"},
      {"optimizer.eps"},
      {"optimizer.weight_decay"},
      {"optimizer.moe_router*"},
      {"optimizer.early_step_in_backward"},
      {"model.tokenizer*"},
      {"model.hf_assets_path"},
      {"model.converters"},
      {"model.handlers"},
      {"model.print_after_conversion"},
      {"model.name"},
      {"model.flavor"},
      {"model.norm_type"},
      {"model.use_flex_attn"},
      {"model.attn_*"},
      {"hf_assets_path"},
      {"training.data_parallel_*"},
      {"training.mixed_precision_*"},
      {"training.gc_*"},
      {"training.max_norm"},
      {"training.steps"},
      {"training.warmup_steps"},
      {"training.dataset*"},
      {"training.seed"},
      {"training.deterministic"},
      {"training.disable_cuda_graphs"},
      {"training.dtype"},
      {"training.compile"},
      {"training.enable_*"},
      {"training.debug_moe*"},
      {"training.tensor_parallel_*"},
      {"training.pipeline_parallel_*"},
      {"training.batch_size"},
      {"compile.*"},
      {"activation_checkpoint.*"},
      {"activation_offload.*", LaunchUse::unmodelled, "activations on the host"},
      {"float8.*"},
      {"mx.*"},
      {"quantize.*"},
      {"loss.*"},
      {"dataloader.*"},
      {"tokenizer.*"},
  };
  return keys;
}

namespace {

// What torchtitan leaves to the compiler, in a file that does not turn it on.
void refuse_uncompiled(TreeRun& run, const RunScale& scale) {
  if (compiles_model(run)) return;
  const Written* const async =
      run.find({"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"});
  if (async != nullptr && is_on(*async) && scale.tensor > 1)
    run.builder().refuse({.fields = {"tensor_parallel"},
                          .rule =
                              "asynchronous tensor parallelism needs a compiled model: set compile.enable = "
                              "true, or enable_async_tensor_parallel = false",
                          .source = "torchtitan, torchtitan/distributed/tensor_parallel.py",
                          .written = async->as_written,
                          .at = async->at});
  const Written* const mode = run.find("activation_checkpoint.mode");
  if (mode != nullptr && text_of_values(*mode) == "memory_budget")
    run.builder().refuse({.fields = {"recompute"},
                          .rule = "memory_budget needs a compiled model: set compile.enable = true",
                          .source = "torchtitan, torchtitan/distributed/activation_checkpoint.py",
                          .written = mode->as_written,
                          .at = mode->at});
}

}  // namespace

LaunchedRun read_torchtitan(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "torchtitan", "torchtitan-2025");
  TreeRun run(flattened(file.root, file.file), builder);
  const bool old = run.has("training.tensor_parallel_degree") || run.has("training.data_parallel_degree") ||
                   run.has("training.data_parallel_shard_degree") || run.has("model.norm_type") ||
                   run.has("experimental.pipeline_parallel_degree");
  if (old && !run.has_below("parallelism")) {
    builder.use_software("torchtitan-2024");
    builder.imply("sizes under [training] and [experimental] are those of releases before v0.1");
  }
  const std::string flavor = run.text("model.flavor");
  RunScale scale;
  scale.layers = take_titan_model(run.text("model.name"), flavor, run.find("model.flavor"), file.file,
                                  builder, run.find("experimental.custom_import"));
  if (!options.model.empty()) scale.layers = read_any_model(options.model, options.overrides).layers;
  take_titan(run, scale);
  take_titan_precision(run);
  refuse_uncompiled(run, scale);
  settle(scale, builder);
  run.rest(titan_keys());
  return builder.finish(options);
}

}  // namespace headroom
