// What the readers of configurations share beyond the builder of a run: values by name, each read once, and the sizes
// that several keys state together.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/setting.hpp"
#include "interop/launch_in/tree.hpp"

namespace headroom {

// A configuration that is known to be of some framework: its tree, and where it lies.
struct TreeFile {
  std::string file;
  TreeNode root;
};

// Values of a configuration by name. What is looked at is taken; rest() deals with what nobody asked for.
class TreeRun {
 public:
  TreeRun(std::vector<Written> written, RunBuilder& builder);

  RunBuilder& builder() { return builder_; }

  // The value of the first of the names that the file has; null where there is none, or it is not known before a run.
  // `decides`: the strategy's field that cannot be without this value, if there is one.
  const Written* find(std::initializer_list<std::string_view> names, std::string_view decides = {});
  const Written* find(std::string_view name) { return find({name}); }
  // The same, also if only the last part of a path is known before a run: "$HOME/models/Qwen3-8B".
  const Written* find_path(std::initializer_list<std::string_view> names);
  [[nodiscard]] bool has(std::string_view name) const;          // without taking it
  [[nodiscard]] bool has_below(std::string_view prefix) const;  // any name that starts with "prefix."

  // Whether one of the names is written, and its value is not known before a run.
  [[nodiscard]] bool is_open(std::initializer_list<std::string_view> names) const;

  // A whole number, also as "5e8" or "4.0"; "auto" and -1 are none. Notes what is not one.
  std::optional<std::int64_t> count(std::initializer_list<std::string_view> names,
                                    std::string_view decides = {});
  std::optional<std::int64_t> count(std::string_view name) { return count({name}); }
  // As count(), but 0 and less are a problem of the file.
  std::optional<std::int64_t> above_zero(std::initializer_list<std::string_view> names,
                                         std::string_view decides = {});
  // A count, set as a strategy's field; 1 where there is none.
  std::int64_t size(std::string_view field, std::initializer_list<std::string_view> names);
  bool on(std::initializer_list<std::string_view> names);
  bool on(std::string_view name) { return on({name}); }
  std::string text(std::initializer_list<std::string_view> names);  // empty: none
  std::string text(std::string_view name) { return text({name}); }

  // What starts with "prefix.", under names without it, as taken.
  std::vector<Written> below(std::string_view prefix);

  // Takes the others by the rows of a table. A row's name may end with '*', for any name with this start, or start with
  // it. What no row has is
  // idle if it is of logging, data, checkpoints or learning rates by its name, else unknown.
  void rest(std::span<const LaunchKey> table);

 private:
  struct Entry {
    Written written;
    bool taken = false;
  };
  std::vector<Entry> entries_;
  RunBuilder& builder_;
};

std::optional<std::int64_t> whole_count(std::string_view text);

// Of words of a command that set the same, the last, which holds.
std::vector<Written> last_of_each(std::vector<Written> written);
std::string lower_case(std::string_view text);

// Sizes of a run that follow from each other.
struct RunScale {
  std::optional<std::int64_t> devices;
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> devices_per_node;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t context = 1;
  std::optional<std::int64_t>
      shard;  // data-parallel ranks that shard together, without context-parallel ones
  std::optional<std::int64_t> replicate;  // such groups
  std::optional<std::int64_t> micro;
  std::optional<std::int64_t> accumulation;
  std::optional<std::int64_t> global;
  std::optional<std::int64_t> layers;  // of the model, where a setting counts them
  bool pairs = false;                  // a sample is two sequences, of which one is preferred
  bool reference = false;              // a frozen copy of the model scores them too
};

// Sets the data-parallel size, the shards and the batches that a run has then. `micro` and `global` are set already if
// the file states them.
void settle(RunScale scale, RunBuilder& builder);

// The fewest data-parallel ranks that hold the experts of a run whose file does not say how many GPUs it has, and that
// divide its batch. Tells what it assumes.
std::int64_t assume_fewest_ranks(RunBuilder& builder);

// Single settings of many frameworks, set where they are written.
bool take_size(TreeRun& run, std::string_view path,
               std::initializer_list<std::string_view> names);  // of the model
void take_global(TreeRun& run, RunScale& scale, std::initializer_list<std::string_view> names);
void take_micro(TreeRun& run, RunScale& scale, std::initializer_list<std::string_view> names);
void take_sequence(TreeRun& run, std::initializer_list<std::string_view> names);
// Tell what is taken where the file does not say it.
void assume_sequence(RunBuilder& builder);
void assume_micro(RunBuilder& builder);
void take_switch(TreeRun& run, std::string_view name, std::string_view field, std::string value);
// A member of the model that nothing has set.
void member_if(RunBuilder& builder, std::string_view path, const Json& value);

// The model by its name: embedded, in a config.json at that place beside the file, or of published sizes.
void name_model_of(const Written& setting, RunBuilder& builder);
void name_model_of(const std::string& name, const Written* from, const std::string& file,
                   RunBuilder& builder);

// What is the same in Llama and models like it, where nothing else is set: SwiGLU, RMSNorm, rotary positions, no biases.
void llama_members(RunBuilder& builder);

// The tree of a file that another names, beside it; none: it cannot be read, which is remarked on.
std::optional<TreeNode> tree_beside(const Written& setting, RunBuilder& builder);

}  // namespace headroom
