// Follows a bash script without running anything: sets its variables, takes its branches, and notes the programs that it
// would start. What only a run knows is a mark in a text (value.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interop/shell/syntax.hpp"
#include "interop/shell/value.hpp"

namespace headroom::shell {

// A program that a script starts, with its words and the variables before it.
struct Started {
  std::vector<Value> words;
  std::vector<std::pair<std::string, std::string>> environment;
  Place at;
};

// A condition that only a run knows, and what was taken.
struct Uncertain {
  Place at;
  bool taken = false;
  std::vector<std::size_t> unknowns;
};

// What a job asks for: options of sbatch and srun, of lines #SBATCH, #PBS.
struct JobSizes {
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<std::int64_t> tasks_per_node;
  std::optional<std::int64_t> tasks;
  std::optional<std::int64_t> gpus;  // of the whole job
  std::string gpu;                   // its name: "h100"
};
// Adds what options say ("--nodes=4", "-N", "4"), up to the first word that is none. Returns their number.
std::size_t read_job_options(const std::vector<std::string>& words, JobSizes& sizes);
// Adds those of the comments of a script.
void read_job_lines(std::string_view text, JobSizes& sizes);

struct Followed {
  std::vector<Started> started;
  std::vector<Unknown> unknowns;
  std::vector<Uncertain> conditions;
  std::vector<std::string> files;              // names of those that were read, by Place::file
  std::map<std::string, Value> written_files;  // by name, what the script writes into them
  JobSizes job;                                // of lines #SBATCH
  std::optional<Place> exit;                   // that ended it
  std::vector<std::pair<std::string, Place>> missing_files;
};

struct Given {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};

// Follows a script. `file` names it, and other files are read beside it. Throws InputError with file and line where
// it is no bash or does more than a reader follows.
Followed follow(std::string_view text, const std::string& file, const Given& given);

// The rest is for the parts of follow().

// The outcome of a condition. Not certain: only a run knows, and `value` is what a plain run would find.
struct Outcome {
  bool value = true;
  bool certain = true;
  std::vector<std::size_t> unknowns = {};
};

// Commands that leave variables and branches as they are (conditions.cpp).
bool is_idle(std::string_view name);
// Programs that start training runs, by their names (run.cpp).
bool is_launcher(std::string_view name);

// What util-linux's getopt prints of its words (options.cpp).
std::string sorted_options(const std::vector<Value>& words);

// How a list of commands ends.
enum class Flow : std::uint8_t { goes_on, breaks, continues, returns, exits };

class Interpreter {
 public:
  Interpreter(const Given& given, const std::string& file);
  Followed run(std::string_view text, const std::string& file);

 private:
  friend class Expansion;
  friend class Arithmetic;
  friend class Test;

  struct Function {
    std::size_t script = 0;
    std::size_t node = 0;
  };
  struct Loaded {
    Script script;
    std::uint32_t file = 0;
    std::optional<Value> origin;  // of a text that variables made
  };
  struct State {  // which a subshell has of its own
    std::map<std::string, Variable> variables;
    std::vector<Value> arguments;
  };

  // Commands (run.cpp).
  Flow run_node(std::size_t index);
  Flow run_list(const Node& node);
  Flow run_if(const Node& node);
  Flow run_while(const Node& node);
  Flow repeat_while(const Node& node);
  Flow run_for(const Node& node);
  Flow run_count(const Node& node);
  Flow run_case(const Node& node);
  Flow run_simple(const Node& node);
  Flow run_apart(const std::vector<std::size_t>& children);
  // A body that a run may repeat or leave out. What it changes is unknown behind it.
  Flow run_uncertain(std::size_t body);
  void forget_changes(const State& before);
  State copy_of_state();
  [[nodiscard]] bool is_output(const Value& value) const;
  Flow call(const Function& function, std::vector<Value> words);
  Flow run_pipeline(const Node& node);
  // What `... | grep` says of texts that are known.
  std::optional<bool> finds(const Node& node);
  // The command whose outcome a condition is, if it is one; its words as they are written.
  [[nodiscard]] std::optional<std::size_t> command_of(std::size_t condition) const;
  void add_words(std::size_t command, std::string& text) const;
  bool sets_variables(std::size_t index);
  void mark_condition(std::size_t test, const std::vector<std::size_t>& branches);
  // A file: with arguments of its own, or those of the script that sources it.
  Flow run_text(std::string_view text, const std::string& name);
  // A text that variables made: of `eval`, of `bash -c`.
  Flow run_value(const Value& text);
  Flow run_loaded(std::size_t script);
  bool leaves(std::size_t index);
  bool takes_branch(std::size_t branch, bool value);
  void note(const Outcome& outcome, bool taken);
  void start(const std::vector<Value>& words, const Node& node);
  std::uint32_t file_number(const std::string& name);

  // Commands of the shell itself, and those that run a script (builtins.cpp). Nothing: the command is a program.
  std::optional<Flow> run_builtin(const Node& node, std::vector<Value>& words);
  bool run_nested(const Node& node, const std::vector<Value>& words);
  Flow source(const std::vector<Value>& words);
  // The text of a file beside the script; none: it is not there.
  std::optional<std::pair<std::string, std::string>> file_beside(const Value& name);
  void declare(const Node& node, const std::vector<Value>& words);
  std::optional<Value> text_read_by(const Node& node);
  // The next line of the text that a loop reads; none: all are read.
  std::optional<Value> next_line();
  void unset(const Value& word);
  void read_variables(const std::vector<Value>& words);
  bool next_option(const std::vector<Value>& words);
  void read_text(const Node& node, const std::vector<Value>& words, const Value& text);
  void write_files(const Node& node, const std::vector<Value>& words);
  std::optional<std::string> printed(const std::vector<Value>& words) const;

  // Variables.
  void assign(const Assignment& assignment);
  void set(const std::string& name, Value value);
  [[nodiscard]] std::optional<Value> given_in_place(const std::string& name, std::string_view raw) const;
  Variable* find(const std::string& name);
  // The variable that a name stands for (declare -n), by default itself.
  [[nodiscard]] const std::string& meant_by(const std::string& name) const;
  // The value of a scalar or of item 0; a mark where only a run knows it; none: it is not set.
  std::optional<Value> value_of(const std::string& name);
  std::optional<Value> item_of(const std::string& name, std::string_view index);
  std::vector<Value> items_of(const std::string& name);
  // How many items a list has, where only a run knows them: a mark, or the nodes of the job.
  std::string size_of_open(const std::string& name, const Variable& list);
  std::string mark(Source source, const std::string& text);
  // The characters of IFS, at which unquoted values are split.
  [[nodiscard]] std::string separators();
  [[nodiscard]] bool is_set_by_script(const std::string& name) const;
  void note_names(const Script& script);

  // Words (expansion.cpp).
  // Whether only a run knows how many fields a word makes, of which `field` is one.
  [[nodiscard]] static bool is_open(const Word& word, const Value& field);
  std::vector<Value> fields_of(const Word& word);
  std::vector<Value> fields_of(const std::vector<Word>& words);
  Value text_of(const Word& word);
  Value pattern_of(const Word& word);
  Value regex_of(const Word& word);
  Value heredoc_of(const Redirection& redirection);

  // Numbers and conditions (arithmetic.cpp, test.cpp). A text with marks is not known.
  Value number_of(std::string_view expression);
  Outcome test(const std::vector<Value>& words);
  Outcome condition(const std::vector<Word>& words);
  // A text as a plain run has it: without marks of what is not set.
  [[nodiscard]] std::string plain(std::string_view text) const;

  [[nodiscard]] std::optional<std::string> variable_of_job(std::string_view name) const;

  void charge(std::size_t work);
  [[noreturn]] void fail(const std::string& rule) const;
  [[nodiscard]] Place here() const { return place_of(line_, 0); }
  // Of a character of the script that is followed.
  [[nodiscard]] Place place_of(std::int64_t line, std::size_t offset) const;
  [[nodiscard]] const Node& node(std::size_t index) const { return scripts_[script_]->script.nodes[index]; }

  const Given& given_;
  std::string folder_;
  State state_;
  struct Input {
    std::optional<Value> text;  // none: of a file that is not read
    std::size_t at = 0;
  };
  std::vector<Input> inputs_;                                           // texts that loops read: `done <<EOF`
  std::vector<std::map<std::string, std::optional<Variable>>> locals_;  // what a function's variables hid
  std::map<std::string, Function> functions_;
  std::vector<std::unique_ptr<Loaded>> scripts_;
  std::set<std::string, std::less<>> set_names_;     // that any script sets
  std::set<std::string, std::less<>> exported_;      // that programs see
  std::set<std::string, std::less<>> tested_files_;  // `[ -f env.sh ] && source env.sh`: may be absent
  Outcome status_;
  std::size_t script_ = 0;
  bool given_arguments_ = false;  // what is beyond them is empty, as in a function
  std::int64_t line_ = 0;
  int depth_ = 0;
  std::size_t letter_ = 1;  // of getopts, in the word that it is at
  std::size_t work_left_;
  Followed followed_;
};

}  // namespace headroom::shell
