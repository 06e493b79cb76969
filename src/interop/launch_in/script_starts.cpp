#include "interop/launch_in/script_starts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "interop/launch_in/bridge_recipe.hpp"
#include "interop/launch_in/flags.hpp"
#include "interop/launch_in/megatron_in.hpp"
#include "interop/launch_in/model_zoo.hpp"
#include "interop/launch_in/python_config.hpp"
#include "interop/launch_in/script_files.hpp"
#include "interop/launch_in/script_job.hpp"
#include "interop/launch_in/script_words.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "interop/launch_in/trainer_flags.hpp"
#include "interop/launch_in/trainer_script.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

using shell::Followed;
using shell::Value;

// Returns the last part of an override's name: "num_layers" of "model.num_layers=32".
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

// verl's own programs, and others with the settings of its trainers [recipe.dapo.main_dapo].
bool is_verl(std::string_view name, const std::vector<Written>& written) {
  if (name.starts_with("verl.trainer.") || name == "fsdp_sft_trainer.py") return true;
  return std::any_of(written.begin(), written.end(), [](const Written& setting) {
    return setting.name.starts_with("actor_rollout_ref.actor.");
  });
}

// Returns the long name of a program's short flag, and other words as they are.
std::string full_flag(std::string_view program, const std::string& word) {
  if (runs_bridge_recipe(program)) return full_bridge_flag(word);
  return program == "litgpt" && word == "-c" ? "--config" : word;  // [litgpt/__main__.py]
}

std::optional<ScriptReader> reader_of(const Program& program, const std::vector<Written>& written,
                                      const std::string& config) {
  if (program.name == "litgpt") return ScriptReader::litgpt;
  if (is_verl(program.name, written)) return ScriptReader::verl;
  if (runs_bridge_recipe(program.name)) return ScriptReader::bridge;
  if (program.name == "swift" || program.name == "megatron" || are_openrlhf_words(written))
    return ScriptReader::trainer;
  // Overrides that state a whole model, without a recipe in front.
  if (are_bridge_words(written) && is_megatron(program, written)) return ScriptReader::bridge;
  const bool of_factory = are_factory_words(program.name, written);  // on Megatron-Core too, by its flags
  if (!of_factory && is_megatron(program, written)) return ScriptReader::megatron;
  const bool states_batch = std::any_of(written.begin(), written.end(), [](const Written& setting) {
    return setting.name == "per_device_train_batch_size";
  });
  const bool trains = states_batch || are_deepspeed_chat_words(written) || of_factory;
  if (trains && !holds_trainer_arguments(config)) return ScriptReader::trainer;
  if (!config.empty()) return ScriptReader::configuration;
  const auto has = [&](std::string_view name) {
    return std::any_of(written.begin(), written.end(), [&](const Written& it) { return it.name == name; });
  };
  if (has("deepspeed_config") && (has("model") || has("model_name_or_path"))) return ScriptReader::engine;
  // A Trainer whose batch sizes are in DeepSpeed's configuration.
  if (has("deepspeed") && has("model_name_or_path")) return ScriptReader::trainer;
  // A program of one's own under accelerate, which says how it shards.
  const bool of_accelerate = !program.launchers.empty() && program.launchers.back().starts_with("accelerate");
  const bool has_model = has("model") || has("model_name") || has("model_path");
  const bool of_training = has("learning_rate") || has("lr") || has("gradient_accumulate_every") ||
                           has("gradient_accumulation_steps") || has("max_train_steps") || has("num_epochs");
  if (of_accelerate && of_training && has("batch_size") && has_model) return ScriptReader::engine;
  return std::nullopt;
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

// A Python program that a script starts and that lies beside it: its file, flags and environment.
struct PythonProgram {
  std::string file;
  PythonStart start;
};
std::optional<PythonProgram> python_program(const Program& program, const std::string& file) {
  if (!program.name.ends_with(".py")) return std::nullopt;
  std::optional<std::string> place = place_in_script(program.path, file);
  if (!place) return std::nullopt;
  std::vector<std::string> words;
  for (const Value& word : program.arguments)
    words.push_back(shell::is_known(word.text()) ? word.text() : "${}");
  PythonEnvironment environment;
  for (const auto& [name, value] : program.environment)  // those of the command itself come first
    environment.emplace(name, shell::is_known(value) ? value : "${}");
  return PythonProgram{std::move(*place),
                       {.flags = python_flags(words), .function = {}, .environment = std::move(environment)}};
}

// Returns the Trainer's settings that the started Python script writes out.
std::optional<TrainerLaunch> launch_of_python(const Program& program, const std::string& file) {
  const std::optional<PythonProgram> python = python_program(program, file);
  if (!python) return std::nullopt;
  return trainer_script(read_file(python->file), python->file, python->start.flags,
                        python->start.environment);
}

// Returns the overrides among a program's words ("model.num_layers=8"), also where one stands behind a switch and was
// read as its value.
std::vector<Written> overrides_in(const std::vector<Written>& written) {
  std::vector<Written> overrides;
  for (const Written& setting : written) {
    if (!setting.as_written.starts_with('-')) {
      if (setting.name.find('.') != std::string::npos) overrides.push_back(setting);
      continue;
    }
    for (const std::string& value : setting.values) {
      const std::size_t equals = std::min(value.find('='), value.size());
      const std::string name = value.substr(0, equals);
      if (equals == value.size() || name.find('.') == std::string::npos ||
          name.find('/') != std::string::npos)
        continue;
      overrides.push_back({name, {value.substr(equals + 1)}, value, setting.at, setting.unknown});
    }
  }
  return overrides;
}

// Takes the configuration that the started Python program hands to NeMo or Megatron-Bridge, with the command's
// overrides. Returns whether there is one.
bool take_recipe(StartedRun& one, const std::string& file) {
  const std::optional<PythonProgram> python = python_program(one.program, file);
  if (!python) return false;
  one.recipe = recipe_that_runs(read_file(python->file), python->file, python->start);
  if (!one.recipe) return false;
  for (const Written& setting : overrides_in(one.written)) {
    if (setting.values.empty() || setting.values.front().empty())
      throw InputError(text_of(setting.at), fmt::format("{} needs a value", printable(setting.as_written)));
    override_in(one.recipe->root, setting);
  }
  one.config = python->file;
  return true;
}

// Returns the reader of a program. A program with its own recipe may look like Megatron-LM ("pretrain.py" with
// few words), so its Python is tried first. If that cannot be read, the words decide.
std::optional<ScriptReader> take_reader(StartedRun& one, const std::string& file) {
  const std::optional<ScriptReader> reader = reader_of(one.program, one.written, one.config);
  const bool has_recipe_elsewhere = runs_bridge_recipe(one.program.name);
  const bool by_words = reader == ScriptReader::bridge || reader == ScriptReader::megatron;
  if (has_recipe_elsewhere || (reader && !by_words)) return reader;
  try {
    if (take_recipe(one, file)) return ScriptReader::recipe;
  } catch (const InputError&) {
    if (!reader) throw;
  }
  return reader;
}

}  // namespace

ScriptStarts starts_of(const Followed& script, const std::string& file) {
  ScriptStarts starts;
  for (const shell::Started& started : script.started) {
    if (std::optional<ModelZooRun> zoo = model_zoo_run(started, file_place(script, started.at))) {
      StartedRun one;
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
    StartedRun one;
    one.program = std::move(*program);
    for (shell::Value& word : one.program.arguments)
      word = shell::Value(full_flag(one.program.name, word.text()), word.place());
    one.written = written_in(script, one.program.arguments, one.extra);
    one.config = configuration_of(one.program, file);
    if (one.config.empty()) one.absent = shown(script, missing_configuration(one.program, file));
    one.allocator = allocator_of(script, started);
    one.environment = checked_environment(script, started);
    if (const std::optional<ScriptReader> reader = take_reader(one, file)) {
      one.reader = *reader;
      starts.runs.push_back(std::move(one));
    } else if (one.of_python = launch_of_python(one.program, file); one.of_python) {
      one.reader = ScriptReader::python;
      starts.runs.push_back(std::move(one));
    } else {
      const std::string absent =
          one.absent.empty() ? "" : fmt::format("; {} is not beside the script", printable(one.absent));
      starts.others.push_back(fmt::format("{} (line {}{})", printable(shown(script, one.program.name)),
                                          one.program.at.line, absent));
    }
  }
  return starts;
}

[[noreturn]] void refuse_without_run(const Followed& script, ScriptStarts starts, const std::string& file) {
  std::string rule =
      "starts no training run that is known: a program of Megatron-LM, Megatron-DeepSpeed, Megatron-Bridge, "
      "NeMo, verl or litgpt, a Trainer by its arguments, or a framework with a configuration beside the "
      "script";
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

}  // namespace headroom
