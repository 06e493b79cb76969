#include "interop/launch_in/program.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "headroom/core/contains.hpp"

namespace headroom {
namespace {

using shell::Value;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<std::int64_t> count_of(const std::string& text) {
  std::int64_t value = 0;
  const std::string digits = text.substr(0, text.find(':'));  // 4:8, from as few as
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  constexpr std::int64_t most = 1 << 24;
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1 || value > most)
    return std::nullopt;
  return value;
}

void miss(std::string& missing, const std::string& words) {
  missing += (missing.empty() ? "" : ", ") + words;
}

class Words {
 public:
  Words(const std::vector<Value>& words, Program& program) : words_(words), program_(program) {}

  bool run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_].text();
      const std::string_view name = base_name(word);
      if (name == "srun" || name == "sbatch" || name == "salloc") {
        program_.launchers.emplace_back(name);
        std::vector<std::string> rest;
        for (std::size_t i = at_ + 1; i < words_.size(); ++i) rest.push_back(words_[i].text());
        at_ += 1 + shell::read_job_options(rest, program_.sizes);
      } else if (name == "mpirun" || name == "mpiexec" || name == "orterun" || name == "horovodrun") {
        ++at_;
        program_.launchers.emplace_back(name);
        read_mpi();
      } else if (name == "torchrun" || name == "msrun" || name == "deepspeed" || name == "ds") {
        ++at_;
        program_.launchers.emplace_back(name);
        return read_launcher();
      } else if (name == "accelerate" && at_ + 1 < words_.size() && words_[at_ + 1].text() == "launch") {
        at_ += 2;
        program_.launchers.emplace_back(name);
        return read_launcher();
      } else if (is_python(name)) {
        ++at_;
        if (const std::optional<bool> found = read_python()) return *found;
      } else if ((is_own_launcher(name) && !serves(name)) || trains_as_swift(name) ||
                 (name.ends_with(".py") && word.find(' ') == std::string::npos)) {
        return take_program();
      } else {
        ++at_;
      }
    }
    return false;
  }

 private:
  static bool is_python(std::string_view name) {
    return name == "python" ||
           (name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string_view::npos);
  }

  // Programs of frameworks that start their own processes.
  static bool is_own_launcher(std::string_view name) {
    constexpr std::array<std::string_view, 7> names{
        "llamafactory-cli", "axolotl", "composer", "litgpt", "trl", "run_train.sh", "run_llama_train.sh"};
    return contains(names, name);
  }

  // Returns whether a command of LLaMA-Factory's or litgpt's program does not train.
  [[nodiscard]] bool serves(std::string_view name) const {
    constexpr std::array<std::string_view, 9> commands{"api",   "chat", "eval",    "export", "webchat",
                                                       "webui", "env",  "version", "help"};
    if (at_ + 1 >= words_.size()) return false;
    const std::string_view command = words_[at_ + 1].text();
    if (name == "litgpt") return command != "pretrain" && !command.starts_with("finetune");
    return name == "llamafactory-cli" && contains(commands, command);
  }

  // LLaMA-Factory's program as a module: llamafactory.cli.
  static bool is_factory_module(std::string_view name) {
    return name == "llamafactory.cli" || name == "llmtuner.cli" || name.ends_with("llamafactory/cli.py");
  }

  // ms-swift's programs, of whose other commands (infer, export) none trains.
  [[nodiscard]] bool trains_as_swift(std::string_view name) const {
    constexpr std::array<std::string_view, 3> commands{"sft", "pt", "rlhf"};
    return (name == "swift" || name == "megatron") && at_ + 1 < words_.size() &&
           contains(commands, std::string_view(words_[at_ + 1].text()));
  }

  // ms-swift's programs as modules or files: swift.cli.sft, swift/cli/sft.py, swift.cli._megatron.sft.
  static std::string swift_program(std::string name) {
    if (name.ends_with(".py")) name.resize(name.size() - 3);
    std::replace(name.begin(), name.end(), '/', '.');
    for (const std::string_view command : {"sft", "pt", "rlhf"}) {
      const auto is_of = [&](std::string_view module) {
        const std::string whole = std::string(module) + std::string(command);
        return name == whole || name.ends_with('.' + whole);
      };
      if (is_of("swift.cli._megatron.")) return "megatron";
      if (is_of("swift.cli.")) return "swift";
    }
    if (name == "llm_sft" || name.ends_with(".llm_sft")) return "swift";  // before ms-swift 3
    return "";
  }

  // "python mason.py --num_nodes 8 --gpus 8 -- accelerate launch train.py": what a launcher of one's own starts.
  std::optional<bool> read_wrapped() {
    constexpr std::array<std::string_view, 4> launchers{"accelerate", "torchrun", "deepspeed", "srun"};
    for (std::size_t i = at_ + 1; i + 1 < words_.size(); ++i) {
      const std::string_view next = base_name(words_[i + 1].text());
      if (words_[i].text() != "--" || !(is_python(next) || contains(launchers, next))) continue;
      const bool of_mason = base_name(words_[at_].text()) == "mason.py";
      std::optional<std::int64_t> nodes;
      for (std::size_t j = at_ + 1; j + 1 < i && of_mason; ++j) {
        if (words_[j].text() == "--num_nodes") nodes = count_of(words_[j + 1].text());
        if (words_[j].text() == "--gpus") program_.processes_per_node = count_of(words_[j + 1].text());
      }
      at_ = i + 1;
      const bool found = run();
      // It multiplies the processes by the nodes [allenai/open-instruct, mason.py, make_internal_command].
      if (nodes && program_.processes) *program_.processes *= *nodes;
      if (nodes) program_.sizes.nodes = nodes;
      return found;
    }
    return std::nullopt;
  }

  bool take_program() {
    if (const std::optional<bool> found = read_wrapped()) return *found;
    program_.path = words_[at_].text();
    const std::string of_swift = swift_program(program_.path);
    program_.name = !of_swift.empty()                       ? of_swift
                    : is_factory_module(words_[at_].text()) ? std::string("llamafactory-cli")
                                                            : std::string(base_name(words_[at_].text()));
    if (serves(program_.name)) return false;
    program_.arguments.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words_.end());
    if (program_.name == "trl") split_for_accelerate();
    return true;
  }

  // trl hands what its own parser does not know to `accelerate launch` [huggingface/trl, trl/cli/commands/training.py].
  void split_for_accelerate() {
    constexpr std::array<std::string_view, 8> of_accelerate{
        "--num_processes", "--num_machines",    "--machine_rank",      "--config_file",
        "--gpu_ids",       "--main_process_ip", "--main_process_port", "--accelerate_config"};
    program_.launchers.emplace_back("accelerate");
    std::vector<Value> own;
    for (std::size_t i = 0; i < program_.arguments.size(); ++i) {
      const std::string& word = program_.arguments[i].text();
      const std::size_t equals = std::min(word.find('='), word.size());
      std::string name = word.substr(0, equals);
      if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '-', '_');
      if (!contains(of_accelerate, std::string_view(name))) {
        own.push_back(program_.arguments[i]);
        continue;
      }
      const bool next = equals == word.size() && i + 1 < program_.arguments.size() &&
                        is_value(program_.arguments[i + 1].text());
      const std::string value = equals < word.size() ? word.substr(equals + 1)
                                : next               ? program_.arguments[++i].text()
                                                     : std::string();
      read_size("__" + name.substr(2), value);
    }
    program_.arguments = std::move(own);
  }

  std::optional<bool> read_python() {
    while (at_ < words_.size() && words_[at_].text().starts_with('-')) {
      const std::string& option = words_[at_++].text();
      if (option == "-c") return false;
      if (option == "-X" || option == "-W") ++at_;
      if (option != "-m" || at_ >= words_.size()) continue;
      const std::string& module = words_[at_].text();
      if (module == "torch.distributed.launch" || module == "torch.distributed.run" ||
          module == "torch.distributed.elastic" || module == "accelerate.commands.launch" ||
          module == "deepspeed.launcher.runner") {
        ++at_;
        program_.launchers.push_back(module);
        return read_launcher();
      }
      if (module == "accelerate" || module == "torchrun" || module == "axolotl") return std::nullopt;
      return take_program();
    }
    if (at_ < words_.size() && words_[at_].text().ends_with(".py")) return take_program();
    return std::nullopt;
  }

  void read_mpi() {
    while (at_ < words_.size() && words_[at_].text().starts_with('-')) {
      const std::string& option = words_[at_++].text();
      const auto next = [&] { return at_ < words_.size() ? words_[at_].text() : std::string(); };
      if (option == "-np" || option == "-n" || option == "--np") {
        program_.processes = count_of(next());
        if (!program_.processes) miss(program_.missing_size, next());
        ++at_;
      } else if (option == "-npernode" || option == "-N" || option == "--npernode" || option == "-ppn") {
        program_.processes_per_node = count_of(next());
        if (!program_.processes_per_node) miss(program_.missing_each, next());
        ++at_;
      } else if (option == "-x" || option == "-H" || option == "--hostfile" || option == "-hostfile" ||
                 option == "-host" || option == "--host" || option == "--bind-to" || option == "-bind-to" ||
                 option == "--map-by" || option == "-map-by" || option == "--rank-by" || option == "-wdir" ||
                 option == "--wdir") {
        ++at_;
      } else if (option == "-mca" || option == "--mca" || option == "-genv") {
        at_ += 2;
      }
    }
  }

  // A value that is not set leaves its option alone before the next one, or before the program.
  static bool is_value(const std::string& word) { return !word.starts_with('-') && !word.ends_with(".py"); }

  // Options of torchrun, deepspeed and accelerate, up to the program.
  bool read_launcher() {
    constexpr std::array<std::string_view, 17> alone{
        "--standalone",    "--no_python",     "--no-python",   "--use_env",          "--use-env",
        "--use_deepspeed", "--multi_gpu",     "--use_fsdp",    "--same_network",     "--use_megatron_lm",
        "--no_ssh",        "--no_local_rank", "--force_multi", "--elastic_training", "--bind_cores_to_rank",
        "--debug",         "--quiet"};
    while (at_ < words_.size()) {
      const std::string& word = words_[at_].text();
      if (!word.starts_with('-')) {
        if (shell::only_mark(word) && at_ + 1 < words_.size()) {
          ++at_;
          continue;
        }
        return take_program();
      }
      ++at_;
      if (word == "-m" || word == "--module") continue;  // the program is a module
      if (contains(alone, std::string_view(word))) {
        if (word == "--use_deepspeed" || word == "--use_fsdp")
          program_.options.emplace_back(word.substr(2), "");
        continue;
      }
      const std::size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      std::replace(name.begin(), name.end(), '-', '_');
      const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                                : at_ < words_.size() && is_value(words_[at_].text()) ? words_[at_++].text()
                                                                                      : std::string();
      read_size(name, value);
    }
    return false;
  }

  void read_size(const std::string& name, const std::string& value) {
    const bool nodes = name == "__nnodes" || name == "__num_nodes" || name == "__num_machines";
    const bool each = name == "__nproc_per_node" || name == "__num_gpus" || name == "__gpus_per_node" ||
                      name == "__local_worker_num";
    const bool all = name == "__num_processes" || name == "__worker_num";  // of MindSpore's msrun
    if (program_.launchers.back().starts_with("accelerate") && name.starts_with("__"))
      program_.options.emplace_back(name.substr(2), value);
    if (name == "__include" || name == "_i") {  // "localhost:0,1@worker-1:0,1"
      const std::string first = value.substr(0, value.find('@'));
      if (const std::size_t colon = first.find(':'); colon != std::string::npos && shell::is_known(value)) {
        program_.processes_per_node =
            1 + std::count(first.begin() + static_cast<std::ptrdiff_t>(colon), first.end(), ',');
        program_.sizes.nodes = 1 + std::count(value.begin(), value.end(), '@');
      }
    }
    if (!nodes && !each && !all) return;
    if (each && (value == "gpu" || value == "auto")) {
      program_.whole_nodes = true;
      return;
    }
    const auto count = count_of(value);
    if (!count) {
      miss(each ? program_.missing_each : program_.missing_size,
           value.empty() ? "--" + name.substr(2) : value);
      if (nodes) program_.sizes.nodes.reset();
      return;
    }
    if (nodes) program_.sizes.nodes = count;
    if (each) program_.processes_per_node = count;
    if (all) program_.processes = count;
  }

  const std::vector<Value>& words_;
  Program& program_;
  std::size_t at_ = 0;
};

// GPUs of a node and nodes, as a program's own launcher takes them from variables.
void take_counts(Program& program, const std::string& each, const std::string& nodes, bool of_titan) {
  constexpr std::int64_t of_run_train = 8;
  program.processes_per_node = count_of(each);
  program.sizes.nodes = of_titan ? 1 : count_of(nodes);
  if (!program.processes_per_node && of_titan) program.processes_per_node = of_run_train;
  const bool of_swift = program.name == "swift" || program.name == "megatron";
  if (!program.processes_per_node && of_swift) program.processes_per_node = 1;
  if (program.processes_per_node && !program.sizes.nodes) program.sizes.nodes = 1;
}

// GPUs that variables of a command state, and commands that take all of a node.
void take_environment(Program& program) {
  const auto value_of = [&](std::string_view name) -> std::string {
    for (const auto& [variable, value] : program.environment) {
      if (variable == name && shell::is_known(value)) return value;
    }
    return "";
  };
  const std::string_view starter =
      program.launchers.empty() ? std::string_view(program.name) : program.launchers.back();
  const bool of_swift = starter == "swift" || starter == "megatron";
  const bool of_titan = starter.ends_with(".sh");  // torchtitan's run_train.sh
  const bool is_told = of_swift || of_titan || starter == "llamafactory-cli";
  if (is_told) {
    const std::string_view each = of_titan ? "NGPU" : "NPROC_PER_NODE";
    for (const auto& [variable, value] : program.environment) {
      const bool empty = value.empty() && !of_titan;  // which run_train.sh takes for 8
      if (variable != each && variable != "NNODES") continue;
      if (!shell::is_known(value) || empty) miss(program.missing_size, empty ? variable : value);
    }
    if (program.missing_size.empty()) take_counts(program, value_of(each), value_of("NNODES"), of_titan);
  }
  // They take all GPUs of a node that are visible.
  constexpr std::array<std::string_view, 8> of_node{"deepspeed",
                                                    "ds",
                                                    "deepspeed.launcher.runner",
                                                    "accelerate",
                                                    "accelerate.commands.launch",
                                                    "llamafactory-cli",
                                                    "axolotl",
                                                    "composer"};
  program.whole_nodes = program.whole_nodes || contains(of_node, starter);
  const std::string visible = value_of("CUDA_VISIBLE_DEVICES");
  const bool lists = !visible.empty() && visible.find_first_not_of("0123456789,") == std::string::npos;
  if (program.whole_nodes && !program.processes_per_node && !program.processes && lists &&
      visible.back() != ',')
    program.processes_per_node = 1 + std::count(visible.begin(), visible.end(), ',');
  // A Python program alone is one process, which trains on several GPUs only by DataParallel.
  const bool alone = program.launchers.empty() && program.name.ends_with(".py");
  if (alone && lists && visible.find(',') == std::string::npos && !program.processes) program.processes = 1;
}

}  // namespace

std::optional<Program> program_of(const shell::Started& started) {
  Program program;
  program.at = started.at;
  program.environment = started.environment;
  if (!Words(started.words, program).run()) return std::nullopt;
  take_environment(program);
  return program;
}

std::string launcher_alone(const shell::Started& started) {
  Program program;
  const bool runs = Words(started.words, program).run();
  const bool is_job =
      !program.launchers.empty() && program.launchers.back() == "sbatch";  // of another script
  return runs || program.launchers.empty() || is_job ? std::string() : program.launchers.back();
}

}  // namespace headroom
