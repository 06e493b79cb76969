#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "headroom/core/contains.hpp"
#include "interop/shell/interpreter.hpp"
#include "io/command_files.hpp"
#include "io/text.hpp"

namespace headroom::shell {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Commands that run the script that is among their words. Others read it, as `cat "$0"` does.
bool runs_scripts(std::string_view name) {
  constexpr std::array<std::string_view, 38> names{
      "sbatch",  "srun",        "salloc",     "qsub",   "bsub",      "flux",     "jsrun", "aprun",
      "mpirun",  "mpiexec",     "orterun",    "nohup",  "time",      "env",      "sudo",  "timeout",
      "nice",    "ionice",      "numactl",    "setsid", "stdbuf",    "taskset",  "ssh",   "pdsh",
      "docker",  "podman",      "apptainer",  "enroot", "parallel",  "torchrun", "xargs", "accelerate",
      "kubectl", "singularity", "horovodrun", "ray",    "deepspeed", "pssh"};
  return contains(names, name);
}

std::string path_directory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string sequence(const std::vector<Value>& words) {
  constexpr std::int64_t most = 100'000;
  std::array<std::int64_t, 3> numbers{1, 1, 1};  // from, step, to
  std::vector<std::int64_t> given;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::int64_t value = 0;
    const std::string& text = words[i].text();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > most || value < -most) return {};
    given.push_back(value);
  }
  if (given.empty() || given.size() > 3) return {};
  numbers[2] = given.back();
  if (given.size() > 1) numbers[0] = given.front();
  if (given.size() > 2) numbers[1] = given[1];
  const auto [from, step, to] = numbers;
  if (step == 0) return {};
  std::string text;
  for (std::int64_t i = from; step > 0 ? i <= to : i >= to; i += step) text += std::to_string(i) + "\n";
  return text;
}

}  // namespace

std::optional<std::string> Interpreter::printed(const std::vector<Value>& words) const {
  if (words.empty()) return std::nullopt;
  const std::string& name = words.front().text();
  const bool known =
      std::all_of(words.begin(), words.end(), [](const Value& word) { return is_known(word.text()); });
  if (name == "echo") {
    std::string text;
    bool options = true;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string& word = words[i].text();
      options = options && (word == "-n" || word == "-e" || word == "-E" || word == "-ne" || word == "-en");
      if (!options) text += (text.empty() ? "" : " ") + word;
    }
    return text;
  }
  if (!known) return std::nullopt;
  if (name == "printf" && words.size() > 1) {
    const std::string& format = words[1].text();
    std::string text;
    std::size_t next = 2;
    std::size_t before = next;
    for (std::size_t i = 0;; ++i) {
      if (i >= format.size()) {  // a format that takes words is used again for those that are left
        if (next >= words.size() || next == before) break;
        before = next;
        i = 0;
      }
      if (format[i] == '\\' && i + 1 < format.size()) {
        ++i;
        text += format[i] == 'n' ? '\n' : format[i] == 't' ? '\t' : format[i];
      } else if (format[i] == '%' && i + 1 < format.size()) {
        ++i;
        if (format[i] == '%') {
          text += '%';
        } else if (format[i] == 's' || format[i] == 'd') {
          if (next < words.size()) text += words[next++].text();
        } else {
          return std::nullopt;
        }
      } else {
        text += format[i];
      }
    }
    return text;
  }
  if (name == "seq") return sequence(words);
  // The place of a program that starts runs: its name tells enough.
  const bool looks_up =
      name == "which" || (name == "command" && words.size() == 3 && words[1].text() == "-v");
  if (looks_up && words.size() > 1 && is_launcher(words.back().text())) return words.back().text();
  if (name == "getopt") return sorted_options(words);
  if (name == "dirname" && words.size() == 2) return path_directory(words[1].text());
  if (name == "basename" && words.size() > 1) {
    std::string text(base_name(words[1].text()));
    if (words.size() > 2 && text.ends_with(words[2].text()))
      text.resize(text.size() - words[2].text().size());
    return text;
  }
  return std::nullopt;
}

void Interpreter::declare(const Node& node, const std::vector<Value>& words) {
  const std::string& name = words.front().text();
  const bool is_local = name == "local" || (name == "declare" && !locals_.empty());
  bool associative = false;
  bool number = false;
  bool reference = false;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text();
    if (word.starts_with('-')) {
      const auto has = [&](char letter) {
        return name != "export" && word.find(letter) != std::string::npos;
      };
      associative = associative || has('A');
      number = number || has('i');
      reference = reference || has('n');
    } else if (const std::size_t equals = word.find('='); equals != std::string::npos) {  // export "A=1"
      Value value;
      value.append(words[i], equals + 1, word.size());
      const std::string variable = word.substr(0, equals);
      for (const Word& raw : node.words) {
        if (!std::string_view(raw.raw).starts_with(variable + "=")) continue;
        if (std::optional<Value> given =
                given_in_place(variable, std::string_view(raw.raw).substr(equals + 1)))
          value = std::move(*given);
      }
      set(variable, std::move(value));
      if (name == "export") exported_.insert(variable);
    } else {
      names.push_back(word);
    }
  }
  for (const Assignment& assignment : node.assignments) names.push_back(assignment.name);
  if (name == "export") exported_.insert(names.begin(), names.end());
  for (const std::string& one : names) {
    if (is_local && !locals_.empty() && !locals_.back().contains(one)) {
      const Variable* const hidden = find(one);
      locals_.back()[one] = hidden == nullptr ? std::nullopt : std::optional(*hidden);
    }
    if (associative) state_.variables[one].is_associative = true;
    if (number) state_.variables[one].is_number = true;
  }
  for (const Assignment& assignment : node.assignments) {
    if (reference) {
      state_.variables[assignment.name].stands_for = text_of(assignment.value).text();
    } else {
      assign(assignment);
    }
  }
}

std::optional<std::pair<std::string, std::string>> Interpreter::file_beside(const Value& name) {
  const std::string& text = name.text();
  // `pwd`/conf.sh, ${DIR}/conf.sh: of the folder of the script.
  const std::string_view known =
      std::string_view(text).substr(text.rfind(mark_end) == std::string::npos ? 0 : text.rfind(mark_end) + 1);
  if (known.empty() || (known.size() < text.size() && known.front() != '/')) return std::nullopt;
  std::string_view relative = known;
  while (known.size() < text.size() && relative.starts_with('/')) relative.remove_prefix(1);
  const std::filesystem::path folder =
      folder_.empty() ? std::filesystem::path(".") : std::filesystem::path(folder_);
  for (const std::string_view one : {relative, base_name(relative)}) {
    if (one.empty()) continue;
    const std::filesystem::path path =
        one.front() == '/' ? std::filesystem::path(one) : folder / std::filesystem::path(one);
    if (!is_regular_file(path.string())) continue;
    std::string file = folder_.empty() && one.front() != '/' ? std::string(one) : path.string();
    return std::pair{file, read_file(file)};
  }
  if (!tested_files_.contains(text)) followed_.missing_files.emplace_back(std::string(relative), here());
  return std::nullopt;
}

Flow Interpreter::source(const std::vector<Value>& words) {
  status_ = {};
  if (words.size() < 2) return Flow::goes_on;
  const auto found = file_beside(words[1]);
  if (!found) return Flow::goes_on;
  const Flow flow = run_text(found->second, found->first);
  return flow == Flow::exits ? flow : Flow::goes_on;
}

// What a script writes into a file by itself: a configuration.
void Interpreter::write_files(const Node& node, const std::vector<Value>& words) {
  std::optional<Value> text;
  std::string name;
  bool appends = false;
  for (const Redirection& redirection : node.redirections) {
    if (redirection.sign == "<<") text = heredoc_of(redirection);
    if (redirection.sign == ">" || redirection.sign == ">>" || redirection.sign == ">|") {
      name = text_of(redirection.target).text();
      appends = redirection.sign == ">>";
    }
  }
  const std::string_view command = base_name(words.front().text());
  if (command == "tee" && words.size() > 1) name = words.back().text();
  if (!text && (command == "echo" || command == "printf")) {
    if (std::optional<std::string> line = printed(words)) text = Value(*line + "\n", here());
  }
  if (name.empty()) return;
  constexpr std::size_t most = 1000;
  if (followed_.written_files.size() >= most) return;
  if (!text || (command != "cat" && command != "tee" && command != "echo" && command != "printf")) {
    followed_.written_files.erase(name);
    return;
  }
  Value& file = followed_.written_files[name];
  if (!appends) file = Value();
  charge(text->text().size());
  file.append(*text);
}

// Scripts that a command runs: `bash -c TEXT`, `srun bash FILE`, `sbatch FILE`, `./run.sh`.
bool Interpreter::run_nested(const Node& node, const std::vector<Value>& words) {
  const auto is_shell = [](std::string_view name) {
    return name == "bash" || name == "sh" || name == "zsh" || name == "dash";
  };
  const std::string_view command = base_name(words.front().text());
  const auto apart = [&](auto run) {
    const State before = copy_of_state();
    for (const Assignment& assignment : node.assignments) assign(assignment);
    run();
    state_ = before;
    return true;
  };
  const bool runs = is_shell(command) || runs_scripts(command) || !is_known(words.front().text());
  for (std::size_t i = 0; i < (runs ? words.size() : 1); ++i) {
    const std::string& word = words[i].text();
    const bool shell = is_shell(base_name(word));
    if (shell) {
      std::size_t next = i + 1;
      while (next < words.size() && words[next].text().starts_with('-')) {
        const std::string& option = words[next++].text();
        if (option.starts_with("--") || option.find('c') == std::string::npos || next >= words.size())
          continue;
        const std::size_t text = next;
        return apart([&] {  // `bash -c TEXT NAME $1 $2`
          state_.arguments.assign(
              words.begin() + static_cast<std::ptrdiff_t>(std::min(text + 2, words.size())), words.end());
          const bool given = std::exchange(given_arguments_, true);
          run_value(words[text]);
          given_arguments_ = given;
        });
      }
      i = next;
      if (i >= words.size()) break;
    }
    const std::string_view name = base_name(words[i].text());
    const bool script = shell || name.ends_with(".sh") || name.ends_with(".bash") ||
                        name.ends_with(".sbatch") || name.ends_with(".slurm");
    if (!script || words[i].text().starts_with('-')) {
      if (name.ends_with(".py")) return false;  // and what follows is its own
      continue;
    }
    const auto found = file_beside(words[i]);
    if (!found) return false;
    return apart([&] {
      state_.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      const bool given = std::exchange(given_arguments_, true);
      if (depth_ > 40) fail("runs itself without an end");
      run_text(found->second, found->first);
      given_arguments_ = given;
    });
  }
  if (command != "sbatch" && !is_shell(command)) return false;
  for (const Redirection& redirection : node.redirections) {
    if (redirection.sign != "<<") continue;
    const Value text = heredoc_of(redirection);
    read_job_lines(text.text(), followed_.job);
    return apart([&] { run_value(text); });
  }
  return false;
}

std::optional<Flow> Interpreter::run_builtin(const Node& node, std::vector<Value>& words) {
  while (words.size() > 1 && (words.front().text() == "exec" || words.front().text() == "builtin" ||
                              (words.front().text() == "command" && !words[1].text().starts_with('-'))))
    words.erase(words.begin());
  const std::string name = words.front().text();
  status_ = {};
  const auto is = [&](auto... names) { return ((name == names) || ...); };
  if (is("getopts")) {
    status_.value = next_option(words);
    return Flow::goes_on;
  }
  if (is(":", "true", "set", "unalias", "false")) {
    if (is("false")) status_.value = false;
    const bool sets = name == "set" && words.size() > 1 && words[1].text() == "--";
    if (sets) {
      state_.arguments.assign(words.begin() + 2, words.end());
      given_arguments_ = true;
    }
    return Flow::goes_on;
  }
  if (is("[", "test")) {
    std::vector<Value> operands(words.begin() + 1, words.end());
    if (name == "[" && !operands.empty() && operands.back().text() == "]") operands.pop_back();
    status_ = test(operands);
    return Flow::goes_on;
  }
  if (is("export", "local", "declare", "readonly", "typeset")) {
    declare(node, words);
    return Flow::goes_on;
  }
  if (is("eval")) {
    Value text;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (i > 1) text.append(" ", words[i].place());
      text.append(words[i]);
    }
    return text.empty() ? Flow::goes_on : run_value(text);
  }
  if (is("source", ".")) return source(words);
  if (is("exit")) {
    followed_.exit = here();
    return Flow::exits;
  }
  if (is("return")) return Flow::returns;
  if (is("break")) return Flow::breaks;
  if (is("continue")) return Flow::continues;
  if (is("shift")) {
    std::size_t count = 1;
    if (words.size() > 1)
      std::from_chars(words[1].text().data(), words[1].text().data() + words[1].text().size(), count);
    count = std::min(count, state_.arguments.size());
    state_.arguments.erase(state_.arguments.begin(),
                           state_.arguments.begin() + static_cast<std::ptrdiff_t>(count));
    return Flow::goes_on;
  }
  if (is("let")) {
    std::string last = "1";
    for (std::size_t i = 1; i < words.size(); ++i) last = number_of(words[i].text()).text();
    status_ = {.value = last != "0", .certain = is_known(last), .unknowns = marks_in(last)};
    return Flow::goes_on;
  }
  if (is("unset")) {
    for (std::size_t i = 1; i < words.size(); ++i) unset(words[i]);
    return Flow::goes_on;
  }
  if (is("read", "mapfile", "readarray")) {
    std::optional<Value> text = text_read_by(node);
    const bool of_loop = !text && name == "read" && !inputs_.empty() && inputs_.back().text;
    if (of_loop) text = next_line();
    if (text) {
      read_text(node, words, *text);
      return Flow::goes_on;
    }
    if (of_loop) {
      status_.value = false;
      return Flow::goes_on;
    }
    read_variables(words);
    status_.value = false;  // a loop over lines ends
    status_.certain = false;
    return Flow::goes_on;
  }
  if (is("echo", "printf")) {
    if (name == "printf" && words.size() > 3 && words[1].text() == "-v") {
      const std::string variable = words[2].text();
      words.erase(words.begin() + 1, words.begin() + 3);
      std::optional<std::string> text = printed(words);
      set(variable, Value(text ? *text : mark(Source::output, "$" + variable), here()));
    } else if (!node.redirections.empty()) {
      write_files(node, words);
    }
    return Flow::goes_on;
  }
  if (is_idle(name) || name == "type" || name == "command") {
    status_.certain = false;
    return Flow::goes_on;
  }
  return std::nullopt;
}

}  // namespace headroom::shell
