#include "interop/launch_in/megatron_in.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/io/catalog.hpp"
#include "interop/launch_in/megatron_keys.hpp"
#include "interop/launch_in/megatron_model.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "interop/launch_in/tree_run.hpp"

namespace headroom {
namespace {

// Stacks by what only their scripts say.
void choose_stack(const MegatronSettings& asked, RunBuilder& run) {
  if (asked.has("deepspeed") || asked.has("zero_stage")) {
    run.use_framework("Megatron-DeepSpeed");
    const auto stage = asked.text("zero_stage");
    run.use_software(stage == "2" || stage == "3" ? "deepspeed-2025" : "megatron-deepspeed-2022");
    return;
  }
  constexpr std::array<std::string_view, 3> fully_sharded{"use_megatron_fsdp", "use_custom_fsdp",
                                                          "use_torch_fsdp2"};
  if (std::any_of(fully_sharded.begin(), fully_sharded.end(),
                  [&](std::string_view name) { return asked.has(name); }))
    return run.use_software("nemo-2025");
  constexpr std::array<std::string_view, 4> of_2021{"DDP_impl", "activations_checkpoint_method",
                                                    "checkpoint_activations", "model_parallel_size"};
  const bool old =
      std::any_of(of_2021.begin(), of_2021.end(), [&](std::string_view name) { return asked.has(name); });
  if (asked.has("enable_zero_bubble")) return run.use_software("zero-bubble-2023");
  if (old && !asked.has("use_mcore_models")) return run.use_software("megatron-2021");
  // Megatron-Core also has local layers, so the flag alone does not mean Megatron-LM of 2022.
  if (asked.text("transformer_impl") == "local" && !asked.has("use_mcore_models") &&
      !asked.has("num_layer_list"))
    return run.use_software("megatron-2022");
}

// Schedules of sail-sg's fork, as its arguments make them [zero-bubble-pipeline-parallelism, README.md].
void read_zero_bubble(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const on = asked.find("enable_zero_bubble");
  if (on == nullptr) return;
  if (asked.has("zero_bubble_v_schedule")) {
    const auto setup = asked.text("zero_bubble_v_schedule_mem_setup");
    run.set("virtual_pipeline", "2", asked.find("zero_bubble_v_schedule"));  // two in the form of a V
    return run.set("schedule",
                   setup == "half"  ? "v-half"
                   : setup == "min" ? "v-min"
                                    : "zero-bubble-v",
                   asked.find("zero_bubble_v_schedule"));
  }
  const std::int64_t ranks = run.count("pipeline_parallel").value_or(1);
  const Written* const most = asked.find("zero_bubble_max_pending_backward");
  const std::int64_t pending = most == nullptr ? ranks : asked.number(*most).value_or(ranks);
  run.set("schedule",
          pending >= 2 * ranks       ? "zero-bubble-2p"
          : pending >= 2 * ranks - 1 ? "zero-bubble-h2"
                                     : "zero-bubble-h1",
          on);
}

// What balances the load of experts. A bias balances without a loss [transformer/moe/router.py].
void read_balancing(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const type = asked.find("moe_router_load_balancing_type");
  if (asked.is("moe_router_enable_expert_bias")) {
    run.set("moe_balancing", "loss_free", asked.find("moe_router_enable_expert_bias"));
  } else if (type != nullptr && text_of_values(*type) == "none") {
    run.set("moe_balancing", "none", type);
  }
}

void read_experts_layout(const MegatronSettings& asked, bool named, RunBuilder& run) {
  if (!asked.has_experts() && !named) {
    run.drop("expert_parallel");
    run.drop("expert_tensor_parallel");
    return;
  }
  const auto tp = run.value("tensor_parallel");
  if (!run.value("expert_tensor_parallel") && tp && *tp != "1") {
    run.set("expert_tensor_parallel", *tp, nullptr);
    run.imply(fmt::format("ETP is TP, {}: --expert-tensor-parallel-size is not given", *tp));
  }
  const Written* const type = asked.find("moe_token_dispatcher_type");
  const Written* const backend = asked.find("moe_flex_dispatcher_backend");
  const std::string text = type == nullptr ? "allgather" : text_of_values(*type);
  if (text == "flex") {
    run.set("moe_dispatcher", backend == nullptr ? "deepep" : text_of_values(*backend),
            backend == nullptr ? type : backend);
  } else if (text == "alltoall_seq") {
    run.set("moe_dispatcher", "alltoall", type);
  } else if (type == nullptr && asked.has("deepspeed")) {
    run.set("moe_dispatcher", "alltoall", nullptr);
  } else if (type == nullptr || type->unknown.empty()) {
    run.set("moe_dispatcher", text, type);
    if (type == nullptr)
      run.imply("the dispatcher of experts is allgather: --moe-token-dispatcher-type is not given");
  }
  read_balancing(asked, run);
}

void read_recomputation(const MegatronSettings& asked, RunBuilder& run) {
  const Written* method = asked.first({"recompute_method", "activations_checkpoint_method"});
  const Written* layers =
      asked.first({"recompute_num_layers", "activations_checkpoint_num_layers", "checkpoint_num_layers"});
  const Written* granularity = asked.first({"recompute_granularity", "activations_checkpoint_granularity"});
  const Written* const modules = asked.find("recompute_modules");
  const Written* const all = asked.first({"checkpoint_activations", "deepspeed_activation_checkpointing"});
  const Written* const some = asked.find("recompute_activations");
  if (granularity != nullptr && !granularity->unknown.empty())
    return asked.tell_unknown(*granularity, run, "recompute");
  std::string policy = granularity == nullptr ? "" : text_of_values(*granularity);
  const Written* from = granularity;
  if (policy.empty() && some != nullptr) {
    policy = "selective";
    from = some;
  }
  if (policy.empty() && (all != nullptr || asked.has("activations_checkpoint_method"))) {
    policy = "full";
    from = all == nullptr ? method : all;
  }
  // It adds moe to the modules, which are core_attn where they are not given
  // [megatron/core/transformer/transformer_config.py, __post_init__].
  if (const Written* const experts = asked.find("moe_layer_recompute");
      experts != nullptr && is_on(*experts) && asked.has_experts()) {
    if (policy == "full") return run.problem(*experts, "does not go with --recompute-granularity full");
    std::vector<std::string> names =
        modules == nullptr ? std::vector<std::string>{"core_attn"} : modules->values;
    if (!contains(names, std::string("moe"))) names.emplace_back("moe");
    return run.set("recompute_ops", joined(names, ","), experts);
  }
  if (policy.empty() || policy == "none" || policy == "null" || policy == "None") return;
  if (policy == "selective" && modules != nullptr && text_of_values(*modules) != "core_attn") {
    std::vector<std::string> names = modules->values;
    run.set("recompute_ops", joined(names, ","), modules);
    return;
  }
  run.set("recompute", policy, from);
  if (policy != "full") {
    if (modules == nullptr && from == granularity)
      run.imply("selective recomputation is of core attention: --recompute-modules is not given", from);
    return;
  }
  const std::string how = method == nullptr ? "uniform" : text_of_values(*method);
  const std::string count = layers == nullptr ? "1" : text_of_values(*layers);
  if (layers != nullptr && !layers->unknown.empty())
    return asked.tell_unknown(*layers, run, "recompute_layers");
  if (method != nullptr && !method->unknown.empty())
    return asked.tell_unknown(*method, run, "recompute_method");
  if (how == "uniform" && count == "1") return;  // a checkpoint for each layer
  run.set("recompute_method", how, method);
  run.set("recompute_layers", count, layers);
}

void read_sharding(const MegatronSettings& asked, RunBuilder& run, std::optional<std::int64_t> devices) {
  const Written* const fsdp = asked.first({"use_megatron_fsdp", "use_custom_fsdp"});
  const Written* const optimizer = asked.find("use_distributed_optimizer");
  if (const Written* const torch = asked.find("use_torch_fsdp2"); torch != nullptr && is_on(*torch)) {
    run.set("data_sharding", "zero3", torch);
  } else if (fsdp != nullptr && is_on(*fsdp)) {
    const Written* const strategy = asked.find("data_parallel_sharding_strategy");
    const std::string text = strategy == nullptr ? "optim_grads_params" : text_of_values(*strategy);
    const char* const mode = text == "no_shard"      ? "none"
                             : text == "optim"       ? "zero1"
                             : text == "optim_grads" ? "zero2"
                                                     : "zero3";
    run.set("data_sharding", mode, strategy == nullptr ? fsdp : strategy);
    if (strategy == nullptr) run.imply("Megatron-FSDP shards weights, gradients and optimizer states", fsdp);
  } else if (const Written* const stage = asked.find("zero_stage"); stage != nullptr) {
    const std::string text = text_of_values(*stage);
    if (!stage->unknown.empty()) return asked.tell_unknown(*stage, run, "data_sharding");
    if (text == "0" && asked.is("bf16")) return shard_bf16_states(stage, run);
    run.set("data_sharding", text == "0" ? "none" : "zero" + text, stage);
  } else if (optimizer != nullptr && is_on(*optimizer)) {
    run.set("data_sharding", "zero1", optimizer);
  } else if (!run.value("data_sharding")) {
    run.set("data_sharding", "none", nullptr);
    run.imply("every DP rank keeps all optimizer states: --use-distributed-optimizer is not given");
  }
  const Written* const instances = asked.find("num_distributed_optimizer_instances");
  const auto count = instances == nullptr ? std::nullopt : asked.number(*instances);
  if (!count || *count < 2) return;
  const auto size = [&](std::string_view field) { return run.count(field).value_or(1); };
  const std::int64_t ranks =
      devices ? *devices / std::max<std::int64_t>(1, size("tensor_parallel") * size("pipeline_parallel")) : 0;
  if (ranks > 0 && ranks % *count == 0) {
    run.set("shard_size", std::to_string(ranks / *count), instances);
  } else {
    run.leave_out(*instances, "ranks that share shards: the number of GPUs is not known");
  }
}

void read_precision(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const fp16 = asked.find("fp16");
  const Written* const bf16 = asked.find("bf16");
  const bool half = fp16 != nullptr && is_on(*fp16);
  const bool brain = bf16 != nullptr && is_on(*bf16);
  const bool reduced = asked.is("grad_reduce_in_bf16") || asked.text("grad_reduce_in_fp32") == "false";
  if (half && !brain) {
    run.set("precision", "bf16", nullptr);
    run.imply("FP16 is planned as BF16, which takes the same memory and time; loss scaling is left out",
              fp16);
    const bool sums = asked.is("accumulate_allreduce_grads_in_fp32");
    run.set("gradient_dtype", sums ? "fp32" : "half", asked.find("accumulate_allreduce_grads_in_fp32"));
    if (!sums) run.imply("gradients are summed in FP16", fp16);
  } else if (brain) {
    run.set("gradient_dtype", reduced ? "half" : "fp32",
            asked.first({"grad_reduce_in_bf16", "grad_reduce_in_fp32"}));
    if (!reduced && !asked.is("accumulate_allreduce_grads_in_fp32") && !asked.has("main_grads_dtype"))
      run.imply("gradients are summed in FP32, as always with --bf16 unless --grad-reduce-in-bf16", bf16);
  } else if (!asked.has("fp8_format") && !asked.has("deepspeed_config")) {
    run.assume("neither --bf16 nor --fp16 is given: FP32 weights are not modelled, and BF16 is taken");
  }
  const Written* const format = asked.first({"fp8_format", "fp8", "fp8_hybrid", "fp8_e4m3"});
  const Written* const recipe = asked.find("fp8_recipe");
  const Written* const fp4 = asked.first({"fp4_format", "fp4"});
  if (fp4 != nullptr && is_on(*fp4)) {
    run.set("precision", "nvfp4", fp4);
  } else if (format != nullptr && is_on(*format)) {
    const std::string name = recipe == nullptr ? "delayed" : text_of_values(*recipe);
    const char* const own = name == "delayed"      ? "fp8_delayed"
                            : name == "tensorwise" ? "fp8"
                            : name == "blockwise"  ? "fp8_blockwise"
                            : name == "mxfp8"      ? "mxfp8"
                                                   : "";
    if (own[0] != '\0') {
      run.set("precision", own, recipe == nullptr ? format : recipe);
    } else if (recipe != nullptr && recipe->unknown.empty()) {
      run.problem(*recipe, "must be delayed, tensorwise, blockwise or mxfp8, not '" + name + "'");
    }
    if (recipe == nullptr) run.imply("FP8 scales with delay: --fp8-recipe is not given", format);
  }
  if (const Written* const ends = asked.find("first_last_layers_bf16"); ends != nullptr && is_on(*ends)) {
    for (const char* const field : {"bf16_layers_at_start", "bf16_layers_at_end"}) {
      if (!run.value(field)) run.set(field, "1", ends);
    }
  } else {
    run.drop("bf16_layers_at_start");
    run.drop("bf16_layers_at_end");
  }
}

void read_optimizer(const MegatronSettings& asked, RunBuilder& run) {
  if (const Written* const name = asked.find("optimizer")) {
    const std::string text = text_of_values(*name);
    if (name->unknown.empty() && (text == "cpu-adam" || text == "hybridadam")) {
      run.set("optimizer", "adam", name);
      run.set("optimizer_offload_fraction", "1", name);
      run.imply("the optimizer states are on the host, which steps them", name);
    } else if (name->unknown.empty()) {
      constexpr std::array<std::string_view, 5> known{"adam", "sgd", "muon", "dist_muon", "adafactor"};
      if (contains(known, std::string_view(text))) {
        run.set("optimizer", text == "dist_muon" ? "muon" : text, name);
      } else {
        run.leave_out(*name, "not known: read as Adam, which keeps two moments of each weight");
      }
    }
  }
  const Written* const aware = asked.find("use_precision_aware_optimizer");
  const Written* const main = asked.find("main_params_dtype");
  if (aware != nullptr && is_on(*aware)) {
    // Of BF16 weights and FP32 main parameters it keeps the low 16 bits alone [arguments.py, store_param_remainders].
    const Written* const gathered = asked.first({"fp8_param_gather", "fp8_param"});
    const bool narrow = gathered != nullptr && is_on(*gathered);
    const bool half = main != nullptr && text_of_values(*main) == "fp16";
    if (half || !narrow) run.set("main_params_dtype", half ? "fp16" : "remainder", half ? main : aware);
    if (!half && !narrow)
      run.imply("main parameters are kept as 16-bit remainders beside BF16 weights", aware);
    const Written* const gradients = asked.find("main_grads_dtype");
    if (gradients != nullptr && text_of_values(*gradients) == "bf16")
      run.set("gradient_dtype", "half", gradients);
  } else {
    run.drop("exp_avg_dtype");
    run.drop("exp_avg_sq_dtype");
  }
  const Written* const offload = asked.first({"optimizer_cpu_offload", "cpu_optimizer"});
  if (offload != nullptr && is_on(*offload)) {
    const Written* const share = asked.find("optimizer_offload_fraction");
    if (share != nullptr && !share->unknown.empty())
      return asked.tell_unknown(*share, run, "optimizer_offload_fraction");
    // DeepSpeed's configuration may state a share.
    if (share != nullptr || !run.value("optimizer_offload_fraction"))
      run.set("optimizer_offload_fraction", share == nullptr ? "1" : text_of_values(*share),
              share == nullptr ? offload : share);
    // Its optimizer on the host keeps whole main parameters there [core/optimizer/cpu_offloading].
    if (run.value("main_params_dtype") == "remainder") run.drop("main_params_dtype");
  }
}

// Choices of Megatron-Core that its presets take from recipes, and a script leaves off.
void read_overlaps(const MegatronSettings& asked, RunBuilder& run) {
  if (run.software() != "megatron-core-2025") {
    return;
  }
  const auto fall_back = [&](const char* choice, const char* value, const char* sentence) {
    if (run.chosen(choice)) return;
    run.choose(choice, value, nullptr);
    if (sentence[0] != '\0') run.imply(sentence);
  };
  const bool many = run.count("tensor_parallel").value_or(1) > 1;
  fall_back("overlap_grad_reduce", "false",
            "gradients are reduced after the backward pass: --overlap-grad-reduce is not given");
  fall_back("overlap_param_gather", "false",
            asked.is("use_distributed_optimizer")
                ? "parameters are gathered before the forward pass: --overlap-param-gather is not given"
                : "");
  fall_back("overlap_tensor_parallel", "backward",
            many ? "TP collectives overlap weight gradients alone: --tp-comm-overlap is not given" : "");
  if (!run.chosen("bucket_parameters")) {
    run.choose("bucket_parameters", "40000000", nullptr);
    run.choose("bucket_parameters_per_replica", "1000000", nullptr);
  }
  const Written* const loss = asked.find("cross_entropy_fusion_impl");
  if (loss != nullptr && asked.is("cross_entropy_loss_fusion") && text_of_values(*loss) == "te")
    run.choose("cross_entropy", "fused_fp32", loss);
}

void read_context(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const type = asked.find("cp_comm_type");
  if (type != nullptr && type->unknown.empty()) {
    const std::string text = type->values.empty() ? "p2p" : type->values.front();
    run.set("cp_comm", text == "allgather" ? "all_gather" : text == "a2a+p2p" ? "a2a_p2p" : text, type);
  }
  // MindSpeed's: ulysses_cp_algo, megatron_cp_algo (a ring), hybrid_cp_algo.
  const Written* const algorithm = asked.find("context_parallel_algo");
  if (algorithm != nullptr && algorithm->unknown.empty() && run.count("context_parallel").value_or(1) > 1) {
    const std::string text = text_of_values(*algorithm);
    run.set("cp_comm",
            text.starts_with("ulysses")  ? "a2a"
            : text.starts_with("hybrid") ? "a2a_p2p"
                                         : "p2p",
            algorithm);
  }
  const Written* const ulysses = asked.find("ds_sequence_parallel_size");
  if (ulysses == nullptr || asked.number(*ulysses).value_or(1) < 2) return;
  run.set("context_parallel", text_of_values(*ulysses), ulysses);
  run.set("cp_comm", "a2a", ulysses);
}

void read_batch(const MegatronSettings& asked, RunBuilder& run, std::optional<std::int64_t> devices) {
  if (const Written* const ramp = asked.find("rampup_batch_size"))
    run.leave_out(*ramp, "a global batch that grows: the last one is taken");
  if (run.value("global_batch") || !devices) return;
  const auto size = [&](std::string_view field) { return run.count(field).value_or(1); };
  const std::int64_t replica = size("tensor_parallel") * size("pipeline_parallel") * size("context_parallel");
  const std::int64_t steps = asked.find("gradient_accumulation_steps") == nullptr
                                 ? 1
                                 : asked.number(*asked.find("gradient_accumulation_steps")).value_or(1);
  if (asked.tells("global_batch_size") || replica < 1 || *devices % replica != 0) return;
  const std::int64_t batch = size("micro_batch") * (*devices / replica) * steps;
  run.set("global_batch", std::to_string(batch), nullptr);
  run.imply(fmt::format(
      "the global batch is {}, a microbatch of each DP rank: --global-batch-size is not given", batch));
}

// The fewest GPUs, where neither a launcher nor a job says how many.
std::optional<std::int64_t> fewest_devices(const MegatronArguments& arguments, const MegatronSettings& asked,
                                           RunBuilder& run) {
  if (arguments.devices_unknown || run.so_far().nodes) return std::nullopt;
  for (const std::string_view name :
       {"tensor_model_parallel_size", "model_parallel_size", "pipeline_model_parallel_size",
        "context_parallel_size", "expert_model_parallel_size", "moe_expert_parallel_size",
        "expert_tensor_parallel_size", "micro_batch_size", "global_batch_size"}) {
    if (const Written* const size = asked.find(name); size != nullptr && !size->unknown.empty())
      return std::nullopt;
  }
  const std::int64_t ranks = assume_fewest_ranks(run);
  if (ranks == 1) return std::nullopt;
  std::int64_t devices = ranks;
  for (const std::string_view field : {"tensor_parallel", "pipeline_parallel", "context_parallel"})
    devices *= std::max<std::int64_t>(run.count(field).value_or(1), 1);
  run.set("data_parallel", std::to_string(ranks), nullptr);
  run.devices(devices);
  return devices;
}

// A file of DeepSpeed: what it has for Megatron.
void read_deepspeed(const std::string& text, RunBuilder& run) {
  if (text.empty()) return;
  std::vector<Problem> problems;
  Json root;
  try {
    root = parse_json(text, "the DeepSpeed configuration", problems);
  } catch (const InputError&) {
    return run.assume("the DeepSpeed configuration that the script writes is not read");
  }
  if (!root.is_object() || !root.contains("zero_optimization")) return;
  const Json& zero = root["zero_optimization"];
  if (zero.is_object() && zero.contains("stage") && zero["stage"].is_number_integer()) {
    const auto stage = zero["stage"].get<std::int64_t>();
    if (stage >= 0 && stage <= 3)
      run.set("data_sharding", stage == 0 ? "none" : fmt::format("zero{}", stage), nullptr);
  }
  const auto on_host = [&](const char* key) {
    return zero.is_object() && zero.contains(key) && zero[key].is_object() &&
           zero[key].value("device", "none") == "cpu";
  };
  if (on_host("offload_optimizer")) {
    const Json ratio = zero["offload_optimizer"].value("ratio", Json(1));
    const bool is_part = ratio.is_number() && ratio.get<double>() >= 0 && ratio.get<double>() <= 1;
    run.set("optimizer_offload_fraction", is_part ? fmt::format("{}", ratio.get<double>()) : "1", nullptr);
  }
  if (on_host("offload_param")) run.set("offload_parameters", "yes", nullptr);
}

// Adapters of MindSpeed-LLM, priced on the stack that has them.
void read_adapters(const MegatronSettings& asked, RunBuilder& run) {
  const Written* const rank = asked.find("lora_r");
  const Written* const targets = asked.find("lora_target_modules");
  if (rank == nullptr && targets != nullptr)
    return run.leave_out(*targets, "adapters without --lora-r: all weights are counted as trained");
  if (rank == nullptr) return;
  if (!rank->unknown.empty()) return asked.tell_unknown(*rank, run, "lora_rank");
  const std::int64_t size = asked.number(*rank).value_or(0);
  if (size < 1) return run.problem(*rank, "must be a whole number above 0");
  run.use_software("nemo-2025");
  run.set("lora_rank", std::to_string(size), rank);
  if (targets != nullptr) take_lora_targets(*targets, run);
}

}  // namespace

void read_megatron_arguments(const MegatronArguments& arguments, RunBuilder& run) {
  const MegatronSettings asked(arguments.written);
  choose_stack(asked, run);
  if (arguments.allocator) take_allocator(*arguments.allocator, run);
  const std::vector<std::string_view> names = megatron_names();
  for (const Written& setting : arguments.written) {
    const LaunchKey* const key = find_megatron_key(setting.name);
    if (key == nullptr) {
      run.unknown(setting, names);
    } else if (lacks_value(setting) && needs_megatron_value(setting.name)) {
      run.refuse_empty(setting, key->target.substr(0, key->target.find('=')));
    } else if (key->use == LaunchUse::member && key->target == "mtp_layers" && !is_on(setting)) {
      continue;
    } else if (setting.name == "rotary_percent" && text_of_values(setting).starts_with("1")) {
      run.idle(setting);
    } else {
      run.take(*key, setting);
    }
  }
  if (run.count("virtual_pipeline").value_or(1) <= 1) run.drop("virtual_pipeline");
  const Written* const tensor = asked.first({"tensor_model_parallel_size", "model_parallel_size"});
  const bool unknown = tensor != nullptr && !tensor->unknown.empty();
  if (!unknown && run.value("tensor_parallel").value_or("1") == "1" &&
      run.value("sequence_parallel") == "yes") {
    run.drop("sequence_parallel");
    run.imply("sequence parallelism is off at TP 1", asked.find("sequence_parallel"));
  }
  // The flag is from 2021. That arguments.py accepts it at TP 1.
  if (const Written* const checkpoints = asked.find("distribute_checkpointed_activations");
      checkpoints != nullptr && !unknown && run.value("tensor_parallel").value_or("1") == "1") {
    run.drop("distribute_saved_activations");
    run.imply("checkpoints stay whole at TP 1", checkpoints);
  }
  if (!arguments.model.empty()) run.name_model(arguments.model, nullptr);
  read_deepspeed(arguments.deepspeed_config, run);
  read_megatron_model(asked, arguments.program, run);
  read_stages(asked, run);
  read_zero_bubble(asked, run);
  read_experts_layout(asked, !arguments.model.empty(), run);
  read_context(asked, run);
  const std::optional<std::int64_t> devices =
      arguments.devices ? arguments.devices : fewest_devices(arguments, asked, run);
  read_recomputation(asked, run);
  read_adapters(asked, run);
  read_sharding(asked, run, devices);
  read_precision(asked, run);
  read_optimizer(asked, run);
  read_graphs(asked, run);
  read_overlaps(asked, run);
  read_batch(asked, run, devices);
  check_megatron_arguments(arguments, run);
}

}  // namespace headroom
