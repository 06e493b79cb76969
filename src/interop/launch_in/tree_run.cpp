#include "interop/launch_in/tree_run.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/decimal.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// Words of names whose settings change neither memory nor time of a training step.
constexpr std::array<std::string_view, 66> idle_words{
    "wandb",   "log",        "logs",        "logging", "logger",   "loggers",     "save",      "saves",
    "eval",    "evals",      "evaluation",  "lr",      "learning", "seed",        "path",      "paths",
    "dir",     "dirs",       "folder",      "dataset", "datasets", "dataloader",  "tokenizer", "token",
    "tokens",  "warmup",     "decay",       "beta",    "betas",    "beta1",       "beta2",     "eps",
    "epsilon", "clip",       "clipping",    "norm",    "name",     "run",         "hub",       "push",
    "resume",  "checkpoint", "checkpoints", "ckpt",    "steps",    "epochs",      "epoch",     "scheduler",
    "metric",  "metrics",    "tensorboard", "comet",   "mlflow",   "description", "timeout",   "timer",
    "timers",  "report",     "template",    "prompt",  "init",     "std",         "shuffle",   "split",
    "workers", "debug"};

// "lr" of "min_lr" and "optimizer.lr": each word of the name's last part, or its first part.
bool is_idle_name(std::string_view name) {
  // Settings of a teacher are never idle: it is a second model.
  constexpr std::array<std::string_view, 11> parts{"activation", "gradient", "recompute", "micro",
                                                   "fsdp",       "offload",  "parallel",  "model",
                                                   "batch",      "cpu",      "teacher"};
  if (name.starts_with('_')) return true;  // "_comment"
  std::string word;
  std::vector<std::string> words;
  for (const char c : name) {
    if (c == '.' || c == '_') {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  const auto is_one_of = [&](const auto& list) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& w) { return contains(list, std::string_view(w)); });
  };
  const std::string_view last = words.empty() ? std::string_view() : words.back();
  const bool of_levels = words.size() > 1 && last == "level" && words[words.size() - 2] == "sink";
  // "save_only_model", "val_size", "hub_model_id".
  constexpr std::array<std::string_view, 4> starts{"save", "val", "valid", "hub"};
  if (!words.empty() && contains(starts, std::string_view(words.front()))) return true;
  return (is_one_of(idle_words) || of_levels) && !is_one_of(parts);
}

// Whether only a run knows a value.
bool waits_for_run(const Written& setting) {
  return !setting.unknown.empty() || text_of_values(setting).find("${") != std::string::npos;
}

bool matches(std::string_view row, std::string_view name) {
  if (row.ends_with('*')) return name.starts_with(row.substr(0, row.size() - 1));
  if (row.starts_with('*')) return name.ends_with(row.substr(1));
  return row == name;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

std::optional<std::int64_t> whole_count(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  const char* const end = digits.data() + digits.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(digits.data(), end, whole); error == std::errc() && at == end)
    return whole;
  double number = 0;
  const auto [at, error] = decimal_from_chars(digits.data(), end, number);
  constexpr double largest = 9e15;
  if (error != std::errc() || at != end || !(std::abs(number) < largest) || number != std::floor(number))
    return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::vector<Written> last_of_each(std::vector<Written> written) {
  std::set<std::string> later;
  std::vector<Written> kept;
  kept.reserve(written.size());
  for (auto setting = written.rbegin(); setting != written.rend(); ++setting) {
    if (later.insert(setting->name).second) kept.push_back(std::move(*setting));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

TreeRun::TreeRun(std::vector<Written> written, RunBuilder& builder) : builder_(builder) {
  entries_.reserve(written.size());
  for (Written& setting : written) {
    const bool of_allocator = is_allocator_variable(setting.name);
    if (of_allocator) take_allocator(setting, builder);
    entries_.push_back({std::move(setting), of_allocator});
  }
}

namespace {

// Reports a value that only a run knows. `decides`: the field that must then be given, if any.
void leave_open(const Written& setting, std::string_view decides, RunBuilder& builder) {
  if (!decides.empty() && !setting.unknown.empty()) return builder.unresolved(setting, decides);
  std::string text = fmt::format("{} is known only when the job runs", printable(setting.as_written));
  const StrategyField* const field = decides.empty() ? nullptr : find_field(decides);
  if (field == nullptr) return builder.unresolved(std::move(text), setting.at);
  builder.unresolved(fmt::format("{}: give {}", text, flag_of(field->name)), setting.at,
                     std::string(decides));
}

}  // namespace

const Written* TreeRun::find(std::initializer_list<std::string_view> names, std::string_view decides) {
  for (const std::string_view name : names) {
    for (Entry& entry : entries_) {
      if (entry.written.name != name) continue;
      const bool was_taken = std::exchange(entry.taken, true);
      if (waits_for_run(entry.written)) {
        if (was_taken) return nullptr;
        leave_open(entry.written, decides, builder_);
        return nullptr;
      }
      if (!is_null(entry.written)) return &entry.written;
    }
  }
  return nullptr;
}

const Written* TreeRun::find_path(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (Entry& entry : entries_) {
      if (entry.written.name != name) continue;
      const std::string text = text_of_values(entry.written);
      const std::size_t slash = text.find_last_not_of('/') == std::string::npos
                                    ? std::string::npos
                                    : text.rfind('/', text.find_last_not_of('/'));
      if (!waits_for_run(entry.written)) continue;
      const bool was_taken = std::exchange(entry.taken, true);
      if (slash != std::string::npos && text.find_first_of("$`()", slash) == std::string::npos)
        return &entry.written;
      if (was_taken) return nullptr;
      if (!entry.written.unknown.empty())
        builder_.unresolved(entry.written, "model");
      else
        builder_.unresolved(fmt::format("{} is known only when the job runs: give --model NAME",
                                        printable(entry.written.as_written)),
                            entry.written.at, "model");
      return nullptr;
    }
  }
  return find(names);
}

bool TreeRun::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.written.name == name; });
}

bool TreeRun::has_below(std::string_view prefix) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const std::string_view name = entry.written.name;
    return name.size() > prefix.size() && name.starts_with(prefix) && name[prefix.size()] == '.';
  });
}

bool TreeRun::is_open(std::initializer_list<std::string_view> names) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return waits_for_run(entry.written) &&
           std::find(names.begin(), names.end(), entry.written.name) != names.end();
  });
}

std::optional<std::int64_t> TreeRun::count(std::initializer_list<std::string_view> names,
                                           std::string_view decides) {
  const Written* const setting = find(names, decides);
  for (const Entry& entry : entries_) {
    const bool is_named = std::find(names.begin(), names.end(), entry.written.name) != names.end();
    if (!is_named || !lacks_value(entry.written)) continue;
    builder_.refuse_empty(entry.written, decides);
    return std::nullopt;
  }
  if (setting == nullptr) return std::nullopt;
  const std::string text = text_of_values(*setting);
  const std::optional<std::int64_t> number = whole_count(text);
  if (text == "auto" || number == -1) return std::nullopt;
  if (!number || *number < 0) {
    builder_.problem(*setting, fmt::format("must be a whole number, not '{}'", printable(text)));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> TreeRun::above_zero(std::initializer_list<std::string_view> names,
                                                std::string_view decides) {
  const Written* const setting = find(names, decides);
  const auto stated = setting == nullptr ? std::nullopt : whole_count(text_of_values(*setting));
  if (!stated || *stated > 0) return count(names, decides);
  builder_.problem(*setting, fmt::format("must be above 0, not {}", *stated));
  return std::nullopt;
}

std::int64_t TreeRun::size(std::string_view field, std::initializer_list<std::string_view> names) {
  const std::optional<std::int64_t> number = count(names, field);
  if (!number || *number == 0) return 1;  // 0: off
  builder_.set(field, std::to_string(*number), find(names));
  return *number;
}

bool TreeRun::on(std::initializer_list<std::string_view> names) {
  const Written* const setting = find(names);
  return setting != nullptr && is_on(*setting);
}

std::string TreeRun::text(std::initializer_list<std::string_view> names) {
  const Written* const setting = find(names);
  return setting == nullptr ? "" : text_of_values(*setting);
}

std::vector<Written> TreeRun::below(std::string_view prefix) {
  std::vector<Written> result;
  const std::string start = std::string(prefix) + '.';
  for (Entry& entry : entries_) {
    if (!entry.written.name.starts_with(start)) continue;
    entry.taken = true;
    result.push_back(entry.written);
    result.back().name.erase(0, start.size());
  }
  return result;
}

void TreeRun::rest(std::span<const LaunchKey> table) {
  std::vector<std::string_view> known;
  known.reserve(table.size());
  for (const LaunchKey& row : table) {
    if (row.name.find('*') == std::string_view::npos) known.push_back(row.name);
  }
  for (Entry& entry : entries_) {
    if (std::exchange(entry.taken, true)) continue;
    const Written& setting = entry.written;
    const auto row = std::find_if(table.begin(), table.end(),
                                  [&](const LaunchKey& key) { return matches(key.name, setting.name); });
    const bool open = setting.unknown.empty() && waits_for_run(setting);
    if (row != table.end() && row->use != LaunchUse::idle && open) {
      builder_.unresolved(fmt::format("{} is known only when the job runs", printable(setting.as_written)),
                          setting.at);
    } else if (row != table.end() && row->use == LaunchUse::idle) {
      builder_.idle(setting, row->name.find('*') != std::string_view::npos && !is_idle_name(setting.name));
    } else if (row != table.end()) {
      if (!builder_.take(*row, setting)) builder_.idle(setting);
    } else if (is_idle_name(setting.name) || is_null(setting)) {
      builder_.idle(setting);
    } else if (setting.as_written.starts_with("--")) {
      builder_.leave_out(setting, "not known");  // a flag of the script's own program
    } else {
      builder_.unknown(setting, known);
    }
  }
}

namespace {

// GPUs that a layer's experts lie on.
std::int64_t expert_grid(const RunBuilder& builder) {
  std::int64_t grid = 1;
  for (const std::string_view field : {"expert_parallel", "expert_tensor_parallel"})
    grid *= std::max<std::int64_t>(builder.count(field).value_or(1), 1);
  return grid;
}

std::int64_t size_of(const RunBuilder& builder, std::string_view field) {
  return std::max<std::int64_t>(builder.count(field).value_or(1), 1);
}

// The Trainer's stack here has data-parallel ranks alone. Where accelerate is asked for more, PyTorch's DTensors do it,
// as in torchtitan.
void stand_in_for_grid(const RunScale& scale, RunBuilder& builder) {
  const bool grid = scale.tensor > 1 || scale.context > 1 || expert_grid(builder) > 1;
  if (!grid || builder.software() != "hf-trainer") return;
  builder.use_software("torchtitan-2025");
  builder.assume("TP, CP and EP of the trainer are priced on torchtitan-2025, which also uses DTensor");
  if (scale.tensor > 1) builder.set("sequence_parallel", "yes", nullptr);
  if (builder.value("cp_comm") == "a2a") {
    builder.drop("cp_comm");
    builder.assume("context parallelism by all-to-all is read as torchtitan's");
  }
}

}  // namespace

std::int64_t assume_fewest_ranks(RunBuilder& builder) {
  const std::int64_t tensor = size_of(builder, "tensor_parallel");
  const std::int64_t context = size_of(builder, "context_parallel");
  const std::int64_t pipeline = size_of(builder, "pipeline_parallel");
  // Ranks of experts are those of the other axes but the pipeline's.
  const std::int64_t grid = expert_grid(builder);
  const std::int64_t fewest = grid / std::gcd(grid, tensor * context);
  const std::int64_t sequences = builder.count("global_batch").value_or(0) / size_of(builder, "micro_batch");
  std::int64_t ranks = fewest;
  const std::int64_t most = std::min(sequences, 1000 * fewest);
  while (ranks <= most && sequences % ranks != 0) ranks += fewest;
  if (ranks > most) ranks = fewest;  // no number divides the batch
  const std::int64_t devices = ranks * tensor * context * pipeline;
  if (ranks > 1) {
    builder.assume(fmt::format(
        "{} GPUs, the fewest that hold its experts: the file does not say how many (--devices N)", devices));
  } else {
    if (!builder.so_far().nodes) builder.whole_nodes(1);
  }
  return ranks;
}

void settle(RunScale scale, RunBuilder& builder) {
  stand_in_for_grid(scale, builder);
  if (!scale.devices && scale.nodes && scale.devices_per_node)
    scale.devices = product_of(*scale.nodes, *scale.devices_per_node);
  if (!scale.devices_per_node && scale.devices && scale.nodes && *scale.nodes > 0)
    scale.devices_per_node = *scale.devices / *scale.nodes;
  const std::int64_t of_replica = scale.tensor * scale.pipeline * scale.context;
  std::optional<std::int64_t> data;
  bool assumed = false;
  if (scale.devices) {
    // Numbers of GPUs that TP x PP x CP does not divide are refused with the request.
    if (*scale.devices > 0 && *scale.devices % of_replica == 0) data = *scale.devices / of_replica;
  } else if (scale.shard && *scale.shard > 0) {
    data = *scale.shard * scale.replicate.value_or(1);
    scale.devices = *data * of_replica;
  } else if (const std::int64_t fewest = assume_fewest_ranks(builder); fewest > 1) {
    assumed = true;
    data = fewest;
    scale.devices = fewest * of_replica;
  }
  if (scale.devices) builder.devices(*scale.devices);
  if (scale.devices_per_node && *scale.devices_per_node > 0)
    builder.devices_per_node(*scale.devices_per_node);
  if (data && !builder.value("data_parallel")) builder.set("data_parallel", std::to_string(*data), nullptr);
  if (!scale.shard && scale.replicate && *scale.replicate > 1) {
    if (data && *data % *scale.replicate == 0)
      scale.shard = *data / *scale.replicate;
    else
      builder.assume(fmt::format(
          "the {} groups of shards are read as one: they do not divide the DP ranks, or the GPUs are "
          "not known (--shard-size N)",
          *scale.replicate));
  }
  if (scale.replicate && *scale.replicate > 1 && scale.shard && *scale.shard > 0)
    builder.set("shard_size", std::to_string(*scale.shard * scale.context), nullptr);
  if (!scale.micro && scale.global && scale.accumulation && data && *scale.accumulation > 0) {
    scale.micro = *scale.global / (*scale.accumulation * *data);
    if (*scale.micro > 0) {
      builder.set("micro_batch", std::to_string(*scale.micro), nullptr);
      builder.imply(fmt::format("a microbatch is global batch / (accumulation x DP) = {} / ({} x {}) = {}",
                                *scale.global, *scale.accumulation, *data, *scale.micro));
    }
  }
  if (scale.global || !scale.micro) return;
  const std::int64_t accumulation = scale.accumulation.value_or(1);
  if (!data) return builder.accumulation(accumulation);
  const std::int64_t global = *scale.micro * accumulation * *data;
  const std::string product =
      fmt::format("the global batch is microbatch x accumulation x DP = {} x {} x {} = {}", *scale.micro,
                  accumulation, *data, global);
  if (assumed) {  // another number of GPUs gives another batch
    builder.accumulation(accumulation);
    builder.assume(fmt::format("{} on {} GPUs (--devices N)", product, *scale.devices));
  } else {
    builder.set("global_batch", std::to_string(global), nullptr);
    builder.imply(product);
  }
}

void member_if(RunBuilder& builder, std::string_view path, const Json& value) {
  if (builder.member_at(path) == nullptr) builder.member(path, value, nullptr);
}

bool take_size(TreeRun& run, std::string_view path, std::initializer_list<std::string_view> names) {
  const auto number = run.count(names);
  if (!number) return false;
  run.builder().member(path, *number, run.find(names));
  return true;
}

void take_global(TreeRun& run, RunScale& scale, std::initializer_list<std::string_view> names) {
  scale.global = run.count(names, "global_batch");
  if (scale.global) run.builder().set("global_batch", std::to_string(*scale.global), run.find(names));
}

void take_micro(TreeRun& run, RunScale& scale, std::initializer_list<std::string_view> names) {
  scale.micro = run.count(names, "micro_batch");
  if (scale.micro)
    run.builder().set("micro_batch", std::to_string(*scale.micro), run.find(names));
  else if (!run.is_open(names))
    assume_micro(run.builder());
}

void assume_sequence(RunBuilder& builder) {
  builder.assume("sequences are as long as the model's longest: the file does not say (--sequence N)");
}

void assume_micro(RunBuilder& builder) {
  builder.assume("a microbatch is one sequence: the file does not say (--micro-batch N)");
}

void take_sequence(TreeRun& run, std::initializer_list<std::string_view> names) {
  if (const auto length = run.count(names, "sequence"); length && *length > 0)
    run.builder().set("sequence", std::to_string(*length), run.find(names));
  else if (!run.is_open(names))
    assume_sequence(run.builder());
}

void take_switch(TreeRun& run, std::string_view name, std::string_view field, std::string value) {
  const Written* const setting = run.find(name);
  if (setting != nullptr && is_on(*setting)) run.builder().set(field, std::move(value), setting);
}

std::optional<TreeNode> tree_beside(const Written& setting, RunBuilder& builder) {
  namespace fs = std::filesystem;
  const std::string name = text_of_values(setting);
  const fs::path folder = fs::path(setting.at.file).parent_path();
  // As it is written from the folder of the file, else from a folder above it, else its name alone beside the file.
  std::vector<fs::path> places{folder / name,
                               folder / ".." / name,
                               folder / ".." / ".." / name,
                               folder / ".." / ".." / ".." / name,
                               folder / fs::path(name).filename(),
                               fs::path(name)};
  for (const fs::path& place : places) {
    if (!is_regular_file(place.string())) continue;
    const std::string file = place.lexically_normal().string();
    return parse_tree(read_file(file), file);
  }
  builder.unresolved(fmt::format("{}: there is no such file beside {}", printable(setting.as_written),
                                 printable(setting.at.file, 200)),
                     setting.at);
  return std::nullopt;
}

}  // namespace headroom
