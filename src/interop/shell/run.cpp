#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "interop/shell/expansion.hpp"
#include "interop/shell/interpreter.hpp"
#include "io/text.hpp"

namespace headroom::shell {
namespace {

constexpr int deepest_calls = 60;              // functions, files and texts that call one another
constexpr std::size_t most_work = 60'000'000;  // characters of the files and of what they expand to
constexpr std::size_t work_of_command = 300;   // 200,000 commands
constexpr std::size_t most_started = 1000;
constexpr std::size_t largest_script = 16 << 20;

// A script as bash reads it: without a byte order mark, with newlines alone.
std::string as_unix(std::string_view text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.size() > largest_script)
    throw InputError(file, "is larger than 16 MiB, which no launch script is");
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool ends_line = text[i] == '\r' && (i + 1 == text.size() || text[i + 1] == '\n');
    const bool harmless = text[i] == '\f' || text[i] == '\v' || text[i] == '\x1b';
    if (!ends_line) result += harmless ? ' ' : text[i];
  }
  if (const auto bad = first_non_text_byte(result)) {
    const auto line =
        1 + std::count(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    throw InputError(fmt::format("{}:{}", file, line), "is not UTF-8 text");
  }
  return result;
}

}  // namespace

Interpreter::Interpreter(const Given& given, const std::string& file)
    : given_(given), folder_(std::filesystem::path(file).parent_path().string()), work_left_(most_work) {
  for (const std::string& argument : given.arguments) state_.arguments.emplace_back(argument, Place{0, 0});
}

Followed Interpreter::run(std::string_view text, const std::string& file) {
  run_text(text, file);
  return std::move(followed_);
}

Followed follow(std::string_view text, const std::string& file, const Given& given) {
  Interpreter shell(given, file);
  return shell.run(text, file);
}

void Interpreter::charge(std::size_t work) {
  if (work > work_left_) fail("does more than a reader follows: does a loop or a function here never end?");
  work_left_ -= work;
}

void Interpreter::fail(const std::string& rule) const {
  const Place at = here();
  const std::string file = at.file < followed_.files.size() ? followed_.files[at.file] : std::string();
  throw InputError(fmt::format("{}:{}", file, at.line), rule);
}

Place Interpreter::place_of(std::int64_t line, std::size_t offset) const {
  if (scripts_.empty()) return {0, line};
  const Loaded& loaded = *scripts_[script_];
  if (loaded.origin) return loaded.origin->place(offset);
  return {loaded.file, line};
}

std::uint32_t Interpreter::file_number(const std::string& name) {
  const auto found = std::find(followed_.files.begin(), followed_.files.end(), name);
  if (found != followed_.files.end()) return static_cast<std::uint32_t>(found - followed_.files.begin());
  followed_.files.push_back(name);
  return static_cast<std::uint32_t>(followed_.files.size() - 1);
}

void Interpreter::note_names(const Script& script) {
  for (const Node& node : script.nodes) {
    for (const Assignment& assignment : node.assignments) set_names_.insert(assignment.name);
    if (node.kind == Kind::loop_for) set_names_.insert(node.name);
  }
}

bool Interpreter::is_set_by_script(const std::string& name) const { return set_names_.contains(name); }

Flow Interpreter::run_loaded(std::size_t script) {
  if (++depth_ > deepest_calls) fail("calls itself without an end");
  const std::size_t before = std::exchange(script_, script);
  const std::int64_t line = line_;
  const Flow flow = run_node(scripts_[script]->script.root);
  script_ = before;
  line_ = line;
  --depth_;
  return flow;
}

Flow Interpreter::run_text(std::string_view text, const std::string& name) {
  charge(text.size());
  const std::string script = as_unix(text, name);
  read_job_lines(script, followed_.job);
  auto loaded = std::make_unique<Loaded>();
  loaded->script = parse(script, name);
  loaded->file = file_number(name);
  note_names(loaded->script);
  work_left_ += 2 * work_of_command * loaded->script.nodes.size();
  scripts_.push_back(std::move(loaded));
  return run_loaded(scripts_.size() - 1);
}

Flow Interpreter::run_value(const Value& text) {
  charge(text.text().size());
  const Place at = text.place();
  auto loaded = std::make_unique<Loaded>();
  loaded->script = parse(text.text(), followed_.files[at.file], at.line);
  loaded->file = at.file;
  loaded->origin = text;
  note_names(loaded->script);
  scripts_.push_back(std::move(loaded));
  return run_loaded(scripts_.size() - 1);
}

Flow Interpreter::run_node(std::size_t index) {
  const Node& node = this->node(index);
  line_ = node.line;
  charge(work_of_command);
  switch (node.kind) {
    case Kind::simple: return run_simple(node);
    case Kind::sequence:
    case Kind::group: return run_list(node);
    case Kind::pipeline: return run_pipeline(node);
    case Kind::subshell: return run_apart(node.children);
    case Kind::and_then:
    case Kind::or_else: {
      const Flow flow = run_node(node.children[0]);
      if (flow != Flow::goes_on) return flow;
      mark_condition(node.children[0], {node.children[1]});
      const bool goes_on = status_.value == (node.kind == Kind::and_then);
      if (!goes_on || !takes_branch(node.children[1], true)) return Flow::goes_on;
      return run_node(node.children[1]);
    }
    case Kind::negation: {
      const Flow flow = run_node(node.children[0]);
      status_.value = !status_.value;
      return flow;
    }
    case Kind::if_else: return run_if(node);
    case Kind::loop_while:
    case Kind::loop_until: return run_while(node);
    case Kind::loop_for: return run_for(node);
    case Kind::loop_count: return run_count(node);
    case Kind::choice: return run_case(node);
    case Kind::function:
      functions_[node.name] = {script_, node.children.front()};
      status_ = {};
      return Flow::goes_on;
    case Kind::arithmetic: {
      const Value number = number_of(text_of({"\"" + node.words.front().raw + "\"", node.line}).text());
      status_ = {.value = number.text() != "0" && is_known(number.text()),
                 .certain = is_known(number.text()),
                 .unknowns = marks_in(number.text())};
      return Flow::goes_on;
    }
    case Kind::condition: status_ = condition(node.words); return Flow::goes_on;
  }
  return Flow::goes_on;
}

Flow Interpreter::run_list(const Node& node) {
  for (const std::size_t child : node.children) {
    const Flow flow = run_node(child);
    if (flow != Flow::goes_on) return flow;
  }
  return Flow::goes_on;
}

// Variables that are set here are gone afterwards.
Flow Interpreter::run_apart(const std::vector<std::size_t>& children) {
  const State before = copy_of_state();
  for (const std::size_t child : children) {
    if (run_node(child) != Flow::goes_on) break;
  }
  state_ = before;
  return Flow::goes_on;
}

Flow Interpreter::run_pipeline(const Node& node) {
  for (const std::size_t child : node.children) run_apart({child});
  if (const std::optional<bool> found = finds(node)) status_ = {.value = *found};
  return Flow::goes_on;
}

Flow Interpreter::run_if(const Node& node) {
  const std::size_t tests = node.children.size() / 2;
  bool certain = true;
  std::optional<std::size_t> possible;  // the first branch that a run may take
  for (std::size_t i = 0; i < tests; ++i) {
    const Flow flow = run_node(node.children[2 * i]);
    if (flow != Flow::goes_on) return flow;
    line_ = this->node(node.children[2 * i]).line;
    certain = certain && status_.certain;
    const std::size_t branch = node.children[2 * i + 1];
    mark_condition(node.children[2 * i],
                   {node.children.begin() + static_cast<std::ptrdiff_t>(2 * i) + 1, node.children.end()});
    if (!status_.certain && !possible && !leaves(branch)) possible = branch;
    if (takes_branch(branch, status_.value)) return run_node(branch);
  }
  status_ = {};
  if (node.children.size() % 2 == 0) return Flow::goes_on;
  if (!certain && leaves(node.children.back())) return possible ? run_node(*possible) : Flow::goes_on;
  return run_node(node.children.back());
}

Interpreter::State Interpreter::copy_of_state() {
  std::size_t size = state_.variables.size() + state_.arguments.size();
  for (const auto& [name, variable] : state_.variables) size += variable.items.size() + variable.named.size();
  constexpr std::size_t work_of_copy = 100;
  charge(work_of_copy * size);
  return state_;
}

void Interpreter::forget_changes(const State& before) {
  for (auto& [name, variable] : state_.variables) {
    const auto was = before.variables.find(name);
    if (was != before.variables.end() && was->second == variable) continue;
    if (variable.is_list) {
      variable.is_open = true;
      continue;
    }
    const auto given = given_.environment.find(name);
    Value value(given == given_.environment.end() ? mark(Source::output, "$" + name) : given->second, here());
    if (const auto unknown = only_mark(value.text())) followed_.unknowns[*unknown].name = name;
    variable.items.insert_or_assign(0, std::move(value));
  }
}

Flow Interpreter::run_uncertain(std::size_t body) {
  if (leaves(body)) return Flow::goes_on;
  const State before = copy_of_state();
  const Flow flow = run_node(body);
  if (flow == Flow::returns || flow == Flow::exits) {
    state_ = before;
  } else {
    forget_changes(before);
  }
  return Flow::goes_on;
}

Flow Interpreter::run_while(const Node& node) {
  const bool has_input = std::any_of(node.redirections.begin(), node.redirections.end(),
                                     [](const Redirection& it) { return it.sign.starts_with('<'); });
  if (!has_input) return repeat_while(node);
  std::optional<Value> text = text_read_by(node);
  if (text && !is_known(text->text())) text.reset();
  inputs_.push_back({std::move(text), 0});
  const Flow flow = repeat_while(node);
  inputs_.pop_back();
  return flow;
}

Flow Interpreter::repeat_while(const Node& node) {
  for (;;) {
    const Flow of_test = run_node(node.children[0]);
    if (of_test != Flow::goes_on) return of_test;
    const bool goes_on = status_.value == (node.kind == Kind::loop_while);
    const bool is_certain = status_.certain;
    // A plain run has no arguments, and none of what is set outside.
    const bool of_command = std::all_of(
        status_.unknowns.begin(), status_.unknowns.end(),
        [&](std::size_t unknown) { return followed_.unknowns[unknown].source == Source::output; });
    if (!is_certain && of_command) run_uncertain(node.children[1]);
    if (!goes_on || !is_certain) break;
    const std::size_t started = followed_.started.size();
    const Flow flow = run_node(node.children[1]);
    if (flow == Flow::breaks) break;
    if (flow == Flow::returns || flow == Flow::exits) return flow;
    if (followed_.started.size() > started) break;  // it starts this again
  }
  status_ = {};
  return Flow::goes_on;
}

Flow Interpreter::run_for(const Node& node) {
  std::vector<Value> values;
  bool is_open = false;  // only a run knows how many times it runs
  if (!node.lists_words) values = items_of("@");
  for (const Word& word : node.words) {
    for (Value& field : fields_of(word)) {
      is_open = is_open || (this->is_open(word, field) && is_output(field));
      values.push_back(std::move(field));
    }
  }
  std::optional<State> before;
  if (is_open) before = copy_of_state();
  Flow flow = Flow::goes_on;
  for (const Value& value : values) {
    set(node.name, value);
    flow = run_node(node.children[0]);
    if (flow == Flow::breaks || flow == Flow::returns || flow == Flow::exits) break;
  }
  if (before) forget_changes(*before);
  return flow == Flow::returns || flow == Flow::exits ? flow : Flow::goes_on;
}

bool Interpreter::is_output(const Value& value) const {
  const auto mark = only_mark(value.text());
  return mark && followed_.unknowns[*mark].source == Source::output;
}

Flow Interpreter::run_count(const Node& node) {
  const auto evaluated = [&](std::size_t i) {
    return number_of(text_of({"\"" + node.words[i].raw + "\"", node.line}).text()).text();
  };
  evaluated(0);
  for (;;) {
    charge(work_of_command);
    const bool blank = node.words[1].raw.find_first_not_of(" \t\n") == std::string::npos;
    const std::string test = evaluated(1);
    if (!blank && (test == "0" || !is_known(test))) break;
    const Flow flow = run_node(node.children[0]);
    if (flow == Flow::breaks) break;
    if (flow == Flow::returns || flow == Flow::exits) return flow;
    evaluated(2);
  }
  return Flow::goes_on;
}

Flow Interpreter::run_case(const Node& node) {
  const Value subject = text_of(node.words.front());
  const std::string text = plain(subject.text());
  bool falls = false;
  bool ran = false;
  for (std::size_t i = 0; i < node.patterns.size(); ++i) {
    const bool is_taken =
        falls || std::any_of(node.patterns[i].begin(), node.patterns[i].end(), [&](const Word& word) {
          const std::string pattern = pattern_of(word).text();
          return is_known(pattern) && matches(text, pattern) && (is_known(text) || pattern == "*");
        });
    if (!is_taken) continue;
    status_ = {.value = true, .certain = is_known(subject.text()), .unknowns = marks_in(subject.text())};
    line_ = node.line;
    if (!falls && !takes_branch(node.children[i], true)) continue;
    const Flow flow = run_node(node.children[i]);
    if (flow != Flow::goes_on || node.ends[i] == BranchEnd::stops) return flow;
    falls = node.ends[i] == BranchEnd::falls;
    ran = true;
  }
  if (ran) return Flow::goes_on;
  if (!is_known(subject.text()))
    note({.value = false, .certain = false, .unknowns = marks_in(subject.text())}, false);
  status_ = {};
  return Flow::goes_on;
}

Flow Interpreter::call(const Function& function, std::vector<Value> words) {
  if (++depth_ > deepest_calls) fail("calls itself without an end");
  words.erase(words.begin());
  std::swap(state_.arguments, words);
  const bool given = std::exchange(given_arguments_, true);
  const std::size_t script = std::exchange(script_, function.script);
  locals_.emplace_back();
  const Flow flow = run_node(function.node);
  for (auto& [name, hidden] : locals_.back()) {
    if (hidden) {
      state_.variables[name] = std::move(*hidden);
    } else {
      state_.variables.erase(name);
    }
  }
  locals_.pop_back();
  script_ = script;
  given_arguments_ = given;
  std::swap(state_.arguments, words);
  --depth_;
  return flow == Flow::exits ? flow : Flow::goes_on;
}

Flow Interpreter::run_simple(const Node& node) {
  std::vector<Value> words = fields_of(node.words);
  if (words.empty()) {
    for (const Assignment& assignment : node.assignments) assign(assignment);
    status_ = {};
    return Flow::goes_on;
  }
  const auto function = functions_.find(words.front().text());
  if (function != functions_.end()) {
    for (const Assignment& assignment : node.assignments) assign(assignment);
    const Function body = function->second;  // which it may define anew
    return call(body, std::move(words));
  }
  if (const std::optional<Flow> flow = run_builtin(node, words)) return *flow;
  if (const auto text = words.front().text().ends_with("grep") ? text_read_by(node) : std::nullopt) {
    charge(work_of_grep(text->text()));
    if (const std::optional<bool> found = grep_finds(words, text->text())) {
      status_ = {.value = *found};
      return Flow::goes_on;
    }
  }
  write_files(node, words);
  start(words, node);
  status_ = {.value = true, .certain = false, .unknowns = {}};
  return Flow::goes_on;
}

bool is_launcher(std::string_view name) {
  constexpr std::array<std::string_view, 23> launchers{
      "torchrun", "srun",       "sbatch",   "deepspeed",     "accelerate", "mpirun",
      "mpiexec",  "python",     "python3",  "mpiexec.hydra", "ds",         "llamafactory-cli",
      "axolotl",  "tune",       "composer", "primus-cli",    "ray",        "nemo",
      "pdsh",     "horovodrun", "bsub",     "orterun",       "msrun"};
  return contains(launchers, name);
}

void Interpreter::start(const std::vector<Value>& words, const Node& node) {
  const auto base = [](const Value& word) {
    const std::string& text = word.text();
    return std::string_view(text).substr(text.rfind('/') + 1);
  };
  // Short names that are launchers only as the command itself.
  constexpr std::array<std::string_view, 6> commands{"swift",  "megatron",     "trl",
                                                     "litgpt", "run_train.sh", "run_llama_train.sh"};
  const bool launches =
      contains(commands, base(words.front())) ||
      std::any_of(words.begin(), words.end(), [&](const Value& word) {
        return is_launcher(base(word)) ||
               (base(word).ends_with(".py") && word.text().find(' ') == std::string::npos) ||
               base(word) == "sbatch_benchmarking.sh";
      });
  if (launches && followed_.started.size() < most_started) {
    Started started{.words = words, .environment = {}, .at = here()};
    for (const Assignment& assignment : node.assignments)
      started.environment.emplace_back(assignment.name, text_of(assignment.value).text());
    for (const char* const name :
         {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "CUDA_DEVICE_MAX_CONNECTIONS",
          "NVTE_CPU_OFFLOAD_V1", "NCCL_GRAPH_REGISTER", "CUDA_VISIBLE_DEVICES", "NPROC_PER_NODE", "NNODES"}) {
      const Variable* const variable = find(name);
      const auto given = given_.environment.find(name);
      if (variable != nullptr && variable->items.contains(0)) {
        started.environment.emplace_back(name, variable->items.at(0).text());
      } else if (given != given_.environment.end()) {
        started.environment.emplace_back(name, given->second);
      }
    }
    const auto any_ends_with = [&](std::string_view end) {
      return std::any_of(words.begin(), words.end(),
                         [&](const Value& word) { return base(word).ends_with(end); });
    };
    const bool script = any_ends_with(".sh");
    const bool python = any_ends_with(".py");
    constexpr std::size_t most_variables = 200;
    // A bash script sees all variables, behind those of its own; a Python program sees the exported ones.
    for (const auto& [name, variable] : state_.variables) {
      if (started.environment.size() >= most_variables) break;
      const auto item = variable.items.find(0);
      if (item == variable.items.end() || !(script || (python && exported_.contains(name)))) continue;
      started.environment.emplace_back(name, item->second.text());
    }
    if (python)
      started.environment.insert(started.environment.end(), given_.environment.begin(),
                                 given_.environment.end());
    followed_.started.push_back(std::move(started));
  }
  run_nested(node, words);
}

}  // namespace headroom::shell
