#include "interop/launch_in/script_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "interop/launch_in/readers.hpp"
#include "interop/launch_in/script_words.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "interop/launch_in/tree.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// The part of a name behind what only a run knows: "configs/a.yaml" of "$HOME/configs/a.yaml".
std::string known_part(const std::string& name) {
  const std::size_t mark = name.rfind(shell::mark_end);
  std::string known = mark == std::string::npos ? name : name.substr(mark + 1);
  while (mark != std::string::npos && known.starts_with('/')) known.erase(0, 1);
  return known;
}

bool is_named_as_tree(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".toml");
}

// "deepspeed_config.zero_stage" of --zero_stage, as accelerate's file has it.
std::string name_in_file(const std::string& option) {
  constexpr std::array<std::string_view, 12> of_deepspeed{"zero_stage",
                                                          "deepspeed_config_file",
                                                          "offload_optimizer_device",
                                                          "offload_param_device",
                                                          "offload_optimizer_nvme_path",
                                                          "offload_param_nvme_path",
                                                          "gradient_accumulation_steps",
                                                          "gradient_clipping",
                                                          "zero3_init_flag",
                                                          "zero3_save_16bit_model",
                                                          "deepspeed_hostfile",
                                                          "deepspeed_multinode_launcher"};
  if (contains(of_deepspeed, std::string_view(option))) return "deepspeed_config." + option;
  if (option.starts_with("fsdp_")) return "fsdp_config." + option;
  if (option.starts_with("megatron_lm_")) return "megatron_lm_config." + option;
  if (option == "gpu_ids" || option == "main_process_port" || option == "main_process_ip" ||
      option == "machine_rank" || option == "num_cpu_threads_per_process" || option == "mixed_precision" ||
      option == "num_processes" || option == "num_machines" || option.starts_with("dynamo_") ||
      option.starts_with("rdzv_"))
    return option;
  return "";
}

// What the configurations say that trl ships by name [huggingface/trl, trl/accelerate_configs].
std::vector<std::pair<std::string, std::string>> shipped_with_trl(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> settings{{"mixed_precision", "bf16"},
                                                            {"num_processes", "8"}};
  if (name == "zero1" || name == "zero2" || name == "zero3") {
    settings.emplace_back("deepspeed_config.zero_stage", name.substr(4));
  } else if (name == "fsdp1" || name == "fsdp2") {
    settings.emplace_back("distributed_type", "FSDP");
    settings.emplace_back("fsdp_config.fsdp_version", name.substr(4));
    settings.emplace_back("fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
  } else if (name == "single_gpu") {
    settings.back().second = "1";
  } else if (name != "multi_gpu") {
    settings.clear();
  }
  return settings;
}

}  // namespace

std::optional<std::string> place_in_script(const std::string& name, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  const std::string known = known_part(name);
  if (known.empty()) return std::nullopt;
  const bool absolute = known.starts_with('/');
  std::vector<fs::path> places;
  if (!absolute) places = {folder / known, folder / ".." / known, folder / ".." / ".." / known};
  if (absolute) places = {fs::path(known)};
  places.push_back(folder / fs::path(known).filename());
  for (const fs::path& place : places) {
    if (is_regular_file(place.string())) return place.lexically_normal().string();
  }
  return std::nullopt;
}

namespace {

// Returns the text with each value that only a run knows as ${NAME}, in quotes in JSON.
std::string with_references(const shell::Followed& script, std::string_view text, bool json) {
  return shown(script, text, [&](std::string_view name, std::string_view before) {
    std::string plain;
    std::copy_if(name.begin(), name.end(), std::back_inserter(plain), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == ' ';
    });
    const std::size_t last = before.find_last_not_of(' ');
    const bool bare =
        json && last != std::string_view::npos && std::string_view(":,[").find(before[last]) < 3;
    return fmt::format("{0}${{{1}}}{0}", bare ? "\"" : "", plain);
  });
}

}  // namespace

std::map<std::string, std::string> files_written_by(const shell::Followed& script, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : script.written_files) {
    const std::string known = known_part(name);
    if (known.empty() || known.ends_with('/')) continue;
    texts[(folder / known).lexically_normal().string()] =
        with_references(script, text.text(), known.ends_with(".json"));
  }
  return texts;
}

namespace {

struct NamedConfiguration {
  std::string name;
  bool of_run;  // stands alone, or behind a flag for configurations
};

// Returns the files among a program's words that are named as configurations.
std::vector<NamedConfiguration> named_configurations(const Program& program) {
  bool hydra = false;  // the word is the name of a file without its extension
  std::string flag;    // that the word stands behind
  std::vector<NamedConfiguration> names;
  const auto add = [&](std::string name, bool of_run) {
    if (is_named_as_tree(name)) names.push_back({std::move(name), of_run});
  };
  for (const shell::Value& word : program.arguments) {
    const std::string_view text = word.text();
    const bool is_flag = text.starts_with("--");
    const std::size_t equals = text.find('=');
    const bool assigns = equals != std::string_view::npos && (is_flag || text.find('/') > equals);
    std::string name(text.substr(assigns ? equals + 1 : 0));
    if (hydra) name += ".yaml";
    hydra = text == "--config-name";
    const std::string_view setting = assigns ? text.substr(0, equals) : std::string_view(flag);
    add(std::move(name), setting.empty() || setting.find("config") != std::string_view::npos);
    flag = is_flag && !assigns ? text : "";
  }
  for (const auto& [variable, value] : program.environment) {  // torchtitan's run_train.sh
    if (variable == "CONFIG_FILE" && program.name.ends_with(".sh")) add(value, true);
  }
  return names;
}

}  // namespace

std::string configuration_of(const Program& program, const std::string& file) {
  for (const NamedConfiguration& one : named_configurations(program)) {
    const std::optional<std::string> place = place_in_script(one.name, file);
    if (place && is_tree_launch(*place)) return *place;
  }
  return "";
}

std::string missing_configuration(const Program& program, const std::string& file) {
  for (const NamedConfiguration& one : named_configurations(program)) {
    if (one.of_run && !place_in_script(one.name, file)) return one.name;
  }
  return "";
}

bool holds_trainer_arguments(const std::string& config) {
  if (config.empty()) return false;
  try {
    const TreeNode root = parse_tree(read_file(config), config);
    return member_of(root, "model_name_or_path") != nullptr ||
           member_of(root, "per_device_train_batch_size") != nullptr;
  } catch (const InputError&) {
    return false;
  }
}

std::vector<Written> accelerate_settings(const shell::Followed& script, const Program& program,
                                         const std::string& file) {
  std::vector<Written> all;
  const auto add_as = [&](const std::string& name, const std::string& value, std::string as_written) {
    std::erase_if(all, [&](const Written& it) { return it.name == name; });
    all.push_back({name,
                   {shown(script, value)},
                   std::move(as_written),
                   file_place(script, program.at),
                   shell::is_known(value) ? "" : needs(script, value)});
  };
  const auto add = [&](const std::string& name, const std::string& value, const std::string& option) {
    add_as(name, value, "--" + option + (value.empty() ? "" : " " + shown(script, value)));
  };
  for (const auto& [option, value] : program.options) {
    const bool of_trl = option == "accelerate_config";
    const auto place = of_trl || option == "config_file" ? place_in_script(value, file) : std::nullopt;
    if (place) {
      all = flattened(parse_tree(read_file(*place), *place), *place);
    } else if (of_trl) {
      const auto shipped = shipped_with_trl(value);
      for (const auto& [name, setting] : shipped) add_as(name, setting, "--" + option + " " + value);
      if (shipped.empty()) add(absent_configuration, value, option);
    } else if (option == "config_file") {
      add(absent_configuration, value, option);
    }
  }
  // accelerate reads options of DeepSpeed where DeepSpeed is chosen [accelerate, commands/launch.py, launch_command].
  const auto is_deepspeed = [](const Written& it) { return it.name.starts_with("deepspeed_config."); };
  const bool starts_deepspeed =
      std::any_of(all.begin(), all.end(), is_deepspeed) ||
      std::any_of(program.options.begin(), program.options.end(),
                  [](const auto& option) { return option.first == "use_deepspeed"; }) ||
      std::any_of(all.begin(), all.end(), [](const Written& it) {
        return it.name == "distributed_type" && lower_case(text_of_values(it)) == "deepspeed";
      });
  for (const auto& [option, value] : program.options) {
    const bool has_stage = std::any_of(all.begin(), all.end(), is_deepspeed);
    if (option == "use_deepspeed" && !has_stage) add("deepspeed_config.zero_stage", "2", option);
    if (option == "use_fsdp") add("distributed_type", "FSDP", option);
    if (const std::string name = name_in_file(option); !name.empty()) {
      if (name.starts_with("deepspeed_config.") && !starts_deepspeed) {
        add("unread." + option, value, option);
        continue;
      }
      if (name == "deepspeed_config.deepspeed_config_file")
        std::erase_if(all, [](const Written& it) { return it.name == "deepspeed_config.zero_stage"; });
      add(name, value, option);
    }
  }
  return all;
}

std::vector<Written> overrides_of(std::vector<Written> written, const std::string& config) {
  const std::string name = fs::path(config).filename().string();
  std::erase_if(written, [&](const Written& it) {
    const bool names = std::any_of(it.values.begin(), it.values.end(), [&](const std::string& value) {
      return value == name || value.ends_with("/" + name);
    });
    return names || it.name.starts_with("config") || it.name == "job.config_file" || it.values.size() > 1 ||
           it.name.find_first_of("${}") != std::string::npos || !it.unknown.empty();
  });
  return written;
}

}  // namespace headroom
