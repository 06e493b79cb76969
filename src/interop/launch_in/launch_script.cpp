#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/current.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/count_text.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "interop/launch_in/bridge_recipe.hpp"
#include "interop/launch_in/flags.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/megatron_forks.hpp"
#include "interop/launch_in/megatron_in.hpp"
#include "interop/launch_in/megatron_keys.hpp"
#include "interop/launch_in/model_zoo.hpp"
#include "interop/launch_in/program.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launch_in/script_files.hpp"
#include "interop/launch_in/script_job.hpp"
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

// Of an override its last name: "num_layers" of "model.num_layers=32".
std::string_view last_name(const Written& setting) {
  return std::string_view(setting.name).substr(setting.name.rfind('.') + 1);
}

bool is_megatron(const Program& program, const std::vector<Written>& written) {
  constexpr std::array<std::string_view, 7> names{"tensor_model_parallel_size",
                                                  "pipeline_model_parallel_size",
                                                  "num_layers",
                                                  "hidden_size",
                                                  "num_attention_heads",
                                                  "micro_batch_size",
                                                  "model_parallel_size"};
  const auto count = std::count_if(written.begin(), written.end(), [&](const Written& setting) {
    return contains(names, last_name(setting));
  });
  return count >= 2 || (count >= 1 && program.name.starts_with("pretrain"));
}

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

// What reads the run that a program starts.
enum class Reader : std::uint8_t { megatron, bridge, verl, configuration, trainer, engine, python };

// verl's own programs, and others with the settings of its trainers [recipe.dapo.main_dapo].
bool is_verl(std::string_view name, const std::vector<Written>& written) {
  if (name.starts_with("verl.trainer.") || name == "fsdp_sft_trainer.py") return true;
  return std::any_of(written.begin(), written.end(), [](const Written& setting) {
    return setting.name.starts_with("actor_rollout_ref.actor.");
  });
}

std::optional<Reader> reader_of(const Program& program, const std::vector<Written>& written,
                                const std::string& config) {
  if (is_verl(program.name, written)) return Reader::verl;
  if (runs_bridge_recipe(program.name)) return Reader::bridge;
  if (program.name == "swift" || program.name == "megatron" || are_openrlhf_words(written))
    return Reader::trainer;
  // Overrides that state a whole model, without a recipe in front.
  if (are_bridge_words(written) && is_megatron(program, written)) return Reader::bridge;
  const bool of_factory = are_factory_words(program.name, written);  // on Megatron-Core too, by its flags
  if (!of_factory && is_megatron(program, written)) return Reader::megatron;
  const bool states_batch = std::any_of(written.begin(), written.end(), [](const Written& setting) {
    return setting.name == "per_device_train_batch_size";
  });
  const bool trains = states_batch || are_deepspeed_chat_words(written) || of_factory;
  if (trains && !holds_trainer_arguments(config)) return Reader::trainer;
  if (!config.empty()) return Reader::configuration;
  const auto has = [&](std::string_view name) {
    return std::any_of(written.begin(), written.end(), [&](const Written& it) { return it.name == name; });
  };
  if (has("deepspeed_config") && (has("model") || has("model_name_or_path"))) return Reader::engine;
  // A Trainer whose batch sizes are in DeepSpeed's configuration.
  if (has("deepspeed") && has("model_name_or_path")) return Reader::trainer;
  // A program of one's own under accelerate, which says how it shards.
  const bool of_accelerate = !program.launchers.empty() && program.launchers.back().starts_with("accelerate");
  const bool has_model = has("model") || has("model_name") || has("model_path");
  const bool of_training = has("learning_rate") || has("lr") || has("gradient_accumulate_every") ||
                           has("gradient_accumulation_steps") || has("max_train_steps") || has("num_epochs");
  if (of_accelerate && of_training && has("batch_size") && has_model) return Reader::engine;
  return std::nullopt;
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
  if (are_trl_words(program.name, launch.written)) defaults_of_trl(launch, file_place(script, program.at));
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

// How PyTorch's allocator is set for a program.
std::optional<Written> allocator_of(const Followed& script, const shell::Started& started) {
  for (const auto& [name, value] : started.environment) {
    if (is_allocator_variable(name) && shell::is_known(value))
      return Written{name, {value}, name + "=" + value, file_place(script, started.at), ""};
  }
  return std::nullopt;
}

// The variables that Megatron-LM's checks look at: exported, in front of the program, or among the words of `env`,
// `docker run -e` and `srun --export`.
std::vector<Written> checked_environment(const Followed& script, const shell::Started& started) {
  std::vector<Written> all;
  for (const std::string_view variable : checked_variables) {
    std::optional<std::string> text;
    for (const auto& [name, value] : started.environment) {
      if (!text && name == variable) text = value;
    }
    const std::string start = fmt::format("{}=", variable);
    for (const Value& word : started.words) {
      const std::size_t at = word.text().find(start);
      if (text || at == std::string::npos) continue;
      text = word.text().substr(at + start.size());
      text->resize(std::min(text->size(), text->find_first_of(" ,;\"'")));
    }
    if (!text) continue;
    all.push_back({std::string(variable),
                   {shown(script, *text)},
                   start + shown(script, *text),
                   file_place(script, started.at),
                   shell::is_known(*text) ? "" : needs(script, *text)});
  }
  return all;
}

// A training run that a script starts.
struct Found {
  Program program;
  std::vector<Written> written;
  std::vector<shell::Value> extra;
  std::string model;  // of Megatron-MoE-ModelZoo
  std::optional<std::int64_t> devices;
  Reader reader = Reader::megatron;
  std::string config;                      // of Reader::configuration
  std::optional<TrainerLaunch> of_python;  // of Reader::python
  std::optional<Written> allocator;        // PYTORCH_CUDA_ALLOC_CONF
  std::vector<Written> environment;        // of checked_variables
  std::string of_defaults;                 // of Megatron-MoE-ModelZoo
};

struct Starts {
  std::vector<Found> runs;
  std::vector<std::string> others;  // programs that are no training runs
  std::vector<std::string> alone;   // launchers without a program
};

// Returns the Trainer's settings that the started Python script writes out.
std::optional<TrainerLaunch> launch_of_python(const Program& program, const std::string& file) {
  if (!program.name.ends_with(".py")) return std::nullopt;
  const std::optional<std::string> place = place_in_script(program.path, file);
  if (!place) return std::nullopt;
  std::vector<std::string> words;
  for (const Value& word : program.arguments)
    words.push_back(shell::is_known(word.text()) ? word.text() : "${}");
  PythonEnvironment environment;
  for (const auto& [name, value] : program.environment)  // those of the command itself come first
    environment.emplace(name, shell::is_known(value) ? value : "${}");
  return trainer_script(read_file(*place), *place, python_flags(words), environment);
}

Starts starts_of(const Followed& script, const std::string& file) {
  Starts starts;
  for (const shell::Started& started : script.started) {
    if (std::optional<ModelZooRun> zoo = model_zoo_run(started, file_place(script, started.at))) {
      Found one;
      one.program.at = started.at;
      one.written = std::move(zoo->variables);
      for (Written& flag : written_in(script, zoo->flags, one.extra)) one.written.push_back(std::move(flag));
      one.model = zoo->model;
      one.devices = zoo->devices;
      one.allocator = allocator_of(script, started);
      one.of_defaults = zoo->of_defaults;
      starts.runs.push_back(std::move(one));
      continue;
    }
    std::optional<Program> program = program_of(started);
    if (!program) {
      if (const std::string launcher = launcher_alone(started); !launcher.empty())
        starts.alone.push_back(
            fmt::format("{} in line {} starts no program that is named", launcher, started.at.line));
      continue;
    }
    Found one;
    one.program = std::move(*program);
    if (runs_bridge_recipe(one.program.name)) {
      for (Value& word : one.program.arguments) word = Value(full_bridge_flag(word.text()), word.place());
    }
    one.written = written_in(script, one.program.arguments, one.extra);
    one.config = configuration_of(one.program, file);
    one.allocator = allocator_of(script, started);
    one.environment = checked_environment(script, started);
    if (const auto reader = reader_of(one.program, one.written, one.config)) {
      one.reader = *reader;
      starts.runs.push_back(std::move(one));
    } else if (one.of_python = launch_of_python(one.program, file); one.of_python) {
      one.reader = Reader::python;
      starts.runs.push_back(std::move(one));
    } else {
      starts.others.push_back(
          fmt::format("{} (line {})", printable(shown(script, one.program.name)), one.program.at.line));
    }
  }
  return starts;
}

[[noreturn]] void refuse_without_run(const Followed& script, Starts starts, const std::string& file) {
  std::string rule =
      "starts no training run that is known: a program of Megatron-LM, Megatron-DeepSpeed, Megatron-Bridge, "
      "NeMo or verl, a Trainer by its arguments, or a framework with a configuration beside the script";
  constexpr std::size_t most = 5;
  if (starts.others.size() > most) starts.others.resize(most);
  if (!starts.others.empty()) rule += "; it starts " + joined(starts.others, ", ");
  if (!starts.alone.empty()) rule += "; " + starts.alone.front();
  if (script.exit && starts.others.empty())
    rule +=
        fmt::format("; it exits in line {}: if a variable is missing there, give it with --env NAME=VALUE",
                    script.exit->line);
  for (const auto& [name, at] : script.missing_files)
    rule += fmt::format("; {} is not beside it", printable(name));
  if (const std::string need = need_of_conditions(script); !need.empty()) rule += "; a condition " + need;
  throw InputError(file, rule);
}

LaunchedRun read_found(const Followed& script, Found one, const std::string& file,
                       const LaunchOptions& options) {
  MegatronArguments arguments;
  arguments.devices = one.devices;
  arguments.model = one.model;
  arguments.allocator = one.allocator;
  arguments.environment = std::move(one.environment);
  LaunchedRun run;
  switch (one.reader) {
    case Reader::megatron:
      run = read_megatron(script, one.program, std::move(one.written), one.extra, std::move(arguments), file,
                          options);
      break;
    case Reader::bridge: {
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
    case Reader::verl: {
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
    case Reader::configuration:
      run = read_configuration(script, one.program, std::move(one.written), one.config, file, options);
      break;
    case Reader::python:
      if (one.program.launchers.empty())
        assume_one_process(*one.of_python, file_place(script, one.program.at));
      run = read_trainer(script, one.program, std::move(*one.of_python), file, options);
      break;
    case Reader::trainer:
      run = read_trainer(script, one.program, {.written = std::move(one.written)}, file, options);
      break;
    case Reader::engine: {
      const bool has_file = has_flag(one.written, "deepspeed_config");
      rename_for_trainer(one.written);
      run = read_trainer(script, one.program, {.written = std::move(one.written)}, file, options);
      if (has_file) run.framework = "DeepSpeed";
      break;
    }
  }
  RunBuilder around(file, "", "");
  if (one.allocator && one.reader != Reader::megatron) take_allocator(*one.allocator, around);
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
  Starts starts = starts_of(script, file);
  std::vector<Found>& found = starts.runs;
  if (found.empty()) refuse_without_run(script, std::move(starts), file);
  if (options.run < 1 || options.run > found.size())
    throw InputError(file,
                     fmt::format("starts {} runs: --run must be from 1 to {}", found.size(), found.size()));
  LaunchedRun run = read_found(script, std::move(found[options.run - 1]), file, options);
  for (std::size_t i = 0; i < found.size() && found.size() > 1; ++i) {
    if (i + 1 == options.run || i > 20) continue;
    run.remarks.push_back({LaunchRemarkKind::assumed,
                           fmt::format("run {} of the script is not read (--run {})", i + 1, i + 1),
                           file_place(script, found[i].program.at), ""});
  }
  return run;
}

}  // namespace headroom
