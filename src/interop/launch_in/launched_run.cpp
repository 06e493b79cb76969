#include "headroom/interop/launched_run.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/reading.hpp"
#include "interop/launch_in/readers.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

constexpr std::int64_t most_of_size = 1 << 20;  // products of three are still counts

std::int64_t size_in(const LaunchedRun& run, std::string_view field) {
  std::int64_t count = 1;
  const LaunchSetting* const setting = find_setting(run, field);
  const bool is_count = setting != nullptr && read_count(setting->value, count).empty();
  return is_count ? std::clamp<std::int64_t>(count, 1, most_of_size) : 1;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count == 1 ? "one" : std::to_string(count), what, count == 1 ? "" : "s");
}

// Frameworks that refuse a batch or experts that do not divide, as Megatron-LM does.
struct FrameworkRule {
  std::string_view framework;
  std::string_view field;
  std::string_view file;
};
constexpr std::array<FrameworkRule, 6> framework_rules{{
    {"torchtitan", "global_batch", "torchtitan, torchtitan/train.py"},
    {"torchtitan", "expert_parallel", "torchtitan, torchtitan/distributed/parallel_dims.py"},
    {"DeepSpeed", "global_batch", "DeepSpeed, deepspeed/runtime/config.py"},
    {"OpenRLHF", "global_batch", "DeepSpeed, deepspeed/runtime/config.py"},
    {"verl", "global_batch",
     "verl, verl/workers/fsdp_workers.py, verl/trainer/sft_trainer.py and fsdp_sft_trainer.py"},
    {"GPT-NeoX", "global_batch", "GPT-NeoX, megatron/neox_arguments/arguments.py, check_batch_parameters"},
}};
// Their batch is a product, which nothing refuses, unless DeepSpeed's file states one.
constexpr std::array<std::string_view, 4> trainers{"accelerate", "Hugging Face Trainer", "LLaMA-Factory",
                                                   "axolotl"};

// Whether a run is of Megatron-LM's code: GPT-NeoX has a fork of its own.
bool is_on_megatron(const LaunchedRun& run) {
  return (run.software.starts_with("megatron") || run.software.starts_with("nemo")) &&
         run.framework != "GPT-NeoX";
}

bool is_on_disk(const std::string& source) {
  const FileKind kind = kind_of_file(source);
  return kind == FileKind::regular || kind == FileKind::other;
}

bool ends_with_one_of(const std::string& source, const auto& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view end) { return source.ends_with(end); });
}

bool is_script(const std::string& source) {
  constexpr std::array<std::string_view, 8> endings{".sh",  ".bash", ".sbatch", ".slurm",
                                                    ".job", ".pbs",  ".zsh",    ".lsf"};
  if (ends_with_one_of(source, endings)) return true;
  if (std::filesystem::path(source).has_extension()) return false;
  const std::string text = read_file(source);
  const std::string first = text.substr(0, text.find('\n'));
  return first.starts_with("#!") && first.find("sh") != std::string::npos;
}

}  // namespace

bool is_launched_run(const std::string& source) {
  return is_tree_launch(source) || (is_on_disk(source) && is_script(source));
}

LaunchedRun read_launched_run(const std::string& source, const LaunchOptions& options) {
  const std::string text = options.text ? *options.text : launch_text(source);
  if (is_tree_launch(source)) return read_tree_launch(text, source, options);
  return read_launch_script(text, source, options);
}

const LaunchSetting* find_setting(const LaunchedRun& run, std::string_view field) {
  const auto found = std::find_if(run.strategy.begin(), run.strategy.end(),
                                  [&](const LaunchSetting& it) { return it.field == field; });
  return found == run.strategy.end() ? nullptr : &*found;
}

std::optional<LaunchRefusal> batch_refusal(const LaunchedRun& run, std::int64_t ranks) {
  if (!run.stated_batch) return std::nullopt;
  const StatedBatch& it = *run.stated_batch;
  const std::int64_t of_rank = it.micro * it.accumulation;
  LaunchRefusal refusal{.fields = {"global_batch", "micro_batch"},
                        .rule = {},
                        .source = it.source,
                        .written = it.written,
                        .at = it.at};
  const bool ranks_are_assumed = !run.devices || run.nodes;
  if (it.batch % of_rank != 0 && ranks_are_assumed)
    refusal.rule =
        fmt::format("must be a multiple of microbatch x accumulation ({} is not a multiple of {} x {} = {})",
                    it.batch, it.micro, it.accumulation, of_rank);
  else if (it.batch % of_rank != 0 || it.batch / of_rank != ranks)
    refusal.rule = fmt::format("must be microbatch x accumulation x DP ({} is not {} x {} x {} = {})",
                               it.batch, it.micro, it.accumulation, ranks, of_rank * ranks);
  return refusal.rule.empty() ? std::nullopt : std::optional(std::move(refusal));
}

void take_whole_nodes(LaunchedRun& run, std::int64_t devices_per_node) {
  const std::int64_t nodes = std::clamp<std::int64_t>(run.nodes.value_or(1), 1, most_of_size);
  const std::int64_t each = std::clamp<std::int64_t>(devices_per_node, 1, most_of_size);
  const std::int64_t replica =
      size_in(run, "tensor_parallel") * size_in(run, "pipeline_parallel") * size_in(run, "context_parallel");
  // Data-parallel ranks that hold all experts of a layer together with the other axes.
  const std::int64_t experts = size_in(run, "expert_parallel") * size_in(run, "expert_tensor_parallel");
  const std::int64_t needed =
      experts / std::gcd(experts, size_in(run, "tensor_parallel") * size_in(run, "context_parallel"));
  const std::int64_t unit = std::min(needed, std::numeric_limits<std::int64_t>::max() / replica);
  std::int64_t groups = std::max<std::int64_t>(nodes * each / (replica * unit), 1);
  const std::int64_t sequences = size_in(run, "global_batch") / size_in(run, "micro_batch");
  if (find_setting(run, "global_batch") != nullptr && sequences >= unit) {
    groups = std::min(groups, sequences / unit);
    while (groups > 1 && sequences % (groups * unit) != 0) --groups;
  }
  // FSDP over one rank is none, which no file asks for that leaves its GPUs open.
  const LaunchSetting* const sharding = find_setting(run, "data_sharding");
  const bool shards = sharding != nullptr && sharding->value == "zero3" && replica > 1;
  const std::int64_t ranks = shards && groups * unit == 1 ? 2 : groups * unit;
  run.devices = ranks * replica;
  const std::string taken = *run.devices == nodes * each
                                ? counted(nodes, "node") + " of " + counted(each, "GPU")
                                : counted(ranks, "replica") + " of " + counted(replica, "GPU");
  run.remarks.emplace_back();
  run.remarks.back().kind = LaunchRemarkKind::assumed;
  run.remarks.back().text = taken + ": the file does not say how many GPUs (--devices N)";
}

std::string_view own_source(const LaunchedRun& run, std::string_view field, std::string_view source) {
  if (!source.starts_with("Megatron-LM")) return source;
  const bool trains = contains(trainers, std::string_view(run.framework)) && field == "global_batch";
  if (trains && !run.software.starts_with("deepspeed")) return {};
  const std::string_view framework = trains ? std::string_view("DeepSpeed") : std::string_view(run.framework);
  const auto row = std::find_if(framework_rules.begin(), framework_rules.end(), [&](const FrameworkRule& it) {
    return it.framework == framework && it.field == field;
  });
  if (row != framework_rules.end()) return row->file;
  return is_on_megatron(run) ? source : std::string_view();
}

std::string launch_text(const std::string& source) { return read_file(file_of_launch(source)); }

}  // namespace headroom
