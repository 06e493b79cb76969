#include "cli/request_flags.hpp"

#include <string_view>

#include "cli/flags.hpp"
#include "headroom/io/model_file.hpp"

namespace headroom::cli {
namespace {

Recomputation read_recomputation(const RequestFlags& flags, std::vector<Problem>& problems) {
  Recomputation recompute{.distribute_saved_activations = flags.shard_checkpoint,
                          .window = flags.recompute_window,
                          .ops = split_at_commas(flags.recompute_ops)};
  if (!recompute.ops.empty()) recompute.policy = RecomputePolicy::ops;
  RecomputePolicy named = recompute.policy;
  read_choice("--recompute", flags.recompute, named, problems);
  if (named != RecomputePolicy::ops && !recompute.ops.empty()) {
    problems.push_back(
        {"--recompute-ops", "is a policy of its own: leave out --recompute " + flags.recompute.value_or("")});
  }
  if (named == RecomputePolicy::ops && recompute.ops.empty()) {
    problems.push_back({"--recompute", "ops needs --recompute-ops with their names"});
  }
  recompute.policy = named;
  read_choice("--recompute-method", flags.recompute_method, recompute.method, problems);
  read_count("--recompute-layers", flags.recompute_layers, recompute.layers, problems);
  return recompute;
}

// d is given, or follows from the number of devices.
void read_data_parallel(const RequestFlags& flags, Strategy& strategy, std::vector<Problem>& problems) {
  read_count("--data-parallel", flags.data_parallel, strategy.data_parallel, problems);
  if (!flags.devices) return;
  std::int64_t devices = 0;
  read_count("--devices", flags.devices, devices, problems);
  const std::int64_t replica = strategy.tensor_parallel * strategy.pipeline_parallel;
  if (devices % replica != 0) {
    problems.push_back({"--devices", "must be a multiple of --tensor-parallel times --pipeline-parallel (" +
                                         std::to_string(devices) + " is not a multiple of " +
                                         std::to_string(replica) + ")"});
  } else if (flags.data_parallel && devices != replica * strategy.data_parallel) {
    problems.push_back({"--devices", "contradicts --data-parallel: " + std::to_string(replica) + " x " +
                                         *flags.data_parallel + " is not " + std::to_string(devices) +
                                         "; leave out one of them"});
  } else if (devices > 0) {
    strategy.data_parallel = devices / replica;
  }
}

}  // namespace

namespace {

// Adds options and flags to a group of a command's help.
struct Group {
  Command command;
  const char* name;

  void option(const char* names, FlagText& value, const char* type, const char* help) const {
    command.option(names, value, type, help).group(name);
  }
  void flag(const char* names, bool& value, const char* help) const {
    command.flag(names, value, help).group(name);
  }
};

constexpr const char* trade_group = "Memory for time";

}  // namespace

void add_model_flags(Command command, RequestFlags& flags) {
  const Group model{command, "Model"};
  command.option("model", flags.model, "MODEL", "A model's name (see: headroom list models) or a model file")
      .required();
  command
      .option("--set", flags.overrides, "KEY=VALUE",
              "Override a field of the model: hidden=8192, kernels.softmax_dtype=fp32")
      .group(model.name);
  model.option("--attention", flags.attention, "KERNEL",
               "unfused, flash or sdpa_math; short for --set kernels.attention=KERNEL");
  model.option("--sequence", flags.sequence, "TOKENS", "Sequence length; by default the model's");
  model.option("--detail", flags.detail, "DETAIL",
               "paper (default) or exact: also count the small buffers that the paper leaves out");
}

void add_kept_flags(Command command, RequestFlags& flags) {
  const Group trade{command, trade_group};
  trade.flag("--store-gathered,--save-gathered-input", flags.store_gathered,
             "Keep gathered inputs instead of gathering them again");
  trade.flag("--keep-outputs,--keep-pipeline-outputs", flags.keep_outputs,
             "Keep a stage's output after it was sent");
  trade.option("--gradients,--gradient-dtype", flags.gradients, "DTYPE",
               "fp32 (default, 18 bytes a parameter in all) or half (16)");
}

void add_layout_flags(Command command, RequestFlags& flags) {
  const Group layout{command, "Layout"};
  layout.option("-t,--tensor-parallel", flags.tensor_parallel, "T", "Tensor-parallel size (default 1)");
  layout.option("-p,--pipeline-parallel", flags.pipeline_parallel, "P", "Pipeline-parallel size (default 1)");
  layout.option("-m,--interleave,--virtual-pipeline", flags.virtual_pipeline, "M",
                "Stage chunks on each pipeline rank (default 1)");
  layout.option("-d,--data-parallel", flags.data_parallel, "D", "Data-parallel size (default 1)");
  layout.option("--devices", flags.devices, "N", "All devices; the data-parallel size follows");
  layout.option("-b,--micro-batch", flags.micro_batch, "B", "Sequences in a microbatch (default 1)");
  layout.option("--global-batch", flags.global_batch, "N",
                "Sequences in an iteration; by default 4 microbatches for each pipeline rank");
  layout.option("--schedule", flags.schedule, "KIND",
                "gpipe, 1f1b or interleaved; by default what --virtual-pipeline implies");
  layout.option("--stage-layers", flags.stage_layers, "N,N,...",
                "Layers of each stage chunk, in the order of the model");

  const Group trade{command, trade_group};
  trade.flag("--sp,--sequence-parallel", flags.sequence_parallel,
             "Split norms, dropouts and block inputs along the sequence");
  trade.flag("--distributed-optimizer", flags.distributed_optimizer,
             "Shard optimizer state over data-parallel ranks");
  add_kept_flags(command, flags);
}

void add_request_flags(Command command, RequestFlags& flags) {
  add_model_flags(command, flags);
  add_layout_flags(command, flags);
  const Group trade{command, trade_group};
  trade.option("--recompute", flags.recompute, "POLICY", "none (default), selective or full");
  trade.option(
      "--recompute-layers", flags.recompute_layers, "K",
      "With full or ops: recompute K layers of each stage (block); full: or K layers a checkpoint (uniform)");
  trade.option("--recompute-method", flags.recompute_method, "METHOD", "block (default) or uniform");
  trade.option("--recompute-ops", flags.recompute_ops, "OP,OP,...",
               "Replay these ops of the layer and drop what they make (see: headroom explain)");
  trade.flag("--recompute-window", flags.recompute_window,
             "Exempt as many in-flight microbatches from recomputation as memory allows");
  trade.flag("--shard-checkpoint,--distribute-saved-activations", flags.shard_checkpoint,
             "With full: each tensor-parallel rank keeps a part of a checkpoint");
}

Request read_request(const RequestFlags& flags, std::vector<Problem>& problems, const ReadModel& read) {
  Request request;
  collect(problems, [&] {
    std::vector<std::string> overrides = flags.overrides;
    AttentionKernel attention{};
    read_choice("--attention", flags.attention, attention, problems);
    if (flags.attention && from_name<AttentionKernel>(*flags.attention)) {
      overrides.push_back("kernels.attention=" + *flags.attention);
    }
    request.model = read ? read(flags.model, overrides) : read_model(flags.model, overrides);
  });
  request.workload.sequence = request.model.sequence;
  read_count("--sequence", flags.sequence, request.workload.sequence, problems);
  read_choice("--detail", flags.detail, request.detail, problems);

  Strategy& strategy = request.strategy;
  read_count("--tensor-parallel", flags.tensor_parallel, strategy.tensor_parallel, problems);
  read_count("--pipeline-parallel", flags.pipeline_parallel, strategy.pipeline_parallel, problems);
  read_count("--virtual-pipeline", flags.virtual_pipeline, strategy.virtual_pipeline, problems);
  read_count("--micro-batch", flags.micro_batch, strategy.micro_batch, problems);
  read_data_parallel(flags, strategy, problems);
  if (strategy.virtual_pipeline > 1) strategy.schedule = ScheduleKind::interleaved;
  read_choice("--schedule", flags.schedule, strategy.schedule, problems);
  for (const std::string& layers : split_at_commas(flags.stage_layers)) {
    strategy.stage_layers.push_back(0);
    read_count("--stage-layers", layers, strategy.stage_layers.back(), problems, 0);
  }
  strategy.sequence_parallel = flags.sequence_parallel;
  strategy.save_gathered_input = flags.store_gathered;
  strategy.keep_pipeline_outputs = flags.keep_outputs;
  strategy.distributed_optimizer = flags.distributed_optimizer;
  if (flags.gradients && *flags.gradients != "fp32" && *flags.gradients != "half") {
    problems.push_back(
        {"--gradient-dtype", "must be fp32 or half (fp16 or bf16), not '" + *flags.gradients + "'"});
  } else {
    read_choice("--gradient-dtype", flags.gradients, strategy.gradient_dtype, problems);
  }
  strategy.recompute = read_recomputation(flags, problems);

  // Four microbatches a rank keep the bubble of a 1F1B pipeline below a quarter of the iteration.
  if (problems.empty()) {
    request.workload.global_batch =
        4 * strategy.pipeline_parallel * strategy.micro_batch * strategy.data_parallel;
  }
  read_count("--global-batch", flags.global_batch, request.workload.global_batch, problems);
  return request;
}

}  // namespace headroom::cli
