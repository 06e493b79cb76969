// Reads what starts a training run: a launch script or a configuration file of a training framework. Nothing in
// it is run.
//
// A file gives a model, a strategy, a batch, a stack and how many GPUs, in the words of its framework. Each value
// keeps the line that it stands on. What the framework changes by itself (defaults that follow from others) is
// replayed and told. What has no counterpart here is told apart: settings that change neither memory nor time,
// and settings that may.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// A line of a file, from 1; 0: the file as a whole.
struct FilePlace {
  std::string file;
  std::int64_t line = 0;
  friend bool operator==(const FilePlace&, const FilePlace&) = default;
};
// "run.sh:14", or "run.sh".
std::string text_of(const FilePlace& place);

// One value of a request, and what it was read from.
struct LaunchSetting {
  std::string field;    // of strategy_fields, or a choice of a stack ("overlap_grad_reduce")
  std::string value;    // as the field or choice is written here
  std::string written;  // "--tensor-model-parallel-size 8"; empty: it follows from others
  FilePlace at;
  friend bool operator==(const LaunchSetting&, const LaunchSetting&) = default;
};

// implied: the framework sets it by itself, and so does the reading.
// assumed: the file does not say it; a default is taken.
// idle: settings that change neither memory nor time (paths, logging, learning rates).
// unmodelled: settings that may change memory or time, and are left out.
// unresolved: values that only a run knows (a variable from outside, the output of a command).
enum class LaunchRemarkKind : std::uint8_t { implied, assumed, idle, unmodelled, unresolved };

struct LaunchRemark {
  LaunchRemarkKind kind = LaunchRemarkKind::implied;
  std::string text;  // a sentence without a period, or for `idle` the name of one setting
  FilePlace at;
  std::string
      field;  // of `unresolved`: what the value would set, of a strategy, a stack or a model; may be empty
  bool by_pattern = false;  // of `idle`: by the start of its name alone, which nobody looked at
  friend bool operator==(const LaunchRemark&, const LaunchRemark&) = default;
};

// A rule of the framework that the file breaks, though Headroom could evaluate the run.
struct LaunchRefusal {
  std::vector<std::string> fields;  // of the strategy: where one is given another value, the rule may hold
  std::string rule;                 // what must hold, and the arithmetic
  std::string source;               // the framework's file
  std::string written;              // the setting at fault, as the file has it
  FilePlace at;
  friend bool operator==(const LaunchRefusal&, const LaunchRefusal&) = default;
};

// A global batch that a file states beside microbatch and accumulation. Its framework asserts
// batch = microbatch x accumulation x data-parallel ranks.
struct StatedBatch {
  std::int64_t batch = 1;
  std::int64_t micro = 1;
  std::int64_t accumulation = 1;
  std::string source;   // of the assertion: the framework's file
  std::string written;  // the batch, as the file has it
  FilePlace at;
  friend bool operator==(const StatedBatch&, const StatedBatch&) = default;
};

// A run as its file starts it.
struct LaunchedRun {
  std::string framework;             // "Megatron-LM"
  std::string software;              // a stack's name; empty: none is known
  std::optional<Transformer> model;  // none: the file does not say it, or names one that is not at hand
  std::string model_name;            // as written ("Qwen/Qwen3-8B"), if the file names a model
  std::vector<HubAssumption> assumed;
  std::vector<LaunchSetting> strategy;  // of strategy_fields, each at most once
  std::vector<LaunchSetting> stack;     // choices of the stack, each at most once
  std::optional<std::int64_t> devices;  // of the whole job
  std::optional<std::int64_t> devices_per_node;
  // Nodes whose GPUs all take part, if `devices` is not known: their number is the system's.
  std::optional<std::int64_t> nodes;
  // Microbatches that each data-parallel rank sums: where the file states them, and no data-parallel size that would make
  // them a global batch.
  std::optional<std::int64_t> accumulation;
  std::string
      system;  // a name of a GPU or a system, where the file asks for one ("h100"); empty: none is known
  std::vector<LaunchRemark> remarks;
  std::vector<LaunchRefusal> refusals;
  std::optional<StatedBatch> stated_batch;
  std::size_t runs = 1;  // that its script starts: LaunchOptions::run says which one this is
  friend bool operator==(const LaunchedRun&, const LaunchedRun&) = default;
};

struct LaunchOptions {
  std::string model;                               // to take where the file names none
  std::optional<std::string> text;                 // to read in place of the file's own
  std::size_t run = 1;                             // of the runs that a script starts, from 1
  std::vector<std::string> overrides;              // of the model's fields: KEY=VALUE, as in read_model()
  std::vector<std::string> arguments;              // $1, $2, ... of a script
  std::map<std::string, std::string> environment;  // variables that a script is started with
  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

// Returns whether a source is a file that read_launched_run() takes, rather than a model or another file of
// Headroom: a shell script, TOML, YAML, or JSON with the keys of a framework.
bool is_launched_run(const std::string& source);

// Reads a launch file. Throws InputError with every problem of the file, each at its line.
LaunchedRun read_launched_run(const std::string& source, const LaunchOptions& options = {});

// Returns what the file says of a strategy's field, or null.
const LaunchSetting* find_setting(const LaunchedRun& run, std::string_view field);

// Returns the refusal if the stated batch is not microbatch x accumulation x `ranks`; nothing otherwise.
std::optional<LaunchRefusal> batch_refusal(const LaunchedRun& run, std::int64_t ranks);

// Sets the GPUs of a run that takes whole nodes (`nodes`): as many replicas as these nodes hold and as share the
// global batch, at least one. Remarks on what is assumed.
void take_whole_nodes(LaunchedRun& run, std::int64_t devices_per_node);

// Returns the source of a rule for a strategy's field in the run's own framework, where `source` is Megatron-LM's
// and the framework has the rule too. Empty if no file of the framework has it; `source` otherwise.
std::string_view own_source(const LaunchedRun& run, std::string_view field, std::string_view source);

// Returns the text of the file that a source names ("config_registry.py::llama3_8b"). Throws InputError.
std::string launch_text(const std::string& source);

template <>
inline constexpr std::array<Spelling<LaunchRemarkKind>, 5> spellings<LaunchRemarkKind>{{
    {LaunchRemarkKind::implied, "implied"},
    {LaunchRemarkKind::assumed, "assumed"},
    {LaunchRemarkKind::idle, "idle"},
    {LaunchRemarkKind::unmodelled, "unmodelled"},
    {LaunchRemarkKind::unresolved, "unresolved"},
}};

}  // namespace headroom
