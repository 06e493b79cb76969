#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/current.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "interop/launch_in/flags.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/megatron_forks.hpp"
#include "interop/launch_in/megatron_in.hpp"
#include "interop/launch_in/program.hpp"
#include "interop/launch_in/python_config.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launch_in/script_files.hpp"
#include "interop/launch_in/script_job.hpp"
#include "interop/launch_in/script_starts.hpp"
#include "interop/launch_in/script_words.hpp"
#include "interop/launch_in/setting.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "interop/launch_in/trainer_flags.hpp"
#include "interop/launch_in/trainer_script.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

using shell::Followed;
using shell::Value;

std::string deepspeed_config(const std::vector<Value>& words, const std::string& file) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text();
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view flag = std::string_view(word).substr(0, equals);
    if (flag != "--deepspeed_config" && flag != "--deepspeed-config") continue;
    const bool apart = equals == word.size();
    if (apart && i + 1 == words.size()) continue;
    const std::string name = apart ? words[i + 1].text() : word.substr(equals + 1);
    if (const auto place = place_in_script(name, file)) return read_file(*place);
  }
  return {};
}

LaunchedRun read_megatron(const Followed& script, const Program& program, std::vector<Written> written,
                          const std::vector<Value>& extra, MegatronArguments arguments,
                          const std::string& file, const LaunchOptions& options) {
  RunBuilder run(file, "Megatron-LM", "megatron-core-2025");
  if (arguments.devices) {
    run.devices(*arguments.devices);
  } else if (!are_slime_words(written)) {
    arguments.devices_unknown = !read_sizes(script, program, run, arguments.devices);
  }
  bool dotted = false;
  for (Written& setting : written) {
    if (setting.as_written.starts_with("--") || !arguments.model.empty()) continue;
    dotted = true;
    const std::size_t dot = setting.name.rfind('.');
    if (dot != std::string::npos) setting.name.erase(0, dot + 1);
  }
  const bool of_nemo = program.name.find("megatron_gpt_") != std::string::npos;
  if (dotted) run.use_framework(of_nemo ? "NeMo" : "Megatron-Bridge");
  for (const Value& word : extra) {
    if (shell::is_known(word.text())) continue;
    arguments.open = true;
    run.unresolved(
        fmt::format("{} may add arguments: it {}", shown(script, word.text()), needs(script, word.text())),
        file_place(script, word.place()));
  }
  arguments.environment_unknown = !script.missing_files.empty();
  arguments.open = arguments.open || arguments.environment_unknown;
  run.open_conditions(need_of_conditions(script));
  for (const auto& [name, at] : script.missing_files) {
    if (!arguments.model.empty()) break;
    run.unresolved(fmt::format("{} is not beside the script", printable(name)), file_place(script, at));
  }
  arguments.deepspeed_config = deepspeed_config(program.arguments, file);
  arguments.written = std::move(written);
  arguments.program = program.name;
  rename_of_mindspeed(arguments.written);
  if (are_slime_words(arguments.written)) take_slime(arguments, run);
  read_megatron_arguments(arguments, run);
  return run.finish(options);
}

// The GPUs of the script stand over those that a configuration was read with.
void take_job(const LaunchedRun& job, LaunchedRun& run) {
  if (job.devices_per_node) run.devices_per_node = job.devices_per_node;
  if (!job.system.empty()) run.system = job.system;
  if (!job.software.empty() && run.software == "hf-trainer") run.software = job.software;  // DeepSpeed's
  if (job.nodes) run.nodes = job.nodes;
  run.refusals.insert(run.refusals.end(), job.refusals.begin(), job.refusals.end());
  for (const LaunchSetting& setting : job.strategy) {
    const bool written = std::any_of(run.strategy.begin(), run.strategy.end(),
                                     [&](const LaunchSetting& it) { return it.field == setting.field; });
    if (!written) run.strategy.push_back(setting);
  }
  if (!job.devices) return;
  run.devices = job.devices;
  run.nodes.reset();
  std::erase_if(run.strategy, [](const LaunchSetting& setting) {
    return setting.field == "data_parallel" && setting.written.empty();
  });
  std::erase_if(run.remarks, [](const LaunchRemark& remark) {
    return remark.kind == LaunchRemarkKind::assumed && remark.text.ends_with("(--devices N)");
  });
}

// Adds what is remarked on a job, the sizes that only a run knows among it.
void add_remarks(const RunBuilder& job, LaunchedRun& run) {
  const std::vector<LaunchRemark>& remarks = job.so_far().remarks;
  run.remarks.insert(run.remarks.end(), remarks.begin(), remarks.end());
}

Preferences preferences_in(const Program& program, const std::vector<Written>& written) {
  const bool commands = program.name == "trl" && !program.arguments.empty();  // `trl dpo`
  return preferences_of(commands ? program.arguments.front().text() : program.name, written);
}

LaunchedRun read_trainer(const Followed& script, const Program& program, TrainerLaunch launch,
                         const std::string& file, const LaunchOptions& options);

LaunchedRun read_configuration(const Followed& script, const Program& program, std::vector<Written> written,
                               const std::string& config, const std::string& file, LaunchOptions options) {
  // How accelerate shards, and what the program trains, say what the trainer's own settings mean.
  const Preferences preferences = preferences_in(program, written);
  const bool of_program = preferences.pairs || preferences.reference;
  if (holds_trainer_arguments(config) &&
      (of_program || !accelerate_settings(script, program, file).empty())) {
    std::vector<Written> all = flattened(parse_tree(read_file(config), config), config);
    for (Written& own : overrides_of(std::move(written), config)) all.push_back(std::move(own));
    return read_trainer(script, program, {.written = std::move(all)}, file, options);
  }
  RunBuilder job(file, "", "");
  std::optional<std::int64_t> devices;
  read_sizes(script, program, job, devices);
  RunBuilder accelerate(file, "", "");
  if (std::vector<Written> settings = accelerate_settings(script, program, file); !settings.empty()) {
    TreeRun tree(std::move(settings), accelerate);
    RunScale scale;
    take_accelerate(tree, scale);
    if (!devices && scale.devices) job.devices(*scale.devices);
    constexpr std::int64_t most = 1 << 30;
    if (scale.shard && *scale.shard < most && scale.context < most && scale.replicate.value_or(1) > 1)
      accelerate.set("shard_size", std::to_string(*scale.shard * scale.context), nullptr);
  }
  options.text.reset();
  LaunchedRun run =
      read_tree_launch(read_file(config), config, options, overrides_of(std::move(written), config));
  take_job(job.so_far(), run);
  take_job(accelerate.so_far(), run);
  add_remarks(accelerate, run);
  return run;
}

LaunchedRun read_trainer(const Followed& script, const Program& program, TrainerLaunch launch,
                         const std::string& file, const LaunchOptions& options) {
  RunBuilder job(file, "", "");
  launch.open_conditions = need_of_conditions(script);
  read_sizes(script, program, job, launch.devices);
  launch.devices_per_node = job.so_far().devices_per_node;
  launch.accelerate = accelerate_settings(script, program, file);
  if (are_swift_words(program.name, launch.written)) rename_of_swift(launch);
  const std::string path = "/" + program.path;
  const bool of_trl = path.find("/trl/scripts/") != std::string::npos ||
                      path.find("/trl/examples/scripts/") != std::string::npos;
  if (are_trl_words(of_trl ? "trl" : program.name, launch.written))
    defaults_of_trl(launch, file_place(script, program.at));
  for (Written& setting : launch.written) {
    if (setting.name == "deepspeed_config" && !has_flag(launch.written, "deepspeed"))
      setting.name = "deepspeed";
  }
  const bool of_openrlhf = are_openrlhf_words(launch.written);
  const Preferences preferences = preferences_in(program, launch.written);
  launch.pairs = launch.pairs || preferences.pairs;
  launch.reference = launch.reference || preferences.reference;
  if (of_openrlhf) rename_of_openrlhf(launch, preferences.pairs || preferences.reference);
  rename_of_deepspeed_chat(launch);
  LaunchedRun run = program.name == "megatron" ? read_swift_megatron(std::move(launch), file, options)
                    : are_factory_words(program.name, launch.written)
                        ? read_llama_factory_words(std::move(launch), file, options)
                        : read_trainer_words(std::move(launch), file, options);
  if (of_openrlhf) run.framework = "OpenRLHF";
  // [OpenRLHF, openrlhf/cli/train_dpo.py, ref_model]
  if (of_openrlhf && find_setting(run, "reference_model") != nullptr &&
      find_setting(run, "lora_rank") != nullptr)
    run.remarks.push_back(
        {LaunchRemarkKind::unmodelled,
         "the reference is a frozen copy beside adapters too: its 2 bytes a weight are not counted",
         file_place(script, program.at), ""});
  if (program.name == "megatron" && (preferences.pairs || preferences.reference))
    run.remarks.push_back({LaunchRemarkKind::unmodelled,
                           "pairs and a reference model: one model on single sequences is read",
                           file_place(script, program.at), ""});
  if (!job.so_far().system.empty()) run.system = job.so_far().system;
  if (job.so_far().nodes && !run.devices) run.nodes = job.so_far().nodes;
  add_remarks(job, run);
  return run;
}

// Throws InputError if the configuration that states most settings is missing. The program's defaults would
// otherwise be taken for the run's settings.
void refuse_without_configuration(const Followed& script, const StartedRun& one) {
  const bool reads_all = one.program.name == "trl" || are_factory_words(one.program.name, one.written);
  if (one.absent.empty() || one.reader != ScriptReader::trainer || !reads_all) return;
  throw InputError(text_of(file_place(script, one.program.at)),
                   fmt::format("{} reads {}, which is not beside the script: put it there",
                               printable(one.program.name), printable(one.absent)));
}

// `litgpt finetune_lora FOLDER --config FILE --train.micro_batch_size 4`, once `litgpt finetune lora`
// [litgpt/__main__.py].
LaunchedRun read_litgpt_command(const Followed& script, const Program& program, std::vector<Written> flags,
                                const std::string& file, const LaunchOptions& options) {
  const FilePlace at = file_place(script, program.at);
  std::vector<std::string> names;  // the command, and its folder or model
  for (const shell::Value& word : program.arguments) {
    if (word.text().starts_with('-')) break;
    names.push_back(word.text());
  }
  constexpr std::array<std::string_view, 5> ways{"full", "lora", "qlora", "adapter", "adapter_v2"};
  if (names.size() > 1 && names[0] == "finetune" && contains(ways, std::string_view(names[1]))) {
    names[0] += "_" + names[1];
    names.erase(names.begin() + 1);
  }
  const std::string command = names.empty() ? "" : names[0];
  if (command.starts_with("finetune_adapter"))
    throw InputError(text_of(at),
                     fmt::format("{} is not modelled: finetune_lora and finetune_full are", command));
  std::vector<Written> written;
  const auto state = [&](const std::string& name, const std::string& value) {
    written.push_back({name, {value}, fmt::format("litgpt {}", command), at, ""});
  };
  if (command == "finetune_qlora") {  // [litgpt/__main__.py: root_parser.set_defaults]
    state("quantize", "bnb.nf4-dq");
    state("precision", "bf16-true");
  }
  if (const Written* const config = flag_of(flags, "config")) {
    const std::string name = text_of_values(*config);
    const std::optional<std::string> place = place_in_script(name, file);
    if (!place)
      throw InputError(
          text_of(config->at),
          fmt::format("litgpt reads {}, which is not beside the script: put it there", printable(name)));
    for (Written& setting : flattened(parse_tree(read_file(*place), *place), *place))
      written.push_back(std::move(setting));
    std::erase_if(flags, [](const Written& setting) { return setting.name == "config"; });
  }
  const bool pretrains = command == "pretrain";
  if (names.size() > 1) {
    state(pretrains ? "model_name" : "checkpoint_dir", shown(script, names[1]));
    written.back().unknown = needs(script, names[1]);
  }
  for (Written& setting : flags) written.push_back(std::move(setting));
  return read_litgpt_words(std::move(written),
                           pretrains                    ? LitgptCommand::pretrain
                           : command == "finetune_full" ? LitgptCommand::full
                                                        : LitgptCommand::lora,
                           file, options);
}

LaunchedRun read_found(const Followed& script, StartedRun one, const std::string& file,
                       const LaunchOptions& options) {
  refuse_without_configuration(script, one);
  MegatronArguments arguments;
  arguments.devices = one.devices;
  arguments.model = one.model;
  arguments.allocator = one.allocator;
  arguments.environment = std::move(one.environment);
  LaunchedRun run;
  switch (one.reader) {
    case ScriptReader::megatron:
      run = read_megatron(script, one.program, std::move(one.written), one.extra, std::move(arguments), file,
                          options);
      break;
    case ScriptReader::bridge: {
      RunBuilder job(file, "", "");
      std::optional<std::int64_t> devices;
      read_sizes(script, one.program, job, devices);
      run = read_bridge_words(std::move(one.written), devices, file, options);
      const bool of_nemo = one.program.name.find("megatron_gpt_") != std::string::npos ||
                           one.program.name.starts_with("train_gpt_");  // NeMo-Aligner's
      if (of_nemo) run.framework = "NeMo";
      add_remarks(job, run);
      break;
    }
    case ScriptReader::verl: {
      RunBuilder job(file, "", "");
      std::optional<std::int64_t> devices;
      read_sizes(script, one.program, job, devices);
      const std::string& name = one.program.name;
      const bool of_fsdp = name.ends_with(".fsdp_sft_trainer") || name == "fsdp_sft_trainer.py";
      const VerlTrainer trainer = of_fsdp                          ? VerlTrainer::fsdp_sft
                                  : name.ends_with(".sft_trainer") ? VerlTrainer::sft
                                                                   : VerlTrainer::actor;
      run = read_verl_words(std::move(one.written), file, options, devices, trainer);
      if (trainer != VerlTrainer::actor) add_remarks(job, run);  // the actor's GPUs are settings
      break;
    }
    case ScriptReader::configuration:
      run = read_configuration(script, one.program, std::move(one.written), one.config, file, options);
      break;
    case ScriptReader::python:
      if (one.program.launchers.empty())
        assume_one_process(*one.of_python, file_place(script, one.program.at));
      run = read_trainer(script, one.program, std::move(*one.of_python), file, options);
      break;
    case ScriptReader::recipe: {
      RunBuilder job(file, "", "");
      std::optional<std::int64_t> devices;
      read_sizes(script, one.program, job, devices);
      run = read_recipe(std::move(*one.recipe), "", one.config, options);
      take_job(job.so_far(), run);
      add_remarks(job, run);
      break;
    }
    case ScriptReader::trainer:
      run = read_trainer(script, one.program, {.written = std::move(one.written)}, file, options);
      break;
    case ScriptReader::litgpt:
      run = read_litgpt_command(script, one.program, std::move(one.written), file, options);
      break;
    case ScriptReader::engine: {
      const bool has_file = has_flag(one.written, "deepspeed_config");
      rename_for_trainer(one.written);
      run = read_trainer(script, one.program, {.written = std::move(one.written)}, file, options);
      if (has_file) run.framework = "DeepSpeed";
      break;
    }
  }
  RunBuilder around(file, "", "");
  if (one.allocator && one.reader != ScriptReader::megatron) take_allocator(*one.allocator, around);
  tell_conditions(script, around);
  for (const LaunchSetting& setting : around.so_far().stack) {
    const bool is_set = std::any_of(run.stack.begin(), run.stack.end(),
                                    [&](const LaunchSetting& it) { return it.field == setting.field; });
    if (!is_set) run.stack.push_back(setting);
  }
  for (const LaunchRemark& remark : around.so_far().remarks) run.remarks.push_back(remark);
  if (!one.of_defaults.empty())
    run.remarks.push_back(
        {LaunchRemarkKind::implied,
         fmt::format("{} by runtime_configs/benchmarking/runtime.conf: the script does not say them",
                     one.of_defaults),
         file_place(script, one.program.at), ""});
  return run;
}

}  // namespace

LaunchedRun read_launch_script(std::string_view text, const std::string& file, const LaunchOptions& options) {
  const Followed script = shell::follow(text, file, {options.arguments, options.environment});
  // Readers find what the script writes where they would find it on the disk.
  CommandFiles files(command_files(), files_written_by(script, file));
  const Current<CommandFiles> while_reading(files);
  ScriptStarts starts = starts_of(script, file);
  std::vector<StartedRun>& found = starts.runs;
  if (found.empty()) refuse_without_run(script, std::move(starts), file);
  if (options.run < 1 || options.run > found.size())
    throw InputError(file,
                     fmt::format("starts {} runs: --run must be from 1 to {}", found.size(), found.size()));
  LaunchedRun run = read_found(script, std::move(found[options.run - 1]), file, options);
  run.runs = found.size();
  for (std::size_t i = 0; i < found.size() && found.size() > 1; ++i) {
    if (i + 1 == options.run || i > 20) continue;
    run.remarks.push_back({LaunchRemarkKind::assumed,
                           fmt::format("run {} of the script is not read (--run {})", i + 1, i + 1),
                           file_place(script, found[i].program.at), ""});
  }
  return run;
}

}  // namespace headroom
