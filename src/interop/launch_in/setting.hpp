// What the readers of launch files share: a value as it is written, and a run under construction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/error.hpp"
#include "headroom/interop/launched_run.hpp"
#include "io/document.hpp"

namespace headroom {

// One flag, override or member of a configuration file.
// `name` is without dashes in front and with underscores: "tensor_model_parallel_size"; of a tree the path with dots:
// "zero_optimization.stage". `values` are its words or items: none of a flag alone.
struct Written {
  std::string name;
  std::vector<std::string> values;
  std::string as_written;  // "--tensor-model-parallel-size 8"
  FilePlace at;
  std::string unknown;  // why the values are not known: "needs $3"; empty: they are
};

// The values with a comma between each two.
std::string text_of_values(const Written& setting);
// Whether a setting switches something on: a flag alone, or any value but false, no, off, 0, none and null.
bool is_on(const Written& setting);
// Whether its value is null, None, ~ or empty: as good as not written.
bool is_null(const Written& setting);
// Whether its value is zero, as 0, 0.0 and .0.
bool is_zero(const Written& setting);
// Whether a flag or an override of a command has no value, or an empty one. A parser of numbers or choices
// refuses both.
bool lacks_value(const Written& setting);
// x y, or none where 64 bits do not hold it: a file may write counts of any size.
std::optional<std::int64_t> product_of(std::int64_t x, std::int64_t y);

// What divides layers into pipeline stages where no layout does, as it is written.
struct EqualStages {
  Written pipeline;                        // the pipeline-parallel size
  std::optional<Written> layers_of_stage;  // of a virtual stage
  std::optional<Written> embedding;        // whether it counts as a layer of the first stage
  std::optional<Written> loss;             // whether it counts as a layer of the last stage
};
// Null: none.
std::optional<Written> copy_of(const Written* setting);

class RunBuilder;

// "expandable_segments:True" of PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF, as the stack's choice.
void take_allocator(const Written& setting, RunBuilder& builder);
bool is_allocator_variable(std::string_view name);

// How a setting of a framework is taken.
// field: a strategy's field, whose reader takes the value as it is written.
// on, off: a strategy's field or a stack's choice is set to yes (no) by a flag that is given or true. A target
//   NAME=VALUE ("data_sharding=zero1") is set to this value, and to nothing by false.
// choice: a choice of the stack.
// member: a member of the model file ("experts/count"). A target PATH=VALUE ("activation=swiglu") is set by a flag
//   that is given or true.
// idle: changes neither memory nor time.
// unmodelled: may change them, and is left out, unless it is off; `target` says what it is.
// own: the framework's reader looks at it by itself.
enum class LaunchUse : std::uint8_t { field, on, off, choice, member, idle, unmodelled, own };

struct LaunchKey {
  std::string_view name;
  LaunchUse use = LaunchUse::idle;
  std::string_view target = {};
};

// Builds a run from what is written. Of a setting that is given twice the last one holds, as in every launcher here;
// the earlier is remarked on where it differs.
class RunBuilder {
 public:
  // `file` names the model that is built from members, and the whole in messages.
  RunBuilder(std::string file, std::string framework, std::string software);

  void use_framework(std::string framework) { run_.framework = std::move(framework); }
  void use_software(std::string software) { run_.software = std::move(software); }
  [[nodiscard]] const std::string& software() const { return run_.software; }
  [[nodiscard]] const LaunchedRun& so_far() const { return run_; }

  // Of a strategy's field, in this program's words; `from` may be null: it follows from others.
  void set(std::string_view field, std::string value, const Written* from);
  // Of a stack's choice.
  void choose(std::string_view choice, std::string value, const Written* from);
  // Of a member of the model file, by its path there ("experts/count").
  void member(std::string_view path, Json value, const Written* from);
  // "Qwen/Qwen3-8B". Members that are set beside it override those of the named model.
  void name_model(std::string name, const Written* from);
  // Of one that is not at hand: it is built from members if they are its sizes, else there is none.
  void name_absent_model(std::string name, const Written* from);
  void devices(std::int64_t count) { run_.devices = count; }
  // Of a job that takes all GPUs of its nodes, however many these have.
  void whole_nodes(std::int64_t count) { run_.nodes = count; }
  void devices_per_node(std::int64_t count) { run_.devices_per_node = count; }
  // Microbatches that a data-parallel rank sums, of a run whose data-parallel size is not known.
  void accumulation(std::int64_t count) { run_.accumulation = count; }
  void system(std::string name) { run_.system = std::move(name); }

  void imply(std::string sentence, const Written* from = nullptr);
  void assume(std::string sentence, const Written* from = nullptr);
  // Of a run in FP32, which is not modelled. `from`: what says so, or null where nothing says otherwise.
  void take_fp32_as_bf16(const Written* from);
  void idle(const Written& setting, bool by_pattern = false);
  void leave_out(const Written& setting, std::string_view what);
  // A setting that no table has: refused with the nearest names if it looks like a slip of the pen, else left out.
  void unknown(const Written& setting, const std::vector<std::string_view>& known);
  void unresolved(std::string sentence, FilePlace at, std::string field = {});
  // Of a setting whose values are not known; `field`: what it would set.
  void unresolved(const Written& setting, std::string_view field);
  void problem(const Written& setting, std::string rule);
  // Of a setting where lacks_value(); `field`: what it would set. After a condition that is not known, its branch
  // may give the value.
  void refuse_empty(const Written& setting, std::string_view field);
  // `need`: what conditions need that are taken as false since only a run knows them.
  void open_conditions(std::string need) { open_conditions_ = std::move(need); }
  // Of a rule of the framework that no strategy here breaks.
  void refuse(LaunchRefusal refusal) { run_.refusals.push_back(std::move(refusal)); }

  // Of Megatron-Core, which refuses stages of unequal layers unless a layout says them. For runs all of whose
  // settings are at hand: a recipe may set a layout.
  void need_equal_stages(EqualStages stages);

  void state_batch(StatedBatch batch) { run_.stated_batch = std::move(batch); }

  // Takes a setting as its row says. Returns false for `own`. A setting whose values are not known is taken as
  // unresolved if it matters.
  bool take(const LaunchKey& key, const Written& setting);

  // What was set so far; none: nothing.
  [[nodiscard]] std::optional<std::string> value(std::string_view field) const;
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view field) const;
  [[nodiscard]] std::optional<std::string> chosen(std::string_view choice) const;
  [[nodiscard]] const Json* member_at(std::string_view path) const;
  void drop(std::string_view field);  // of the strategy
  void drop_member(std::string_view path);

  // Finishes the model from its members, or reads the named one. Throws InputError with all problems.
  LaunchedRun finish(const LaunchOptions& options);

 private:
  void put(std::vector<LaunchSetting>& list, std::string_view field, std::string value, const Written* from);
  void remark(LaunchRemarkKind kind, std::string text, const Written* from);
  void switch_to(std::string_view target, bool on, const Written& setting);
  void finish_model(const LaunchOptions& options);
  void finish_stages();

  std::string file_;
  LaunchedRun run_;
  Json members_ = Json::object();
  std::map<std::string, std::string> written_;  // JSON pointer -> "run.sh:14: --hidden-size"
  std::optional<Written> named_by_;
  bool absent_ = false;  // the named model is not at hand
  std::optional<EqualStages> equal_stages_;
  std::vector<Problem> problems_;
  std::string open_conditions_;
};

}  // namespace headroom
